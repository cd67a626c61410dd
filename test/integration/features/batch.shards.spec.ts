import { describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { DelayQueueRegistry } from '../../../lib/index.js';
import type { BatchJob } from '../../../lib/index.js';
import { shardOf } from '../../../lib/shards/shard-hash.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const JOBS = 600;

interface Setting {
  readonly shards: number;
  readonly concurrency: number;
  readonly size: number;
  readonly wait?: string;
}

/** Runs a backlog. @returns the most batches at a time, and their sizes */
async function drained({ shards, concurrency, size, wait = '0ms' }: Setting) {
  const queue = `parts-${shards}-${concurrency}-${size}-${wait}`;
  const { app, producer, inspector } = await here.start({ options: { queues: { [queue]: { shards } } } });
  let most = 0;
  const sizes: number[] = [];
  let running = 0;
  let fill!: () => void;
  const isFull = new Promise<void>((resolve) => (fill = resolve));
  const handle = async (payloads: readonly unknown[]) => {
    most = Math.max(most, ++running);
    sizes.push(payloads.length);
    // On a loaded machine the first batches would end before the last of as many had come.
    if (most >= concurrency) fill();
    await isFull;
    await sleep(2);
    running--;
  };
  await inspector.pause(queue);
  await producer.enqueueMany(
    queue,
    Array.from({ length: JOBS }, (_, n) => ({ payload: n, id: `job-${n}` })),
  );
  app.get(DelayQueueRegistry).register(queue, handle, { concurrency, batch: { size, wait: wait as '0ms' } });
  await inspector.resume(queue);
  const all = { completed: JOBS, failed: 0 };
  await eventually(async () => expect(await inspector.totals(queue)).toMatchObject(all), 60_000);
  return { most, sizes };
}

describe('Batches of a queue with shards', () => {
  it.each<Setting>([
    { shards: 8, concurrency: 1, size: 1 },
    { shards: 8, concurrency: 1, size: 50, wait: '10ms' },
    { shards: 8, concurrency: 2, size: 5 },
    { shards: 8, concurrency: 10, size: 5, wait: '5ms' },
    { shards: 3, concurrency: 4, size: 5 },
    { shards: 3, concurrency: 3, size: 7 },
    { shards: 1, concurrency: 3, size: 7 },
  ])('are as many at a time as `concurrency` says, over all shards: %o', async (setting) => {
    const { most, sizes } = await drained(setting);
    expect(most).toBe(setting.concurrency);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(setting.size);
    expect(sizes.reduce((sum, one) => sum + one)).toBe(JOBS);
    // A slot that comes to a shard with a backlog is filled.
    expect(JOBS / sizes.length).toBeGreaterThan(0.5 * setting.size);
  });

  it('come from the shard that has waited longest, also where the jobs had ended before their batch', async () => {
    const queue = 'in-turn';
    const { app, producer, inspector } = await here.start({ options: { queues: { [queue]: { shards: 4 } } } });
    const shards: number[] = [];
    await inspector.pause(queue);
    await producer.enqueueMany(
      queue,
      Array.from({ length: 80 }, (_, n) => ({ payload: n, id: `job-${n}` })),
    );
    app.get(DelayQueueRegistry).register(
      queue,
      async (_: readonly unknown[], jobs: readonly BatchJob[]) => {
        shards.push(shardOf(jobs[0]!.id, 4));
        for (const job of jobs) job.complete();
        // Until Redis has heard of it: then only the end of the batch can tell the others.
        await eventually(async () => expect((await inspector.counts(queue)).running).toBe(0));
      },
      { concurrency: 1, batch: { size: 2 } },
    );
    await inspector.resume(queue);
    await eventually(() => expect(shards.length).toBeGreaterThan(11));
    expect(new Set(shards.slice(0, 12)).size).toBe(4);
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 80 }), 20_000);
  });
});
