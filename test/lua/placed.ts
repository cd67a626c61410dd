import { HIGHEST_PRIORITY, placeOf, placeText } from '../../lib/job/place.js';
import { enqueueArgs } from '../../lib/redis/enqueue.protocol.js';
import { TestSession } from './peer.js';
import type { Shard } from './shard.js';

export interface PlacedJob {
  readonly id: string;
  readonly spec: string;
  readonly group?: string | undefined;
  readonly priority?: number;
  readonly payload?: unknown;
}

/** Stores jobs of groups, in this order. Those with neither group nor priority make it a queue with groups as well. */
export async function place(shard: Shard, ...jobs: readonly PlacedJob[]): Promise<void> {
  const items = jobs.map(({ id, spec, group, priority, payload = id }) => ({
    id,
    spec,
    content: `\n${JSON.stringify(payload)}`,
    place: placeOf(group, priority) ?? placeText(HIGHEST_PRIORITY),
  }));
  await new TestSession(shard).call('place', enqueueArgs(items));
}
