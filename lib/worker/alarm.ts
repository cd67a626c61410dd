import { clearImmediate, clearTimeout, performance, setImmediate, setTimeout } from '../time-and-randomness.js';

/** Longer timers fire at once in Node: setTimeout keeps its delay in 31 bits. */
const LONGEST_MS = 2 ** 31 - 1;
/**
 * The rest of a wait that is spent in turns of the event loop. A timer counts whole ms from a moment that may be one ago, so it ends up to half
 * a ms before the moment asked for, or after. More turns would be more exact, at 0.1 ms of CPU more for each wait.
 */
const TURNS_MS = 0.3;

/** One timer that rings at the earliest moment asked for. Moments are monotonic ms, so that no clock change moves them. */
export class Alarm {
  #timer: NodeJS.Timeout | undefined;
  #turn: NodeJS.Immediate | undefined;
  #at = Infinity;

  constructor(private readonly ring: () => void) {}

  /** Rings at `at`, instead of whenever it would have rung. */
  set(at: number): void {
    if (at === this.#at) return;
    this.clear();
    if (at === Infinity) return;
    this.#at = at;
    this.#wait(at - performance.now());
  }

  clear(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#turn);
    this.#timer = this.#turn = undefined;
    this.#at = Infinity;
  }

  #wait(leftMs: number): void {
    if (leftMs > 0 && leftMs < TURNS_MS) this.#turn = setImmediate(this.#look);
    else this.#timer = setTimeout(this.#look, Math.min(Math.max(1, Math.round(leftMs)), LONGEST_MS));
  }

  readonly #look = (): void => {
    this.#timer = this.#turn = undefined;
    const leftMs = this.#at - performance.now();
    if (leftMs > 0) return this.#wait(leftMs);
    this.#at = Infinity;
    this.ring();
  };
}
