/** What a worker saw when a claim was answered that brought as many jobs as it had slots for. */
export interface Supply {
  readonly now: number;
  /** Jobs that ended here, since it was made. */
  readonly ended: number;
  readonly slots: number;
  /** Slots that had a job. */
  readonly busy: number;
  /** Jobs that waited here for a slot. */
  readonly waiting: number;
}

/** No more jobs wait here than this process runs in so many ms. */
const AHEAD_MS = 25;
/** A job that has waited for longer goes back: the handlers have become slow, and another process may have a free slot. */
export const PATIENCE_MS = 2 * AHEAD_MS;
/** Then nothing is fetched ahead for so long. */
const REST_MS = 1_000;
const MOST_AHEAD = 800;
const STEPS = 2;
const MOST_STEPS = 4;
/** A rate is measured over at least so many ms, */
const WINDOW_MS = 5;
/** and what was measured longer ago says nothing. */
const OUTDATED_MS = 1_000;

/**
 * How many jobs a worker claims before it has slots for them, so that slots need not wait for a round trip.
 *
 * It follows from what is seen when an answer arrives: slots that stand empty, with nothing left to start, mean that handlers are
 * shorter than a round trip. It never exceeds what this process runs in 25 ms.
 */
export class Prefetch {
  /** How many may be asked for beyond the free slots. */
  allowed = 0;
  /** Steps that may be on their way at a time: the longer a round trip, the more it takes to keep the slots busy. */
  steps = STEPS;
  #restsUntil = -Infinity;
  #measuredAt = -Infinity;
  #measuredEnded = 0;
  /** Jobs per ms. */
  #rate = 0;

  /** Told when a claim was answered that brought as many jobs as it had slots for. */
  supplied({ now, ended, slots, busy, waiting }: Supply): void {
    this.#measure(now, ended);
    const most = now < this.#restsUntil ? 0 : Math.min(MOST_AHEAD, Math.floor(this.#rate * AHEAD_MS));
    if (waiting === 0 && busy <= slots / 2) {
      if (this.allowed >= most) this.steps = Math.min(MOST_STEPS, this.steps + 1);
      this.allowed = Math.max(2 * this.allowed, slots);
    } else if (waiting > this.allowed / 2) {
      this.steps = Math.max(STEPS, this.steps - 1);
      this.allowed = Math.floor(this.allowed * 0.75);
    }
    this.allowed = Math.min(this.allowed, most);
  }

  /** Nothing is fetched ahead for a while. */
  rest(now: number): void {
    this.allowed = 0;
    this.steps = STEPS;
    this.#restsUntil = now + REST_MS;
  }

  #measure(now: number, ended: number): void {
    const passed = now - this.#measuredAt;
    if (passed < WINDOW_MS) return;
    const rate = (ended - this.#measuredEnded) / passed;
    if (passed >= OUTDATED_MS) this.#rate = 0;
    else this.#rate = this.#rate === 0 ? rate : (this.#rate + rate) / 2;
    this.#measuredAt = now;
    this.#measuredEnded = ended;
  }
}
