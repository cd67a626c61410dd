import { AGAIN } from '../instance/compare-and-set.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { GivenUp } from './given-up.js';
import { madeUntil } from './occurrence-withdrawal.js';
import { withdrawAll } from './schedule-removal.js';
import { asItWas, countsOf, decodeRecord } from './schedule-record.js';
import type { Leaving, ScheduleRecord } from './schedule-record.js';
import { findElsewhere, findEverywhere, isLeaving, isLiving, readSchedule } from './schedule-search.js';
import type { FoundSchedule } from './schedule-search.js';
import { changeOfState, ScheduleWrite } from './schedule-write.js';
import { NEVER } from './tick-plan.js';

/** Of others that change the schedule meanwhile. What was counted in the last moment is not worth more. */
const MOST_TRIES = 20;

/** A schedule that is on its way to another shard, as it stands in the one that it leaves. */
export interface LeftSchedule {
  readonly shard: number;
  readonly text: string;
  readonly record: ScheduleRecord;
}

/** Its way to another shard. Undefined for one that is not on its way. */
export function leavingOf({ stored }: FoundSchedule): Leaving | undefined {
  return stored && decodeRecord(stored.text)?.state.leaving;
}

/** May whoever moves it write it in the other shard just now? */
export function isHandedOver(found: FoundSchedule): boolean {
  return (leavingOf(found)?.until ?? -Infinity) > found.now;
}

/**
 * Ends moves to another shard that nobody may be at any more: their process has died, or is too slow. Where the schedule lives in another
 * shard the rest of it goes; where it does not, it goes on where it is, as it was before.
 */
export async function settleMoves(context: InstanceContext, call: string, queue: string, id: string): Promise<void> {
  const all = await findEverywhere(context, call, queue, id, context.shardOf(queue, id, 0));
  for (const found of all) {
    if (!isLeaving(found) || isHandedOver(found)) continue;
    const { text } = found.stored!;
    const left = { shard: found.shard, text, record: decodeRecord(text)! };
    // Behind the look at `until`: what was written in another shard until then is seen.
    const living = (await findElsewhere(context, call, queue, id, left.shard)).find(isLiving);
    if (living) await removeRest(context, call, queue, id, left, living.shard, found.now);
    else await revive(context, call, queue, id, found);
  }
}

async function revive(
  context: InstanceContext,
  call: string,
  queue: string,
  id: string,
  found: FoundSchedule,
): Promise<void> {
  await new ScheduleWrite(context, call, queue, id).run(found, async (_, record, now) => {
    const before = asItWas(record!);
    // Whoever looks next makes what is to be ahead.
    return changeOfState(before, before.state, before.state.paused ? NEVER : now);
  });
}

/** With what has come back to it since it was left. */
async function removeRest(
  context: InstanceContext,
  call: string,
  queue: string,
  id: string,
  left: LeftSchedule,
  home: number,
  now: number,
): Promise<void> {
  const givenUp = new GivenUp();
  try {
    const withdrawn = madeUntil(left.record, now);
    await withdrawAll(context, call, queue, id, left.shard, withdrawn, givenUp);
  } finally {
    givenUp.report(context, queue, id);
  }
  await removeLeft(context, call, queue, id, left, home);
}

/**
 * Removes what was left in a shard, and adds to the schedule what that has counted since it was handed over.
 *
 * @param home where the schedule lives
 * @returns false when somebody has changed it since
 */
export async function removeLeft(
  context: InstanceContext,
  call: string,
  queue: string,
  id: string,
  { shard, text, record }: LeftSchedule,
  home: number,
): Promise<boolean> {
  const answer = await context
    .ofShard(queue, shard)
    .run('unschedule', id, [id, text, '', NEVER, 0, ''], { call, bytes: text.length });
  const [word, missed, overlapped, ...floor] = String(answer).split(' ');
  if (word !== 'w') return false;
  const { counted } = record.state.leaving!;
  if (!counted) return true;
  const since = { missed: Number(missed) - counted.missed, overlapped: Number(overlapped) - counted.overlapped };
  const lastJob = floor.join(' ') || undefined;
  const write = new ScheduleWrite(context, call, queue, id);
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const there = await readSchedule(context, call, queue, id, home);
    const done = await write.run(there, async (stored, living) => {
      if (!stored || !living) return undefined;
      const elsewhere = countsOf(living.state, { ...since, floor: lastJob });
      if (since.missed + since.overlapped === 0 && (!lastJob || elsewhere.lastJob === living.state.elsewhere?.lastJob))
        return living;
      return changeOfState(living, { ...living.state, elsewhere }, stored.tick);
    });
    if (done !== AGAIN) break;
  }
  return true;
}
