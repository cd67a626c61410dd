// This library as an application uses it: a Nest application context, decorated handlers, the context creator in between.
import 'reflect-metadata';
import { Injectable, Logger, Module, Scope, UseGuards, UseInterceptors, UsePipes } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
// By its path: bench/package.json, which keeps the peers apart, makes this folder a package of its own.
import { DelayQueueModule, DelayQueueProducer, OnDelayed } from '../../dist-modules/esm/index.js';
import { connectionOptions } from '../measure/redis.mjs';

Logger.overrideLogger(['error', 'fatal']);

/** What looks on while it is measured: DQ_BENCH_WITH=metrics, otel-metrics, tracing or several. */
const OBSERVERS = {
  metrics: async () => {
    const { DelayQueueMetricsModule } = await import('../../dist-modules/esm/metrics/index.js');
    const { Registry } = await import('prom-client');
    // Of its own: a producer and a worker may share the process.
    return DelayQueueMetricsModule.forRoot({ registry: new Registry() });
  },
  'otel-metrics': async () => {
    const { DelayQueueOtelMetricsModule } = await import('../../dist-modules/esm/otel-metrics/index.js');
    const { InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } =
      await import('@opentelemetry/sdk-metrics');
    const readers = [new PeriodicExportingMetricReader({ exporter: new InMemoryMetricExporter(1) })];
    return DelayQueueOtelMetricsModule.forRoot({ meterProvider: new MeterProvider({ readers }) });
  },
  tracing: async () => (await import('../../dist-modules/esm/tracing/index.js')).DelayQueueTracingModule,
};

function observers() {
  const names = (process.env.DQ_BENCH_WITH ?? '').split(',').filter(Boolean);
  return Promise.all(names.map((name) => OBSERVERS[name]()));
}

export const settings =
  'forRoot({ startupChecks: "off" }), one @OnDelayed method, defaults otherwise; jobs due now stand in the zset of delayed jobs as all others do';

/** Decorators without a compiler: the bench runs as plain JavaScript on the built package. */
function decorate(target, method, ...decorators) {
  const descriptor = Object.getOwnPropertyDescriptor(target.prototype, method);
  for (const decorator of decorators) decorator(target.prototype, method, descriptor);
}

/** A class with one handler per queue. */
export function handlerClass(queues, concurrency, handle, limits = {}, { around = [], scope } = {}) {
  class Handlers {}
  queues.forEach((queue, n) => {
    const method = `run${n}`;
    Object.defineProperty(Handlers.prototype, method, {
      value: async function (body, job) {
        return handle(body, job);
      },
      writable: true,
      configurable: true,
    });
    decorate(Handlers, method, OnDelayed(queue, { concurrency, ...limits }), ...around);
  });
  Injectable({ scope })(Handlers);
  return Handlers;
}

export async function startApp({ url, space, providers, imports = [], consume, ...options }) {
  class App {}
  Module({
    imports: [
      ...(await observers()),
      ...imports,
      DelayQueueModule.forRoot({
        connection: typeof url === 'string' ? connectionOptions(url) : url,
        prefix: space,
        consume,
        startupChecks: 'off',
        shutdownHooksWarning: false,
        ...options,
      }),
    ],
    providers,
  })(App);
  return NestFactory.createApplicationContext(App, { logger: ['error'] });
}

export async function openProducer({ url, space, queue, variant }) {
  const { options } = await variantOf(variant);
  const app = await startApp({ url, space, consume: false, providers: [], ...options });
  return producerOf(app, queue);
}

function producerOf(app, queue) {
  const producer = app.get(DelayQueueProducer);
  return {
    enqueue: (body, dueAt) => producer.enqueue(queue, body, dueAt === undefined ? undefined : { at: dueAt }),
    enqueueTo: (name, body, dueAt) => producer.enqueue(name, body, { at: dueAt }),
    enqueueMany: (jobs) =>
      producer.enqueueMany(
        queue,
        jobs.map(({ body, dueAt, group }) => ({
          payload: body,
          ...(dueAt !== undefined && { at: dueAt }),
          ...(group !== undefined && { group }),
        })),
      ),
    close: () => app.close(),
  };
}

/** What an application may do beside the plain case. @returns options of the module, and what is around each handler */
async function variantOf(variant) {
  if (variant === 'devalue') {
    const { devalueCodec } = await import('../../dist-modules/esm/devalue/index.js');
    return { options: { codec: devalueCodec() } };
  }
  if (variant === 'requestScope') return { scope: Scope.REQUEST };
  if (variant !== 'enhanced') return {};
  const guard = { canActivate: () => true };
  const pipe = { transform: (value) => value };
  const interceptor = { intercept: (_, next) => next.handle() };
  return { around: [UseGuards(guard), UsePipes(pipe), UseInterceptors(interceptor)] };
}

/** As every library is told of limits over all processes: `running` at a time, `rate` of starts. */
function limitsOf({ running, rate } = {}) {
  return {
    ...(running && { globalConcurrency: running }),
    ...(rate && { rateLimit: { max: rate.max, per: rate.perMs } }),
  };
}

export async function openWorker({ url, space, queues, concurrency, handle, limits, variant }) {
  const { options, ...handlers } = await variantOf(variant);
  const app = await startApp({
    url,
    space,
    consume: true,
    providers: [handlerClass(queues, concurrency, (_, job) => handle(job), limitsOf(limits), handlers)],
    ...options,
  });
  return { close: () => app.close() };
}

export function dueAt(job) {
  return job.dueAt.getTime();
}

export async function counts(redis, space, queue) {
  const key = (name) => `${space}:{${queue}}:${name}`;
  const [pending, records, ...others] = await Promise.all([
    redis.zcard(key('due')),
    redis.hlen(key('jobs')),
    ...['running', 'quarantine', 'dead'].map((name) => redis.zcard(key(name))),
  ]);
  return { pending, other: others.reduce((sum, n) => sum + n, 0) + Math.abs(records - pending) };
}
