import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { OnApplicationShutdown } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import { ReplaySubject, takeUntil } from 'rxjs';
import type { Subscriber } from 'rxjs';
import { channelName } from '../delay-queue.channels.js';
import type { DelayQueueMessages } from '../delay-queue.channels.js';
import { InvalidOptionError } from '../delay-queue.errors.js';
import { DelayQueueLogger } from '../delay-queue.logger.js';
import { shardsToken } from '../delay-queue.tokens.js';
import { DEFAULT_INSTANCE } from '../handlers/on-delayed.decorator.js';
import type { DelayQueueInstances } from '../instance/delay-queue.instances.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { parseInstant } from '../job/duration.js';
import { summarizeError } from '../job/error-record.js';
import { queueNameOf } from '../job/queue-definition.js';
import type { QueueRef } from '../job/queue-definition.js';
import { EventStream } from './event-stream.js';
import { FleetReader } from './fleet-reader.js';
import type { FleetEvent } from './fleet-reader.js';
import { unknownInstance } from '../instance/unknown-instance.js';

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

export interface FleetOptions {
  /** What `forRoot({ name })` was given. Default: the unnamed one. */
  instance?: string;
  /** A moment, or the `position` of an event behind which to go on. Default: only what comes from now on. */
  since?: Date | number | string;
}

/**
 * What happens to jobs in this process, in all its instances (`event.instance`), as it happens: nothing is stored, and
 * what other processes do is not seen, but for `fleet()`. Costs nothing without subscribers.
 */
export class DelayQueueEvents implements OnApplicationShutdown {
  // A later subscriber finds it ended as well.
  readonly #ended = new ReplaySubject<void>(1);
  readonly #logger = new DelayQueueLogger('DelayQueueEvents');

  /** @internal */
  constructor(
    private readonly modules?: ModuleRef,
    private readonly instances?: DelayQueueInstances,
  ) {}

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

  /**
   * How jobs of a queue end, in whatever process: of queues with `events` in the options of the processes that run their
   * jobs. Each subscription asks Redis twice a second. An event comes once; one may be missing when its process died, when
   * Redis was away, or when a listener was slower than the stream is long.
   *
   * @throws InvalidQueueError, InvalidOptionError, InvalidDelayError, UnknownInstanceError
   */
  fleet(queue: QueueRef, { instance = DEFAULT_INSTANCE, since }: FleetOptions = {}): EventStream<FleetEvent> {
    const name = queueNameOf(queue, 'DelayQueueEvents.fleet(queue)');
    const from = since === undefined ? undefined : positionOf(since);
    const context = this.#context(instance);
    return this.#guarded((subscriber) => {
      const reader = new FleetReader(context, name, (event) => subscriber.next(event));
      reader.start(from);
      return () => reader.stop();
    });
  }

  #context(instance: string): InstanceContext {
    if (!this.modules || !this.instances) {
      throw new InvalidOptionError(
        'DelayQueueEvents.fleet(): import DelayQueueEventsModule instead of providing the class alone.',
      );
    }
    if (!this.instances.names.has(instance)) {
      throw unknownInstance('DelayQueueEvents.fleet()', instance, this.instances.names);
    }
    return this.modules.get<InstanceContext>(shardsToken(instance), { strict: false });
  }

  /** Ends all subscriptions and loops: after the workers have drained, so that they hear of that too. */
  onApplicationShutdown(): void {
    this.#ended.next();
    this.#ended.complete();
  }

  #stream<Name extends DelayQueueEventName>(names: readonly Name[]): EventStream<DelayQueueEvent<Name>> {
    return this.#guarded((subscriber) => listen(names, subscriber));
  }

  #guarded<Event>(produce: (subscriber: Subscriber<Event>) => () => void): EventStream<Event> {
    const report = (error: unknown, times: number) => {
      const what = times === 1 ? 'threw, which concerns no job' : `has failed for ${times} events, most recently`;
      const then = times === 1 ? ' Further errors of it are counted, and told at the 10th, the 100th and so on.' : '';
      this.#logger.error(`A subscriber of DelayQueueEvents ${what}: ${summarizeError(error)}.${then}`);
    };
    return new EventStream<Event>(report, produce).pipe(takeUntil(this.#ended)) as EventStream<Event>;
  }
}

const LAST_OF_A_MILLISECOND = '18446744073709551615';

/** As the stream names its entries. */
function positionOf(since: Date | number | string): string {
  const field = 'DelayQueueEvents.fleet({ since })';
  if (typeof since === 'string') {
    if (/^\d{1,15}-\d{1,20}$/.test(since)) return since;
    throw new InvalidOptionError(`${field}: is not the position of an event.`);
  }
  // The first entry of that millisecond is behind it.
  return `${Math.max(0, parseInstant(since, field) - 1)}-${LAST_OF_A_MILLISECOND}`;
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
