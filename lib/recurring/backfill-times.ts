import { InvalidOptionError } from '../delay-queue.errors.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { timesBetween, timesOf } from './occurrence-times.js';
import { decodeRecord, rhythmOf } from './schedule-record.js';
import type { ScheduleRecord } from './schedule-record.js';
import { findSchedule } from './schedule-search.js';

/** Nominal times that one `backfill()` may have. */
export const MOST_BACKFILLED = 1_000;

export function tooMany(queue: string, id: string): InvalidOptionError {
  return new InvalidOptionError(
    `backfillSchedule("${queue}", "${id}"): more than ${MOST_BACKFILLED} occurrences. Give a shorter stretch.`,
  );
}

/** The first times of a schedule in (after, to], at most `most`: none before its `from`, behind its `until`, or of the future. */
export async function backfillTimes(
  record: ScheduleRecord,
  after: number,
  to: number,
  now: number,
  most: number,
): Promise<number[]> {
  const { from, until } = record.definition;
  const times = await timesOf(rhythmOf(record), 'backfill()');
  const begin = from === null ? after : Math.max(after, from - 1);
  return timesBetween(times, begin, Math.min(to, now, until ?? Infinity), most);
}

/**
 * How many times a backfill would have, without making anything.
 *
 * @returns undefined without such a schedule, or when a newer library wrote it
 * @throws InvalidOptionError when they are more than one backfill may have
 */
export async function backfillSize(
  context: InstanceContext,
  queue: string,
  id: string,
  from: number,
  to: number,
): Promise<number | undefined> {
  const { stored, now } = await findSchedule(context, 'backfillSchedule', queue, id);
  const record = stored && decodeRecord(stored.text);
  if (!record) return undefined;
  const count = (await backfillTimes(record, from - 1, to, now, MOST_BACKFILLED + 1)).length;
  if (count > MOST_BACKFILLED) throw tooMany(queue, id);
  return count;
}
