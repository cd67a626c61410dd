import type { DelayQueueInstances } from '../instance/delay-queue.instances.js';
import type { Distribution } from './buckets.js';
import { COUNTERS, GAUGES_OF_QUEUES, GAUGES_OF_SERVERS, HISTOGRAMS, OUTAGES, STEP_AGE } from './metric-definitions.js';
import type { MetricDefinition, Values } from './metric-definitions.js';
import type { Readings } from './readings.js';
import type { QueueTally, Tally } from './tally.js';

/** One value of a metric, and whose it is. */
export interface Observation<Value = number> {
  readonly instance: string;
  /** Not when it is the instance's. */
  readonly queue?: string;
  /** Of the metric's label, when it has one. */
  readonly word?: string;
  readonly value: Value;
}

export interface Series<Result> {
  readonly definition: MetricDefinition;
  readonly read: () => Result;
}

/** All metrics with their present values, for whoever exports them. */
export class MetricSource<Seconds extends Distribution> {
  constructor(
    private readonly tally: Tally<Seconds>,
    private readonly readings: Readings,
    private readonly instances: Pick<DelayQueueInstances, 'names'>,
  ) {}

  /** Counted in this process: told at once. */
  counters(): Series<Observation[]>[] {
    const ofQueues = COUNTERS.map((definition) => ({
      definition,
      read: () => this.#each((tally) => split(definition.read(tally))),
    }));
    const outages = () =>
      Array.from(this.instances.names, (instance) => ({ instance, value: this.tally.outages(instance) }));
    return [...ofQueues, { definition: OUTAGES, read: outages }];
  }

  /** What has taken the seconds of this process. */
  histograms(): Series<Observation<Seconds>[]>[] {
    return HISTOGRAMS.map((definition) => ({
      definition,
      read: () =>
        this.#each((tally) =>
          definition.of === 'step'
            ? Object.entries(tally.step).map(([word, value]) => ({ word, value }))
            : [{ value: tally[definition.of] }],
        ),
    }));
  }

  /** Gauges of this process: told at once. */
  loops(): Series<Observation[]>[] {
    const read = () =>
      Array.from(this.readings.loops(), ({ instance, queue, age }) => ({ instance, queue, value: age }));
    return [{ definition: STEP_AGE, read }];
  }

  /** Gauges that Redis is asked for. Those that are read together share one reading, which is bounded in time. */
  stored(): Series<Promise<Observation[]>>[] {
    const ofQueues = GAUGES_OF_QUEUES.map((definition) => ({
      definition,
      read: async () =>
        (await this.readings.all()).flatMap(({ instance, queues }) =>
          queues.flatMap(({ queue, counts }) =>
            split(definition.read(counts)).map((value) => ({ instance, queue, ...value })),
          ),
        ),
    }));
    const ofServers = GAUGES_OF_SERVERS.map((definition) => ({
      definition,
      read: async () =>
        (await this.readings.all()).flatMap((reading) =>
          split(definition.read(reading)).map((value) => ({ instance: reading.instance, ...value })),
        ),
    }));
    return [...ofQueues, ...ofServers];
  }

  #each<Value>(
    read: (tally: QueueTally<Seconds>) => readonly { readonly word?: string; readonly value: Value }[],
  ): Observation<Value>[] {
    // A queue that nothing has happened to begins at 0 all the same.
    for (const { instance, queue } of this.readings.loops()) this.tally.of(instance, queue);
    return Array.from(this.tally.all()).flatMap(({ instance, queue, tally }) =>
      read(tally).map((value) => ({ instance, queue, ...value })),
    );
  }
}

function split(values: Values): { readonly word?: string; readonly value: number }[] {
  if (values === undefined) return [];
  if (typeof values === 'number') return [{ value: values }];
  return Object.entries(values).map(([word, value]) => ({ word, value }));
}
