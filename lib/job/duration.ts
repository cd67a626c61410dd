import { types } from 'node:util';
import { InvalidDelayError } from '../delay-queue.errors.js';
import { wallClock } from '../time-and-randomness.js';
import { forgetPromise } from './forget-promise.js';

/**
 * A length of time: milliseconds, text such as `'3h'`, `'45m'`, `'1d 2h'`, `'1.5h'`, `'250ms'`, or an ISO-8601 duration
 * without calendar units (`'PT3H'`, `'P1DT2H'`, `'P2W'`). Units are lower case: ms, s, m, h, d, w, or in words.
 */
export type Duration = number | string;

export interface DurationBounds {
  /** Least accepted, in ms. Default 0. */
  min?: number;
  /** Greatest accepted, in ms. Default 100 years. */
  max?: number;
  /** What to do with a moment, which is refused then. */
  moment?: string;
}

/** 100 years of 365.25 days. Nobody means more: a larger value is a mistake about units. */
export const MAX_DURATION_MS = 36_525 * 86_400_000;

/** Above this `setTimeout` fires at once, so whatever becomes a timer must stay below it. About 24.8 days. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const WEEK = 7 * DAY;

const SPELLINGS: ReadonlyArray<readonly [unit: number, spellings: string]> = [
  [1, 'ms millisecond milliseconds'],
  [SECOND, 's sec secs second seconds'],
  [MINUTE, 'm min mins minute minutes'],
  [HOUR, 'h hr hrs hour hours'],
  [DAY, 'd day days'],
  [WEEK, 'w week weeks'],
];
const UNITS: ReadonlyMap<string, number> = new Map(
  SPELLINGS.flatMap(([unit, spellings]) => spellings.split(' ').map((spelling) => [spelling, unit] as const)),
);

const PART = /\s*(\d+)(?:\.(\d+))?\s*([a-z]+)/y;
const ISO =
  /^P(?=\d|T\d)(?:(\d+)(?:[.,](\d+))?W)?(?:(\d+)(?:[.,](\d+))?D)?(?:T(?=\d)(?:(\d+)(?:[.,](\d+))?H)?(?:(\d+)(?:[.,](\d+))?M)?(?:(\d+)(?:[.,](\d+))?S)?)?$/;
const ISO_UNITS = [WEEK, DAY, HOUR, MINUTE, SECOND] as const;

const NEGATIVE = 'is negative. A duration is 0 or more';
const EXAMPLES = "ms, or text such as '250ms', '45m', '3h', '1d 2h' or 'PT3H'";

/**
 * @param field where the value stands; begins the error message
 * @returns whole ms, rounded up so that nothing is ever early
 * @throws InvalidDelayError for whatever is not wholly understood or is out of bounds
 */
export function parseDuration(
  value: unknown,
  field: string,
  { min = 0, max = MAX_DURATION_MS, moment }: DurationBounds = {},
): number {
  if (moment !== undefined && isLikeNow(value)) {
    throw refusal(new Date(value), field, `is a moment, and not a duration. ${moment}`);
  }
  const ms = typeof value === 'string' ? parseText(value, field) : value;
  if (typeof ms !== 'number' || Number.isNaN(ms)) throw refusal(value, field, `is not a duration. Use ${EXAMPLES}`);
  if (ms < 0) throw refusal(value, field, NEGATIVE);
  if (ms > MAX_DURATION_MS) throw refusal(value, field, 'is more than 100 years. Numbers are milliseconds');
  const whole = Math.ceil(ms) + 0; // + 0 turns -0 into 0
  if (whole < min) throw refusal(value, field, `is too short: at least ${min} ms`);
  if (whole > max) throw refusal(value, field, `is too long: at most ${max} ms`);
  return whole;
}

/** A delay of decades that ends up so near to the present, counted since 1970, is `Date.now()` and more by mistake. */
const NEAR_NOW_MS = 10 * 365 * 86_400_000;

