import { Alarm } from './alarm.js';

/** Waits until something is done, at most until a moment that may be moved. One wait at a time. */
export class BoundedWait {
  readonly #alarm = new Alarm(() => this.#look?.(true));
  #look: ((timeIsUp: boolean) => void) | undefined;

  /** The wait ends then at the latest; monotonic ms. */
  endAt(at: number): void {
    this.#alarm.set(at);
  }

  /** Something has changed: perhaps it is done. */
  look(): void {
    this.#look?.(false);
  }

  /** Ends the wait. */
  end(): void {
    this.#alarm.clear();
    this.#look?.(true);
  }

  /** @returns whether it is done; false when time was up first */
  async until(done: () => boolean): Promise<boolean> {
    if (done()) return true;
    return new Promise((resolve) => {
      this.#look = (timeIsUp) => {
        if (!timeIsUp && !done()) return;
        this.#look = undefined;
        resolve(done());
      };
    });
  }
}
