import { InvalidOptionError } from '../delay-queue.errors.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { timesBetween, timesOf } from './occurrence-times.js';
import { decodeRecord, rhythmOf } from './schedule-record.js';
import { findSchedule } from './schedule-search.js';

/** Nominal times that one `backfill()` may have. */
export const MOST_BACKFILLED = 1_000;

export function tooMany(queue: string, id: string): InvalidOptionError {
  return new InvalidOptionError(
    `backfillSchedule("${queue}", "${id}"): more than ${MOST_BACKFILLED} occurrences. Give a shorter stretch.`,
  );
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
  const times = await timesOf(rhythmOf(record), 'backfill()');
  const count = timesBetween(times, from - 1, Math.min(to, now), MOST_BACKFILLED + 1).length;
  if (count > MOST_BACKFILLED) throw tooMany(queue, id);
  return count;
}
