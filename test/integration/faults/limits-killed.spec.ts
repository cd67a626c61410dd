import { expect, it } from '@jest/globals';
import { inAWorld } from '../../helpers/in-a-world.js';
import { WorkerProcess } from '../../helpers/worker-process.js';

const here = inAWorld();

/** Read in one moment: how many jobs run, and of each group how many have its place. */
const LOOK = `local places = redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
local groups = {}
for n = 2, #places, 2 do groups[places[n]] = (groups[places[n]] or 0) + 1 end
local most = 0
for _, count in pairs(groups) do most = math.max(most, count) end
return { redis.call('ZCARD', KEYS[1]), most, redis.call('ZCARD', KEYS[3]) }`;

it('four processes never exceed the limits of a queue and its groups, also when one is killed; all jobs run', async () => {
  const queue = 'limited';
  const handler = { concurrency: 10, lease: 1_000, globalConcurrency: 12, groups: { concurrency: 2 } };
  const { producer, inspector } = await here.start({ options: { consume: false } });
  await inspector.setLimits(queue, { globalConcurrency: 12, groups: { concurrency: 2 } });
  const jobs = Array.from({ length: 600 }, (_, n) => ({ payload: { waitMs: 20 }, group: `g${n % 10}` }));
  await producer.enqueueMany(queue, jobs);
  // All begin at once, however long a busy machine takes to start four processes.
  await inspector.pause(queue);
  const workers = await Promise.all([1, 2, 3, 4].map(() => WorkerProcess.start(here.world, { queue, handler })));
  await inspector.resume(queue);
  const looks: (readonly [running: number, inOneGroup: number])[] = [];
  try {
    const keys = ['running', 'held', 'due'].map((name) => here.world.key(queue, name));
    for (let killed = false; ;) {
      const [running, most, due] = (await here.world.redis.eval(LOOK, 3, ...keys)) as [number, number, number];
      looks.push([running, most]);
      if (!killed && due < 400) {
        killed = true;
        await workers[0]!.kill();
      }
      const { due: waiting, delayed, running: runs } = await inspector.counts(queue);
      if (waiting + delayed + runs === 0) break;
    }
  } finally {
    await Promise.all(workers.map((worker) => worker.kill()));
  }
  expect(Math.max(...looks.map(([running]) => running))).toBeLessThanOrEqual(12);
  expect(Math.max(...looks.map(([, most]) => most))).toBeLessThanOrEqual(2);
  expect(looks.length).toBeGreaterThan(20);
  expect(await inspector.totals(queue)).toMatchObject({ enqueued: 600, completed: 600 });
  expect(await here.world.problems(queue)).toEqual([]);
});
