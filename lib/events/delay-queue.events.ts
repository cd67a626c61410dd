import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Injectable } from '@nestjs/common';
import type { OnApplicationShutdown } from '@nestjs/common';
import { ReplaySubject, takeUntil } from 'rxjs';
import type { Subscriber } from 'rxjs';
import { channelName } from '../delay-queue.channels.js';
import type { DelayQueueMessages } from '../delay-queue.channels.js';
import { InvalidOptionError } from '../delay-queue.errors.js';
import { DelayQueueLogger } from '../delay-queue.logger.js';
import { summarizeError } from '../job/error-record.js';
import { EventStream } from './event-stream.js';

/** Steps are left out: they are many, and of use to metrics only. */
export type DelayQueueEventName = Exclude<keyof DelayQueueMessages, 'step'>;

/** One event: its name as `type`, and its data. */
export type DelayQueueEvent<Name extends DelayQueueEventName = DelayQueueEventName> = {
  [Type in Name]: { readonly type: Type } & DelayQueueMessages[Type];
}[Name];

const NAMES: Record<DelayQueueEventName, true> = {
  enqueued: true,
  claimed: true,
  completed: true,
  failed: true,
  retried: true,
  snoozed: true,
  deadLettered: true,
  expired: true,
  leaseLost: true,
  occurrencesSkipped: true,
  connectionLost: true,
  connectionRestored: true,
};

/**
 * What happens to jobs in this process, in all its instances (`event.instance`), as it happens: nothing is stored, and
 * what other processes do is not seen. Costs nothing without subscribers.
 */
@Injectable()
export class DelayQueueEvents implements OnApplicationShutdown {
  // A later subscriber finds it ended as well.
  readonly #ended = new ReplaySubject<void>(1);
  readonly #logger = new DelayQueueLogger('DelayQueueEvents');

  /** All events. */
  readonly all: EventStream<DelayQueueEvent> = this.#stream(Object.keys(NAMES) as DelayQueueEventName[]);

  /**
   * Those of one kind, or of several: `on('completed')`, `on('failed', 'deadLettered')`.
   *
   * @throws InvalidOptionError without a name, or for one that no event has
   */
  on<Name extends DelayQueueEventName>(...names: [Name, ...Name[]]): EventStream<DelayQueueEvent<Name>> {
    const wrong = names.length === 0 ? '' : names.find((name) => !Object.hasOwn(NAMES, name));
    if (wrong !== undefined) {
      throw new InvalidOptionError(
        `DelayQueueEvents.on("${String(wrong)}"): events are ${Object.keys(NAMES).join(', ')}.`,
      );
    }
    return this.#stream(names);
  }

  /** Ends all subscriptions and loops: after the workers have drained, so that they hear of that too. */
  onApplicationShutdown(): void {
    this.#ended.next();
    this.#ended.complete();
  }

  #stream<Name extends DelayQueueEventName>(names: readonly Name[]): EventStream<DelayQueueEvent<Name>> {
    const report = (error: unknown, times: number) => {
      const what = times === 1 ? 'threw, which concerns no job' : `has failed for ${times} events, most recently`;
      const then = times === 1 ? ' Further errors of it are counted, and told at the 10th, the 100th and so on.' : '';
      this.#logger.error(`A subscriber of DelayQueueEvents ${what}: ${summarizeError(error)}.${then}`);
    };
    const all = new EventStream<DelayQueueEvent<Name>>(report, (subscriber) => listen(names, subscriber));
    return all.pipe(takeUntil(this.#ended)) as EventStream<DelayQueueEvent<Name>>;
  }
}

/** @returns ends it */
function listen<Name extends DelayQueueEventName>(
  names: readonly Name[],
  subscriber: Subscriber<DelayQueueEvent<Name>>,
): () => void {
  const undo = names.map((type) => {
    const name = channelName(type);
    const tell = (message: unknown) =>
      subscriber.next({ type, ...(message as DelayQueueMessages[Name]) } as unknown as DelayQueueEvent<Name>);
    subscribe(name, tell);
    return () => unsubscribe(name, tell);
  });
  return () => undo.forEach((end) => end());
}
