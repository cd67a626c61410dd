import { ModuleRef } from '@nestjs/core';
import type { OnApplicationBootstrap, BeforeApplicationShutdown, OnModuleInit } from '@nestjs/common';
import { shardsToken } from '../delay-queue.tokens.js';
import { DEFAULT_INSTANCE } from '../handlers/on-delayed.decorator.js';
import type { DelayQueueInstances } from '../instance/delay-queue.instances.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { queueNameOf } from '../job/queue-definition.js';
import type { QueueRef } from '../job/queue-definition.js';
import { inBuckets, Tally } from '../tally/tally.js';
import { Forecaster } from './forecast.js';
import type { Forecast, ForecastOptions } from './forecast.js';
import { HistoryKeeper } from './history-keeper.js';
import { HistoryReader } from './history-reader.js';
import type { HistoryOptions, QueueHistory } from './history-reader.js';
import type { LiveProcess } from './process-record.js';
import { unknownInstance } from '../instance/unknown-instance.js';

/** Options of the calls of `DelayQueueHistory`. */
export interface OfInstance {
  /** What `forRoot({ name })` was given. Default: the unnamed one. */
  instance?: string;
}

/**
 * What all processes with this module do and did: it writes for this process, and reads of all. Nothing of it stands in the
 * way of a job: it counts events, looks at the counts once a second, and writes once a minute.
 */
export class DelayQueueHistory implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly #tally = new Tally(inBuckets);
  readonly #keepers: HistoryKeeper[] = [];

  /** @internal */
  constructor(
    private readonly modules: ModuleRef,
    private readonly instances: DelayQueueInstances,
  ) {}

  onModuleInit(): void {
    this.instances.onFailedBoot(() => this.#tally.end());
    this.#tally.begin(false);
  }

  onApplicationBootstrap(): void {
    for (const instance of this.instances.names) {
      const keeper = new HistoryKeeper(this.#context(instance), this.#tally, () => this.instances.runner(instance));
      this.#keepers.push(keeper);
      keeper.start();
    }
  }

  /** After the handlers have ended, and before the connection is closed. */
  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all(this.#keepers.splice(0).map((keeper) => keeper.stop()));
    this.#tally.end();
  }

  /**
   * What happened to the jobs of a queue, minute by minute, in the last 24 hours.
   *
   * @throws InvalidOptionError, InvalidDelayError, InvalidQueueError, UnknownInstanceError, UnavailableError
   */
  async minutes(queue: QueueRef, { instance, ...options }: HistoryOptions & OfInstance = {}): Promise<QueueHistory> {
    return this.#reader(instance).minutes(queueNameOf(queue), options);
  }

  /**
   * The processes that are there: host, pid, version, queues, how many slots are busy, and the age of the last claim.
   *
   * @throws UnknownInstanceError, UnavailableError
   */
  async processes({ instance }: OfInstance = {}): Promise<LiveProcess[]> {
    return this.#reader(instance).processes();
  }

  /**
   * When the backlog will be gone, and how late jobs will start: from what is due when, and the rate at which the processes
   * start jobs when there is enough to do. Jobs that are enqueued later, retries and processes that come or go are not in it.
   *
   * @throws InvalidOptionError, InvalidDelayError, InvalidQueueError, UnknownInstanceError, UnavailableError
   */
  async forecast(queue: QueueRef, { instance, ...options }: ForecastOptions & OfInstance = {}): Promise<Forecast> {
    return new Forecaster(this.#reader(instance), queueNameOf(queue)).forecast(options);
  }

  #reader(instance: string = DEFAULT_INSTANCE): HistoryReader {
    return new HistoryReader(this.#context(instance));
  }

  #context(instance: string): InstanceContext {
    if (!this.instances.names.has(instance)) {
      throw unknownInstance('DelayQueueHistory', instance, this.instances.names);
    }
    return this.modules.get<InstanceContext>(shardsToken(instance), { strict: false });
  }
}