/** A Date, or a number of ms within ten years of now. */
function isLikeNow(value: unknown): value is Date | number {
  if (typeof value === 'number') return value > 1e12 && Math.abs(value - wallClock()) < NEAR_NOW_MS;
  return types.isDate(value) && !Number.isNaN(value.getTime());
}

/**
 * A moment for `at` and `expiresAt`: a Date or epoch ms. The past is accepted, but for numbers that look like seconds. Date
 * text is refused, because half of its spellings are read in the time zone of whichever machine reads them.
 *
 * @returns whole epoch ms, rounded up
 * @throws InvalidDelayError for anything else, and for more than 100 years from now
 */
export function parseInstant(value: unknown, field: string, now: number = wallClock()): number {
  const ms = types.isDate(value) ? value.getTime() : value;
  if (typeof ms !== 'number' || Number.isNaN(ms)) {
    throw refusal(value, field, 'is not a moment. Use a Date or the milliseconds since 1970');
  }
  if (ms < 0) throw refusal(value, field, 'is before 1970');
  if (value === ms && ms >= SECONDS.from && ms < SECONDS.to) {
    const [asMs, asSeconds] = [new Date(ms), new Date(ms * SECOND)].map((date) => date.toISOString());
    const problem = `would be ${asMs} in milliseconds; in seconds it is ${asSeconds}. Give milliseconds, or a Date`;
    throw refusal(value, field, problem);
  }
  if (ms > now + MAX_DURATION_MS) {
    throw refusal(value, field, 'is more than 100 years ahead. Numbers are milliseconds since 1970');
  }
  return Math.ceil(ms) + 0;
}

/** True of a number of seconds since 1970 that is within a month of now; whole minutes in ms are none, 21 days for one. */
export function isLikeSecondsOfNow(ms: number): boolean {
  if (ms < SECONDS.from || ms >= SECONDS.to || ms % 60_000 === 0) return false;
  return Math.abs(ms * SECOND - wallClock()) < 30 * DAY;
}

/**
 * Numbers that are seconds since 1970, from 2001 to 5138: as milliseconds they would be in the first three years after
 * 1970, so that the job would run at once.
 */
const SECONDS = { from: 1_000_000_000, to: 100_000_000_000 } as const;

type Amount = readonly [digits: string, decimals: string | undefined, unit: number];

function parseText(value: string, field: string): number {
  const text = value.trim();
  if (text === '') throw refusal(value, field, `is empty. Use ${EXAMPLES}`);
  return total(text.startsWith('P') ? isoAmounts(text, field) : plainAmounts(text, field));
}

function plainAmounts(text: string, field: string): Amount[] {
  const amounts: Amount[] = [];
  for (PART.lastIndex = 0; PART.lastIndex < text.length;) {
    const part = PART.exec(text);
    const unit = part && UNITS.get(part[3]!);
    if (!unit) {
      // Only of short text: what is longer was no duration, and looking at it would take its time.
      const short = text.length > 40 ? '' : text;
      if (short.startsWith('-') && isAmounts(short.slice(1))) throw refusal(text, field, NEGATIVE);
      const hasCapitals = /[A-Z]/.test(short);
      const problem = /^\d+(\.\d+)?$/.test(text)
        ? 'has no unit'
        : part && !hasCapitals
          ? 'has an unknown unit'
          : 'is not a duration';
      const isLower = hasCapitals && isAmounts(short.toLowerCase());
      const hint = isLower ? ': units are lower case' : isCron(short) ? ': schedule() takes cron' : '';
      throw refusal(text, field, `${problem}${hint}. Use ${EXAMPLES}`);
    }
    if (amounts.some(([, , other]) => other === unit)) throw refusal(text, field, 'names one unit twice');
    amounts.push([part[1]!, part[2], unit]);
  }
  return amounts;
}

/** To tell what was meant by what is refused. */
function isAmounts(text: string): boolean {
  return /^(?:\s*\d+(?:\.\d+)?\s*[a-z]+)+$/.test(text);
}

