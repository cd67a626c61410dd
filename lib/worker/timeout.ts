import { MAX_TIMER_MS } from '../job/duration.js';
import { clearTimeout, performance, setTimeout } from '../time-and-randomness.js';

/** How long a run, or a batch, may take from now on. */
export class Timeout {
  /** Monotonic ms. */
  at: number;
  readonly startedAt = performance.now();
  #timer: NodeJS.Timeout;

  constructor(
    readonly ms: number,
    private readonly timeIsUp: () => void,
  ) {
    this.at = this.startedAt + ms;
    this.#timer = setTimeout(timeIsUp, Math.min(ms, MAX_TIMER_MS));
  }

  /** It ends then, instead of when it would have ended; at once when that is past. */
  endAt(at: number): void {
    clearTimeout(this.#timer);
    this.at = at;
    const left = at - performance.now();
    if (left <= 0) this.timeIsUp();
    else this.#timer = setTimeout(this.timeIsUp, Math.min(left, MAX_TIMER_MS));
  }

  cancel(): void {
    clearTimeout(this.#timer);
  }
}
