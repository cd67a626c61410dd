import { expect } from '@jest/globals';
import { OnDelayed } from '../../lib/index.js';
import type { BatchJob, HandlerOptions, JobSnapshot } from '../../lib/index.js';
import type { TestApp, TestAppSettings } from './app.js';
import { eventually } from './eventually.js';
import type { InAWorld } from './in-a-world.js';

export interface HeldBatch {
  readonly payloads: any[];
  readonly jobs: BatchJob<any>[];
  /** Ends the method: with an error it throws. */
  readonly end: (thrown?: unknown) => void;
}

export interface Batching extends TestApp {
  readonly queue: string;
  /** All calls, ended ones too. */
  readonly calls: HeldBatch[];
  /** Payloads of the calls. */
  readonly seen: () => any[][];
  /** Waits for the n-th call, which is the last one so far. */
  readonly call: (n: number) => Promise<HeldBatch>;
  readonly becomes: (id: string, expected: Partial<JobSnapshot> | undefined) => Promise<void>;
  /** Enqueues each payload under itself as id while the queue is paused, so that all are due together. */
  readonly together: (...payloads: string[]) => Promise<void>;
}

let queues = 0;

/** An application with one batch handler, which holds each batch until the test says how it ends. */
export async function batching(
  here: InAWorld,
  { hold = true, ...options }: HandlerOptions & { hold?: boolean },
  settings: TestAppSettings = {},
): Promise<Batching> {
  const queue = `batch-${queues++}`;
  const calls: HeldBatch[] = [];
  class Handlers {
    run(payloads: unknown[], jobs: BatchJob[]): unknown {
      return new Promise<void>((resolve, reject) => {
        calls.push({ payloads, jobs, end: (thrown) => (thrown === undefined ? resolve() : reject(thrown as Error)) });
        if (!hold) resolve();
      });
    }
  }
  OnDelayed(queue, options)(Handlers.prototype, 'run', Object.getOwnPropertyDescriptor(Handlers.prototype, 'run')!);
  const app = await here.start({
    ...settings,
    providers: [...(settings.providers ?? []), Handlers],
    options: { drainTimeout: 0, ...settings.options },
  });
  return {
    ...app,
    queue,
    calls,
    seen: () => calls.map(({ payloads }) => payloads),
    call: (n) =>
      eventually(() => {
        expect(calls).toHaveLength(n);
        return calls[n - 1]!;
      }),
    becomes: (id, expected) =>
      eventually(async () => {
        const snapshot = await app.producer.get(queue, id);
        if (expected) expect(snapshot).toMatchObject(expected);
        else expect(snapshot).toBeUndefined();
      }),
    async together(...payloads) {
      await app.inspector.pause(queue);
      await app.producer.enqueueMany(
        queue,
        payloads.map((payload) => ({ payload, id: payload })),
      );
      await app.inspector.resume(queue);
    },
  };
}
