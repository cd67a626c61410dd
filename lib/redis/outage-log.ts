import type { DelayQueueLogger } from '../delay-queue.logger.js';
import { clearTimeout, performance, setTimeout } from '../time-and-randomness.js';

/** So many outages within a minute have a line of their own when they begin, and one when they end. */
const TOLD_ONE_BY_ONE = 5;
const MINUTE_MS = 60_000;

/**
 * What the log says of the outages of one connection. A connection that comes and goes, such as one that the server closes after
 * each large reply, is lost thirty times a second: from the sixth time within a minute on they are counted, and the minute ends
 * with one line for all of them.
 */
export class OutageLog {
  #minuteSince = -Infinity;
  #logged = 0;
  #untold = 0;
  /** What the untold ones were, the last one. */
  #last = '';
  /** An outage lasts that has no line. */
  #isAwayUntold = false;
  #sum: NodeJS.Timeout | undefined;

  constructor(
    private readonly logger: DelayQueueLogger,
    private readonly address: string,
    private readonly minuteMs = MINUTE_MS,
  ) {}

  /** @param what such as `is not reachable (ECONNREFUSED)` */
  begins(what: string): void {
    const now = performance.now();
    if (now - this.#minuteSince >= this.minuteMs) [this.#minuteSince, this.#logged] = [now, 0];
    this.#isAwayUntold = ++this.#logged > TOLD_ONE_BY_ONE;
    if (!this.#isAwayUntold) return this.logger.warn(`Redis at ${this.address} ${what}. Retrying; jobs wait.`);
    this.#untold++;
    this.#last = what;
    this.#sum ??= setTimeout(() => this.#sumUp(), this.#minuteSince + this.minuteMs - now).unref();
  }

  /** The outage that lasts has a line of another kind. */
  toldOtherwise(): void {
    this.#isAwayUntold = false;
  }

  /** @param after such as `3 s` */
  ends(after: string): void {
    if (!this.#isAwayUntold) this.logger.log(`Redis at ${this.address} is back after ${after}.`);
    this.#isAwayUntold = false;
  }

  stop(): void {
    clearTimeout(this.#sum);
  }

  #sumUp(): void {
    this.#sum = undefined;
    const times = TOLD_ONE_BY_ONE + this.#untold;
    const last = this.#isAwayUntold ? 'and is still away' : 'the last time';
    this.logger.warn(
      `Redis at ${this.address} comes and goes: ${times} times within a minute, ${last} because it ${this.#last}.`,
    );
    this.#isAwayUntold = false;
    this.#untold = 0;
  }
}
