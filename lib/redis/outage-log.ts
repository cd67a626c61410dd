import type { DelayQueueLogger } from '../delay-queue.logger.js';
import { clearTimeout, performance, setTimeout } from '../time-and-randomness.js';

/** So many outages within a minute have a line of their own when they begin, and one when they end. */
const LOGGED_ONE_BY_ONE = 5;
const MINUTE_MS = 60_000;
/** Instead of that it is tried again: the connection will be closed soon. */
export const ENDING = 'The application is ending.';

/**
 * What the log says of the outages of one connection. A connection that comes and goes, such as one that the server closes after
 * each large reply, is lost thirty times a second: from the sixth time within a minute on they are counted, and the minute ends
 * with one line for all of them.
 */
export class OutageLog {
  #minuteSince = -Infinity;
  #logged = 0;
  #unlogged = 0;
  /** What those without a line were, the last one. */
  #last = '';
  /** An outage lasts that has no line. */
  #isAwayUnlogged = false;
  #sum: NodeJS.Timeout | undefined;

  constructor(
    private readonly logger: DelayQueueLogger,
    private readonly address: string,
    private readonly minuteMs = MINUTE_MS,
  ) {}

  /**
   * @param what such as `is not reachable (ECONNREFUSED)`
   * @param bootsTest a test waits for the connection. Its framework ends it sooner than the boot ends, and its logger, Nest's own
   * for tests, shows errors alone: without one the test would be over with no word of Redis
   */
  begins(what: string, isEnding: boolean, bootsTest = false): void {
    const now = performance.now();
    if (now - this.#minuteSince >= this.minuteMs) this.#begin(now);
    this.#isAwayUnlogged = ++this.#logged > LOGGED_ONE_BY_ONE;
    if (!this.#isAwayUnlogged) {
      const line = `Redis at ${this.address} ${what}. ${isEnding ? ENDING : 'Retrying; jobs wait.'}`;
      if (!bootsTest) return this.logger.warn(line);
      return this.logger.error(
        `${line} A test needs none with DelayQueueTestingModule.override(builder) before compile().`,
      );
    }
    this.#unlogged++;
    this.#last = what;
    this.#sum ??= setTimeout(() => this.#sumUp(), this.#minuteSince + this.minuteMs - now).unref();
  }

  /** The outage that lasts has a line of another kind. */
  loggedOtherwise(): void {
    this.#isAwayUnlogged = false;
  }

  /** @param after such as `3 s` */
  ends(after: string): void {
    if (!this.#isAwayUnlogged) this.logger.log(`Redis at ${this.address} is back after ${after}.`);
    this.#isAwayUnlogged = false;
  }

  stop(): void {
    clearTimeout(this.#sum);
  }

  #begin(minute: number): void {
    if (this.#sum) this.#sumUp();
    this.#minuteSince = minute;
    this.#logged = 0;
  }

  /** Ends the minute, also where the timer fires a fraction of a millisecond before its time: nothing is to be counted twice. */
  #sumUp(): void {
    clearTimeout(this.#sum);
    this.#sum = undefined;
    this.#minuteSince = -Infinity;
    const times = LOGGED_ONE_BY_ONE + this.#unlogged;
    const last = this.#isAwayUnlogged ? 'and is still away' : 'the last time';
    this.logger.warn(
      `Redis at ${this.address} comes and goes: ${times} times within a minute, ${last} because it ${this.#last}.`,
    );
    this.#isAwayUnlogged = false;
    this.#unlogged = 0;
  }
}
