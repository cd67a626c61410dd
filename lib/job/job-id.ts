import { createHash } from 'node:crypto';
import { types } from 'node:util';
import { InvalidIdError } from '../delay-queue.errors.js';
import { randomInt, wallClock } from '../time-and-randomness.js';
import { nameProblem } from './queue-name.js';

const MOST_CHARACTERS = 256;

/**
 * @param id 1 to 256 printable characters without braces
 * @param field where the id stands; begins the error message
 * @param most what the message tells of the length
 * @throws InvalidIdError
 */
export function assertJobId(id: unknown, field = 'Job id', most = MOST_CHARACTERS): string {
  const problem = nameProblem(id, MOST_CHARACTERS);
  if (problem === undefined) return id as string;
  const hint = typeof id === 'number' ? ' Use String(id).' : isPlainOrJob(id) ? ' Give the `id` of the job.' : '';
  throw new InvalidIdError(`${field}: ${problem}. Use 1 to ${most} printable characters without braces.${hint}`);
}

function isPlainOrJob(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !types.isProxy(value) && 'id' in value;
}

/** The job that a schedule makes for one time: braces, which no other id has, around the id of the schedule, and the time. */
export function occurrenceId(schedule: string, at: number): string {
  return `{${schedule}}${at.toString(36)}`;
}

/** Which schedule made the job with this id, and for which time (epoch ms); undefined for an ordinary job. */
export function parseOccurrenceId(id: string): { schedule: string; at: number } | undefined {
  const [, schedule, time] = /^\{([^{}]+)\}([0-9a-z]{1,9})$/.exec(id) ?? [];
  return schedule === undefined ? undefined : { schedule, at: parseInt(time!, 36) };
}

/** An id of a job that may be there already: also of an occurrence. */
export function assertStoredId(id: unknown, field?: string): string {
  return typeof id === 'string' && parseOccurrenceId(id) ? id : assertJobId(id, field);
}

/** Can a job have this id? Also an occurrence. */
export function isStoredId(id: unknown): id is string {
  return (
    typeof id === 'string' && (parseOccurrenceId(id) !== undefined || nameProblem(id, MOST_CHARACTERS) === undefined)
  );
}

export interface IdGeneratorOptions {
  /** Epoch ms. Default: the clock of the process. */
  now?: () => number;
  /** In [0, 1). Called a few times, when the generator is made. Default: from the system's random source. */
  random?: () => number;
}

// Digits in byte order, so that ids sort as numbers do. Letters and digits only: a double click selects the whole id
// and no shell, URL or file name needs it quoted.
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const BASE = DIGITS.length;
const PAIRS = Array.from({ length: BASE ** 2 }, (_, n) => DIGITS[Math.floor(n / BASE)]! + DIGITS[n % BASE]!);
const PER_MS = BASE ** 4;

/**
 * Makes ids of exactly 20 letters and digits:
 *
 *     0VnG4kTq 0003 mY2cX81b
 *     |        |    `- this generator: drawn once, one of 62^8 (2.2e14)
 *     |        `- how many ids this millisecond had before: up to 62^4 (14.8 million), then the next millisecond is used
 *     `- milliseconds since 1970; enough until the year 8888
 *
 * Their byte order is the order in which this generator made them: when the clock stands still or goes back, the last
 * millisecond is kept. Two ids are equal only if two generators drew the same part (1 in 4.4e6 when 10,000 processes ever
 * ran) *and* were at the same count in the same millisecond. Ids can be guessed from each other: they are not secrets.
 */
export function createIdGenerator({ now = wallClock, random = secureRandom }: IdGeneratorOptions = {}): () => string {
  const generator = Array.from({ length: 8 }, () => DIGITS[Math.floor(random() * BASE)]!).join('');
  let time = 0;
  let count = 0;
  let head = timeDigits(time);

  return () => {
    const read = now();
    if (read >= time + 1 || count === PER_MS) {
      time = read >= time + 1 ? Math.floor(read) : time + 1;
      count = 0;
      head = timeDigits(time);
    }
    const id = head + PAIRS[(count / PAIRS.length) | 0]! + PAIRS[count % PAIRS.length]! + generator;
    count++;
    return id;
  };
}

/** The same content always gives the same id: 22 URL-safe characters, 132 bits of SHA-256. */
export function contentId(encodedPayload: string | Uint8Array): string {
  return createHash('sha256').update(encodedPayload).digest('base64url').slice(0, 22);
}

function timeDigits(ms: number): string {
  let digits = '';
  for (let rest = ms, i = 0; i < 4; i++, rest = Math.floor(rest / PAIRS.length)) {
    digits = PAIRS[rest % PAIRS.length]! + digits;
  }
  return digits;
}

function secureRandom(): number {
  return randomInt(2 ** 32) / 2 ** 32;
}
