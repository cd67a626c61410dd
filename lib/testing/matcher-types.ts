import type { QueueRef } from '../job/queue-definition.js';
import type { ExpectedDeadLetter, ExpectedEnqueued, ExpectedJob } from './matchers.js';

/** What `expect(harness)` can do after `expect.extend(delayQueueMatchers)`. */
export interface DelayQueueMatchers {
  /** A job like this waits, or has run since the harness was made. */
  toHaveEnqueued(queue: QueueRef, expected?: ExpectedEnqueued): Promise<void>;
  /** A job like this was completed since the harness was made. */
  toHaveCompleted(queue: QueueRef, expected?: ExpectedJob): Promise<void>;
  /** A job like this is a dead letter. */
  toHaveDeadLettered(queue: QueueRef, expected?: ExpectedDeadLetter): Promise<void>;
}
