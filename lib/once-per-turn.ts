import { setImmediate } from './time-and-randomness.js';

/** Runs `act` once per turn of the event loop, however often it is asked for: what comes together travels together. */
export class OncePerTurn {
  #scheduled = false;
  // Made once: a function per turn would be garbage of the hottest path.
  readonly #run = () => {
    this.#scheduled = false;
    this.act();
  };

  constructor(private readonly act: () => void) {}

  get isScheduled(): boolean {
    return this.#scheduled;
  }

  schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(this.#run);
  }
}
