import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from '@jest/globals';
import { metrics as openTelemetry } from '@opentelemetry/api';
import type { Meter, MeterProvider as AnyMeterProvider } from '@opentelemetry/api';
import {
  AggregationTemporality,
  DataPointType,
  InMemoryMetricExporter,
  MeterProvider,
  MetricReader,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import type { MetricData } from '@opentelemetry/sdk-metrics';
import { Gauge, Registry } from 'prom-client';
import {
  DelayQueueInspector,
  DelayQueueModule,
  DelayQueueProducer,
  DiscardJob,
  fixed,
  SnoozeJob,
} from '../../../lib/index.js';
import type { DelayedJob, DelayQueueRootOptions } from '../../../lib/index.js';
import { DelayQueueMetricsModule } from '../../../lib/metrics/index.js';
import { DelayQueueOtelMetricsModule } from '../../../lib/otel-metrics/index.js';
import type { DelayQueueOtelMetricsOptions } from '../../../lib/otel-metrics/index.js';
import { handlerClass } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy as TcpProxy } from '../../helpers/proxy.js';
import { waiting } from '../../helpers/waiting.js';

const here = inAWorld();
const end = endingWithEachTest();
afterEach(() => openTelemetry.disable());

/** Collects when it is asked to. */
class Reader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

function sdk(temporality = AggregationTemporality.CUMULATIVE) {
  const reader = new Reader({ aggregationTemporalitySelector: () => temporality });
  const meterProvider = new MeterProvider({ readers: [reader] });
  end({ close: () => meterProvider.shutdown() });
  const collect = async (): Promise<MetricData[]> => {
    const { resourceMetrics, errors } = await reader.collect();
    expect(errors).toEqual([]);
    return resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics);
  };
  return { meterProvider, collect };
}

type Samples = Record<string, number>;

const UNITS: Record<string, string> = { s: '_seconds', By: '_bytes' };
const LABELS: Record<string, string> = { 'delay_queue.instance': 'delay_queue', 'messaging.destination.name': 'queue' };

const keyOf = (name: string, labels: Record<string, unknown>) =>
  `${name}{${Object.entries(labels)
    .map(([label, value]) => `${LABELS[label] ?? label.replace('delay_queue.', '')}="${String(value)}"`)
    .toSorted()
    .join()}}`;

/** As collectors translate names and histograms for Prometheus. */
function translated(metrics: readonly MetricData[]): Samples {
  const samples: Samples = {};
  for (const { descriptor, dataPointType, dataPoints, ...metric } of metrics) {
    const isCounter = 'isMonotonic' in metric && metric.isMonotonic;
    const name = `${descriptor.name.replaceAll('.', '_')}${UNITS[descriptor.unit] ?? ''}${isCounter ? '_total' : ''}`;
    for (const { attributes, value } of dataPoints) {
      if (typeof value === 'number') samples[keyOf(name, attributes)] = value;
      if (dataPointType !== DataPointType.HISTOGRAM || typeof value === 'number' || !('buckets' in value)) continue;
      if (!('boundaries' in value.buckets)) continue;
      const { boundaries, counts } = value.buckets;
      let total = 0;
      for (const [at, count] of counts.entries()) {
        total += count;
        samples[keyOf(`${name}_bucket`, { ...attributes, le: boundaries[at] ?? '+Inf' })] = total;
      }
      samples[keyOf(`${name}_sum`, attributes)] = value.sum!;
      samples[keyOf(`${name}_count`, attributes)] = value.count;
    }
  }
  return samples;
}

async function scraped(registry: Registry): Promise<Samples> {
  const metrics = (await registry.getMetricsAsJSON()) as unknown as {
    name: string;
    values: { metricName?: string; labels: Record<string, string | number>; value: number }[];
  }[];
  return Object.fromEntries(
    metrics.flatMap(({ name, values }) =>
      values.map(({ metricName, labels, value }) => [keyOf(metricName ?? name, labels), value] as const),
    ),
  );
}

