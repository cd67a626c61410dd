import type { BatchJob } from '../../lib/handlers/batch-job.js';
import type { Oracle } from './oracle.js';
import type { RunPlan } from './plan.js';

export const SNOOZE_MS = 300;

/** All that the handler has not settled fails with it. @throws unless the first one has run before */
export function failTogether(oracle: Oracle, runs: readonly RunPlan[], jobs: readonly BatchJob[]): void {
  const versions = jobs.map((job, i) => oracle.version(job.id, runs[i]!.n));
  if (versions[0]!.tries > 0) return;
  for (const [i, version] of versions.entries()) {
    version.tries++;
    oracle.job(jobs[i]!.id).failures++;
  }
  throw new Error('planned');
}

export function settleInBatch(job: BatchJob, outcome: Error): void {
  if (outcome.name === 'SnoozeJob') job.snooze(SNOOZE_MS);
  else if (outcome.name === 'DiscardJob') job.discard(outcome.message);
  else job.fail(outcome);
}
