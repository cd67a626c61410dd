import { expect, it } from '@jest/globals';
import { DelayQueueHealth } from '../../../lib/index.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();

it('health told of a queue whose shards are being changed in words of the store', async () => {
  const { app, producer } = await here.start({ options: { consume: false } });
  await producer.enqueue('moving', 1);
  await here.world.redis.hset(here.world.key('moving', 'meta'), 'needs', 'shards:1>2.x');
  const { status, reasons } = await app.get(DelayQueueHealth).check();
  expect([status, reasons]).toEqual([
    'degraded',
    [expect.stringContaining('the number of shards of the queue is being changed')],
  ]);
  expect(reasons.join()).not.toContain('DQMOVING');
});
