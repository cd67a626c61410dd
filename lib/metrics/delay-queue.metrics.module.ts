import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { register } from 'prom-client';
import type { Registry } from 'prom-client';
import { InvalidOptionError } from '../delay-queue.errors.js';
import { NeedsForRoot } from '../instance/bare-module.js';
import { DelayQueueInstances, DelayQueueInstancesModule } from '../instance/delay-queue.instances.js';
import { readOptions } from '../job/option-rules.js';
import type { OptionRules } from '../job/option-rules.js';
import { Readings } from '../tally/readings.js';
import { DelayQueueMetrics } from './delay-queue.metrics.js';

export interface DelayQueueMetricsOptions {
  /** Where the metrics are put. Default: the global one of prom-client. */
  registry?: Registry<any>;
  /** What the names of all metrics begin with. Default `'delay_queue_'`. */
  prefix?: string;
}

interface Draft {
  registry: Registry;
  prefix: string;
}

const RULES: OptionRules<DelayQueueMetricsOptions, Draft> = {
  registry: (draft, value, field) => {
    const { registerMetric, removeSingleMetric } = (value ?? {}) as Partial<Registry>;
    if (typeof registerMetric !== 'function' || typeof removeSingleMetric !== 'function') {
      throw new InvalidOptionError(`${field}: must be a Registry of prom-client.`);
    }
    draft.registry = value as Registry;
  },
  prefix: (draft, value, field) => {
    if (typeof value !== 'string' || !/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(value)) {
      throw new InvalidOptionError(`${field}: must be letters, digits and "_", such as "shop_delay_queue_".`);
    }
    draft.prefix = value;
  },
};

/** Metrics of all instances for Prometheus. Import it once, in the root module; the route that is scraped is the application's. */
@Module({ imports: [DelayQueueInstancesModule] })
export class DelayQueueMetricsModule extends NeedsForRoot {
  /** @internal */
  protected readonly made = DelayQueueMetrics;
  /** @internal */
  protected readonly advice =
    'imports: [DelayQueueMetricsModule] alone measures nothing. Import DelayQueueMetricsModule.forRoot() in the root module.';

  /** @throws InvalidOptionError at boot, also when the registry has metrics of these names */
  static forRoot(options: DelayQueueMetricsOptions = {}): DynamicModule {
    return {
      module: DelayQueueMetricsModule,
      imports: [DelayQueueInstancesModule],
      providers: [
        {
          provide: DelayQueueMetrics,
          useFactory: (modules: ModuleRef, instances: DelayQueueInstances) => {
            const draft: Draft = { registry: register, prefix: 'delay_queue_' };
            const { registry, prefix } = readOptions(
              options,
              RULES,
              draft,
              (option) => `DelayQueueMetricsModule.forRoot({ ${option} })`,
            );
            const metrics = new DelayQueueMetrics(registry, prefix, new Readings(modules, instances), instances);
            instances.onFailedBoot(() => metrics.onApplicationShutdown());
            return metrics;
          },
          inject: [ModuleRef, DelayQueueInstances],
        },
      ],
      exports: [DelayQueueMetrics],
    };
  }
}
