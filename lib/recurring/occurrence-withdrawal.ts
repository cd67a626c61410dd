import { occurrenceId } from '../job/job-id.js';
import type { EnqueueBatcher } from '../producer/enqueue-batcher.js';
import { JointWithdrawals } from './joint-withdrawals.js';
import { FIRST_PAGE, parsePage } from './occurrence-pages.js';
import type { Cursor } from './occurrence-pages.js';
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
  /** Times of some that go wherever they wait. */
  readonly named: readonly number[];
}

/** What was made until then: what has been due since, and what the record names. */
export function madeUntil(until: number, { definition, state }: ScheduleRecord): Withdrawn {
  return { latest: until, dueBy: until + Math.max(definition.jitterMs, PUT_OFF_MS), named: state.recent };
}

/** Of a schedule whose record cannot be read, everything. */
export const ALL: Withdrawn = { latest: 8.64e15, dueBy: 8.64e15, named: [] };

/** One for each way to a shard, and for each call, as errors name it. */
const joint = new WeakMap<EnqueueBatcher, Map<string, JointWithdrawals>>();

/**
 * Takes back occurrences that have not begun. A record remembers only the newest: a backfill and an outage make more, so all that is due
 * is looked through, once for all schedules of which that is wanted meanwhile.
 *
 * @param calls to the shard of the schedule
 * @returns how many
 */
export async function withdrawOccurrences(
  calls: EnqueueBatcher,
  id: string,
  { latest, dueBy, named }: Withdrawn,
  movedMs: number,
  call: string,
): Promise<number> {
  let ofBatcher = joint.get(calls);
  if (!ofBatcher) joint.set(calls, (ofBatcher = new Map()));
  let together = ofBatcher.get(call);
  if (!together) ofBatcher.set(call, (together = new JointWithdrawals(calls, call, PAGE)));
  return together.add({
    schedule: id,
    latest: latest.toString(36),
    dueBy: dueBy - movedMs,
    named: named.map((at) => occurrenceId(id, at)),
  });
}

/** Cancels the runs of a schedule's occurrences. @returns how many */
export async function cancelOccurrences(calls: EnqueueBatcher, id: string, call: string): Promise<number> {
  let count = 0;
  let cursor: Cursor | undefined = FIRST_PAGE;
  while (cursor) {
    const page = parsePage(await calls.run('cancelOccurrences', id, [id, PAGE, ...cursor], { call }));
    count += Number(page.found);
    cursor = page.cursor;
  }
  return count;
}
