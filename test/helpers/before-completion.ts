import { jest } from '@jest/globals';
import { ClaimedJob } from '../../lib/consumer/claimed-job.js';

/** Does this once, between the claim of `take()` and its end. `jest.restoreAllMocks()` ends that. */
export function beforeCompletion(act: () => Promise<unknown>): void {
  const { completeForSure } = ClaimedJob.prototype;
  let done: Promise<unknown> | undefined;
  jest.spyOn(ClaimedJob.prototype, 'completeForSure').mockImplementation(async function (this: ClaimedJob) {
    await (done ??= act());
    return completeForSure.call(this);
  });
}