/** What changes from one moment to the next. */
const OF_THE_MOMENT = /^delay_queue_(?:lag_seconds|last_step_age_seconds|redis_memory_used_bytes|.*_sum)\{/;

function apart(samples: Samples): { exact: Samples; ofTheMoment: Samples } {
  const all = Object.entries(samples);
  return {
    exact: Object.fromEntries(all.filter(([key]) => !OF_THE_MOMENT.test(key))),
    ofTheMoment: Object.fromEntries(all.filter(([key]) => OF_THE_MOMENT.test(key))),
  };
}

function handle(payload: string, job: DelayedJob): unknown {
  if (payload === 'snooze' && job.snoozes === 0) throw new SnoozeJob(1);
  if (payload === 'retry' && job.attempt === 1) throw new Error('no luck');
  if (payload === 'discard') throw new DiscardJob('pointless');
  return undefined;
}

async function measured(
  queue: string,
  given: DelayQueueOtelMetricsOptions,
  options: DelayQueueRootOptions = {},
  log?: string[],
) {
  return here.start({
    imports: [DelayQueueOtelMetricsModule.forRoot(given)],
    providers: [handlerClass(queue, handle, { backoff: fixed(1) })],
    options,
    log,
  });
}

const completed = (queue: string, instance = 'default') =>
  `delay_queue_jobs_completed_total{delay_queue="${instance}",queue="${queue}"}`;

describe('Metrics for OpenTelemetry', () => {
  it('are metric by metric those of prom-client of the same run: of shards, batches, limits and named instances', async () => {
    const { meterProvider, collect } = sdk();
    const registry = new Registry();
    const root = { connection: here.world.connection, shutdownHooksWarning: false };
    const queues = { sharded: { shards: 4 }, limited: { globalConcurrency: 5, groups: { concurrency: 1 } } };
    const app = await here.boot({
      imports: [
        DelayQueueMetricsModule.forRoot({ registry }),
        DelayQueueOtelMetricsModule.forRoot({ meterProvider }),
        DelayQueueModule.forRoot({ ...root, prefix: here.world.prefix, queues }),
        DelayQueueModule.forRoot({ ...root, prefix: `${here.world.prefix}:eu`, name: 'eu' }),
      ],
      providers: [
        handlerClass('fates', handle, { backoff: fixed(1) }),
        handlerClass('sharded', () => {}),
        handlerClass('limited', () => {}),
        handlerClass('batched', () => {}, { batch: { size: 2 } }),
        handlerClass('fates', handle, { instance: 'eu' }),
      ],
    });
    // From 0 on, with every word that a label may have.
    const before = translated(await collect());
    expect(before[completed('fates', 'eu')]).toBe(0);
    expect(
      Object.entries(before).filter(([key]) => key.startsWith('delay_queue_jobs_dead_lettered_total')),
    ).toHaveLength(5 * 6);
    const producer = app.get(DelayQueueProducer);
    const payloads = ['ok', 'snooze', 'retry', 'discard'].map((payload) => ({ payload }));
    for (const queue of ['fates', 'sharded', 'batched']) await producer.enqueueMany(queue, payloads);
    await producer.enqueue('limited', 'ok', { group: 'a' });
    const now = await here.world.now();
    await producer.enqueue('fates', 'late', { at: now - 5_000, expiresIn: 1_000 });
    for (const id of ['x', 'x']) await producer.enqueue('fates', 'later', { id, delay: '1h' });
    await producer.schedule('fates', 'daily', { cron: '0 3 * * *' }, 'ok');
    await app.get(DelayQueueInspector).pause('waiting');
    await producer.enqueue('waiting', 'ok', { at: now - 60_000 });
    await eventually(async () => {
      const samples = await scraped(registry);
      expect(samples[completed('fates')]).toBe(3);
      expect(samples[completed('batched')]).toBe(4);
      expect(samples[completed('sharded')]).toBe(4);
      expect(samples[completed('limited')]).toBe(1);
      expect(samples['delay_queue_jobs_expired_total{delay_queue="default",queue="fates"}']).toBe(1);
    });
    await eventually(async () => {
      const [ours, theirs] = await Promise.all([collect().then(translated), scraped(registry)]);
      const [otel, prometheus] = [apart(ours), apart(theirs)];
      // A histogram of OpenTelemetry has no series before its first measurement.
      const measuredSeries = Object.keys(otel.exact);
      const empty = Object.entries(prometheus.exact).filter(([key]) => !measuredSeries.includes(key));
      expect(empty.filter(([key, value]) => value !== 0 || !/_(?:bucket|count)\{/.test(key))).toEqual([]);
      expect(otel.exact).toEqual(
        Object.fromEntries(Object.entries(prometheus.exact).filter(([key]) => key in otel.exact)),
      );
      for (const [key, value] of Object.entries(otel.ofTheMoment)) {
        expect(prometheus.ofTheMoment).toHaveProperty([key]);
        const tolerance = key.includes('_bytes') ? 5_000_000 : key.includes('_sum') ? 1e-6 : 10;
        expect([key, Math.abs(prometheus.ofTheMoment[key]! - value) <= tolerance]).toEqual([key, true]);
      }
    });
    const samples = translated(await collect());
    expect(samples['delay_queue_lag_seconds{delay_queue="default",queue="waiting"}']).toBeGreaterThanOrEqual(60);
    expect(samples['delay_queue_jobs{delay_queue="default",queue="fates",state="delayed"}']).toBeGreaterThanOrEqual(1);
    expect(samples['delay_queue_schedules{delay_queue="default",queue="fates"}']).toBe(1);
    expect(samples['delay_queue_job_duration_seconds_count{delay_queue="default",queue="batched"}']).toBe(4);
    const names = new Set(Object.keys(samples).map((key) => key.replace(/(?:_(?:bucket|sum|count))?\{.*/, '')));
    const all = (await registry.getMetricsAsJSON()).map(({ name }) => name);
    expect([...names].toSorted()).toEqual(all.toSorted());
  });

  it('have names, units and attributes as OpenTelemetry wants them', async () => {
    const { meterProvider, collect } = sdk();
    const { producer } = await measured('names', { meterProvider });
    await producer.enqueue('names', 'ok');
    await eventually(async () => expect(translated(await collect())[completed('names')]).toBe(1));
    const metrics = await collect();
    const names = metrics.map(({ descriptor }) => descriptor.name);
    expect(names.length).toBeGreaterThan(20);
    for (const { descriptor, dataPoints } of metrics) {
      const { name, unit, description } = descriptor;
      expect(name).toMatch(/^delay_queue(?:\.[a-z]+(?:_[a-z]+)*)+$/);
      expect(name).not.toMatch(/_(?:total|seconds|bytes)$/);
      // No name of a metric is the namespace of another one.
      expect(names.filter((other) => other.startsWith(`${name}.`))).toEqual([]);
      expect(unit).toMatch(/^(?:s|By|\{[a-z]+\})$/);
      expect(description).toMatch(/^\S/);
      for (const { attributes } of dataPoints) {
        const known = /^(?:delay_queue\.(?:instance|outcome|reason|kind|state)|messaging\.destination\.name)$/;
        expect(Object.keys(attributes).filter((attribute) => !known.test(attribute))).toEqual([]);
        expect(attributes).toHaveProperty(['delay_queue.instance'], 'default');
      }
    }
  });

  it('call nothing of the SDK for a job but the record() of the histograms, and without these nothing at all', async () => {
    const calls: string[] = [];
    const { meterProvider, collect } = sdk();
    const counting = (name: string): AnyMeterProvider => ({
      getMeter: () => watched(meterProvider.getMeter(name), (method) => calls.push(method)),
    });
    const run = async (queue: string, histograms: boolean) => {
      const { producer, inspector } = await measured(queue, { meterProvider: counting(queue), histograms });
      await collect();
      calls.length = 0;
      await producer.enqueueMany(
        queue,
        Array.from({ length: 20 }, () => ({ payload: 'ok' })),
      );
      await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 20 }));
      return new Set(calls);
    };
    expect(await run('none', false)).toEqual(new Set());
    expect(await run('recorded', true)).toEqual(new Set(['record']));
    await eventually(async () => expect(translated(await collect())[completed('none')]).toBe(20));
    expect(Object.keys(translated(await collect())).filter((key) => /_bucket.*"none"/.test(key))).toEqual([]);
  });

  it('go to the global MeterProvider that is there at boot, or to a meter that is given', async () => {
    const [global, given] = [sdk(), sdk()];
    // As an application does whose module file is loaded before its SDK starts.
    const imported = DelayQueueOtelMetricsModule.forRoot();
    openTelemetry.setGlobalMeterProvider(global.meterProvider);
    await here.start({ imports: [imported], providers: [handlerClass('global', handle)] });
    await measured('given', { meter: given.meterProvider.getMeter('shop') });
    expect(translated(await global.collect())).toHaveProperty([completed('global')], 0);
    expect(translated(await given.collect())).toHaveProperty([completed('given')], 0);
  });

  it('make nothing without an SDK, also in two applications of a process, and jobs run', async () => {
    const apps = [await measured('quiet', {}), await measured('quiet', {})];
    const [{ producer, inspector }] = apps as [(typeof apps)[0]];
    await producer.enqueue('quiet', 'ok');
    await eventually(async () => expect(await inspector.totals('quiet')).toMatchObject({ completed: 1 }));
  });

  it('are collected within seconds while Redis is silent, say so, and have what this process knows', async () => {
    const proxy = end(await TcpProxy.before(here.world.url));
    const { meterProvider, collect } = sdk(AggregationTemporality.DELTA);
    await measured('silent', { meterProvider }, { connection: proxy.url, commandTimeout: 60_000 });
    const up = 'delay_queue_redis_up{delay_queue="default"}';
    const jobs = 'delay_queue_jobs{delay_queue="default",queue="silent",state="due"}';
    expect(translated(await collect())).toMatchObject({ [up]: 1, [jobs]: 0 });
    proxy.judge = () => 'swallow';
    const waited = waiting();
    const samples = translated(await collect());
    expect(waited()).toBeLessThan(10_000);
    expect(samples).toMatchObject({ [up]: 0, [completed('silent')]: 0 });
    expect(samples).not.toHaveProperty([jobs]);
    proxy.judge = () => 'pass';
    proxy.cut();
    const outages = 'delay_queue_redis_outages_total{delay_queue="default"}';
    let counted = 0;
    await eventually(async () => {
      const after = translated(await collect());
      counted += after[outages]!;
      expect([counted, after[up]]).toEqual([1, 1]);
    });
  });

  it('do not wait for Redis in an export that has less time than that', async () => {
    const proxy = end(await TcpProxy.before(here.world.url));
    const reader = new Reader();
    const meterProvider = end(closing(new MeterProvider({ readers: [reader] })));
    await measured('hurried', { meterProvider }, { connection: proxy.url, commandTimeout: 60_000 });
    proxy.judge = () => 'swallow';
    const { resourceMetrics, errors } = await reader.collect({ timeoutMillis: 200 });
    expect(errors).toHaveLength(1);
    const metrics = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
    expect(translated(metrics)).toHaveProperty([completed('hurried')], 0);
    proxy.judge = () => 'pass';
    proxy.cut();
  });

  it('cost no job when the SDK throws, and say so once', async () => {
    const { meterProvider } = sdk();
    const meter = meterProvider.getMeter('broken');
    const broken = Object.create(meter) as Meter;
    const record = () => {
      throw new Error('a view of the application');
    };
    broken.createHistogram = () => ({ record });
    const log: string[] = [];
    const { producer, inspector } = await measured('broken', { meter: broken }, {}, log);
    await producer.enqueueMany('broken', [{ payload: 'ok' }, { payload: 'ok' }]);
    await eventually(async () => expect(await inspector.totals('broken')).toMatchObject({ completed: 2 }));
    await eventually(() =>
      expect(log.filter((line) => line.includes('Metrics for OpenTelemetry fail, which concerns no job'))).toHaveLength(
        1,
      ),
    );
  });

  it('let the application close when the SDK throws over its callbacks, and say so once', async () => {
    const { meterProvider } = sdk();
    const broken = Object.create(meterProvider.getMeter('broken')) as Meter;
    broken.removeBatchObservableCallback = () => {
      throw new Error('a reader of the application');
    };
    const log: string[] = [];
    const { app } = await measured('broken-end', { meter: broken }, {}, log);
    await expect(app.close()).resolves.toBeUndefined();
    expect(log.filter((line) => line.includes('Metrics for OpenTelemetry fail'))).toHaveLength(1);
    // The meter is free, and nothing is counted any more by the one before.
    await expect(measured('broken-end', { meter: broken })).resolves.toBeDefined();
  });

  it('leave no callback in a meter that throws while the application boots', async () => {
    const { meterProvider } = sdk();
    const broken = Object.create(meterProvider.getMeter('half')) as Meter;
    const callbacks = new Set<unknown>();
    broken.addBatchObservableCallback = (callback) => void callbacks.add(callback);
    broken.removeBatchObservableCallback = (callback) => void callbacks.delete(callback);
    broken.createObservableCounter = () => {
      throw new Error('no more instruments');
    };
    await expect(measured('half', { meter: broken })).rejects.toThrow('no more instruments');
    expect(callbacks.size).toBe(0);
  });

  it('export the last counts when the application closes, and no Redis that is only left; then nothing more', async () => {
    const exporter = new InMemoryMetricExporter(AggregationTemporality.DELTA);
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
    const meterProvider = end(closing(new MeterProvider({ readers: [reader] })));
    const started: (() => void)[] = [];
    const { app, producer } = await here.start({
      imports: [DelayQueueOtelMetricsModule.forRoot({ meterProvider })],
      providers: [handlerClass('last', () => new Promise<void>((resolve) => started.push(resolve)))],
    });
    await producer.enqueue('last', 'ok');
    await eventually(() => expect(started).toHaveLength(1));
    // It ends while the application drains.
    const closed = app.close();
    started[0]!();
    await closed;
    const exported = exporter
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics));
    expect(translated(exported)).toHaveProperty([completed('last')], 1);
    expect(translated(exported)).toHaveProperty(
      ['delay_queue_job_duration_seconds_count{delay_queue="default",queue="last"}'],
      1,
    );
    expect(Object.keys(translated(exported)).filter((key) => key.startsWith('delay_queue_redis_up'))).toEqual([]);
    exporter.reset();
    await meterProvider.forceFlush();
    expect(exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics)).toEqual([]);
  });

  it('hold the end of an application up for two seconds at most when its exporter hangs', async () => {
    const { meterProvider } = sdk();
    let release!: () => void;
    const released = new Promise<void>((resolve) => (release = resolve));
    const hanging: AnyMeterProvider & { forceFlush: () => Promise<void> } = {
      getMeter: (name) => meterProvider.getMeter(name),
      forceFlush: () => released,
    };
    const { app } = await measured('hanging', { meterProvider: hanging });
    const tooLate = setTimeout(release, 10_000);
    const waited = waiting();
    await app.close();
    clearTimeout(tooLate);
    expect(waited()).toBeLessThan(9_000);
  });

  it('begin anew in the same SDK when the application does', async () => {
    const { meterProvider, collect } = sdk(AggregationTemporality.DELTA);
    const first = await measured('anew', { meterProvider });
    await first.producer.enqueue('anew', 'ok');
    await eventually(async () => expect(await first.inspector.totals('anew')).toMatchObject({ completed: 1 }));
    await first.app.close();
    await measured('anew', { meterProvider });
    expect(translated(await collect())).toHaveProperty([completed('anew')], 0);
  });

  it('stand all in the documentation', async () => {
    const { meterProvider, collect } = sdk();
    const { producer } = await measured('docs', { meterProvider });
    await producer.enqueue('docs', 'ok');
    await eventually(async () => expect(translated(await collect())[completed('docs')]).toBe(1));
    const docs = readFileSync('docs/observability.md', 'utf8');
    const names = (await collect()).map(({ descriptor }) => descriptor.name);
    expect(names.filter((name) => !docs.includes(`\`${name}\``))).toEqual([]);
  });
});

