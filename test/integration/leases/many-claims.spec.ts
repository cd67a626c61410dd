import { afterEach, describe, expect, it } from '@jest/globals';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setTimeout as sleep } from 'node:timers/promises';
import { channelName } from '../../../lib/delay-queue.channels.js';
import { DelayQueueConsumer } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
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

function listen(name: 'step' | 'leaseLost', queue: string): unknown[] {
  const told: unknown[] = [];
  const hear = (message: unknown) => {
    if ((message as { queue: string }).queue === queue) told.push(message);
  };
  subscribe(channelName(name), hear);
  undo.push(() => void unsubscribe(channelName(name), hear));
  return told;
}

/** Lets four leases pass. @returns the heartbeats that it took, and how many a worker may send in that time */
async function fourLeases(steps: unknown[]): Promise<{ sent: number; most: number }> {
  const [before, since] = [steps.length, performance.now()];
  await sleep(4 * LEASE_MS);
  const rounds = (performance.now() - since) / (LEASE_MS / 3) + 1;
  return { sent: steps.length - before, most: rounds * Math.ceil(CLAIMS / PER_STEP) };
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
