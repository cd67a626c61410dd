/** A number as C's `%.<digits>g` writes it: what tostring() makes with 14 digits, and what Redis is sent with 17. */
export function toGeneral(value: number, digits: number): string {
  if (Number.isSafeInteger(value) && (digits > 15 || Math.abs(value) < 10 ** digits))
    return Object.is(value, -0) ? '-0' : String(value);
  // A deadline that ends in a half: it is exact in fewer digits.
  if (digits >= 17 && Math.abs(value) < 1e14 && Number.isSafeInteger(value * 4)) return String(value);
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
  const { mantissa, power } = scientific(value, digits - 1);
  if (power < -4 || power >= digits) return withoutZeros(mantissa) + exponentOf(power);
  return withoutZeros(toFixed(value, digits - 1 - power));
}

/** As `%.<decimals>e`. */
export function toScientific(value: number, decimals: number): string {
  const { mantissa, power } = scientific(value, decimals);
  return mantissa + exponentOf(power);
}

/** As `%.<decimals>f`. */
export function toFixed(value: number, decimals: number): string {
  if (decimals === 0 && Number.isSafeInteger(value) && value !== 0) return String(value);
  if (Math.abs(value) >= 1e21) return BigInt(value).toString() + (decimals > 0 ? `.${'0'.repeat(decimals)}` : '');
  const rounded = value.toFixed(decimals);
  const exact = value.toFixed(Math.min(100, decimals + TIE_DIGITS));
  return isTie(exact, decimals) ? cut(exact, decimals) : rounded;
}

function scientific(value: number, decimals: number): { mantissa: string; power: number } {
  const [exact, at] = value.toExponential(Math.min(100, decimals + TIE_DIGITS)).split('e') as [string, string];
  if (isTie(exact, decimals)) return { mantissa: cut(exact, decimals), power: Number(at) };
  const [mantissa, power] = value.toExponential(decimals).split('e') as [string, string];
  return { mantissa, power: Number(power) };
}

// Exactly in the middle C rounds to the even digit, JavaScript away from zero. Doubles with a middle have few digits behind it.
const TIE_DIGITS = 40;

/** Is this cut exactly in the middle, behind an even digit? */
function isTie(exact: string, decimals: number): boolean {
  const point = exact.indexOf('.');
  const behind = exact.slice(point + 1 + decimals);
  const last = decimals > 0 ? exact[point + decimals]! : exact[point - 1]!;
  return /^50*$/.test(behind) && Number(last) % 2 === 0;
}

function cut(exact: string, decimals: number): string {
  const point = exact.indexOf('.');
  return exact.slice(0, decimals > 0 ? point + 1 + decimals : point);
}

/** C writes at least two digits of an exponent. */
function exponentOf(power: number): string {
  return `e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`;
}

function withoutZeros(text: string): string {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;
const HEXADECIMAL = /^[+-]?0x[0-9a-f]+$/i;
const WORD = /^([+-]?)(inf|infinity|nan)$/i;

/** What C's strtod() takes as a whole, blanks around it included; undefined for anything else. */
export function parseNumber(text: string): number | undefined {
  const whole = wholeNumber(text);
  if (whole !== undefined) return whole; // Nearly all of them.
  const trimmed = text.replace(/^[\s\v]+|[\s\v]+$/g, '');
  if (DECIMAL.test(trimmed)) return Number(trimmed);
  if (HEXADECIMAL.test(trimmed)) {
    return trimmed.startsWith('-') ? -Number(trimmed.slice(1)) : Number(trimmed.replace('+', ''));
  }
  const word = WORD.exec(trimmed);
  if (!word) return undefined;
  return word[2]!.toLowerCase() === 'nan' ? NaN : word[1] === '-' ? -Infinity : Infinity;
}

/** Of digits only, and so few that the number is exact. */
function wholeNumber(text: string): number | undefined {
  if (text.length === 0 || text.length > 15) return undefined;
  let number = 0;
  for (let i = 0; i < text.length; i++) {
    const digit = text.charCodeAt(i) - 48;
    if (digit < 0 || digit > 9) return undefined;
    number = 10 * number + digit;
  }
  return number;
}

/** tonumber() with a base other than 10: an unsigned integer, as C's strtoul() reads it. */
export function parseInBase(text: string, base: number): number | undefined {
  let digits = text.trim().toLowerCase();
  if (base === 16) digits = digits.replace(/^0x/, '');
  if (digits === '') return undefined;
  let value = 0;
  for (const digit of digits) {
    const worth = parseInt(digit, 36);
    if (Number.isNaN(worth) || worth >= base) return undefined;
    value = value * base + worth;
  }
  return value;
}
