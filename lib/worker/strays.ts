import type { StepReply } from '../redis/step.protocol.js';
import type { ActiveRuns } from './active-runs.js';
import type { Renewal } from './lease-renewal.js';
import type { PrefetchedJobs } from './prefetched-jobs.js';
import type { SettlementBuffer } from './settlement-buffer.js';

/** Where a job may be that this process has. */
interface Holders {
  readonly runs: ActiveRuns;
  readonly prefetched: PrefetchedJobs;
  readonly endings: SettlementBuffer;
}

/**
 * A master that took over may not know how some jobs have ended. Nobody has them any more, and their lease is renewed with that of the others of
 * their claim, which may run for hours. They go back, to run once more, uncharged: nobody knows what they have done. What is pulled and not
 * renewed stays: whoever has it may settle it for as long as nobody takes it back.
 *
 * @param left as in `StepReply`
 */
export function handBackStrays(
  renewals: readonly Renewal[],
  { left }: Pick<StepReply, 'left'>,
  { runs, prefetched, endings }: Holders,
): void {
  if (left.size === 0 || !runs.heartbeats) return;
  const ending = new Set(endings.ids());
  for (const { claim } of renewals) {
    for (const id of left.get(claim.number) ?? []) {
      if (ending.has(id) || runs.has(id) || prefetched.has(id)) continue;
      claim.unsettled++;
      endings.add({ id, claim, settlement: { verb: 'release' } });
    }
  }
}
