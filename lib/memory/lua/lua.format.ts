import { toFixed, toGeneral, toScientific } from './lua.numbers.js';
import { LuaError } from './lua.values.js';

interface Directive {
  flags: string;
  width: number;
  precision: number | undefined;
  letter: string;
}

/** What stands for one directive of string.format(). `text` and `number` read the argument as Lua would. */
export function formatOne(directive: Directive, text: () => string, number: () => number): string {
  const { precision, letter } = directive;
  switch (letter) {
    case 'd':
    case 'i': {
      const value = wholeOf(number());
      return signed(directive, value < 0n, String(value < 0n ? -value : value).padStart(precision ?? 1, '0'));
    }
    case 'u':
      return padded(directive, '', unsignedDigits(directive, number(), 10));
    case 'o':
      return padded(directive, '', unsignedDigits(directive, number(), 8));
    case 'x':
    case 'X':
      return hexadecimal(directive, number());
    case 'c':
      return padded(
        { ...directive, flags: directive.flags.replace('0', '') },
        '',
        String.fromCharCode(number() & 0xff),
      );
    case 'e':
    case 'E':
    case 'f':
    case 'g':
    case 'G': {
      const value = number();
      const written = signed(
        directive,
        value < 0 || Object.is(value, -0),
        float(letter, Math.abs(value), precision ?? 6),
      );
      return letter === letter.toUpperCase() ? written.toUpperCase() : written;
    }
    case 's':
      return padded({ ...directive, flags: directive.flags.replace('0', '') }, '', text().slice(0, precision));
    case 'q':
      return `"${text()
        .replace(/["\\\n]/g, '\\$&')
        .replace(/\r/g, '\\r')
        .replace(/\0/g, '\\000')}"`;
    default:
      throw new LuaError(`invalid option '%${letter}' to 'format'`);
  }
}

function hexadecimal(directive: Directive, value: number): string {
  const digits = unsignedDigits(directive, value, 16);
  const sign = directive.flags.includes('#') && digits !== '0' ? '0x' : '';
  const written = padded(directive, sign, digits);
  return directive.letter === 'X' ? written.toUpperCase() : written;
}

function unsignedDigits({ precision }: Directive, value: number, base: number): string {
  return unsignedOf(value)
    .toString(base)
    .padStart(precision ?? 1, '0');
}

function float(letter: string, value: number, precision: number): string {
  if (!Number.isFinite(value)) return toGeneral(value, 6);
  if (letter === 'f') return toFixed(value, precision);
  if (letter === 'e' || letter === 'E') return toScientific(value, precision);
  return toGeneral(value, precision || 1);
}

/** C casts to a 64-bit integer, which cuts the fraction off; what does not fit becomes the smallest one. */
function wholeOf(value: number): bigint {
  if (!Number.isFinite(value) || Math.abs(value) >= 2 ** 63) return -(2n ** 63n);
  return BigInt(Math.trunc(value));
}

function unsignedOf(value: number): bigint {
  return BigInt.asUintN(64, value >= 2 ** 63 && value < 2 ** 64 ? BigInt(value) : wholeOf(value));
}

function signed(directive: Directive, negative: boolean, digits: string): string {
  const positive = directive.flags.includes('+') ? '+' : directive.flags.includes(' ') ? ' ' : '';
  return padded(directive, negative ? '-' : positive, digits);
}

function padded({ flags, width, precision, letter }: Directive, sign: string, body: string): string {
  if (flags.includes('-')) return (sign + body).padEnd(width);
  // C ignores the flag 0 of an integer that has a precision.
  const zeros = flags.includes('0') && (precision === undefined || 'eEfgG'.includes(letter));
  return zeros ? sign + body.padStart(width - sign.length, '0') : (sign + body).padStart(width);
}
