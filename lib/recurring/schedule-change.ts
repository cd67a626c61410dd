import { LayoutError } from '../delay-queue.errors.js';
import { AGAIN } from '../instance/compare-and-set.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { contentOfOccurrence } from '../job/envelope.js';
import { occurrenceId } from '../job/job-id.js';
import type { OccurrenceItem } from '../redis/schedule.protocol.js';
import { occurrenceItems } from './occurrence-items.js';
import { settleMoves } from './schedule-settling.js';
import { aheadOf, encodeRecord } from './schedule-record.js';
import type { ScheduleRecord } from './schedule-record.js';
import { findSchedule, isLeaving } from './schedule-search.js';
import { ScheduleWrite } from './schedule-write.js';
import type { Change, Changed, Decide } from './schedule-write.js';
import { remembered } from './tick-plan.js';
import type { PlannedOccurrence, TickPlan } from './tick-plan.js';
import { ZONE_DATA } from './zone-data.js';

/** Changes a schedule where it is. One that a process has left on its way to another shard goes on first. */
export async function changeSchedule(
  context: InstanceContext,
  call: string,
  queue: string,
  id: string,
  decide: Decide,
): Promise<Changed | undefined> {
  const write = new ScheduleWrite(context, call, queue, id);
  return context.changes.run({ call, queue, id }, async () => {
    const found = await findSchedule(context, call, queue, id);
    if (!isLeaving(found)) return write.run(found, decide);
    await settleMoves(context, call, queue, id);
    return AGAIN;
  });
}

/** What a plan says. */
export function changeBy(id: string, record: ScheduleRecord, plan: TickPlan): Change {
  // What it makes is looked at again by whoever knows better.
  const zoneData = record.state.zoneData < ZONE_DATA ? record.state.zoneData : ZONE_DATA;
  const state = { ...plan.state, revision: record.state.revision + 1, zoneData };
  return {
    follows: encodeRecord({ ...record, state }),
    tick: plan.tick,
    missed: plan.missed?.count ?? 0,
    ...NONE_GOES,
    occurrences: occurrenceItems(id, record, plan.occurrences),
  };
}

/**
 * The same in place of occurrences that were made before.
 *
 * @param gone which ones go: those that are due unless they have begun
 * @param was the state that made them, read at `now`. It holds until the next of them is due: from then on that one may run, and counts
 */
export function changeInPlaceOf(
  gone: readonly number[],
  was: ScheduleRecord['state'] | undefined,
  now: number,
  id: string,
  record: ScheduleRecord,
  plan: TickPlan,
): Change {
  return {
    ...changeBy(id, record, plan),
    gone: gone.map((at) => occurrenceId(id, at)),
    validBefore: was && aheadOf(was, now)[0],
  };
}

/** Occurrences beside those that the schedule makes. */
export function extraOccurrences(
  id: string,
  record: ScheduleRecord,
  tick: number,
  planned: readonly Pick<PlannedOccurrence, 'at' | 'due'>[],
  overlap: ScheduleRecord['definition']['overlap'],
): Change {
  const { graceMs, expiresInMs, place } = record.definition;
  const rules = { next: undefined, nextDue: undefined, missed: 'all', graceMs, overlap } as const;
  const recent = remembered(
    record.state.recent,
    planned.map(({ at }) => at),
  );
  const state = { ...record.state, revision: record.state.revision + 1, recent };
  const items = planned.map(({ at, due }): OccurrenceItem => ({
    id: occurrenceId(id, at),
    due,
    expiresInMs,
    place,
    content: contentOfOccurrence(record.content, { ...rules, dueAfterMs: due - at }),
  }));
  return { follows: encodeRecord({ ...record, state }), tick, missed: 0, ...NONE_GOES, occurrences: items };
}

const NONE_GOES = { gone: [], validBefore: undefined } as const;

export function unreadable(queue: string, id: string): LayoutError {
  return new LayoutError(`Schedule "${id}" of queue "${queue}" was written by a newer library. Upgrade this one.`);
}
