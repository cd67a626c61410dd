import type { World } from '../../helpers/world.js';
import type { DelayQueueProducer } from '../../../lib/index.js';

/** Stores a job that has lost leases, so that it is in quarantine. Workers learn of it with their next step. @param shard where its id is */
export async function enqueueQuarantined(
  world: World,
  producer: DelayQueueProducer,
  queue: string,
  id: string,
  {
    waitedMs = 0,
    losses = 1,
    shard = queue,
    group,
  }: { waitedMs?: number; losses?: number; shard?: string; group?: string } = {},
) {
  await producer.enqueue(queue, {}, { id, delay: '1h', ...(group !== undefined && { group }) });
  if (group !== undefined) await takePlace(world, shard, id);
  await world.redis
    .multi()
    .zadd(world.key(shard, 'quarantine'), (await world.now()) - waitedMs, id)
    .hset(world.key(shard, 'attempts'), id, `0 ${losses} 0 5`)
    .zrem(world.key(shard, 'due'), id)
    .exec();
}

/** As the claim of a job with a group does. */
async function takePlace(world: World, shard: string, id: string): Promise<void> {
  const { grouped } = await world.read(shard);
  const [member, place] = Object.entries(grouped).find(([one]) => one.endsWith(id))!;
  await world.redis.multi().zadd(world.key(shard, 'held'), place, id).zrem(world.key(shard, 'grouped'), member).exec();
}
