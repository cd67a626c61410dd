export { DelayQueueHarness, HarnessError } from './delay-queue.harness.js';
export type { HarnessOptions } from './delay-queue.harness.js';
export { DelayQueueTestingModule } from './delay-queue.testing.module.js';