describe('DelayQueueOtelMetricsModule', () => {
  it('is refused a second time in one meter, and leaves the first one alone', async () => {
    const { meterProvider, collect } = sdk();
    await measured('first', { meterProvider });
    await expect(measured('second', { meterProvider })).rejects.toMatchObject({
      code: 'ERR_DQ_INVALID_OPTION',
      message: expect.stringMatching(/the metrics are in this meter already/),
    });
    expect(translated(await collect())).toHaveProperty([completed('first')], 0);
  });

  it('frees the meter when the application cannot boot', async () => {
    const { meterProvider, collect } = sdk();
    // What boots after it fails: its names are taken.
    const registry = new Registry();
    new Gauge({ name: 'delay_queue_jobs', help: 'Not of the library', registers: [registry] });
    const failing = here.start({
      imports: [DelayQueueOtelMetricsModule.forRoot({ meterProvider }), DelayQueueMetricsModule.forRoot({ registry })],
      providers: [handlerClass('boot', handle)],
    });
    await expect(failing).rejects.toThrow(/has a metric "delay_queue_jobs" already/);
    await measured('boot', { meterProvider });
    expect(translated(await collect())).toHaveProperty([completed('boot')], 0);
  });

  it.each([
    [{ meter: {} as never }, /forRoot\(\{ meter \}\): must be a Meter/],
    [{ meterProvider: 1 as never }, /forRoot\(\{ meterProvider \}\): must be a MeterProvider/],
    [{ histograms: 'no' as never }, /forRoot\(\{ histograms \}\): must be true or false/],
    [{ meter: sdkMeter(), meterProvider: new MeterProvider() }, /give one of them/],
    [{ registry: 1 } as never, /registry/],
  ])('refuses wrong options: %#', async (options: DelayQueueOtelMetricsOptions, message) => {
    const wrong = here.start({ imports: [DelayQueueOtelMetricsModule.forRoot(options)] });
    await expect(wrong).rejects.toMatchObject({
      code: 'ERR_DQ_INVALID_OPTION',
      message: expect.stringMatching(message),
    });
  });
});

function sdkMeter(): Meter {
  return new MeterProvider().getMeter('unused');
}

function closing(provider: MeterProvider): MeterProvider & { close(): Promise<void> } {
  return Object.assign(provider, { close: () => provider.shutdown() });
}

/** Tells of each call to the meter and to what it makes, but for observations, which happen at an export. */
function watched(meter: Meter, tell: (method: string) => void): Meter {
  const watch = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(on, property) {
        const value: unknown = Reflect.get(on, property);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          tell(String(property));
          return (value as (...args: unknown[]) => unknown).apply(on, args);
        };
      },
    });
  const watching = watch(meter);
  return Object.assign(Object.create(watching) as Meter, {
    createHistogram: (...args: Parameters<Meter['createHistogram']>) => watch(meter.createHistogram(...args)),
  });
}
