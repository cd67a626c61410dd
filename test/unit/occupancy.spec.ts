import { describe, expect, it } from '@jest/globals';
import type { IsolationMember } from '../../lib/worker/isolation/isolation-gate.js';
import { IsolationGate } from '../../lib/worker/isolation/isolation-gate.js';
import { Occupancy } from '../../lib/worker/occupancy.js';
import { SlotPool } from '../../lib/worker/slot-pool.js';
import type { SlotUser } from '../../lib/worker/slot-pool.js';

/** A worker of one shard, as far as its occupancy knows it. */
function shardWorker(markAccompanied: () => void): IsolationMember & SlotUser {
  const idle = () => {};
  return { markAccompanied, wake: idle, wantsJobs: () => false } as Partial<IsolationMember> & SlotUser as never;
}

describe('the occupancy of a shard', () => {
  it('takes its slots before another shard hears of the step', () => {
    const pool = new SlotPool(2);
    const gate = new IsolationGate();
    let freeWhenHeard: number | undefined;
    const first = shardWorker(() => (freeWhenHeard = pool.freeFor(first)));
    const occupancies = [first, shardWorker(() => {})].map((worker) => {
      gate.join(worker);
      return new Occupancy(worker, pool, gate);
    });
    occupancies[0]!.brought(occupancies[0]!.ask(1, false, 0), 1, 'alone');
    occupancies[1]!.ask(1, false, 0);
    expect(freeWhenHeard).toBe(0);
  });
});
