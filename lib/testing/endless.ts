import { HarnessError } from './harness.error.js';
import type { TestShards } from './test-shards.js';
import type { SeenRun } from './watch.js';

/** The error of a test that waits for handlers that do not end. */
export async function stuck(shards: TestShards, stallTimeoutMs: number): Promise<HarnessError> {
  const names = new Set<string>();
  for (const { store, handler, worker } of await shards.all()) {
    const ids = worker ? Array.from(worker.unfinished(), ({ id }) => id) : [];
    if (ids.length > 0) names.add(`${handler} of queue "${store.queue}" (${ids.slice(0, 5).join(', ')})`);
  }
  if (names.size === 0) {
    for (const { store, handler } of await shards.waiting()) names.add(`${handler} of queue "${store.queue}"`);
  }
  return new HarnessError(
    `No handler ended for ${stallTimeoutMs} ms of real time. Still waiting for ${[...names].join(', ')}. ` +
      'A handler that waits on a timer is not helped by advance(): mock what it waits for, or raise `stallTimeout`.',
  );
}

/** The error of a test whose jobs make ever more jobs. @param runs the last ones count @param when such as `in one go` */
export function endless(runs: readonly SeenRun[], most: number, when: string): HarnessError {
  const counts = new Map<string, number>();
  for (const { queue } of runs.slice(-most)) counts.set(queue, (counts.get(queue) ?? 0) + 1);
  const sorted = [...counts].toSorted(([, a], [, b]) => b - a);
  // Those that take part in it, not one whose job merely ran meanwhile.
  const part = sorted
    .filter(([, count]) => count * 10 > sorted[0]![1])
    .map(([queue, count]) => `"${queue}" (${count})`);
  return new HarnessError(
    `More than ${most} runs ${when}, of queue ${part.slice(0, 5).join(', ')}. Do handlers enqueue, retry or snooze without end? ` +
      'Give their jobs a delay, and move by less than that with advance(): drain() and runDue() wait for the last of them.',
  );
}
