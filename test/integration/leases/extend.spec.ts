import { describe, expect, it } from '@jest/globals';
import type { DelayedJob } from '../../../lib/index.js';
import { eventually } from '../../helpers/eventually.js';
import { holding } from '../../helpers/holding.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();

/** ms that are left of the only lease. */
async function leftOf(queue: string): Promise<number> {
  const deadlines = Object.values((await here.world.read(queue)).leases);
  expect(deadlines).toHaveLength(1);
  return deadlines[0]! - (await here.world.now());
}

/** The deadline of the only lease. */
async function deadlineOf(queue: string): Promise<number> {
  return Math.floor(Object.values((await here.world.read(queue)).leases)[0]!);
}

describe('extend() by less than what is left', () => {
  it('by a shorter time than the lease took the rest of it away: another process started the job', async () => {
    const { producer, queue, run } = await holding(here, { lease: '1h' });
    await producer.enqueue(queue, {});
    const { job, end } = await run(1);
    const before = await deadlineOf(queue);
    await job.extend('2s');
    expect(await deadlineOf(queue)).toBeGreaterThanOrEqual(before);
    end();
  });

  it('takes nothing away from a shorter lease that was extended before', async () => {
    const { producer, queue, run } = await holding(here, { lease: '10s' });
    await producer.enqueue(queue, {});
    const { job, end } = await run(1);
    await job.extend('2h');
    await job.extend('1s');
    expect(await leftOf(queue)).toBeGreaterThan(7_100_000);
    end();
  });
});

describe('heartbeats', () => {
  it('keep the lease that extend() gave at its length', async () => {
    const { producer, queue, run } = await holding(here, { lease: 600 });
    await producer.enqueue(queue, {});
    const { job, end } = await run(1);
    await job.extend('2h');
    const given = await deadlineOf(queue);
    // Another renewal, by a heartbeat of its own.
    await eventually(async () => expect(await deadlineOf(queue)).toBeGreaterThan(given));
    expect(await leftOf(queue)).toBeGreaterThan(7_100_000);
    end();
  });

  it('renew extended claims and others, each to its own length', async () => {
    const { producer, queue, held, run } = await holding(here, { lease: 600 });
    await producer.enqueueMany(queue, [{ payload: 1 }, { payload: 2 }]);
    await run(2);
    const jobs: DelayedJob[] = held.map(({ job }) => job);
    await jobs[0]!.extend('2h');
    const now = await here.world.now();
    const both = async () =>
      Object.values((await here.world.read(queue)).leases)
        .map((deadline) => Math.floor(deadline))
        .sort((a, b) => a - b);
    await eventually(async () => expect((await both())[0]!).toBeGreaterThan(now + 1_200));
    const [short, long] = await both();
    expect(short! - (await here.world.now())).toBeLessThanOrEqual(600);
    expect(long! - now).toBeGreaterThan(7_200_000);
    expect(jobs.some(({ signal }) => signal.aborted)).toBe(false);
    held.forEach(({ end }) => end());
  });
});
