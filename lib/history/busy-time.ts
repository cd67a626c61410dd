import type { QueueTally } from '../tally/tally.js';
import { LATENESS_BOUNDS } from '../tally/tally.js';
import type { Busy } from './minute-counts.js';
import { sum } from './minute-counts.js';

/** A job that starts later than this has waited for a slot. Without a backlog jobs start within milliseconds. */
const LATE_FROM = LATENESS_BOUNDS.indexOf(0.1) + 1;

/**
 * How fast a process works off one queue when there is enough to do: the only times that count are those in which it had more
 * due jobs than it could start. It is looked at once a second, and nothing is done for each job.
 *
 * A backlog begins and ends between two looks. What was claimed until the first look may have taken a part of that second, and fills
 * empty slots besides; the last second may be empty for the most part. So both are counted apart, as the edges of the backlog.
 */
export class BusyTime implements Busy {
  ms = 0;
  claimed = 0;
  edgeMs = 0;
  edgeClaimed = 0;
  #claimed: number;
  #late: number;
  /** Time in which all slots were taken and nothing was claimed. What is claimed next says whether jobs waited. */
  #full = 0;
  /** Was there a backlog at the look before? */
  #inside = false;
  /** The last look within a backlog, until it shows whether that went on. */
  #last = NOTHING;

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
    if (claimed === 0 && isFull) {
      this.#full += elapsedMs;
      return;
    }
    if (late * 2 > claimed) this.#note({ ms: this.#full + elapsedMs, claimed }, isFull);
    else this.#end();
    this.#full = 0;
  }

  #note(look: Look, isFull: boolean): void {
    if (!this.#inside) {
      this.#inside = true;
      this.#addEdge(look);
      return;
    }
    this.#add(this.#last);
    // Where no slot is free, the slots decide, whether or not another job waits.
    this.#last = isFull ? NOTHING : look;
    if (isFull) this.#add(look);
  }

  #end(): void {
    this.#addEdge(this.#last);
    this.#last = NOTHING;
    this.#inside = false;
  }

  #add({ ms, claimed }: Look): void {
    this.ms += ms;
    this.claimed += claimed;
  }

  #addEdge({ ms, claimed }: Look): void {
    this.edgeMs += ms;
    this.edgeClaimed += claimed;
  }
}

interface Look {
  readonly ms: number;
  readonly claimed: number;
}

const NOTHING: Look = { ms: 0, claimed: 0 };

function lateOf({ lateness }: QueueTally): number {
  return sum(lateness.counts.slice(LATE_FROM));
}
