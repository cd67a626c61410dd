export { DelayQueueHarness } from './delay-queue.harness.js';
export type { HarnessOptions } from './delay-queue.harness.js';
export { DelayQueueTestingModule } from './delay-queue.testing.module.js';
export type { OverrideOptions } from './delay-queue.testing.module.js';
export { HarnessError } from './harness.error.js';
export { delayQueueMatchers } from './matchers.js';
export type { ExpectedDeadLetter, ExpectedEnqueued, ExpectedJob } from './matchers.js';
export type { DelayQueueMatchers } from './matcher-types.js';
export type { SeenRun } from './watch.js';
