import { AGAIN } from '../instance/compare-and-set.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { GivenUp } from './given-up.js';
import { allMade, cancelOccurrences, madeUntil, withdrawOccurrences } from './occurrence-withdrawal.js';
import type { Withdrawn } from './occurrence-withdrawal.js';
import { planGivenUp } from './overdue.js';
import { decodeRecord, encodeRecord, madeBy } from './schedule-record.js';
import type { ScheduleRecord } from './schedule-record.js';
import { findEverywhere, isLeaving, isLiving, isStored } from './schedule-search.js';
import type { FoundSchedule } from './schedule-search.js';
import { NEVER } from './tick-plan.js';

/** How a schedule is removed. */
export interface Removal {
  /** Its runs are cancelled, too. */
  readonly running: boolean;
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
): Promise<number | undefined> {
  const givenUp = new GivenUp();
  let removed: number | undefined;
  try {
    return await context.changes.run({ call, queue, id }, async () => {
      const all = (await findEverywhere(context, call, queue, id, context.shardOf(queue, id, 0))).filter(isStored);
      // What was left in a shard goes first: while it lives elsewhere, a call that breaks off has removed nothing.
      const found = all.find(isLeaving) ?? all[0];
      if (!found) return removed;
      const calls = context.ofShard(queue, found.shard);
      const unschedule: Unschedule = async (read, follows, count = 0, pausedAt = '') => {
        const words = { call, bytes: read.length + follows.length };
        return String(await calls.run('unschedule', id, [id, read, follows, NEVER, count, pausedAt], words)).split(' ');
      };
      const record = decodeRecord(found.stored.text);
      const isRest = isLeaving(found) && all.some(isLiving);
      const { text } = found.stored;
      const stopped = isRest ? text : await stop(unschedule, id, text, record, found.now, givenUp);
      if (stopped === undefined) return AGAIN;
      const withdrawn = record ? madeUntil(record, found.now) : allMade(found.now);
      removed = (removed ?? 0) + (await withdrawAll(context, call, queue, id, found.shard, withdrawn, givenUp));
      if (removal.running) await cancelOccurrences(calls, id, call);
      const [word] = await unschedule(stopped, '');
      return word === 'w' && all.length === 1 ? removed : AGAIN;
    });
  } finally {
    givenUp.report(context, queue, id);
  }
}

/** Removes a schedule that was stopped for it: whoever stopped it is on the way, or has died there. One that has changed since stays. */
export async function finishRemoval(
  context: InstanceContext,
  call: string,
  queue: string,
  id: string,
  { shard, now, stored }: FoundSchedule,
): Promise<void> {
  const { text } = stored!;
  const record = decodeRecord(text)!;
  const givenUp = new GivenUp();
  try {
    await withdrawAll(context, call, queue, id, shard, madeUntil(record, now), givenUp);
  } finally {
    givenUp.report(context, queue, id);
  }
  await context.ofShard(queue, shard).run('unschedule', id, [id, text, '', NEVER, 0, ''], { call, bytes: text.length });
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
  givenUp: GivenUp,
): Promise<string | undefined> {
  if (!record || (record.state.paused && !record.state.leaving)) return text;
  const { missed } = await planGivenUp(id, record, now);
  const stopped = stoppedAt(now, record);
  const [word] = await unschedule(text, stopped, missed?.count, madeBy(record.state, now));
  if (word !== 'w') return undefined;
  givenUp.add(missed);
  return stopped;
}

/** The record of a schedule that makes nothing more, also where it was on its way to another shard. */
function stoppedAt(now: number, { state, ...record }: ScheduleRecord): string {
  const { leaving: _, ...rest } = state;
  const stopped = {
    ...rest,
    revision: state.revision + 1,
    paused: true,
    removing: true as const,
    last: madeBy(state, now),
  };
  return encodeRecord({ ...record, state: stopped });
}
