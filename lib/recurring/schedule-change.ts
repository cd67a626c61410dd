import { LayoutError, PublishingPausedError } from '../delay-queue.errors.js';
import { AGAIN } from '../instance/compare-and-set.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { contentOfOccurrence } from '../job/envelope.js';
import { occurrenceId, parseOccurrenceId } from '../job/job-id.js';
import { bytesOfTick, goneOfTick, overOfTick, tickArgs, tickScript } from '../redis/schedule.protocol.js';
import type { OccurrenceItem, StoredSchedule, TickRequest } from '../redis/schedule.protocol.js';
import { occurrenceItems } from './occurrence-items.js';
import { withOver } from './over-occurrences.js';
import { aheadOf, decodeRecord, encodeRecord } from './schedule-record.js';
import type { ScheduleRecord } from './schedule-record.js';
import { findSchedule, readSchedule } from './schedule-search.js';
import { remembered } from './tick-plan.js';
import type { PlannedOccurrence, TickPlan } from './tick-plan.js';

/** A change of a schedule that was read: the record that follows, and what comes with it. */
export type Change = Omit<TickRequest, 'id' | 'read'>;

/** The schedule after a change. */
export interface Changed {
  readonly record: ScheduleRecord;
  readonly now: number;
  readonly shard: number;
  /** Times of those that were due, and went with it. */
  readonly gone: readonly number[];
}

/** What follows; the record when nothing is to be written, undefined when there is nothing to change. */
export type Decide = (
  stored: StoredSchedule | undefined,
  record: ScheduleRecord | undefined,
  now: number,
  shard: number,
) => Promise<Change | ScheduleRecord | undefined>;

/** @param home the shard in which it is to be; undefined: where it is */
export async function changeSchedule(
  context: InstanceContext,
  call: string,
  queue: string,
  id: string,
  decide: Decide,
  home?: number,
): Promise<Changed | undefined> {
  const over: number[] = [];
  return context.changes.run({ call, queue, id }, async () => {
    const { now, stored, shard } = await (home === undefined
      ? findSchedule(context, call, queue, id)
      : readSchedule(context, call, queue, id, home));
    const record = stored && decodeRecord(stored.text);
    const change = await decide(stored, record && withOver(record, over), now, shard);
    if (!change) return undefined;
    if (!('follows' in change)) return { record: change, now, shard, gone: [] };
    const request: TickRequest = { ...change, id, read: stored?.text };
    const args = tickArgs(request, context.connection.movedMs);
    const words = { call, bytes: bytesOfTick(request) };
    const answer = await context.ofShard(queue, shard).run(tickScript(request), id, args, words);
    if (answer === 'b') throw new PublishingPausedError(queue);
    const toCome = request.gone.slice(request.goneDue ?? 0);
    over.push(...(timesOfIds(overOfTick(toCome, answer)) ?? []));
    const gone = timesOfIds(goneOfTick(request, answer));
    return gone ? { record: decodeRecord(change.follows)!, now, shard, gone } : AGAIN;
  });
}

function timesOfIds(occurrences: readonly string[] | undefined): number[] | undefined {
  return occurrences?.map((occurrence) => parseOccurrenceId(occurrence)!.at);
}

/** What a plan says. */
export function changeBy(id: string, record: ScheduleRecord, plan: TickPlan): Change {
  const state = { ...plan.state, revision: record.state.revision + 1 };
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
