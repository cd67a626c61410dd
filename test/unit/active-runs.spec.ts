import { expect, it } from '@jest/globals';
import { DelayQueueLogger } from '../../lib/delay-queue.logger.js';
import type { DelayedJob } from '../../lib/job/delayed-job.js';
import type { Session } from '../../lib/redis/session.js';
import type { ShardStore } from '../../lib/redis/shard-store.js';
import type { ClaimedRecord, StepReply } from '../../lib/redis/step.protocol.js';
import { ActiveRuns } from '../../lib/worker/active-runs.js';
import type { Run } from '../../lib/worker/run.js';
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

it('of a claim that is alone no longer, Redis is told how many the process has before the claiming step', () => {
  const { runs, claim, settle } = aloneWith(['a', 'b', 'c'], ['b']);
  expect(runs.renewals(false, 'due', settle, 10)).toEqual([{ claim, held: 3, sole: false }]);
});

it('nobody is spoken for by a step that is no heartbeat and claims nothing', () => {
  const { runs, settle } = aloneWith(['a', 'b'], ['b']);
  expect(runs.renewals(false, undefined, settle, 10)).toEqual([]);
});

it('an extension whose answer comes when this process has claimed the job again is refused, and the job keeps its new claim', async () => {
  let answer!: (number: number) => void;
  const extend = () => new Promise<number>((resolve) => (answer = resolve));
  const slow = { queue: 'q', session: () => ({}), extend, connection: { timeoutMs: 5_000, instance: 'test' } };
  const silent = Object.assign(new DelayQueueLogger('test'), { warn: () => undefined });
  const runs = new ActiveRuns(slow as unknown as ShardStore, 30_000, silent, true);
  const { claim } = runs.open(claimed(1, 'a'), 0, 'alone');
  const job = { id: 'a', abort: () => undefined } as unknown as DelayedJob;
  const run = { id: 'a', job, claim, ended: false, lost: false } as Run;
  runs.add(run);
  const extended = runs.extend(job, 60_000);
  await new Promise((resolve) => setImmediate(resolve));
  const again = runs.open(claimed(2, 'a'), 10, 'no').claim;
  // What the session remembers of the first copy.
  answer(1_024);
  await expect(extended).rejects.toMatchObject({ code: 'ERR_DQ_LEASE_LOST' });
  expect(run.claim).toBe(again);
  expect(runs.renewals(true, undefined, new SettlementBuffer().take(200), 20_000)).toMatchObject([{ claim: again }]);
});

it('a heartbeat that comes after an extension whose answer was lost does not abort the run', async () => {
  let answer!: (number: number) => void;
  const extend = () => new Promise<number>((resolve) => (answer = resolve));
  const slow = { queue: 'q', session: () => ({}), extend, connection: { timeoutMs: 5_000, instance: 'test' } };
  const said: string[] = [];
  const logger = Object.assign(new DelayQueueLogger('test'), { warn: (text: string) => void said.push(text) });
  const runs = new ActiveRuns(slow as unknown as ShardStore, 30_000, logger, true);
  const { claim } = runs.open(claimed(1, 'a'), 0, 'no');
  const reasons: unknown[] = [];
  const job = { id: 'a', abort: (reason: unknown) => reasons.push(reason) } as unknown as DelayedJob;
  const run = { id: 'a', job, claim, ended: false, lost: false } as Run;
  runs.add(run);
  const extended = runs.extend(job, 60_000);
  await new Promise((resolve) => setImmediate(resolve));
  const nothing = new SettlementBuffer().take(200);
  const heartbeat = (now: number) => {
    const renewals = runs.renewals(true, undefined, nothing, now);
    // Redis holds nothing under the claim that is named: the job has one of its own.
    const left = new Map(renewals.map((renewal) => [renewal.claim.number, new Set<string>()]));
    const reply = { lost: [], aborted: [], superseded: [], left } as unknown as StepReply;
    runs.confirm(nothing, renewals, reply, 'q', now);
  };
  heartbeat(10_000);
  expect({ reasons, said }).toEqual({ reasons: [], said: [] });
  // The call was sent again.
  answer(1_024);
  await extended;
  expect(run).toMatchObject({ lost: false, claim: { number: 1_024 } });
  // From then on it is lost where it is not held.
  heartbeat(20_000);
  expect(run.lost).toBe(true);
  expect(reasons).toMatchObject([{ code: 'ERR_DQ_LEASE_LOST' }]);
});
