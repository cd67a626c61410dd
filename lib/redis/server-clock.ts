import { performance } from '../time-and-randomness.js';

/** A clock is not thought to have changed for less: answers of two sessions come in any order. */
const ERROR_MS = 50;

/**
 * What this process knows of the clock of the server behind one shard: the time in its last answer, and what has passed here
 * since. It is never ahead of that clock, unless that was set back or another master took over.
 */
export class ServerClock {
  /** Server time minus monotonic time, in ms. */
  #ahead: number | undefined;

  /** @param oneWayMs how long a call may take to arrive, and its answer to return */
  constructor(private readonly oneWayMs: number) {}

  /** How long a call that says when it left may be on its way: our idea of the time is as old as the last answer was. */
  get arrivalMs(): number {
    return 2 * this.oneWayMs;
  }

  /**
   * An answer that has just come says what time it was there.
   *
   * @returns whether that was news: what was believed before is no longer true
   */
  learn(serverNow: number): boolean {
    const ahead = serverNow - performance.now();
    const isNews = this.#ahead === undefined || Math.abs(ahead - this.#ahead) > ERROR_MS;
    this.#ahead = ahead;
    return isNews;
  }

  /** What a call adds to its number, see lib/lua/shared/session.lua; nothing before the first answer. */
  stamp(): string {
    if (this.#ahead === undefined) return '';
    return ` ${Math.max(0, Math.floor(this.#ahead + performance.now()))} ${this.arrivalMs}`;
  }
}
