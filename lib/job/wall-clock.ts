import { InvalidDelayError, InvalidOptionError } from '../delay-queue.errors.js';
import { quoted, shown } from './duration.js';
import { isPlainObject, oneOf } from './option-rules.js';

/** A moment as people say it: what the clocks of a place show. */
export interface LocalTime {
  /** Date and time without a zone: `'2027-03-28T09:00'`, also with seconds. */
  local: string;
  /** Of the IANA list, such as `'Europe/Berlin'`. */
  timeZone: string;
  /**
   * What happens when clocks change. By default a time that comes twice is the earlier one, and a time that is left out moves
   * forward by what is left out (02:30 is 03:30). `'earlier'` and `'later'` take the earlier or the later moment in both
   * cases; `'reject'` refuses both.
   */
  ambiguous?: 'earlier' | 'later' | 'reject';
}

/** As it is stored with a job. */
export interface ZonedMoment extends Readonly<LocalTime> {
  /** The moment that the zone data gave, epoch ms. */
  readonly at: number;
}

/** @throws InvalidOptionError */
export function assertTimeZone(zone: unknown, field: string): string {
  try {
    if (typeof zone !== 'string' || zone === '') throw new RangeError();
    formatOf(zone);
    return zone;
  } catch {
    const what = typeof zone === 'string' ? quoted(zone.slice(0, 40)) : shown(zone);
    throw new InvalidOptionError(`${field}: ${what} is not a time zone of the IANA list, such as 'Europe/Berlin'.`);
  }
}

const LOCAL = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d))?$/;
const DAY_MS = 86_400_000;

/** @throws InvalidOptionError, InvalidDelayError */
export function parseLocalTime(value: unknown, field: string): ZonedMoment {
  if (!isPlainObject(value)) throw new InvalidOptionError(`${field}: ${shown(value)} is not { local, timeZone }.`);
  const { local, timeZone, ambiguous, ...others } = value;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw new InvalidOptionError(`${field}: unknown option ${quoted(unknown)}. Known: local, timeZone, ambiguous.`);
  }
  if (typeof local !== 'string' || wallMs(local) === undefined) {
    const isShaped = typeof local === 'string' && LOCAL.test(local) && !(Number(local.slice(0, 4)) < 1970);
    const problem = isShaped
      ? 'does not exist: no clock shows it.'
      : "is not a local time, such as '2027-03-28T09:00'.";
    throw new InvalidDelayError(`${field}.local: ${shown(local)} ${problem}`);
  }
  const zoned = {
    local,
    timeZone: assertTimeZone(timeZone, `${field}.timeZone`),
    ...(ambiguous !== undefined && {
      ambiguous: oneOf(ambiguous, ['earlier', 'later', 'reject'], `${field}.ambiguous`),
    }),
  };
  const at = instantOf(zoned);
  if (at === undefined) {
    throw new InvalidDelayError(
      `${field}: ${local} in ${zoned.timeZone} comes twice or not at all, because clocks change.`,
    );
  }
  return { ...zoned, at };
}

/** The moment, epoch ms, by the zone data of this process; undefined when it is refused as ambiguous. */
export function instantOf({ local, timeZone, ambiguous }: LocalTime): number | undefined {
  const wall = wallMs(local)!;
  const before = offsetAt(wall - DAY_MS, timeZone);
  const after = offsetAt(wall + DAY_MS, timeZone);
  const found = [before, after].map((offset) => wall - offset).filter((at) => at + offsetAt(at, timeZone) === wall);
  const [first, last] = [Math.min(...found), Math.max(...found)];
  if (found.length > 0 && first === last) return first;
  if (ambiguous === 'reject') return undefined;
  if (found.length > 0) return ambiguous === 'later' ? last : first;
  // Left out: with the offset from before the change it is later, with the one from after the change earlier.
  return ambiguous === 'earlier' ? wall - Math.max(before, after) : wall - Math.min(before, after);
}

/** What a clock shows, as if it stood in UTC; undefined for what no clock shows. */
function wallMs(local: string): number | undefined {
  const parts = LOCAL.exec(local);
  if (!parts) return undefined;
  const [year, month, day, hour, minute, second] = parts.slice(1).map((part) => Number(part ?? 0)) as number[];
  const ms = Date.UTC(year!, month! - 1, day, hour, minute, second);
  const full = local.length === 16 ? `${local}:00` : local;
  return new Date(ms).toISOString().slice(0, 19) === full && year! >= 1970 ? ms : undefined;
}

const formats = new Map<string, Intl.DateTimeFormat>();
const MOST_FORMATS = 500;

function formatOf(timeZone: string): Intl.DateTimeFormat {
  let format = formats.get(timeZone);
  if (!format) {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
    if (formats.size >= MOST_FORMATS) formats.delete(formats.keys().next().value!);
    formats.set(timeZone, format);
  }
  return format;
}

/** How much the clocks of a zone are ahead of UTC at a moment, ms. */
export function offsetAt(ms: number, timeZone: string): number {
  const parts: Partial<Record<string, number>> = {};
  for (const { type, value } of formatOf(timeZone).formatToParts(ms)) parts[type] = Number(value);
  const { year, month, day, hour, minute, second } = parts as Record<string, number>;
  return Date.UTC(year!, month! - 1, day, hour, minute, second) - Math.floor(ms / 1_000) * 1_000;
}
