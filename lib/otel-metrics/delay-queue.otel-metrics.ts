import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import { ValueType } from '@opentelemetry/api';
import type { BatchObservableResult, Histogram, Meter, MeterProvider, Observable } from '@opentelemetry/api';
import { InvalidOptionError } from '../delay-queue.errors.js';
import { DelayQueueLogger } from '../delay-queue.logger.js';
import type { DelayQueueInstances } from '../instance/delay-queue.instances.js';
import { summarizeError } from '../job/error-record.js';
import type { Distribution } from '../tally/buckets.js';
import { HISTOGRAMS } from '../tally/metric-definitions.js';
import type { MetricDefinition } from '../tally/metric-definitions.js';
import { MetricSource } from '../tally/metric-source.js';
import type { Observation, Series } from '../tally/metric-source.js';
import type { Readings } from '../tally/readings.js';
import { BOUNDS, Tally } from '../tally/tally.js';
import type { DistributionName, DistributionPlace } from '../tally/tally.js';
import { guarded } from '../user-code.js';
import { attributesOf } from './attributes.js';
import { flush } from './flush.js';
import { freeMeter, takeMeter } from './meters-in-use.js';
import { NOT_RECORDED, Recorder } from './recorder.js';

export interface ChosenMeter {
  readonly meter: Meter;
  /** Undefined when the application gave the meter itself. */
  readonly provider: MeterProvider | undefined;
}

type Tell = (result: BatchObservableResult) => void | Promise<void>;

/** Makes the instruments and observes them at each export, for as long as the application runs. */
export class DelayQueueOtelMetrics implements OnModuleInit, OnApplicationShutdown {
  readonly #tally = new Tally<Distribution>((of, place) => this.#distribution(of, place));
  readonly #source: MetricSource<Distribution>;
  readonly #logger = new DelayQueueLogger('DelayQueueOtelMetrics');
  readonly #histograms = new Map<DistributionName, Histogram>();
  #chosen: ChosenMeter | undefined;
  /** Takes the observed instruments out of the exports: those that ask Redis, and those of this process. */
  readonly #forget: { stored?: () => void; own?: () => void } = {};
  #warned = false;

  constructor(
    /** Asked at boot: an SDK that starts after the import of this module is there by then. */
    private readonly choose: () => ChosenMeter,
    private readonly withHistograms: boolean,
    readings: Readings,
    private readonly instances: Pick<DelayQueueInstances, 'booting' | 'names'>,
  ) {
    this.#source = new MetricSource(this.#tally, readings, instances);
  }

  /** @throws InvalidOptionError when another module of this process uses the meter */
  async onModuleInit(): Promise<void> {
    await this.instances.booting(() => this.#register());
  }

  #register(): void {
    const chosen = this.choose();
    const { meter } = chosen;
    if (!takeMeter(meter)) {
      throw new InvalidOptionError(
        'DelayQueueOtelMetricsModule.forRoot(): the metrics are in this meter already. Import the module once in a process, ' +
          'or give it a `meter` or a `meterProvider` of its own.',
      );
    }
    this.#chosen = chosen;
    if (this.withHistograms) this.#makeHistograms(meter);
    this.#forget.stored = this.#gaugesOfRedis(meter);
    this.#forget.own = this.#ownInstruments(meter);
    this.#tally.begin(this.withHistograms);
  }

  /** The last counts are exported, when the SDK still runs; no gauge then tells of a Redis that was only left. */
  async onApplicationShutdown(): Promise<void> {
    this.#end('stored');
    await flush(this.#chosen?.provider);
    this.abandon();
  }

  /** At once, without a last export: when the application could not boot. */
  abandon(): void {
    this.#end('stored');
    this.#end('own');
    this.#tally.end();
    if (this.#chosen) freeMeter(this.#chosen.meter);
    this.#chosen = undefined;
  }

  /** An SDK that throws here must not keep the modules behind this one from closing. */
  #end(which: 'stored' | 'own'): void {
    const forget = this.#forget[which];
    delete this.#forget[which];
    if (forget) guarded(forget, undefined, (error) => this.#warn(error));
  }

  #makeHistograms(meter: Meter): void {
    for (const { of, name, unit, help } of HISTOGRAMS) {
      const advice = { explicitBucketBoundaries: BOUNDS[of] };
      this.#histograms.set(of, meter.createHistogram(`delay_queue.${name}`, { unit, description: help, advice }));
    }
  }

  /** Not together with the others: an export that does not wait for Redis must have those. */
  #gaugesOfRedis(meter: Meter): () => void {
    const series = this.#source.stored().map((one) => ({ ...one, instrument: gauge(meter, one.definition) }));
    return observed(
      meter,
      series.map(({ instrument }) => instrument),
      async (result) => {
        const read = await Promise.all(series.map(async (one) => ({ ...one, values: await one.read() })));
        for (const { instrument, definition, values } of read) observe(result, instrument, definition, values);
      },
    );
  }

  #ownInstruments(meter: Meter): () => void {
    const withInstrument = (one: Series<Observation[]>, instrument: Observable) => ({ ...one, instrument });
    const series = [
      ...this.#source.counters().map((one) => withInstrument(one, counter(meter, one.definition))),
      ...this.#source.loops().map((one) => withInstrument(one, gauge(meter, one.definition))),
    ];
    return observed(
      meter,
      series.map(({ instrument }) => instrument),
      (result) => {
        for (const { instrument, definition, read } of series) observe(result, instrument, definition, read());
      },
    );
  }

  #distribution(of: DistributionName, { instance, queue, kind }: DistributionPlace): Distribution {
    const histogram = this.#histograms.get(of);
    if (!histogram) return NOT_RECORDED;
    const definition = HISTOGRAMS.find((one) => one.of === of)!;
    const attributes = attributesOf(definition, { instance, queue, word: kind });
    return new Recorder(histogram, attributes, (error) => this.#warn(error));
  }

  #warn(error: unknown): void {
    if (this.#warned) return;
    this.#warned = true;
    this.#logger.error(`Metrics for OpenTelemetry fail, which concerns no job: ${summarizeError(error)}. Said once.`);
  }
}

function counter(meter: Meter, { name, unit, help }: MetricDefinition): Observable {
  return meter.createObservableCounter(`delay_queue.${name}`, { unit, description: help, valueType: ValueType.INT });
}

function gauge(meter: Meter, { name, unit, help }: MetricDefinition): Observable {
  return meter.createObservableGauge(`delay_queue.${name}`, {
    unit,
    description: help,
    valueType: unit === 's' ? ValueType.DOUBLE : ValueType.INT,
  });
}

function observed(meter: Meter, instruments: Observable[], tell: Tell): () => void {
  meter.addBatchObservableCallback(tell, instruments);
  return () => meter.removeBatchObservableCallback(tell, instruments);
}

function observe(
  result: BatchObservableResult,
  instrument: Observable,
  definition: MetricDefinition,
  values: readonly Observation[],
): void {
  for (const { value, ...of } of values) result.observe(instrument, value, attributesOf(definition, of));
}
