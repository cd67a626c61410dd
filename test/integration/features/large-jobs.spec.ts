import { expect, it, jest } from '@jest/globals';
import type { DelayedJob } from '../../../lib/index.js';
import { ShardStore } from '../../../lib/redis/shard-store.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const JOBS = 60;
const FIT = 5;

it('Redis reads little more than an answer has room for, and all of them run, in their order', async () => {
  const queue = 'large';
  const ran: string[] = [];
  const asked: { readonly limit: number; readonly brought: number }[] = [];
  const step = Reflect.get(ShardStore.prototype, 'step') as ShardStore['step'];
  const spy = jest.spyOn(ShardStore.prototype, 'step').mockImplementation(async function (this: ShardStore, ...args) {
    const reply = await step.apply(this, args);
    if (reply.isCut) asked.push({ limit: args[2].limit, brought: reply.jobs.length });
    return reply;
  });
  try {
    const handle = (_: unknown, job: DelayedJob) => void ran.push(job.id);
    const { producer, inspector } = await here.start({
      providers: [handlerClass(queue, handle, { concurrency: 50, prefetch: false })],
    });
    await inspector.pause(queue);
    const at = Date.now() - 60_000;
    const ids = Array.from({ length: JOBS }, (_, n) => `job-${n}`);
    await producer.enqueueMany(
      queue,
      ids.map((id, n) => ({ payload: 'x'.repeat(200_000), id, at: at + n })),
    );
    await inspector.resume(queue);
    await eventually(() => expect(ran).toHaveLength(JOBS));
    expect(ran).toEqual(ids);
  } finally {
    spy.mockRestore();
  }
  expect(asked.length).toBeGreaterThan(5);
  for (const { brought } of asked) expect(brought).toBe(FIT);
  for (const { limit } of asked.slice(1)) expect(limit).toBeLessThanOrEqual(FIT + 2);
});