/** Five parts, or six with seconds. */
function isCron(text: string): boolean {
  return /^[\d*](?:\S* ){4,5}\S+$/.test(text.replaceAll(/\s+/g, ' ')) && /^[\d*/,\-?#\sA-Z]+$/i.test(text);
}

function isoAmounts(text: string, field: string): Amount[] {
  const iso = ISO.exec(text);
  if (!iso) {
    const calendar = /^P[^T]*\d[YM]/.test(text);
    const why = 'has years or months, which are not of one length. Use days, or compute a Date';
    throw refusal(text, field, calendar ? why : `is not an ISO-8601 duration. Use ${EXAMPLES}`);
  }
  return ISO_UNITS.flatMap((unit, i): Amount[] => {
    const digits = iso[2 * i + 1];
    return digits === undefined ? [] : [[digits, iso[2 * i + 2], unit]];
  });
}

// Whole numbers and fractions are summed apart, because 1.1 * 3_600_000 is a little more than 3_960_000 and would be
// rounded up to a millisecond too much. The fractions stay under two weeks, where doubles are exact to far below 1e-6 ms.
function total(amounts: readonly Amount[]): number {
  let whole = 0;
  let fraction = 0;
  for (const [digits, decimals, unit] of amounts) {
    whole += Number(digits) * unit;
    if (decimals !== undefined) fraction += Number(`0.${decimals}`) * unit;
  }
  return whole + Math.ceil(fraction - 1e-6);
}

function refusal(value: unknown, field: string, problem: string): InvalidDelayError {
  return new InvalidDelayError(`${field}: ${shown(value)} ${problem}.`);
}

/** A refused value in an error message: short, on one line, and never the content of an object. */
export function shown(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return schemeOnly(value) ?? (value.length > 40 ? `${quoted(value.slice(0, 40))}…` : quoted(value));
    case 'bigint':
      return 'a BigInt';
    case 'symbol':
    case 'function':
      return `a ${typeof value}`;
    case 'object':
      if (value === null) return 'null';
      // Only this may be asked of one without running its traps.
      if (types.isProxy(value)) return 'a Proxy';
      if (forgetPromise(value)) return 'a promise';
      if (Array.isArray(value)) return 'an array';
      if (types.isDate(value)) return Number.isNaN(value.getTime()) ? 'an invalid Date' : value.toISOString();
      return 'an object';
    default:
      return String(value);
  }
}

/** Of a URL that may have a password, and was given where none belongs. @returns undefined for other text */
export function schemeOnly(text: string): string | undefined {
  const at = text.indexOf('://');
  if (at < 0 || !text.includes('@', at)) return undefined;
  return `"${/[a-z+]*$/i.exec(text.slice(0, at).slice(-40))![0]}://…"`;
}

/** By default as long as a host may be. Names of masters and paths of sockets are shorter. */
export function cutShort(given: unknown, most = 253): string {
  const text = String(given);
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

/** As JSON, which leaves C1 controls and line separators as they are: those can break a log line or drive a terminal. */
export function quoted(text: string): string {
  return JSON.stringify(text).replace(
    /[\x7f-\x9f\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const READABLE: readonly (readonly [name: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
];

/** A duration for people: `812 ms`, `1.5 s`, `45 s`, `2 min 30 s`, `1 h`. Two units at most, the second one rounded. */
export function readable(ms: number): string {
  if (!(ms >= 999.5)) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${Number((ms / 1_000).toFixed(1))} s`;
  const at = READABLE.findIndex(([, unit]) => ms >= unit);
  const [name, unit] = READABLE[at]!;
  const [nextName, next] = READABLE[at + 1] ?? ['', unit];
  const whole = Math.round(ms / next) * next;
  // Rounding may reach the next greater unit: 59.9 s is a minute.
  if (at > 0 && whole >= READABLE[at - 1]![1]) return readable(whole);
  const count = Math.floor(whole / unit);
  const rest = Math.round((whole - count * unit) / next);
  return rest === 0 || nextName === '' ? `${count} ${name}` : `${count} ${name} ${rest} ${nextName}`;
}
