import { expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { DelayQueueConsumer } from '../../lib/consumer/delay-queue.consumer.js';
import type { Handler } from '../../lib/handlers/handler.js';
import type { DelayedJob } from '../../lib/job/delayed-job.js';
import type { DelayQueueRunner } from '../../lib/worker/delay-queue.runner.js';
import type { QueueWorker } from '../../lib/worker/queue-worker.js';

/** After which a queue without an answer counts as silent. */
const SILENT_MS = 500;

/** A consumer whose worker does what the test says: a real one is done within some milliseconds, except on a machine that is busy. */
function withWorker() {
  const worker = { running: 0, wanted: 0, concurrency: 0, looksOnce: false } as QueueWorker & { running: number };
  let handler: Handler | undefined;
  const runner = {
    draining: false,
    options: { name: 'test', commandTimeoutMs: 60_000 },
    onDrain: () => () => undefined,
    notePull: () => undefined,
    addPuller(of: Handler, _: boolean, use: (worker: QueueWorker) => void) {
      handler = of;
      use(worker);
    },
  };
  const consumer = new DelayQueueConsumer(() => runner as unknown as DelayQueueRunner);
  const give = (id: string) => {
    worker.running++;
    void handler!.invoke({ id } as DelayedJob);
  };
  return { worker, consumer, give };
}

// A queue with many occurrences that overlap, on a busy machine: pull() gave fewer jobs than it was asked for, though more were due.
it('a queue is not silent while it goes through occurrences that are left out, one after the other', async () => {
  const { worker, consumer, give } = withWorker();
  const pulled = consumer.pull('q', { max: 2 });
  give('A');
  for (const since = performance.now(); performance.now() - since < 1.5 * SILENT_MS;) {
    worker.running++;
    worker.onEnded!();
    worker.running--;
    worker.onEnded!();
    await sleep(SILENT_MS / 10);
  }
  give('B');
  expect((await pulled).map(({ id }) => id)).toEqual(['A', 'B']);
});

it('a queue is silent when nothing comes any more, and what it gave before is not kept', async () => {
  const { worker, consumer, give } = withWorker();
  const since = performance.now();
  const pulled = consumer.pull('q', { max: 2 });
  give('A');
  worker.onEnded!();
  expect((await pulled).map(({ id }) => id)).toEqual(['A']);
  expect(performance.now() - since).toBeGreaterThan(SILENT_MS - 20);
});

it('a queue is not silent when the process was busy for so long, and the answer lies there', async () => {
  const { consumer, give } = withWorker();
  const pulled = consumer.pull('q', { max: 2 });
  give('A');
  // Timers come before what this leaves for the next turn.
  setImmediate(() => {
    setImmediate(() => give('B'));
    for (const since = performance.now(); performance.now() - since < 1.2 * SILENT_MS;);
  });
  expect((await pulled).map(({ id }) => id)).toEqual(['A', 'B']);
});
