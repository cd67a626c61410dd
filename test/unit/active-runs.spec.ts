import { expect, it } from '@jest/globals';
import { DelayQueueLogger } from '../../lib/delay-queue.logger.js';
import type { Session } from '../../lib/redis/session.js';
import type { ShardStore } from '../../lib/redis/shard-store.js';
import type { ClaimedRecord, StepReply } from '../../lib/redis/step.protocol.js';
import { ActiveRuns } from '../../lib/worker/active-runs.js';
import { COMPLETE } from '../../lib/worker/settlement.js';
import { SettlementBuffer } from '../../lib/worker/settlement-buffer.js';

const store = { queue: 'q', session: () => ({}) as Session } as unknown as ShardStore;

function claimed(claim: number, ...ids: string[]): StepReply {
  return { claim, jobs: ids.map((id) => ({ id }) as ClaimedRecord) } as unknown as StepReply;
}

/** A runs with a claim that is alone in its process, and what settles the given jobs of it. */
function aloneWith(jobs: string[], settled: string[]) {
  const runs = new ActiveRuns(store, 30_000, new DelayQueueLogger('test'), true);
  const { claim } = runs.open(claimed(1, ...jobs), 0, 'alone');
  const buffer = new SettlementBuffer();
  for (const id of settled) buffer.add({ id, claim, settlement: COMPLETE } as never);
  return { runs, claim, settle: buffer.take(200) };
}

it('a claim that the claiming step settles was asked to be renewed, because it is alone no longer', () => {
  const { runs, settle } = aloneWith(['a'], ['a']);
  expect(settle.ended).toHaveLength(1);
  expect(runs.renewals(false, 'due', settle, 10)).toEqual([]);
});

it('of a claim that is alone no longer, what is left after the claiming step is reported to Redis', () => {
  const { runs, claim, settle } = aloneWith(['a', 'b', 'c'], ['b']);
  expect(runs.renewals(false, 'due', settle, 10)).toEqual([{ claim, held: 2, sole: false }]);
});

it('nobody is spoken for by a step that is no heartbeat and claims nothing', () => {
  const { runs, settle } = aloneWith(['a', 'b'], ['b']);
  expect(runs.renewals(false, undefined, settle, 10)).toEqual([]);
});
