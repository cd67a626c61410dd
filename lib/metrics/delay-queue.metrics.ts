import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import type { Metric, Registry } from 'prom-client';
import { InvalidOptionError } from '../delay-queue.errors.js';
import type { DelayQueueInstances } from '../instance/delay-queue.instances.js';
import type { Buckets } from '../tally/buckets.js';
import type { MetricDefinition } from '../tally/metric-definitions.js';
import { MetricSource } from '../tally/metric-source.js';
import type { Observation } from '../tally/metric-source.js';
import type { Readings } from '../tally/readings.js';
import { inBuckets, Tally } from '../tally/tally.js';
import { histogramSamples } from './histogram-samples.js';
import { prometheusName } from './prometheus-name.js';
import { ScrapedMetric } from './scraped-metric.js';
import type { Sample } from './scraped-metric.js';

/** Puts the library's metrics into a registry, for as long as the application runs. */
export class DelayQueueMetrics implements OnModuleInit, OnApplicationShutdown {
  readonly #tally = new Tally(inBuckets);
  readonly #source: MetricSource<Buckets>;
  /** By the names under which they are registered. */
  readonly #metrics = new Map<string, ScrapedMetric>();

  /** @internal */
  constructor(
    /** Where the metrics are. */
    readonly registry: Registry,
    private readonly prefix: string,
    readings: Readings,
    private readonly instances: Pick<DelayQueueInstances, 'booting' | 'names'>,
  ) {
    this.#source = new MetricSource(this.#tally, readings, instances);
  }

  /** @throws InvalidOptionError when the registry has metrics of these names */
  async onModuleInit(): Promise<void> {
    await this.instances.booting(() => this.#register());
  }

  #register(): void {
    this.#make();
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

  #make(): void {
    for (const { definition, read } of this.#source.counters()) {
      this.#add(definition, 'counter', () => read().map((value) => sampleOf(definition, value)));
    }
    for (const { definition, read } of this.#source.histograms()) {
      this.#add(definition, 'histogram', (name) =>
        read().flatMap(({ value, ...of }) => histogramSamples(value, name, labelsOf(definition, of))),
      );
    }
    for (const { definition, read } of this.#source.stored()) {
      this.#add(definition, 'gauge', async () => (await read()).map((value) => sampleOf(definition, value)));
    }
    for (const { definition, read } of this.#source.loops()) {
      this.#add(definition, 'gauge', () => read().map((value) => sampleOf(definition, value)));
    }
  }

  #add(
    definition: MetricDefinition,
    type: ScrapedMetric['type'],
    read: (name: string) => readonly Sample[] | Promise<readonly Sample[]>,
  ): void {
    const full = this.prefix + prometheusName(definition, type);
    const metric = new ScrapedMetric(
      full,
      `${definition.help}.`,
      type,
      type === 'gauge' ? 'max' : 'sum',
      () => read(full),
      () => this.#tally.clear(),
    );
    this.#metrics.set(full, metric);
  }
}

function sampleOf(definition: MetricDefinition, { value, ...of }: Observation): Sample {
  return { labels: labelsOf(definition, of), value };
}

/** `instance` is Prometheus' own label. */
function labelsOf({ label }: MetricDefinition, { instance, queue, word }: Omit<Observation, 'value'>) {
  const labels: Record<string, string> = { delay_queue: instance };
  if (queue !== undefined) labels['queue'] = queue;
  if (label && word !== undefined) labels[label] = word;
  return labels;
}
