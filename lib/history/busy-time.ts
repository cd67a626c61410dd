import type { QueueTally } from '../tally/tally.js';
import { LATENESS_BOUNDS } from '../tally/tally.js';
import type { Busy } from './minute-counts.js';
import { sum } from './minute-counts.js';

/** A job that starts later than this has waited for a slot. Without a backlog jobs start within milliseconds. */
const LATE_FROM = LATENESS_BOUNDS.indexOf(0.1) + 1;

/**
 * How fast a process works off one queue when there is enough to do: the only times that count are those in which it had more
 * due jobs than it could start. It is looked at once a second, and nothing is done for each job.
 */
export class BusyTime implements Busy {
  ms = 0;
  claimed = 0;
  #claimed: number;
  #late: number;
  /** Time in which all slots were taken and nothing was claimed. What is claimed next says whether jobs waited. */
  #full = 0;

  constructor(tally: QueueTally) {
    this.#claimed = tally.claimed;
    this.#late = lateOf(tally);
  }

  /** @param isFull no slot is free   @param elapsedMs since the last look */
  look(tally: QueueTally, isFull: boolean, elapsedMs: number): void {
    const claimed = tally.claimed - this.#claimed;
    const late = lateOf(tally) - this.#late;
    this.#claimed = tally.claimed;
    this.#late += late;
    if (claimed === 0) {
      this.#full = isFull ? this.#full + elapsedMs : 0;
      return;
    }
    if (late * 2 > claimed) {
      this.ms += this.#full + elapsedMs;
      this.claimed += claimed;
    }
    this.#full = 0;
  }
}

function lateOf({ lateness }: QueueTally): number {
  return sum(lateness.counts.slice(LATE_FROM));
}
