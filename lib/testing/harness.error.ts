import { knownAcrossCopies } from '../copies.js';
import { DelayQueueError } from '../delay-queue.errors.js';

/** A test that would never end, a handler that waits for something that does not come, or a call that makes no sense. */
export class HarnessError extends DelayQueueError {
  constructor(message: string) {
    super('ERR_DQ_HARNESS', message, { retryable: false });
  }
}

knownAcrossCopies({ HarnessError });
