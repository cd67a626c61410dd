import type { InstanceContext } from '../instance/instance-context.js';
import { parseSchedules } from '../redis/schedule.protocol.js';
import type { StoredSchedule } from '../redis/schedule.protocol.js';
import { readInTime } from './read-in-time.js';

/** Where a schedule is, and what it is. */
export interface FoundSchedule {
  readonly shard: number;
  /** Server time, ms. */
  readonly now: number;
  /** Undefined when there is none. */
  readonly stored: StoredSchedule | undefined;
}

/** One schedule, in the shard of its id or in that of its group. */
export async function findSchedule(
  context: InstanceContext,
  call: string,
  queue: string,
  id: string,
): Promise<FoundSchedule> {
  const own = context.shardOf(queue, id, 0);
  const found = await readSchedule(context, call, queue, id, own);
  return found.stored ? found : ((await findElsewhere(context, call, queue, id, own)) ?? found);
}

/** The same in all shards but this one, which was read before. */
export async function findElsewhere(
  context: InstanceContext,
  call: string,
  queue: string,
  id: string,
  known: number,
): Promise<FoundSchedule | undefined> {
  const stores = context.stores(queue);
  const own = context.shardOf(queue, id, 0);
  // Where there are no groups it can only be in the shard of its id.
  const others = stores[known]!.isLimited ? [...stores.keys()] : [own];
  const looks = others.filter((shard) => shard !== known).map((shard) => readSchedule(context, call, queue, id, shard));
  return (await Promise.all(looks)).find(({ stored }) => stored);
}

export async function readSchedule(
  context: InstanceContext,
  call: string,
  queue: string,
  id: string,
  shard: number,
): Promise<FoundSchedule> {
  const reply = await readInTime(context.stores(queue)[shard]!, 'schedules', [id, 1, '', ''], call);
  const { now, schedules } = parseSchedules(reply as (string | number)[]);
  const { movedMs } = context.connection;
  const [stored] = schedules.map((one) => ({ ...one, tick: one.tick + movedMs }));
  return { shard, now: now + movedMs, stored };
}
