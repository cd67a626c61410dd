import type { World } from '../../helpers/world.js';
import type { DelayQueueProducer } from '../../../lib/index.js';

/** Stores a job that has lost a lease, so that it must run alone. Workers learn of it with their next step. */
export async function enqueueSuspect(world: World, producer: DelayQueueProducer, queue: string, id: string) {
  await producer.enqueue(queue, {}, { id, delay: '1h' });
  await world.redis
    .multi()
    .zadd(world.key(queue, 'suspects'), await world.now(), id)
    .hset(world.key(queue, 'attempts'), id, '0 1 0 5')
    .zrem(world.key(queue, 'due'), id)
    .exec();
}
