import { expect, it } from '@jest/globals';
import type { DelayedJob } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();

it('a job whose end was lost in a failover runs again while a neighbour of its claim goes on', async () => {
  const queue = 'end-lost';
  const runs: DelayedJob[] = [];
  const finish = new Map<string, () => void>();
  const handle = (_: unknown, job: DelayedJob) => {
    runs.push(job);
    return new Promise<void>((resolve) => finish.set(job.id, resolve));
  };
  const { producer } = await here.start({
    providers: [handlerClass(queue, handle, { concurrency: 3, lease: '1s', attempts: 1 })],
  });
  const { redis } = here.world;
  const key = (name: string) => here.world.key(queue, name);
  await producer.enqueueMany(queue, [
    { id: 'short', payload: 1 },
    { id: 'long', payload: 2 },
  ]);
  await eventually(() => expect(runs).toHaveLength(2));
  const [claim] = await redis.zrange(key('leases'), '0', '0');
  const envelope = await redis.hget(key('jobs'), 'short');
  finish.get('short')!();
  await eventually(async () => expect((await here.world.read(queue)).jobs).not.toHaveProperty('short'));

  // As a replica stores it that has not heard of the end.
  await redis.multi().hset(key('jobs'), 'short', envelope!).zadd(key('running'), claim!, 'short').exec();
  await eventually(() => expect(runs).toHaveLength(3));
  expect(runs[2]).toMatchObject({ id: 'short', payload: 1, attempt: 1 });
  expect(runs.map(({ signal }) => signal.aborted)).toEqual([false, false, false]);
  expect(Object.keys((await here.world.read(queue)).quarantine)).toEqual([]);

  finish.get('short')!();
  finish.get('long')!();
  await eventually(async () => expect((await here.world.read(queue)).jobs).toEqual({}));
  expect((await here.world.read(queue)).leases).toEqual({});
});
