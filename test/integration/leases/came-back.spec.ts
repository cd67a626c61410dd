import { expect, it } from '@jest/globals';
import { DelayQueueConsumer } from '../../../lib/index.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();

it.each(['replace', 'reschedule'] as const)(
  'a worker that had lost a job and still ran it got it back after a %s, and ended it with the end of the old run',
  async (onDuplicate) => {
    const queue = `came-back-${onDuplicate}`;
    const { producer, app } = await here.start();
    const consumer = app.get(DelayQueueConsumer);
    await producer.enqueue(queue, 'v1', { id: 'A' });
    const [old] = await consumer.pull(queue);
    // It is frozen past its lease, asked for anew meanwhile, and taken back by another process.
    await producer.enqueue(queue, 'v2', { id: 'A', onDuplicate });
    const [claim] = await here.world.redis.zrange(here.world.key(queue, 'leases'), '0', '0');
    await here.world.redis.zadd(here.world.key(queue, 'leases'), (await here.world.now()) - 1, claim!);
    const other = await here.start();
    const paused = here.world.key(queue, 'meta');
    await here.world.redis.hset(paused, 'paused', '1'); // The other one only takes back.
    expect(await other.app.get(DelayQueueConsumer).pull(queue)).toEqual([]);
    await here.world.redis.hset(paused, 'paused', '0');

    expect(await consumer.pull(queue)).toEqual([]);
    expect(old!.job.signal.aborted).toBe(true);
    await expect(old!.extend('1m')).rejects.toMatchObject({ code: 'ERR_DQ_LEASE_LOST' });
    await expect(old!.complete()).rejects.toMatchObject({ code: 'ERR_DQ_LEASE_LOST' });
    const [again] = await consumer.pull(queue);
    expect(again?.payload).toBe(onDuplicate === 'replace' ? 'v2' : 'v1');
    await again!.complete();
    expect((await here.world.read(queue)).jobs).toEqual({});
  },
);
