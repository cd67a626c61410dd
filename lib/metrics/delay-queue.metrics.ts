import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import type { Metric, Registry } from 'prom-client';
import { InvalidOptionError } from '../delay-queue.errors.js';
import type { DelayQueueInstances } from '../instance/delay-queue.instances.js';
import type { Reading, Readings } from './readings.js';
import { ScrapedMetric } from './scraped-metric.js';
import type { Sample } from './scraped-metric.js';
import { Tally } from '../tally/tally.js';
import type { QueueTally } from '../tally/tally.js';
import { histogramSamples } from './histogram-samples.js';

type Plain = 'claimed' | 'completed' | 'failed' | 'retried' | 'snoozed' | 'expired' | 'leasesLost';

/** Puts the library's metrics into a registry, for as long as the application runs. */
export class DelayQueueMetrics implements OnModuleInit, OnApplicationShutdown {
  readonly #tally = new Tally();
  /** By the names under which they are registered. */
  readonly #metrics = new Map<string, ScrapedMetric>();

  /** @internal */
  constructor(
    /** Where the metrics are. */
    readonly registry: Registry,
    private readonly prefix: string,
    private readonly readings: Readings,
    private readonly instances: Pick<DelayQueueInstances, 'booting' | 'names'>,
  ) {}

  /** @throws InvalidOptionError when the registry has metrics of these names */
  async onModuleInit(): Promise<void> {
    await this.instances.booting(() => this.#register());
  }

  #register(): void {
    this.#counters();
    this.#histograms();
    this.#gauges();
    const taken = [...this.#metrics.keys()].find((name) => this.registry.getSingleMetric(name));
    if (taken) {
      throw new InvalidOptionError(
        `DelayQueueMetricsModule.forRoot(): the registry has a metric "${taken}" already. Import the module once, or give ` +
          'it a `registry` or a `prefix` of its own.',
      );
    }
    for (const metric of this.#metrics.values()) this.registry.registerMetric(metric as unknown as Metric);
    this.#tally.begin();
  }

  /** Also an application that is made anew in the same process, as tests do, finds the names free. */
  onApplicationShutdown(): void {
    this.#tally.end();
    for (const [name, metric] of this.#metrics) {
      const registered: unknown = this.registry.getSingleMetric(name);
      if (registered === metric) this.registry.removeSingleMetric(name);
    }
  }

  #counters(): void {
    const plain = (name: string, field: Plain, help: string) =>
      this.#add(name, 'counter', help, () => this.#each(({ [field]: value }, labels) => [{ labels, value }]));
    const split = (name: string, field: 'enqueued' | 'deadLettered' | 'skipped', by: string, help: string) =>
      this.#add(name, 'counter', help, () =>
        this.#each((tally, labels) =>
          Object.entries(tally[field]).map(([word, value]) => ({ labels: { ...labels, [by]: word }, value })),
        ),
      );
    split('jobs_enqueued_total', 'enqueued', 'outcome', 'Enqueues that Redis answered');
    plain('jobs_claimed_total', 'claimed', 'Jobs claimed to be run');
    plain('jobs_completed_total', 'completed', 'Jobs that are done');
    plain('jobs_failed_total', 'failed', 'Attempts used up by an error, a timeout or a discard');
    plain('jobs_retried_total', 'retried', 'Failed attempts that are followed by another one');
    plain('jobs_snoozed_total', 'snoozed', 'Runs that ended by asking for a later one');
    plain('jobs_expired_total', 'expired', 'Jobs removed because they could not start in time');
    split('jobs_dead_lettered_total', 'deadLettered', 'reason', 'Jobs that became dead letters');
    split('occurrences_skipped_total', 'skipped', 'reason', 'Occurrences of schedules that did not run');
    plain('leases_lost_total', 'leasesLost', 'Runs that lost their lease');
    this.#add('redis_outages_total', 'counter', 'Times that Redis became unreachable or refused everything', () =>
      Array.from(this.instances.names, (instance) => ({
        labels: { delay_queue: instance },
        value: this.#tally.outages(instance),
      })),
    );
  }

  #histograms(): void {
    this.#add('job_lateness_seconds', 'histogram', 'From the due time to the claim', (name) =>
      this.#each(({ lateness }, labels) => histogramSamples(lateness, name, labels)),
    );
    this.#add('job_duration_seconds', 'histogram', 'From the claim to the outcome', (name) =>
      this.#each(({ duration }, labels) => histogramSamples(duration, name, labels)),
    );
    this.#add('step_duration_seconds', 'histogram', 'Round trips of workers to Redis', (name) =>
      this.#each(({ steps }, labels) =>
        Object.entries(steps).flatMap(([kind, buckets]) => histogramSamples(buckets, name, { ...labels, kind })),
      ),
    );
  }

  #gauges(): void {
    const ofQueues = (name: string, help: string, samples: (reading: Reading['queues'][number]) => readonly Sample[]) =>
      this.#add(name, 'gauge', help, async () =>
        (await this.readings.all()).flatMap(({ instance, queues }) =>
          queues.flatMap((reading) =>
            samples(reading).map(({ labels, value }) => ({
              labels: { delay_queue: instance, queue: reading.queue, ...labels },
              value,
            })),
          ),
        ),
      );
    ofQueues('jobs', 'Jobs in a queue', ({ counts }) =>
      (['delayed', 'due', 'running', 'dead'] as const).map((state) => ({ labels: { state }, value: counts[state] })),
    );
    ofQueues('lag_seconds', 'Age of the oldest due job that nobody has claimed', ({ counts }) => [
      { labels: {}, value: counts.lagMs / 1_000 },
    ]);
    ofQueues('schedules', 'Schedules of a queue', ({ counts }) => [{ labels: {}, value: counts.schedules }]);
    ofQueues('schedules_late_seconds', 'Since when a schedule needs more occurrences', ({ counts }) => [
      { labels: {}, value: counts.schedulesLateMs / 1_000 },
    ]);
    ofQueues('paused', '1 while a queue is paused', ({ counts }) => [{ labels: {}, value: counts.paused ? 1 : 0 }]);
    ofQueues('limited', '1 while a queue is at a limit of its own', ({ counts }) =>
      counts.limited === undefined ? [] : [{ labels: {}, value: counts.limited ? 1 : 0 }],
    );
    ofQueues('groups', 'Groups of a queue that have jobs', ({ counts: { groups } }) =>
      groups
        ? (['inLine', 'limited', 'total'] as const).map((state) => ({ labels: { state }, value: groups[state] }))
        : [],
    );
    const ofServers = (name: string, help: string, read: (reading: Reading) => number | undefined) =>
      this.#add(name, 'gauge', help, async () =>
        (await this.readings.all()).flatMap((reading) => {
          const value = read(reading);
          return value === undefined ? [] : [{ labels: { delay_queue: reading.instance }, value }];
        }),
      );
    ofServers('redis_up', '1 when Redis answered this scrape', ({ up }) => (up ? 1 : 0));
    ofServers('redis_memory_used_bytes', 'used_memory of Redis', ({ memory }) => memory?.used);
    ofServers('redis_memory_max_bytes', 'maxmemory of Redis; 0 is no limit', ({ memory }) => memory?.max);
    this.#add('last_step_age_seconds', 'gauge', 'Since the claim loop of a queue was last answered', () =>
      Array.from(this.readings.loops(), ({ instance, queue, age }) => ({
        labels: { delay_queue: instance, queue },
        value: age,
      })),
    );
  }

  #add(
    name: string,
    type: ScrapedMetric['type'],
    help: string,
    read: (name: string) => readonly Sample[] | Promise<readonly Sample[]>,
  ): void {
    const full = this.prefix + name;
    const aggregator = type === 'gauge' ? 'max' : 'sum';
    const metric = new ScrapedMetric(
      full,
      `${help}.`,
      type,
      aggregator,
      () => read(full),
      () => this.#tally.clear(),
    );
    this.#metrics.set(full, metric);
  }

  #each(samples: (tally: QueueTally, labels: { delay_queue: string; queue: string }) => readonly Sample[]): Sample[] {
    for (const { instance, queue } of this.readings.loops()) this.#tally.of(instance, queue);
    const all: Sample[] = [];
    for (const { instance, queue, tally } of this.#tally.all()) {
      all.push(...samples(tally, { delay_queue: instance, queue }));
    }
    return all;
  }
}
