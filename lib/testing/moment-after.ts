import { parseDuration } from '../job/duration.js';
import type { Duration } from '../job/duration.js';

/**
 * A duration counted from a known moment, so that it may be one of years, which are not of one length: `'1y'` leads to the same day and time
 * of the next year, in UTC.
 *
 * @returns what makes the moment, ms, of the one before   @throws InvalidDelayError
 */
export function momentAfter(by: Duration, field: string): (before: number) => number {
  const years = typeof by === 'string' ? Number(/^\s*(\d{1,2})\s*y\s*$/.exec(by)?.[1] ?? 0) : 0;
  if (years > 0) return (before) => new Date(before).setUTCFullYear(new Date(before).getUTCFullYear() + years);
  const ms = parseDuration(by, field);
  return (before) => before + ms;
}
