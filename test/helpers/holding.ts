import { expect } from '@jest/globals';
import { DiscardJob } from '../../lib/index.js';
import type { DelayedJob, DelayQueueRootOptions, HandlerOptions, JobState } from '../../lib/index.js';
import { handlerClass } from './app.js';
import type { TestApp } from './app.js';
import { eventually } from './eventually.js';
import type { InAWorld } from './in-a-world.js';

export interface HeldRun {
  readonly job: DelayedJob;
  /** Ends the handler: with an error it fails. */
  readonly end: (error?: Error) => void;
}

export interface Holding extends TestApp {
  readonly queue: string;
  /** All runs, ended ones too. */
  readonly held: HeldRun[];
  /** Waits for the n-th run, which is the last one so far. */
  readonly run: (n: number) => Promise<HeldRun>;
  readonly state: (id: string) => Promise<JobState | undefined>;
  /** Stores a job under this id and brings it into a state; to make it `due`, the queue is paused. */
  readonly bring: (id: string, state: JobState | 'none') => Promise<void>;
}

const HOUR = 3_600_000;
let queues = 0;

/**
 * An application with one queue, whose handler holds each job until the test says how it ends. What waits for a slot stays due: a worker
 * that fetches ahead would have some of it.
 */
export async function holding(
  here: InAWorld,
  handler: HandlerOptions = {},
  options: DelayQueueRootOptions = {},
): Promise<Holding> {
  const queue = `held-${queues++}`;
  const held: HeldRun[] = [];
  const handle = (_: unknown, job: DelayedJob) =>
    new Promise<void>((resolve, reject) => {
      held.push({ job, end: (error) => (error ? reject(error) : resolve()) });
    });
  const app = await here.start({
    providers: [handlerClass(queue, handle, { prefetch: false, ...handler })],
    options: { drainTimeout: 0, ...options },
  });
  const run = (n: number) =>
    eventually(() => {
      expect(held).toHaveLength(n);
      return held[n - 1]!;
    });
  const state = async (id: string) => (await app.producer.get(queue, id))?.state;
  const bring = async (id: string, wanted: JobState | 'none') => {
    if (wanted === 'none') return;
    if (wanted === 'due') await app.inspector.pause(queue);
    const when = wanted === 'due' ? { at: Date.now() - HOUR } : { delay: wanted === 'delayed' ? HOUR : 0 };
    const before = held.length;
    await app.producer.enqueue(queue, 'old', { id, ...when });
    if (wanted === 'running' || wanted === 'dead') {
      const { end } = await run(before + 1);
      if (wanted === 'dead') end(new DiscardJob('dead'));
    }
    await eventually(async () => expect(await state(id)).toBe(wanted));
  };
  return { ...app, queue, held, run, state, bring };
}
