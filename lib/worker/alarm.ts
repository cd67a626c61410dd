import { clearTimeout, performance, setTimeout } from '../time-and-randomness.js';

/** Longer timers fire at once in Node: setTimeout keeps its delay in 31 bits. */
const LONGEST_MS = 2 ** 31 - 1;

/** One timer that rings at the earliest moment asked for. Moments are monotonic ms, so that no clock change moves them. */
export class Alarm {
  #timer: NodeJS.Timeout | undefined;
  #at = Infinity;

  constructor(private readonly ring: () => void) {}

  /** Rings at `at`, instead of whenever it would have rung. */
  set(at: number): void {
    if (at === this.#at) return;
    this.clear();
    if (at === Infinity) return;
    this.#at = at;
    const delay = Math.min(Math.max(0, Math.ceil(at - performance.now())), LONGEST_MS);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#at = Infinity;
      this.ring();
    }, delay);
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#at = Infinity;
  }
}
