import { expect } from '@jest/globals';
import type { DelayedJob, HandlerOptions, JobSnapshot } from '../../lib/index.js';
import { handlerClass } from './app.js';
import type { TestApp } from './app.js';
import { eventually } from './eventually.js';
import type { InAWorld } from './in-a-world.js';

export interface OneHandler extends TestApp {
  readonly queue: string;
  /** The jobs that the handler was called with. */
  readonly runs: DelayedJob[];
  /** Waits until the job under this id stands as expected. */
  readonly becomes: (id: string, expected: Partial<JobSnapshot>) => Promise<JobSnapshot>;
  /** Durations are read from what is stored, not waited for. */
  readonly hoursUntilDue: (id: string) => Promise<number>;
}

let queues = 0;

/** An application with one handler, and a queue of its own. */
export async function oneHandler(
  here: InAWorld,
  handle: (payload: any, job: DelayedJob) => unknown,
  options?: HandlerOptions,
  log?: string[],
): Promise<OneHandler> {
  const queue = `one-${queues++}`;
  const runs: DelayedJob[] = [];
  const noted = (payload: unknown, job: DelayedJob) => {
    runs.push(job);
    return handle(payload, job);
  };
  const app = await here.start({ providers: [handlerClass(queue, noted, options)], log });
  const becomes = (id: string, expected: Partial<JobSnapshot>) =>
    eventually(async () => {
      const snapshot = await app.producer.get(queue, id);
      expect(snapshot).toMatchObject(expected);
      return snapshot!;
    });
  const hoursUntilDue = async (id: string) => {
    const { dueAt } = (await app.producer.get(queue, id))!;
    return (dueAt.getTime() - (await here.world.now())) / 3_600_000;
  };
  return { ...app, queue, runs, becomes, hoursUntilDue };
}
