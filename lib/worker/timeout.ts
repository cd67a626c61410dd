import { MAX_TIMER_MS } from '../job/duration.js';
import { clearTimeout, performance, setTimeout } from '../time-and-randomness.js';

/** How long a run, or a batch, may take from now on. */
export class Timeout {
  /** Monotonic ms. */
  at: number;
  /** What is left of it if only `endSooner()` takes time from it, ms. */
  left: number;
  #timer: NodeJS.Timeout;

  constructor(
    readonly ms: number,
    private readonly timeIsUp: () => void,
  ) {
    this.at = performance.now() + ms;
    this.left = ms;
    this.#timer = setTimeout(timeIsUp, Math.min(ms, MAX_TIMER_MS));
  }

  /** It ends that many ms before it would have ended; at once when that is past. */
  endSooner(by: number): void {
    clearTimeout(this.#timer);
    this.at -= by;
    this.left -= by;
    const left = this.at - performance.now();
    if (left <= 0) this.timeIsUp();
    else this.#timer = setTimeout(this.timeIsUp, Math.min(left, MAX_TIMER_MS));
  }

  cancel(): void {
    clearTimeout(this.#timer);
  }
}
