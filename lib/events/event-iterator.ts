import type { Observable, Subscription } from 'rxjs';
import { InvalidOptionError } from '../delay-queue.errors.js';

/** Events for a `for await` loop. They do not wait for a slow one: of those that do not fit, the oldest go. */
export class EventIterator<Event> implements AsyncIterableIterator<Event> {
  /** Events that were dropped because the loop was too slow. */
  dropped = 0;
  readonly #subscription: Subscription;
  readonly #buffered: Event[] = [];
  readonly #waiting: ((result: IteratorResult<Event, undefined>) => void)[] = [];
  #over = false;

  /** @internal */
  constructor(
    events: Observable<Event>,
    private readonly size: number,
  ) {
    if (!Number.isSafeInteger(size) || size < 1) {
      throw new InvalidOptionError('iterate({ buffer }): must be a whole number of events, at least 1.');
    }
    this.#subscription = events.subscribe({
      next: (event) => this.#take(event),
      error: () => this.#end(),
      complete: () => this.#end(),
    });
  }

  next(): Promise<IteratorResult<Event, undefined>> {
    if (this.#buffered.length > 0) return Promise.resolve({ done: false, value: this.#buffered.shift()! });
    if (this.#over) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  return(): Promise<IteratorResult<Event, undefined>> {
    this.#subscription.unsubscribe();
    this.#buffered.length = 0;
    this.#end();
    return this.next();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #take(event: Event): void {
    const waiting = this.#waiting.shift();
    if (waiting) return waiting({ done: false, value: event });
    if (this.#buffered.push(event) <= this.size) return;
    this.#buffered.shift();
    this.dropped++;
  }

  #end(): void {
    this.#over = true;
    for (const waiting of this.#waiting.splice(0)) waiting({ done: true, value: undefined });
  }
}
