import { HarnessError } from './harness.error.js';
import type { TestShards } from './test-shards.js';

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

/** The error of a test whose jobs make ever more jobs. @param when such as `in one go` */
export async function endless(shards: TestShards, most: number, when: string): Promise<HarnessError> {
  const names = new Set((await shards.all()).filter(({ worker }) => worker).map(({ store }) => store.queue));
  const queues = [...names].map((queue) => `"${queue}"`).join(', ');
  return new HarnessError(
    `More than ${most} runs ${when}, in queues ${queues}. Do handlers enqueue or snooze without end, at ` +
      'once? Give their jobs a delay, and move by less than that with advance().',
  );
}
