import { Inject } from '@nestjs/common';
import type { InjectionToken } from '@nestjs/common';
import { DEFAULT_INSTANCE } from '../handlers/on-delayed.decorator.js';
import type { GroupOption } from '../instance/job-shards.js';
import type { Duration } from '../job/duration.js';
import { jobNames } from '../job/enqueue-options.js';
import type { EnqueueOptions } from '../job/enqueue-options.js';
import type { EnqueueResult } from '../job/enqueue-result.js';
import { queueNameOf } from '../job/queue-definition.js';
import type { ScheduleResult } from '../recurring/schedule-calls.js';
import type { ScheduleOptions, ScheduleTimes } from '../recurring/schedule-options.js';
import type { UnscheduleResult } from './schedule.producer.js';
import type { Given } from '../job/payload-types.js';
import type { PayloadOf, QueueDefinition, QueueRef } from '../job/queue-definition.js';
import type { LocalTime } from '../job/wall-clock.js';
import type { JobSnapshot } from '../redis/job-snapshot.js';
import type { CancelResult, RescheduleResult, SignalResult, UpdateResult } from './change-results.js';
import type { DelayQueueProducer } from './delay-queue.producer.js';
import type { BulkOptions } from './bulk-enqueue.js';

/** One queue as a typed handle: the producer's calls without naming the queue each time. Given by `forFeature()`. */
export class DelayQueue<T = unknown> {
  /** @internal */
  constructor(
    readonly definition: QueueDefinition<T>,
    private readonly producer: () => DelayQueueProducer,
  ) {}

  get name(): string {
    return this.definition.name;
  }

  /** See `DelayQueueProducer.enqueue`. */
  enqueue(payload: T, options?: Given<EnqueueOptions>): Promise<EnqueueResult> {
    if (arguments.length > 2) return Promise.reject(jobNames(`enqueue(payload, options) of "${this.name}"`));
    return this.producer().enqueue<QueueDefinition<T>>(this.definition, payload as never, options);
  }

  /** See `DelayQueueProducer.enqueueMany`. */
  enqueueMany(
    items: readonly ({ payload: T } & Given<EnqueueOptions>)[],
    options?: BulkOptions,
  ): Promise<EnqueueResult[]> {
    return this.producer().enqueueMany<QueueDefinition<T>>(this.definition, items as never, options);
  }

  cancel(id: string, options?: { running?: boolean } & GroupOption): Promise<CancelResult> {
    return this.producer().cancel(this.definition, id, options);
  }

  reschedule(
    id: string,
    to: { delay: Duration } | { at: Date | number | LocalTime },
    options?: GroupOption,
  ): Promise<RescheduleResult> {
    return this.producer().reschedule(this.definition, id, to, options);
  }

  update(id: string, payload: T, options?: GroupOption): Promise<UpdateResult> {
    return this.producer().update<QueueDefinition<T>>(this.definition, id, payload as never, options);
  }

  signal(id: string, payload: T, options?: GroupOption): Promise<SignalResult> {
    return this.producer().signal<QueueDefinition<T>>(this.definition, id, payload as never, options);
  }

  runNow(id: string, options?: GroupOption): Promise<RescheduleResult> {
    return this.producer().runNow(this.definition, id, options);
  }

  get(id: string, options?: GroupOption): Promise<JobSnapshot<T> | undefined> {
    return this.producer().get(this.definition, id, options) as Promise<JobSnapshot<T> | undefined>;
  }

  /** See `DelayQueueProducer.schedule`. */
  schedule(id: string, times: ScheduleTimes, payload: T, options?: ScheduleOptions): Promise<ScheduleResult> {
    return this.producer().schedule<QueueDefinition<T>>(this.definition, id, times, payload as never, options);
  }

  unschedule(id: string, options?: { running?: boolean }): Promise<UnscheduleResult> {
    return this.producer().unschedule(this.definition, id, options);
  }
}

/** The injection token of the handle that `forFeature([definition], instance)` provides. */
export function getQueueToken(queue: QueueRef<any>, instance: string = DEFAULT_INSTANCE): InjectionToken {
  // In quotes, because names may hold colons: instance `a` with queue `b:c` is not instance `a:b` with queue `c`.
  // Nest shows the token when nobody provides it, so it says who would.
  const token = `nestjs-delay-queue:queue:${JSON.stringify(instance)}:${queueNameOf(queue, '@InjectQueue(queue)')}`;
  const second = instance === DEFAULT_INSTANCE ? '' : `, ${JSON.stringify(instance)}`;
  return `${token} (of DelayQueueModule.forFeature([definition]${second}))`;
}

/** The typed handle of a queue: `QueueOf<typeof paymentCheck>`. */
export type QueueOf<Q> = DelayQueue<PayloadOf<Q>>;

type Fitting<Handle, Field> = [Handle] extends [Field]
  ? unknown
  : { readonly 'what is injected has another type': Handle };

/** On a parameter of a constructor or on a property, whose type must take what is injected. Private properties cannot be looked at. */
export interface QueueInjection<Handle> {
  <Host extends abstract new (...args: any) => unknown, Index extends number>(
    target: Host,
    key: undefined,
    index: Index & Fitting<Handle, ConstructorParameters<Host>[Index]>,
  ): void;
  <Host extends object, Key extends string | symbol>(
    target: Host,
    key: Key & (Key extends keyof Host ? Fitting<Handle, Host[Key]> : unknown),
  ): void;
}

type InjectionOf<Payload> = unknown extends Payload
  ? ParameterDecorator & PropertyDecorator
  : QueueInjection<DelayQueue<Payload>>;

/** Injects the typed handle of a queue: `@InjectQueue(paymentCheck) private readonly checks: QueueOf<typeof paymentCheck>`. */
export function InjectQueue<const Q extends QueueRef>(queue: Q, instance?: string): InjectionOf<PayloadOf<Q>>;
export function InjectQueue(queue: QueueRef<any>, instance?: string): ParameterDecorator & PropertyDecorator {
  return Inject(getQueueToken(queue, instance));
}
