import { MAX_JOBS } from '../redis/enqueue.protocol.js';

/** So many calls go as two if none is on its way, so that Redis and this process work at the same time. */
const WORTH_HALVING = 16;
/** Fewer calls would cost Redis more scripts than they save those who wait. */
const LEAST_AWAY = 8;
/** Redis is far from here on: a call spends most of its time on its way. */
const FAR_MS = 1;
/** At most, on both sides: what a call of many jobs takes longer than one of few. */
const MS_PER_JOB = 0.01;
/** The quickest answer counts for so much more after each other one, so that a Redis that moves away is noticed within some thirty. */
const FORGETS = 1.1;
const NEAREST_MS = 0.1;

/** How many of the calls that wait travel in one script call. A pure rule: what it goes by is passed in. */
export class CallShares {
  #wayMs = NEAREST_MS;

  /** Tells how long the answer of a script call with so many jobs took. Nearly all answers are held up by something: the quickest counts. */
  answered(ms: number, jobs: number): void {
    this.#wayMs = Math.min(Math.max(ms - jobs * MS_PER_JOB, NEAREST_MS), this.#wayMs * FORGETS);
  }

  /**
   * Near Redis all go at once, in two parts if nothing is on its way. Where Redis is far, they go evenly on all free sessions: callers
   * whose calls are answered together make the next ones together, and would all wait for the work of one large call. Near, the scripts
   * that this costs would take longer than what it saves.
   */
  most(waiting: number, freeSessions: number, isFirst: boolean): number {
    if (this.#wayMs > FAR_MS) return Math.min(Math.max(Math.ceil(waiting / freeSessions), LEAST_AWAY), MAX_JOBS);
    return isFirst && waiting >= WORTH_HALVING ? Math.min(Math.ceil(waiting / 2), MAX_JOBS) : MAX_JOBS;
  }
}
