import { occurrenceId } from '../job/job-id.js';
import type { EnqueueBatcher } from '../producer/enqueue-batcher.js';
import type { GivenUp } from './given-up.js';
import { JointWithdrawals } from './joint-withdrawals.js';
import { FIRST_PAGE, parsePage } from './occurrence-pages.js';
import type { Cursor } from './occurrence-pages.js';
import { madeBy } from './schedule-record.js';
import type { ScheduleRecord } from './schedule-record.js';

/** Jobs that one call looks at. */
const PAGE = 500;
/** An occurrence that waits for the one before it is due a second later each time: such as may still come back from a worker. */
const PUT_OFF_MS = 60_000;

/** Which occurrences go, of those that have not begun. Epoch ms of schedules. */
export interface Withdrawn {
  /** Those made for a later time stay. */
  readonly latest: number;
  /** Those due later are not looked for. */
  readonly dueBy: number;
  /** What goes of those made until then was due, and counts as missed. */
  readonly wasDue: number;
  /** Times of some that go wherever they wait. */
  readonly named: readonly number[];
  /** When the schedule was read. What was made since stays: the schedule may have been removed and made again, with the same ids. */
  readonly readAt: number;
}

/**
 * What was made until then: what has been due since, and what the record names.
 *
 * @param readAt when the record was read
 */
export function madeUntil(
  { definition, state }: ScheduleRecord,
  readAt: number,
  until = madeBy(state, readAt),
): Withdrawn {
  const dueBy = until + Math.max(definition.jitterMs, PUT_OFF_MS);
  return { latest: until, dueBy, wasDue: until, named: state.recent, readAt };
}

/** Of a schedule whose record cannot be read, everything. */
export function allMade(now: number): Withdrawn {
  return { latest: 8.64e15, dueBy: 8.64e15, wasDue: now, named: [], readAt: now };
}

/** One for each way to a shard, and for each call, as errors name it. */
const joint = new WeakMap<EnqueueBatcher, Map<string, JointWithdrawals>>();

/**
 * Takes back occurrences that have not begun. A record remembers only the newest: a backfill and an outage make more, so all that is due
 * is looked through, once for all schedules of which that is wanted meanwhile.
 *
 * @param calls to the shard of the schedule
 * @param givenUp gets those that were due, also when the call fails behind a part of them
 * @returns how many
 */
export async function withdrawOccurrences(
  calls: EnqueueBatcher,
  id: string,
  { latest, dueBy, wasDue, named, readAt }: Withdrawn,
  movedMs: number,
  call: string,
  givenUp: GivenUp,
): Promise<number> {
  let ofBatcher = joint.get(calls);
  if (!ofBatcher) joint.set(calls, (ofBatcher = new Map()));
  let together = ofBatcher.get(call);
  if (!together) ofBatcher.set(call, (together = new JointWithdrawals(calls, call, PAGE)));
  return together.add({
    schedule: id,
    latest: latest.toString(36),
    dueBy: dueBy - movedMs,
    wasDue: wasDue.toString(36),
    named: named.map((at) => occurrenceId(id, at)),
    readAt: readAt - movedMs,
    counted: (part) => givenUp.add(part),
  });
}

/** Cancels the runs of a schedule's occurrences, also those that wait to run again. */
export async function cancelOccurrences(calls: EnqueueBatcher, id: string, call: string): Promise<void> {
  // What runs is looked at once more, for what has been claimed meanwhile.
  for (const waiting of [0, 1, 0]) {
    let cursor: Cursor | undefined = FIRST_PAGE;
    while (cursor) {
      const answer: string = await calls.run('cancelOccurrences', id, [id, PAGE, ...cursor, waiting], { call });
      cursor = parsePage(answer).cursor;
    }
  }
}
