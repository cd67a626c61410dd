import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Inject, Module, Param, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ClientTCP } from '@nestjs/microservices';
import { context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { createTraceState } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from '@opentelemetry/core';
import {
  AlwaysOffSampler,
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import type { ReadableSpan, TracerConfig } from '@opentelemetry/sdk-trace-base';
import {
  currentJob,
  DelayQueueConsumer,
  DelayQueueModule,
  DelayQueueProducer,
  DiscardJob,
  fixed,
  InvalidDelayError,
  OnDelayed,
} from '../../../lib/index.js';
import type { DelayedJob, HandlerOptions } from '../../../lib/index.js';
import { DelayQueueEvents, DelayQueueEventsModule } from '../../../lib/events/index.js';
import { DelayQueueTracingModule } from '../../../lib/tracing/index.js';
import { handlerClass } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { CLIENT, relayClass } from '../../helpers/relaying.js';

const here = inAWorld();
const end = endingWithEachTest();
const exporter = new InMemorySpanExporter();

const EXPORTING: TracerConfig = { spanProcessors: [new SimpleSpanProcessor(exporter)] };

function provide(config: TracerConfig): void {
  trace.disable();
  trace.setGlobalTracerProvider(new BasicTracerProvider(config));
}

beforeAll(() => {
  provide(EXPORTING);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const propagators = [new W3CTraceContextPropagator(), new W3CBaggagePropagator()];
  propagation.setGlobalPropagator(new CompositePropagator({ propagators }));
});
beforeEach(() => exporter.reset());
afterAll(() => {
  trace.disable();
  context.disable();
  propagation.disable();
});

const named = (name: string) => exporter.getFinishedSpans().filter((span) => span.name === name);
const become = (name: string, count: number) =>
  eventually(() => {
    expect(named(name)).toHaveLength(count);
    return named(name);
  });
const idOf = (span: ReadableSpan) => span.spanContext().spanId;
const traceOf = (span: ReadableSpan) => span.spanContext().traceId;

async function traced(
  queue: string,
  handle: (payload: any, job: DelayedJob) => unknown,
  options: HandlerOptions = {},
  log?: string[],
) {
  return here.start({
    log,
    imports: [DelayQueueTracingModule, DelayQueueEventsModule],
    providers: [handlerClass(queue, handle, { backoff: fixed(1), ...options })],
  });
}

/** What an instrumentation of HTTP does. */
function serverSpan(request: { headers: Record<string, string>; url: string }, _: unknown, next: () => void): void {
  const parent = propagation.extract(ROOT_CONTEXT, request.headers);
  const span = trace.getTracer('http').startSpan(`POST ${request.url}`, { kind: SpanKind.SERVER }, parent);
  context.with(trace.setSpan(parent, span), next);
  span.end();
}

describe('Tracing', () => {
  it('makes one trace from the HTTP request through the enqueue to the handler and what that enqueues', async () => {
    @Controller('orders')
    class Orders {
      constructor(@Inject(DelayQueueProducer) private readonly producer: DelayQueueProducer) {}
      @Post(':id')
      async create(@Param('id') id: string): Promise<void> {
        await this.producer.enqueue('order.created', id, { id, delay: 20 });
      }
      @OnDelayed('order.created')
      async created(id: string): Promise<void> {
        trace.getTracer('app').startSpan('inside the handler').end();
        await this.producer.enqueue('order.billed', id, { id });
      }
      @OnDelayed('order.billed')
      billed(): void {}
    }
    @Module({
      imports: [
        DelayQueueTracingModule,
        DelayQueueModule.forRoot({
          connection: here.world.connection,
          prefix: here.world.prefix,
          shutdownHooksWarning: false,
        }),
      ],
      controllers: [Orders],
    })
    class App {}
    const app = end(await NestFactory.create(App, { logger: false }));
    app.use(serverSpan);
    await app.listen(0, '127.0.0.1');
    const { port } = app.getHttpServer().address() as AddressInfo;
    const caller = '0af7651916cd43dd8448eb211c80319c';
    const headers = { traceparent: `00-${caller}-b7ad6b7169203331-01`, connection: 'close' };
    expect((await fetch(`http://127.0.0.1:${port}/orders/7`, { method: 'POST', headers })).status).toBe(201);

    await become('process order.billed', 1);
    const chain = [
      'POST /orders/7',
      'enqueue order.created',
      'process order.created',
      'enqueue order.billed',
      'process order.billed',
    ].map((name) => named(name)[0]!);
    expect(chain.map(traceOf)).toEqual(chain.map(() => caller));
    const parents = chain.map((span) => span.parentSpanContext?.spanId);
    expect(parents).toEqual(['b7ad6b7169203331', ...chain.slice(0, -1).map(idOf)]);
    expect(named('inside the handler')[0]!.parentSpanContext?.spanId).toBe(idOf(chain[2]!));
    expect(exporter.getFinishedSpans()).toHaveLength(6);
  });

  it('goes on in the message of a relay', async () => {
    const sent: { metadata?: Record<string, string> }[] = [];
    const socket = { sendMessage: (packet: object) => void sent.push(packet) };
    const client = Object.assign(new ClientTCP({}), { connect: () => Promise.resolve(), socket });
    const { producer } = await here.start({
      imports: [DelayQueueTracingModule],
      providers: [relayClass('relayed', { confirm: 'none' }), { provide: CLIENT, useValue: client }],
    });
    await producer.enqueue('relayed', {});
    const [processed] = await become('process relayed', 1);
    expect(traceOf(processed!)).toBe(traceOf(named('enqueue relayed')[0]!));
    expect(sent[0]!.metadata).toMatchObject({ traceparent: `00-${traceOf(processed!)}-${idOf(processed!)}-01` });
  });

  it('names kinds and attributes by the conventions for messaging', async () => {
    const { producer } = await traced('named', () => {});
    await producer.enqueue('named', { secret: 1 }, { id: 'a' });
    const [processed] = await become('process named', 1);
    const common = {
      'messaging.system': 'nestjs-delay-queue',
      'messaging.destination.name': 'named',
      'messaging.message.id': 'a',
      'delay_queue.instance': 'default',
    };
    expect(named('enqueue named')[0]).toMatchObject({ kind: SpanKind.PRODUCER });
    expect(named('enqueue named')[0]!.attributes).toEqual({
      ...common,
      'messaging.operation.name': 'enqueue',
      'messaging.operation.type': 'send',
      'delay_queue.outcome': 'created',
    });
    expect(processed).toMatchObject({ kind: SpanKind.CONSUMER, status: { code: SpanStatusCode.UNSET } });
    expect(processed!.attributes).toEqual({
      ...common,
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'delay_queue.attempt': 1,
      'delay_queue.lateness_ms': expect.any(Number),
      'delay_queue.outcome': 'completed',
    });
    expect(JSON.stringify(exporter.getFinishedSpans().map(({ attributes }) => attributes))).not.toContain('secret');
  });

  it('links each retry to the failed attempt before it, also when another process runs it', async () => {
    const fails = (_: unknown, job: DelayedJob) => {
      if (job.attempt < 3) throw new TypeError(`failure ${job.attempt}`);
    };
    const first = await traced('retried', fails, { backoff: fixed('1h') });
    await first.producer.enqueue('retried', {}, { id: 'a' });
    await become('process retried', 1);
    await eventually(async () => expect(await first.producer.get('retried', 'a')).toMatchObject({ state: 'delayed' }));
    await first.close();
    const second = await traced('retried', fails);
    await second.producer.runNow('retried', 'a');
    const spans = await become('process retried', 3);
    const [one, two, three] = spans;
    const [enqueued] = named('enqueue retried');
    expect(spans.map((span) => span.parentSpanContext?.spanId)).toEqual(spans.map(() => idOf(enqueued!)));
    expect(spans.map((span) => span.attributes['delay_queue.attempt'])).toEqual([1, 2, 3]);
    expect(spans.map(({ links }) => links.map((link) => link.context.spanId))).toEqual([
      [],
      [idOf(one!)],
      [idOf(two!)],
    ]);
    expect(one).toMatchObject({
      status: { code: SpanStatusCode.ERROR, message: 'failure 1' },
      attributes: { 'error.type': 'TypeError', 'delay_queue.outcome': 'failed' },
    });
    expect(three!.status.code).toBe(SpanStatusCode.UNSET);
    expect(Number(three!.duration[0])).toBe(0);
  });

  it.each<[string, (payload: any) => unknown]>([
    ['a text', ({ email }) => `no mail to ${email}`],
    ['an object', (payload) => ({ code: 'E_BOUNCED', payload })],
    ['the payload itself', (payload) => payload],
    ['an error caused by a text', ({ email }) => new Error('bounced', { cause: `no mail to ${email}` })],
  ])('shows no value of a payload where what is thrown quotes one, as the log does not: %s', async (_, thrown) => {
    const log: string[] = [];
    const fails = (payload: any) => {
      throw thrown(payload);
    };
    const { producer } = await traced('quoting', fails, { attempts: 1 }, log);
    await producer.enqueue('quoting', { name: 'Bobby Tables', email: 'bobby@example.org' }, { id: 'a' });
    const [span] = await become('process quoting', 1);
    const told = JSON.stringify([span!.status, span!.attributes, span!.events]);
    expect(span!.status.code).toBe(SpanStatusCode.ERROR);
    expect(span!.events).toEqual([expect.objectContaining({ name: 'exception' })]);
    expect(told).not.toMatch(/bobby/i);
    await eventually(() => expect(log.join()).toContain('is now a dead letter'));
    expect(log.join()).not.toMatch(/bobby/i);
  });

  it('shows no value of any payload of a batch', async () => {
    const fails = (payloads: string[]) => {
      throw `no mail to ${payloads.join()}`;
    };
    const { producer } = await traced('quoting', fails, { batch: { size: 2, wait: '10s' }, attempts: 1 });
    for (const email of ['alice@example.org', 'bobby@example.org']) await producer.enqueue('quoting', email);
    const [span] = await become('process quoting', 1);
    expect(span!.status).toEqual({ code: SpanStatusCode.ERROR, message: 'no mail to [payload],[payload]' });
    expect(JSON.stringify(span!.events)).not.toContain('example.org');
  });

  it('takes no part of the context of a job: all 32 entries belong to the user', async () => {
    const seen: unknown[] = [];
    const { producer } = await traced('context', () => void seen.push(currentJob()!.context));
    const full = Object.fromEntries(Array.from({ length: 32 }, (_, i) => [i === 0 ? 'traceparent' : `k${i}`, 'mine']));
    await producer.enqueue('context', {}, { context: full });
    await eventually(() => expect(seen).toEqual([full]));
    const [processed] = await become('process context', 1);
    expect(processed!.parentSpanContext?.spanId).toBe(idOf(named('enqueue context')[0]!));
  });

  it('carries baggage, but not more of it than fits', async () => {
    const seen: (string | undefined)[] = [];
    const { producer } = await traced(
      'baggage',
      () => void seen.push(propagation.getActiveBaggage()?.getEntry('tenant')?.value),
    );
    const within = (tenant: string) =>
      context.with(propagation.setBaggage(ROOT_CONTEXT, propagation.createBaggage({ tenant: { value: tenant } })), () =>
        producer.enqueue('baggage', {}),
      );
    await within('acme');
    await become('process baggage', 1);
    await within('x'.repeat(4_050));
    const [, large] = await become('process baggage', 2);
    expect(seen.map((value) => value?.length)).toEqual([4, undefined]);
    expect(large!.parentSpanContext?.spanId).toBe(idOf(named('enqueue baggage')[1]!));
  });

  it('has one producer span for enqueueMany() and counts its jobs', async () => {
    const { producer } = await traced('bulk', () => {});
    await producer.enqueueMany('bulk', [{ payload: 1 }, { payload: 2 }, { payload: 3 }]);
    const spans = await become('process bulk', 3);
    const [enqueued, ...others] = named('enqueue bulk');
    expect(others).toEqual([]);
    expect(enqueued!.attributes['messaging.batch.message_count']).toBe(3);
    expect(spans.map((span) => span.parentSpanContext?.spanId)).toEqual(spans.map(() => idOf(enqueued!)));
  });

  it('has one consumer span for a batch, with a link to each enqueue, and what it does inside', async () => {
    const handle = () => trace.getTracer('app').startSpan('inside the batch').end();
    const { producer } = await traced('batch', handle, { batch: { size: 2, wait: '10s' } });
    await producer.enqueue('batch', 1);
    await producer.enqueue('batch', 2);
    const [batch] = await become('process batch', 1);
    expect(batch!.attributes['messaging.batch.message_count']).toBe(2);
    expect(batch!.links.map((link) => link.context.spanId)).toEqual(named('enqueue batch').map(idOf));
    expect(batch!.parentSpanContext).toBeUndefined();
    expect(named('inside the batch')[0]!.parentSpanContext?.spanId).toBe(idOf(batch!));
  });

  it('tells of errors: a refused enqueue, a discarded job, a timeout whose handler never ends', async () => {
    const handle = (payload: string) => {
      if (payload === 'discard') throw new DiscardJob('pointless');
      return new Promise(() => {});
    };
    const { producer } = await traced('errors', handle, { attempts: 1, timeout: 20 });
    await expect(producer.enqueue('errors', {}, { delay: -1 })).rejects.toThrow(InvalidDelayError);
    expect(named('enqueue errors')[0]).toMatchObject({
      status: { code: SpanStatusCode.ERROR },
      attributes: { 'error.type': 'InvalidDelayError' },
    });
    await expect(producer.enqueue('{}', {})).rejects.toMatchObject({ code: 'ERR_DQ_INVALID_QUEUE' });
    await producer.enqueue('errors', 'discard');
    const [discarded] = await become('process errors', 1);
    expect(discarded!.status).toEqual({ code: SpanStatusCode.ERROR, message: 'pointless' });
    expect(discarded!.attributes['error.type']).toBe('DiscardJob');
    await expect(producer.enqueueMany('errors', [{ payload: 1 }, { payload: 2, delay: -1 }])).rejects.toThrow(
      InvalidDelayError,
    );
    expect(named('enqueue errors').at(-1)).toMatchObject({
      status: { code: SpanStatusCode.ERROR },
      attributes: { 'error.type': 'InvalidDelayError', 'messaging.batch.message_count': 2 },
    });
    await producer.enqueue('errors', 'hang');
    const [, hung] = await become('process errors', 2);
    expect(hung!.attributes['error.type']).toBe('HandlerTimeoutError');
  });

  it('ends the span of a batch that runs on after its timeout, and links the next one to it', async () => {
    const handle = (_: unknown, [job]: DelayedJob[]) => (job!.attempt === 1 ? new Promise(() => {}) : undefined);
    const options = { batch: { size: 2, wait: '10s' }, timeout: 20, attempts: 2, concurrency: 2 } as const;
    const { producer } = await traced('overdue', handle as never, options);
    await producer.enqueueMany('overdue', [{ payload: 1 }, { payload: 2 }]);
    const [first, second] = await become('process overdue', 2);
    expect(first).toMatchObject({
      status: { code: SpanStatusCode.ERROR },
      attributes: { 'error.type': 'HandlerTimeoutError', 'messaging.batch.message_count': 2 },
    });
    const [enqueued] = named('enqueue overdue').map(idOf);
    const links = second!.links.map((link) => link.context.spanId);
    expect(links).toEqual([enqueued, enqueued, idOf(first!), idOf(first!)]);
  });

  it('has a consumer span for a pulled job, from the pull until it is settled', async () => {
    const { app, producer } = await traced('unused', () => {});
    await producer.enqueue('pulled', {}, { id: 'p' });
    const [job] = await app.get(DelayQueueConsumer).pull('pulled', { wait: '5s' });
    expect(named('process pulled')).toEqual([]);
    await job!.fail(new RangeError('no luck'));
    const [span] = await become('process pulled', 1);
    expect(span!.parentSpanContext?.spanId).toBe(idOf(named('enqueue pulled')[0]!));
    expect(span!.attributes).toMatchObject({ 'messaging.message.id': 'p', 'error.type': 'RangeError' });
  });

  it('carries the state of the trace along', async () => {
    const seen: (string | undefined)[] = [];
    const { producer } = await traced('state', () => {
      seen.push(trace.getSpanContext(context.active())?.traceState?.get('vendor'));
    });
    const remote = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags: 1 };
    const traceState = createTraceState('vendor=abc');
    const caller = trace.setSpanContext(ROOT_CONTEXT, { ...remote, traceState });
    await context.with(caller, () => producer.enqueue('state', {}));
    await eventually(() => expect(seen).toEqual(['abc']));
  });

  it.each(['"garbage"', '7', 'null'])('runs a job whose stored trace is %s, without a parent', async (stored) => {
    const { producer } = await traced('spoilt', () => {});
    await producer.enqueue('spoilt', {}, { id: 'x', delay: '1h' });
    const key = here.world.key('spoilt', 'jobs');
    const envelope = (await here.world.redis.hget(key, 'x'))!;
    const spoilt = envelope.replace(/"traceparent":"[^"]+"/, `"traceparent":${stored},"baggage":${stored}`);
    expect(spoilt).not.toBe(envelope);
    await here.world.redis.hset(key, 'x', spoilt);
    await producer.runNow('spoilt', 'x');
    await eventually(async () => expect(await producer.get('spoilt', 'x')).toBeUndefined());
    expect(named('process spoilt').map((span) => span.parentSpanContext)).toEqual(
      named('process spoilt').map(() => undefined),
    );
  });

  it('reads and keeps jobs that were enqueued without it, and the other way round', async () => {
    const plain = await here.start({ options: { consume: false } });
    await plain.producer.enqueue('mixed', {}, { id: 'untraced', delay: '1h' });
    const { producer } = await traced('mixed', () => {});
    await producer.runNow('mixed', 'untraced');
    const [span] = await become('process mixed', 1);
    expect(span!.parentSpanContext).toBeUndefined();
    await producer.enqueue('mixed', { n: 1 }, { id: 'traced', delay: '1h' });
    expect(await plain.producer.get('mixed', 'traced')).toMatchObject({ payload: { n: 1 }, context: {} });
  });
});

describe('Traces that are not sampled', () => {
  it('make no spans, and what runs hours later still knows of which trace it is a part, and that it is not sampled', async () => {
    provide({ ...EXPORTING, sampler: new AlwaysOffSampler() });
    try {
      const seen: unknown[] = [];
      const handle = (_: unknown, job: DelayedJob) => {
        seen.push(trace.getSpanContext(context.active()));
        if (job.attempt === 1) throw new Error('no luck');
      };
      const { producer } = await traced('unsampled', handle);
      const traceId = '0af7651916cd43dd8448eb211c80319c';
      const caller = trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId: 'b7ad6b7169203331', traceFlags: 0 });
      await context.with(caller, () => producer.enqueue('unsampled', {}));
      await eventually(() => expect(seen).toHaveLength(2));
      expect(seen).toEqual([expect.objectContaining({ traceId, traceFlags: 0 }), expect.objectContaining({ traceId })]);
      expect(exporter.getFinishedSpans()).toEqual([]);
    } finally {
      provide(EXPORTING);
    }
  });
});

