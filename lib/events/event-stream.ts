import { Observable, Subscriber } from 'rxjs';
import type { Observer, Operator, Subscription } from 'rxjs';
import { guarded } from '../user-code.js';
import { EventIterator } from './event-iterator.js';

export interface IterateOptions {
  /** Events that wait for the loop at most; beyond that the oldest are dropped and counted. 1 and more. Default 1,000. */
  buffer?: number;
}

/** @param times how often this subscriber has failed */
type Report = (error: unknown, times: number) => void;

/**
 * An Observable whose subscribers cannot take the process down. RxJS throws what a subscriber throws, or an error that nobody
 * takes, as an uncaught exception; events are looked on, so here it is logged. Also an async iterable.
 */
export class EventStream<Event> extends Observable<Event> implements AsyncIterable<Event> {
  /** @internal */
  constructor(
    private readonly report: Report,
    produce?: (subscriber: Subscriber<Event>) => () => void,
  ) {
    super(produce);
  }

  /** `for await (const event of stream.iterate())`; leaving the loop ends the subscription. */
  iterate({ buffer = 1_000 }: IterateOptions = {}): EventIterator<Event> {
    return new EventIterator(this, buffer);
  }

  [Symbol.asyncIterator](): EventIterator<Event> {
    return this.iterate();
  }

  override subscribe(observerOrNext?: Partial<Observer<Event>> | ((value: Event) => void)): Subscription;
  override subscribe(
    next?: ((value: Event) => void) | null,
    error?: ((error: any) => void) | null,
    complete?: (() => void) | null,
  ): Subscription;
  override subscribe(
    observerOrNext?: Partial<Observer<Event>> | ((value: Event) => void) | null,
    error?: ((error: any) => void) | null,
    complete?: (() => void) | null,
  ): Subscription {
    // An operator's own: what its function throws comes out at its end, as an error.
    if (observerOrNext instanceof Subscriber) return super.subscribe(observerOrNext);
    const given: Partial<Observer<Event>> =
      typeof observerOrNext === 'object' && observerOrNext !== null
        ? observerOrNext
        : { next: observerOrNext ?? undefined, error: error ?? undefined, complete: complete ?? undefined };
    const failed = this.#counted();
    return super.subscribe({
      next: (event) => guarded(() => given.next?.(event), undefined, failed),
      error: (reason: unknown) =>
        guarded<unknown>(() => (given.error ? given.error(reason) : failed(reason)), undefined, failed),
      complete: () => guarded(() => given.complete?.(), undefined, failed),
    });
  }

  /** So that what `pipe()` gives is guarded as well. */
  override lift<Result>(operator?: Operator<Event, Result>): EventStream<Result> {
    const lifted = new EventStream<Result>(this.report);
    lifted.source = this;
    lifted.operator = operator as Operator<any, Result> | undefined;
    return lifted;
  }

  /** Logs the 1st, 10th, 100th, ... failure of one subscriber. A line at each event would flood the log. */
  #counted(): (error: unknown) => void {
    let times = 0;
    let next = 1;
    return (error) => {
      if (++times < next) return;
      next *= 10;
      this.report(error, times);
    };
  }
}
