import { expect, it } from '@jest/globals';
import { PullSource } from '../../lib/consumer/pull-source.js';
import type { QueueWorker } from '../../lib/worker/queue-worker.js';

// With a real worker the step comes or goes within a millisecond: nobody can hold it just there.
it('a call of pull() is told that there is nothing only when no step is on its way that would claim for nobody', () => {
  const worker = { running: 0, wanted: 0, concurrency: 0, looksOnce: false } as QueueWorker & { wanted: number };
  const source = new PullSource('q', 1_000, () => undefined);
  source.use();
  source.workWith(worker);
  let told = 0;
  source.add({ wanted: 5, waits: false, give: () => undefined, empty: () => told++ });

  // Of two occurrences that are left out the first one has ended: its slot asks anew.
  Object.assign(worker, { running: 1, wanted: 4 });
  worker.onEmpty!();
  Object.assign(worker, { running: 0 });
  worker.onEnded!();
  expect(told).toBe(0);

  Object.assign(worker, { wanted: 0 });
  worker.onEmpty!();
  expect(told).toBe(1);
});