describe('An SDK that fails', () => {
  const fail = () => {
    throw new Error('broken exporter');
  };
  const broken = { forceFlush: async () => {}, shutdown: async () => {} };

  it.each([
    ['at the start of a span', { spanProcessors: [{ ...broken, onStart: fail, onEnd: fail }] }],
    ['at its end', { spanProcessors: [{ ...broken, onStart() {}, onEnd: fail }] }],
    ['when it samples', { sampler: { shouldSample: fail } }],
  ])('%s neither refuses jobs nor repeats those that are done, and is told of once', async (_, config) => {
    provide(config);
    try {
      const log: string[] = [];
      const runs: string[] = [];
      const { producer, inspector } = await traced('faulty', (payload: string) => void runs.push(payload), {}, log);
      for (const id of ['a', 'b']) expect(await producer.enqueue('faulty', id)).toMatchObject({ outcome: 'created' });
      await eventually(async () =>
        expect(await inspector.counts('faulty')).toMatchObject({ delayed: 0, due: 0, running: 0 }),
      );
      expect(runs.sort()).toEqual(['a', 'b']);
      const logged = log.filter((line) => line.includes('Tracing fails'));
      expect(logged).toEqual([expect.stringMatching(/which concerns no job: Error: broken exporter\. Said once\./)]);
    } finally {
      provide(EXPORTING);
    }
  });

  it('makes no call twice, and runs no job twice, where its context manager calls late', async () => {
    const runs: string[] = [];
    const enqueued: unknown[] = [];
    const { app, producer } = await traced('late', (payload: string) => void runs.push(payload));
    app
      .get(DelayQueueEvents)
      .on('enqueued')
      .subscribe((event) => enqueued.push(event));
    context.disable();
    const manager = new AsyncLocalStorageContextManager();
    const late: Promise<unknown>[] = [];
    manager.with = ((_: never, call: () => unknown) => {
      late.push(new Promise((resolve) => void setImmediate(resolve)).then(call));
    }) as never;
    context.setGlobalContextManager(manager.enable());
    try {
      await producer.enqueue('late', 'a');
      await eventually(() => expect(runs).toEqual(['a']));
      await Promise.all(late);
      expect(runs).toEqual(['a']);
      expect(enqueued).toHaveLength(1);
    } finally {
      context.disable();
      context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    }
  });

  it('is told of, also after a call that was refused: that is no failure of the SDK', async () => {
    const log: string[] = [];
    const told = () => log.filter((line) => line.includes('Tracing fails'));
    const { producer } = await traced('refusing', () => undefined, {}, log);
    await expect(producer.enqueue('refusing', 1, { delay: 'soon' })).rejects.toThrow(InvalidDelayError);
    expect(told()).toEqual([]);
    context.disable();
    // As one whose own promise rejects.
    const manager = new AsyncLocalStorageContextManager();
    const around = manager.with.bind(manager);
    manager.with = ((within: never, call: () => unknown) => {
      const answer = around(within, call);
      return answer instanceof Promise ? answer.then(fail) : answer;
    }) as never;
    context.setGlobalContextManager(manager.enable());
    try {
      await expect(producer.enqueue('refusing', 1, { delay: 'soon' })).rejects.toThrow(InvalidDelayError);
      expect(await producer.enqueue('refusing', 1)).toMatchObject({ outcome: 'created' });
      expect(told()).toEqual([expect.stringMatching(/which concerns no job: Error: broken exporter/)]);
    } finally {
      context.disable();
      context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    }
  });
});
