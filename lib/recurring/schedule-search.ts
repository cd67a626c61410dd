import type { InstanceContext } from '../instance/instance-context.js';
import { parseSchedules } from '../redis/schedule.protocol.js';
import type { StoredSchedule } from '../redis/schedule.protocol.js';
import { readInTime } from './read-in-time.js';
import { decodeRecord } from './schedule-record.js';

const MOST_LOOKS = 3;

/** Where a schedule is, and what it is. */
export interface FoundSchedule {
  readonly shard: number;
  /** Server time, ms. */
  readonly now: number;
  /** Undefined when there is none. */
  readonly stored: StoredSchedule | undefined;
}

/** One schedule, in the shard of its id or in that of its group. On its way it may be in two: then that in which it lives. */
export async function findSchedule(
  context: InstanceContext,
  call: string,
  queue: string,
  id: string,
): Promise<FoundSchedule> {
  const own = context.shardOf(queue, id, 0);
  const found = await readSchedule(context, call, queue, id, own);
  if (isLiving(found)) return found;
  const all = await findEverywhere(context, call, queue, id, own, found);
  return all.find(isLiving) ?? all.find(isStored) ?? all[0];
}

/**
 * All shards, this one first. They are not read at one moment: one that is taken from shard to shard meanwhile was in none of them. A move
 * lasts longer than a look, so where nothing is found another look finds it.
 *
 * @param read what stood in the first one just now, if that is known
 */
export async function findEverywhere(
  context: InstanceContext,
  call: string,
  queue: string,
  id: string,
  first: number,
  read?: FoundSchedule,
): Promise<readonly [FoundSchedule, ...FoundSchedule[]]> {
  const stores = context.stores(queue);
  const mayMove = stores.length > 1 && stores[first]!.isLimited;
  let found = read ?? (await readSchedule(context, call, queue, id, first));
  for (let looks = 1; ; looks++) {
    const others = await findElsewhere(context, call, queue, id, first);
    if (isStored(found) || others.length > 0 || looks === MOST_LOOKS || !mayMove) return [found, ...others];
    found = await readSchedule(context, call, queue, id, first);
  }
}

export function isStored(found: FoundSchedule): found is FoundSchedule & { stored: StoredSchedule } {
  return found.stored !== undefined;
}

/** Is it there, and not on its way to another shard? */
export function isLiving({ stored }: FoundSchedule): boolean {
  return stored !== undefined && decodeRecord(stored.text)?.state.leaving === undefined;
}

/** Is it there, and on its way to another shard? */
export function isLeaving({ stored }: FoundSchedule): boolean {
  return stored !== undefined && decodeRecord(stored.text)?.state.leaving !== undefined;
}

/** Is it there, and stopped by who is about to remove it? */
export function isRemoving({ stored }: FoundSchedule): boolean {
  return stored !== undefined && decodeRecord(stored.text)?.state.removing === true;
}

/** The same in all shards but this one, which was read before: those in which it is. */
export async function findElsewhere(
  context: InstanceContext,
  call: string,
  queue: string,
  id: string,
  known: number,
): Promise<FoundSchedule[]> {
  const stores = context.stores(queue);
  const own = context.shardOf(queue, id, 0);
  // Where there are no groups it can only be in the shard of its id.
  const others = stores[known]!.isLimited ? [...stores.keys()] : [own];
  const looks = others.filter((shard) => shard !== known).map((shard) => readSchedule(context, call, queue, id, shard));
  return (await Promise.all(looks)).filter(isStored);
}

export async function readSchedule(
  context: InstanceContext,
  call: string,
  queue: string,
  id: string,
  shard: number,
): Promise<FoundSchedule> {
  const reply = await readInTime(context.stores(queue)[shard]!, 'schedules', [id, 1, '', ''], { call, id });
  const { now, schedules } = parseSchedules(reply as (string | number)[]);
  const { movedMs } = context.connection;
  const [stored] = schedules.map((one) => ({ ...one, tick: one.tick + movedMs }));
  return { shard, now: now + movedMs, stored };
}
