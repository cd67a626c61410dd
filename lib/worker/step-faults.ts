import type { DelayQueueError } from '../delay-queue.errors.js';
import type { DelayQueueLogger } from '../delay-queue.logger.js';
import { performance } from '../time-and-randomness.js';
import { typedError } from '../redis/redis.errors.js';

/** After an error that waiting does not cure (a wrong type, no permission): slow enough to be harmless, quick once mended. */
const FAULT_PAUSE_MS = 1_000;
/** The same while the process stops, which must not take much longer for it. */
const STOPPING_PAUSE_MS = 200;

/** Steps that Redis refused: logs the reason once, and says how long to pause before the next try. */
export class StepFaults {
  /** The error of the loop, while it cannot make progress. */
  current: DelayQueueError | undefined;
  /** Monotonic ms before which no step leaves. */
  pauseUntil = 0;

  constructor(
    private readonly queue: string,
    private readonly logger: DelayQueueLogger,
  ) {}

  failed(thrown: unknown): void {
    const fault = typedError(thrown, `a step of queue "${this.queue}"`);
    if (this.current?.message !== fault.message)
      this.logger.error(`${fault.message} The worker tries again every second.`, { queue: this.queue });
    this.current = fault;
    this.pauseUntil = performance.now() + FAULT_PAUSE_MS;
  }

  /** A step that settles nothing need not outlive the wish to stop, but an overdue heartbeat would be sent again at once. */
  failedWhileStopping(): void {
    this.pauseUntil = performance.now() + STOPPING_PAUSE_MS;
  }

  answered(): void {
    if (!this.current) return;
    this.current = undefined;
    this.logger.log(`Queue "${this.queue}" is worked on again.`, { queue: this.queue });
  }
}
