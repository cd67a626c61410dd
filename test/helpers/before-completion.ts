import { jest } from '@jest/globals';
import { ClaimedJob } from '../../lib/consumer/claimed-job.js';

/** Does this once, between the claim of `take()` and its end. `jest.restoreAllMocks()` ends that. */
export function beforeCompletion(act: () => Promise<unknown>): void {
  const spy = jest.spyOn(ClaimedJob.prototype, 'completeForSure');
  const complete = spy.getMockImplementation()!;
  let done: Promise<unknown> | undefined;
  spy.mockImplementation(async function (this: ClaimedJob) {
    await (done ??= act());
    return complete.call(this);
  });
}
