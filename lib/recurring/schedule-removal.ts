import { AGAIN } from '../instance/compare-and-set.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { GivenUp } from './given-up.js';
import { allMade, cancelOccurrences, madeUntil, withdrawOccurrences } from './occurrence-withdrawal.js';
import type { Withdrawn } from './occurrence-withdrawal.js';
import { planGivenUp } from './overdue.js';
import { countsOf, decodeRecord, encodeRecord, madeBy, withoutAhead } from './schedule-record.js';
import type { ScheduleRecord } from './schedule-record.js';
import type { FoundSchedule } from './schedule-search.js';
import { NEVER } from './tick-plan.js';

/** How a schedule is removed. */
export interface Removal {
  /** Its runs are cancelled, too. */
  readonly running: boolean;
  /** Takes what is removed, because it is to be in another shard. */
  readonly moved?: (record: ScheduleRecord) => void;
}

/**
 * Stops it first, so that nothing is made while its occurrences are taken back, and removes it last: who repeats a call that broke off
 * finds it, and completes what that one has begun.
 *
 * @returns how many occurrences that had not begun went with it; undefined without such a schedule
 */
export async function removeSchedule(
  context: InstanceContext,
  call: string,
  queue: string,
  id: string,
  removal: Removal,
  find: () => Promise<FoundSchedule | undefined>,
): Promise<number | undefined> {
  const givenUp = new GivenUp();
  let removed: number | undefined;
  try {
    return await context.changes.run({ call, queue, id }, async () => {
      const found = await find();
      if (!found?.stored) return removed;
      const calls = context.ofShard(queue, found.shard);
      const unschedule: Unschedule = async (read, follows, count = 0, pausedAt = '') => {
        const words = { call, bytes: read.length + follows.length };
        return String(await calls.run('unschedule', id, [id, read, follows, NEVER, count, pausedAt], words)).split(' ');
      };
      const record = decodeRecord(found.stored.text);
      const stopped = await stop(unschedule, id, found.stored.text, record, found.now, removal, givenUp);
      if (stopped === undefined) return AGAIN;
      const withdrawn = record ? madeUntil(madeBy(record.state, found.now), record) : allMade(found.now);
      removed = (removed ?? 0) + (await withdrawAll(context, call, queue, id, found.shard, withdrawn, givenUp));
      if (removal.running) await cancelOccurrences(calls, id, call);
      const [word, ...counts] = await unschedule(stopped, '');
      if (word !== 'w') return AGAIN;
      const last = record && decodeRecord(stopped);
      if (last) removal.moved?.(asItWas(last, counts));
      return removed;
    });
  } finally {
    givenUp.report(context, queue, id);
  }
}

/** @returns how many were taken back; those that were due are given up */
export function withdrawAll(
  context: InstanceContext,
  call: string,
  queue: string,
  id: string,
  shard: number,
  withdrawn: Withdrawn,
  givenUp: GivenUp,
): Promise<number> {
  return withdrawOccurrences(context.ofShard(queue, shard), id, withdrawn, context.connection.movedMs, call, givenUp);
}

type Unschedule = (read: string, follows: string, missed?: number, pausedAt?: number | '') => Promise<string[]>;

/** Lets a schedule make nothing more. @returns the record as it is now; undefined when it has changed meanwhile */
async function stop(
  unschedule: Unschedule,
  id: string,
  text: string,
  record: ScheduleRecord | undefined,
  now: number,
  { moved }: Removal,
  givenUp: GivenUp,
): Promise<string | undefined> {
  if (!record || record.state.paused) return text;
  const { missed } = await planGivenUp(id, record, now);
  const stopped = stoppedAt(now, record, moved ? (missed?.count ?? 0) : undefined);
  const [word] = await unschedule(text, stopped, missed?.count, madeBy(record.state, now));
  if (word !== 'w') return undefined;
  givenUp.add(missed);
  return stopped;
}

/** The record of a schedule that makes nothing more. @param missed of one that is to be in another shard, what it gives up here */
function stoppedAt(now: number, record: ScheduleRecord, missed: number | undefined): string {
  const { state } = record;
  const stopped = { ...state, revision: state.revision + 1, paused: true, last: madeBy(state, now) };
  const moves = missed !== undefined && { made: state.made + missed, wasPaused: false };
  return encodeRecord({ ...record, state: { ...stopped, ...moves } });
}

/** Before it was stopped, to be in another shard. @param counts what unschedule.lua tells of one that it has removed */
function asItWas({ state, ...record }: ScheduleRecord, [missed, overlapped, ...floor]: string[]): ScheduleRecord {
  const counted = { missed: Number(missed), overlapped: Number(overlapped), floor: floor.join(' ') || undefined };
  const elsewhere = countsOf(state, counted);
  if (state.wasPaused === undefined) return { ...record, state: { ...state, elsewhere } };
  // What was ahead when it was stopped went, also where its time has come since.
  const { wasPaused, ...before } = withoutAhead(state, state.last);
  return { ...record, state: { ...before, paused: wasPaused!, elsewhere } };
}
