import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { metrics } from '@opentelemetry/api';
import type { Meter, MeterProvider } from '@opentelemetry/api';
import { InvalidOptionError } from '../delay-queue.errors.js';
import { NeedsForRoot } from '../instance/bare-module.js';
import { DelayQueueInstances, DelayQueueInstancesModule } from '../instance/delay-queue.instances.js';
import { readOptions } from '../job/option-rules.js';
import type { OptionRules } from '../job/option-rules.js';
import { Readings } from '../tally/readings.js';
import { LIBRARY_VERSION } from '../version.js';
import { DelayQueueOtelMetrics } from './delay-queue.otel-metrics.js';
import type { ChosenMeter } from './delay-queue.otel-metrics.js';

export interface DelayQueueOtelMetricsOptions {
  /** Gives the meter. Default: the global one of OpenTelemetry at boot. */
  meterProvider?: MeterProvider;
  /** The meter itself, instead of `meterProvider`. */
  meter?: Meter;
  /** Records lateness, duration and steps: the part that costs something for each job. Default true. */
  histograms?: boolean;
}

interface Draft {
  meterProvider?: MeterProvider;
  meter?: Meter;
  histograms: boolean;
}

const RULES: OptionRules<DelayQueueOtelMetricsOptions, Draft> = {
  meterProvider: (draft, value, field) => {
    if (typeof (value as Partial<MeterProvider> | null)?.getMeter !== 'function') {
      throw new InvalidOptionError(`${field}: must be a MeterProvider of OpenTelemetry.`);
    }
    draft.meterProvider = value as MeterProvider;
  },
  meter: (draft, value, field) => {
    const { createHistogram, addBatchObservableCallback } = (value ?? {}) as Partial<Meter>;
    if (typeof createHistogram !== 'function' || typeof addBatchObservableCallback !== 'function') {
      throw new InvalidOptionError(`${field}: must be a Meter of OpenTelemetry.`);
    }
    draft.meter = value as Meter;
  },
  histograms: (draft, value, field) => {
    if (typeof value !== 'boolean') throw new InvalidOptionError(`${field}: must be true or false.`);
    draft.histograms = value;
  },
};

function choose({ meter, meterProvider }: Draft): ChosenMeter {
  if (meter) return { meter, provider: undefined };
  const provider = meterProvider ?? metrics.getMeterProvider();
  return { meter: provider.getMeter('nestjs-delay-queue', LIBRARY_VERSION), provider };
}

/** Metrics of all instances for OpenTelemetry. Import it once, in the root module; the SDK and its exporter are the application's. */
@Module({ imports: [DelayQueueInstancesModule] })
export class DelayQueueOtelMetricsModule extends NeedsForRoot {
  /** @internal */
  protected readonly made = DelayQueueOtelMetrics;
  /** @internal */
  protected readonly advice =
    'imports: [DelayQueueOtelMetricsModule] alone measures nothing. Import DelayQueueOtelMetricsModule.forRoot() in the root module.';

  /** @throws InvalidOptionError at boot, also when another module of this process uses the same meter */
  static forRoot(options: DelayQueueOtelMetricsOptions = {}): DynamicModule {
    return {
      module: DelayQueueOtelMetricsModule,
      imports: [DelayQueueInstancesModule],
      providers: [
        {
          provide: DelayQueueOtelMetrics,
          useFactory: (modules: ModuleRef, instances: DelayQueueInstances) => {
            const call = (option: string) => `DelayQueueOtelMetricsModule.forRoot({ ${option} })`;
            const draft = readOptions(options, RULES, { histograms: true } as Draft, call);
            if (draft.meter && draft.meterProvider) {
              throw new InvalidOptionError(`${call('meter, meterProvider')}: give one of them.`);
            }
            const readings = new Readings(modules, instances);
            const exported = new DelayQueueOtelMetrics(() => choose(draft), draft.histograms, readings, instances);
            instances.onFailedBoot(() => exported.abandon());
            return exported;
          },
          inject: [ModuleRef, DelayQueueInstances],
        },
      ],
    };
  }
}
