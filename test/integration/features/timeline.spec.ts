import { expect, it } from '@jest/globals';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const HOUR = 3_600_000;

it('the timeline of a queue with shards is the sum of its shards', async () => {
  const { producer, inspector } = await here.start({ options: { queues: { split: { shards: 4 } }, consume: false } });
  const from = (await here.world.now()) + HOUR;
  const items = Array.from({ length: 100 }, (_, n) => ({ payload: n, at: from + n }));
  await producer.enqueueMany('split', [...items, { payload: 'late', at: from - 2 * HOUR }]);
  const found = await inspector.timeline('split', { from, to: from + 90, buckets: 9 });
  expect(found).toMatchObject({ overdue: 1, before: 1, counts: Array.from({ length: 9 }, () => 10), after: 10 });
  expect([found.firstDueAt, found.lastDueAt]).toEqual([new Date(from - 2 * HOUR), new Date(from + 99)]);
});
