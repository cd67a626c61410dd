import { afterEach, describe, expect, it } from '@jest/globals';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setTimeout as sleep } from 'node:timers/promises';
import { channelName } from '../../../lib/delay-queue.channels.js';
import { DelayQueueConsumer } from '../../../lib/index.js';
import type { BatchJob, DelayedJob } from '../../../lib/index.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';

const here = inAWorld();
const CLAIMS = 1_000;
const LEASE_MS = 3_000;
/** Claims that one step speaks for. */
const PER_STEP = 200;

const undo: (() => void)[] = [];
afterEach(() => undo.splice(0).forEach((stop) => stop()));

function listen(name: 'step' | 'claimed' | 'leaseLost', queue: string): unknown[] {
  const published: unknown[] = [];
  const hear = (message: unknown) => {
    if ((message as { queue: string }).queue === queue) published.push(message);
  };
  subscribe(channelName(name), hear);
  undo.push(() => void unsubscribe(channelName(name), hear));
  return published;
}

/** Lets four leases pass. @returns the heartbeats that it took, and how many a worker may send in that time */
async function fourLeases(steps: unknown[], claims = CLAIMS): Promise<{ sent: number; most: number }> {
  const [before, since] = [steps.length, performance.now()];
  await sleep(4 * LEASE_MS);
  const rounds = (performance.now() - since) / (LEASE_MS / 3) + 1;
  return { sent: steps.length - before, most: rounds * Math.ceil(claims / PER_STEP) };
}

describe('handlers that came one by one, five times as many as one step can renew', () => {
  it('all keep their leases, by a bounded number of steps: the 201st was taken from a living handler', async () => {
    const queue = 'one-by-one';
    const runs: DelayedJob[] = [];
    let finish!: () => void;
    const finished = new Promise<void>((resolve) => (finish = resolve));
    let started!: () => void;
    const handle = (_: unknown, job: DelayedJob) => {
      runs.push(job);
      started();
      return finished;
    };
    const { producer, inspector } = await here.start({
      providers: [handlerClass(queue, handle, { concurrency: CLAIMS, lease: LEASE_MS, attempts: 1 })],
    });
    const lost = listen('leaseLost', queue);
    for (let n = 0; n < CLAIMS; n++) {
      const start = new Promise<void>((resolve) => (started = resolve));
      await producer.enqueue(queue, n);
      await start;
    }
    const claims = Object.keys((await here.world.read(queue)).leases).length;
    expect(claims).toBeGreaterThan(CLAIMS * 0.9);

    const { sent, most } = await fourLeases(listen('step', queue));
    expect(sent).toBeLessThanOrEqual(most);
    expect(lost).toEqual([]);
    expect(runs.filter(({ signal }) => signal.aborted)).toEqual([]);
    finish();
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: CLAIMS }), 20_000);
    expect(runs).toHaveLength(CLAIMS);
  });
});

describe('jobs pulled one by one, five times as many as one step can renew', () => {
  it('all keep their leases', async () => {
    const queue = 'pulled-one-by-one';
    const { app, producer, inspector } = await here.start();
    const consumer = app.get(DelayQueueConsumer);
    const jobs = Array.from({ length: CLAIMS }, (_, n) => ({ payload: n }));
    await producer.enqueueMany(queue, jobs);
    const pulled = [];
    for (let n = 0; n < CLAIMS; n++) pulled.push(...(await consumer.pull(queue, { lease: LEASE_MS })));
    expect(Object.keys((await here.world.read(queue)).leases)).toHaveLength(CLAIMS);

    const { sent, most } = await fourLeases(listen('step', queue));
    expect(sent).toBeLessThanOrEqual(most);
    expect(pulled.filter(({ job }) => job.signal.aborted)).toEqual([]);
    await Promise.all(pulled.map((job) => job.complete()));
    expect(await inspector.totals(queue)).toMatchObject({ completed: CLAIMS });
  });
});

describe('two batches of 200 whose jobs came one by one', () => {
  it('keep all their leases: those of the second one were taken from the living method', async () => {
    const queue = 'batches-one-by-one';
    const jobs = 2 * PER_STEP;
    const batches: BatchJob[][] = [];
    let finish!: () => void;
    const finished = new Promise<void>((resolve) => (finish = resolve));
    const handle = (_: unknown, batch: unknown) => {
      batches.push(batch as BatchJob[]);
      return finished;
    };
    const settings = { batch: { size: PER_STEP, wait: '1m' }, concurrency: 2, lease: LEASE_MS, attempts: 1 };
    const { producer, inspector } = await here.start({ providers: [handlerClass(queue, handle, settings)] });
    const lost = listen('leaseLost', queue);
    const claimed = listen('claimed', queue);
    for (let n = 0; n < jobs; n++) {
      await producer.enqueue(queue, n);
      await eventually(() => expect(claimed.length).toBe(n + 1));
    }
    await eventually(() => expect(batches.map(({ length }) => length)).toEqual([PER_STEP, PER_STEP]));
    expect(Object.keys((await here.world.read(queue)).leases)).toHaveLength(jobs);

    const { sent, most } = await fourLeases(listen('step', queue), jobs);
    expect(sent).toBeLessThanOrEqual(most);
    expect(lost).toEqual([]);
    expect(batches.flat().filter(({ signal }) => signal.aborted)).toEqual([]);
    finish();
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: jobs, dead: 0 }));
    expect(batches).toHaveLength(2);
  });
});
