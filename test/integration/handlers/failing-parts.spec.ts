import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { LoggerService, ModuleMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { context, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { DelayQueueEvents, DelayQueueEventsModule } from '../../../lib/events/index.js';
import { DelayQueueModule, defineQueue, DelayQueueProducer, DiscardJob, fixed, SnoozeJob } from '../../../lib/index.js';
import type { DelayedJob, DelayQueueRootOptions, HandlerOptions, JobSnapshot, QueueRef } from '../../../lib/index.js';
import { DelayQueueTracingModule } from '../../../lib/tracing/index.js';
import { handlerClass } from '../../helpers/app.js';
import type { TestApp } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy as TcpProxy } from '../../helpers/proxy.js';

const here = inAWorld();
const endWithTest = endingWithEachTest();

afterEach(() => {
  jest.restoreAllMocks();
  Logger.overrideLogger(false);
  trace.disable();
  context.disable();
});

/** What runs of jobs come to, by the id of the job. */
const ENDINGS = [
  'completed',
  'failed',
  'exhausted',
  'discarded',
  'snoozed',
  'resnoozed',
  'expired',
  'broken',
  'lost',
  'overdue',
] as const;
type Ending = (typeof ENDINGS)[number];

type Expected = Partial<JobSnapshot> | undefined;
const FAILED: Expected = { state: 'delayed', attempts: 1 };
const UNDECODABLE: Expected = { state: 'dead', deadReason: 'undecodable' };
const BY_DESIGN: Record<Ending, Expected> = {
  completed: undefined,
  failed: FAILED,
  exhausted: { state: 'dead', deadReason: 'exhausted' },
  discarded: { state: 'dead', deadReason: 'discarded' },
  snoozed: { state: 'delayed', attempts: 0 },
  resnoozed: { state: 'delayed', attempts: 0, payload: 'again' },
  expired: undefined,
  broken: UNDECODABLE,
  lost: undefined,
  overdue: FAILED,
};
/** Where the part stands before the handler, its failure is the job's: retried, never lost. */
const EACH_RUN_FAILS: Record<Ending, Expected> = {
  ...BY_DESIGN,
  completed: FAILED,
  discarded: FAILED,
  snoozed: FAILED,
  resnoozed: FAILED,
  lost: FAILED,
};
const NOTHING_CAN_BE_READ = Object.fromEntries(ENDINGS.map((id) => [id, UNDECODABLE])) as Record<Ending, Expected>;

/** Of a job, what is expected of it; undefined when it is gone. */
function asFarAs(expected: Expected, found: JobSnapshot | undefined): Expected {
  if (!expected || !found) return found;
  return Object.fromEntries(Object.keys(expected).map((key) => [key, found[key as keyof JobSnapshot]]));
}

/** Ways to fail. */
const WAYS: Record<string, () => any> = {
  'throws an error': () => {
    throw new Error('of the application');
  },
  'throws what cannot be looked at': () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    throw proxy;
  },
  'gives a promise that rejects': () => Promise.reject(new Error('of the application, later')),
};

interface Part {
  options?: DelayQueueRootOptions;
  handler?: HandlerOptions;
  imports?: ModuleMetadata['imports'];
  queue?: (name: string) => QueueRef;
  /** Once the application runs. */
  prepare?: (app: TestApp) => void;
  expected?: Partial<Record<Ending, Expected>>;
}

/** By its name, a part of the application that fails each time it is called. `broken()` tells whether it should by now. */
const PARTS: Record<string, (fail: () => any, broken: () => boolean) => Part> = {
  'the logger': (fail) => ({ prepare: () => Logger.overrideLogger(loggerThat(fail)) }),
  'a subscriber of DelayQueueEvents': (fail) => ({
    imports: [DelayQueueEventsModule],
    prepare: ({ app }) => void app.get(DelayQueueEvents).all.subscribe(fail),
  }),
  'a middleware': (fail) => ({ handler: { middleware: [fail] }, expected: EACH_RUN_FAILS }),
  retryIf: (fail) => ({ handler: { retryIf: fail } }),
  'backoff()': (fail) => ({ handler: { backoff: fail } }),
  'decode() of the codec': (fail, broken) => ({
    options: { codec: codecThat({ decode: () => broken() && fail() }) },
    expected: NOTHING_CAN_BE_READ,
  }),
  'encode() of the codec': (fail, broken) => ({
    options: { codec: codecThat({ encode: () => broken() && fail() }) },
    expected: { resnoozed: FAILED },
  }),
  'the schema': (fail, broken) => ({
    queue: (name) => defineQueue(name, { schema: schemaThat(() => broken() && fail()) }),
    expected: EACH_RUN_FAILS,
  }),
  'contextProvider.run() before next()': (fail) => ({
    options: { contextProvider: { capture: () => undefined, run: fail } },
    expected: EACH_RUN_FAILS,
  }),
  'contextProvider.run() after next()': (fail) => ({
    options: {
      contextProvider: {
        capture: () => undefined,
        run: (_, next) => {
          next();
          return fail();
        },
      },
    },
  }),
  'the tracer': (fail) => ({
    imports: [DelayQueueTracingModule],
    prepare: () =>
      void trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan: fail, startActiveSpan: fail }) }),
  }),
  'the context manager of the tracing': (fail) => ({
    imports: [DelayQueueTracingModule],
    prepare: () => {
      const manager = { active: () => ROOT_CONTEXT, with: fail, bind: <T>(_: unknown, target: T) => target };
      context.setGlobalContextManager({ ...manager, enable: () => manager as any, disable: () => manager as any });
    },
  }),
};

/** Fails for the library; what Nest says of itself at boot is no concern of it. */
function loggerThat(fail: () => unknown): LoggerService {
  const method = (...args: unknown[]) => (args.at(-1) === 'DelayQueue' ? fail() : undefined);
  return { log: method, warn: method, error: method, debug: method };
}

function codecThat(before: { encode?: () => unknown; decode?: () => unknown }) {
  return {
    name: 'test',
    encode: (payload: unknown) => (before.encode?.() || JSON.stringify(payload)) as string,
    decode: (data: string | Uint8Array): unknown => before.decode?.() || JSON.parse(String(data)),
  };
}

function schemaThat(before: () => unknown) {
  return {
    '~standard': { version: 1 as const, vendor: 'test', validate: (value: unknown) => (before() as any) || { value } },
  };
}

describe.each(Object.keys(WAYS))('What %s', (way) => {
  // No tracer gives a promise for a span.
  const parts = Object.keys(PARTS).filter((name) => name !== 'the tracer' || way !== 'gives a promise that rejects');
  it.each(parts)('costs no slot and no settlement: %s', async (name) => {
    jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const queue = `parts-${Object.keys(WAYS).indexOf(way)}-${Object.keys(PARTS).indexOf(name)}`;
    let broken = false;
    const part = PARTS[name]!(WAYS[way]!, () => broken);
    const started: string[] = [];
    const handle = async (_: unknown, { id, signal }: DelayedJob) => {
      started.push(id);
      if (id === 'discarded') throw new DiscardJob('pointless');
      if (id === 'snoozed') throw new SnoozeJob('1h');
      if (id === 'resnoozed') throw new SnoozeJob('1h', { payload: 'again' });
      if (id === 'lost') {
        await here.world.redis.zrem(here.world.key(queue, 'running'), id);
        await here.world.redis.hdel(here.world.key(queue, 'jobs'), id);
      }
      if (id === 'overdue') await new Promise((resolve) => signal.addEventListener('abort', resolve));
      if (id === 'failed' || id === 'exhausted') throw new Error('no luck');
    };
    const handled = part.queue?.(queue) ?? queue;
    // Each job under a lease of its own: one of them is taken away by hand.
    const settings = { concurrency: 1, prefetch: false, backoff: fixed('1h'), ...part.handler };
    const app = await here.start({
      imports: part.imports,
      providers: [handlerClass(handled as string, handle, settings)],
      options: part.options,
    });
    part.prepare?.(app);
    // All at once, so that the slot that one keeps is missed by the next.
    await app.inspector.pause(queue);
    const at = (await here.world.now()) - 5_000;
    for (const id of ENDINGS) {
      await app.producer.enqueue(handled, 'first', {
        id,
        ...(id === 'exhausted' && { attempts: 1 }),
        ...(id === 'expired' && { at, expiresIn: 1_000 }),
        ...(id === 'overdue' && { timeout: 20 }),
      });
    }
    const jobs = here.world.key(queue, 'jobs');
    await here.world.redis.hset(
      jobs,
      'broken',
      (await here.world.redis.hget(jobs, 'broken'))!.replace(/"first"/, '{"'),
    );
    broken = true;
    await app.inspector.resume(queue);
    await eventually(async () => {
      const { running, leases, due } = await here.world.read(queue);
      const now = await here.world.now();
      expect({ running, leases }).toEqual({ running: {}, leases: {} });
      expect(Object.entries(due).filter(([, score]) => score <= now)).toEqual([]);
    });
    broken = false;
    for (const id of ENDINGS) {
      const expected = { ...BY_DESIGN, ...part.expected }[id];
      const found = await app.producer.get(handled, id);
      expect([id, asFarAs(expected, found)]).toEqual([id, expected]);
    }
    expect(started).toHaveLength(new Set(started).size);
  });
});

describe('A contextProvider', () => {
  type Run = (context: unknown, next: () => any) => any;
  const runs: [string, Run, Expected][] = [
    ['that gives nothing back', (_, next) => void next(), undefined],
    ['that never ends after next()', (_, next) => (next(), new Promise(() => {})), undefined],
    ['that calls next() twice', (_, next) => (next(), next()), undefined],
    ['that calls next() late', async (_, next) => (await Promise.resolve(), next()), undefined],
    ['that does not call next()', () => undefined, FAILED],
    ['that never ends and does not call next()', () => new Promise(() => {}), FAILED],
  ];
  it.each(runs)('%s costs neither a slot nor what its handler made of the job', async (_, run, expected) => {
    const queue = `provider-${runs.findIndex(([, one]) => one === run)}`;
    let calls = 0;
    const app = await here.start({
      providers: [handlerClass(queue, () => void calls++, { concurrency: 1, timeout: '200ms', backoff: fixed('1h') })],
      options: { contextProvider: { capture: () => undefined, run } },
    });
    for (const id of ['a', 'b']) await app.producer.enqueue(queue, {}, { id });
    await eventually(async () => {
      for (const id of ['a', 'b']) {
        expect(asFarAs(expected, await app.producer.get(queue, id))).toEqual(expected);
      }
    });
    expect(calls).toBe(expected ? 0 : 2);
    await eventually(async () => expect((await here.world.read(queue)).leases).toEqual({}));
  });

  it('that calls next() after its attempt has failed runs nothing beside the next attempt', async () => {
    const queue = 'provider-too-late';
    const late: (() => unknown)[] = [];
    let calls = 0;
    const run: Run = (_, next) => void late.push(next);
    const app = await here.start({
      providers: [handlerClass(queue, () => void calls++, { backoff: fixed('1h') })],
      options: { contextProvider: { capture: () => undefined, run } },
    });
    await app.producer.enqueue(queue, {}, { id: 'a' });
    await eventually(async () => expect(await app.producer.get(queue, 'a')).toMatchObject(FAILED!));
    await expect(late[0]!()).rejects.toMatchObject({ code: 'ERR_DQ_INVALID_OPTION' });
    void late[0]!(); // nobody waits for it, and the process lives on
    await new Promise(setImmediate);
    expect(calls).toBe(0);
  });
});

describe('A logger that throws', () => {
  const fail = WAYS['throws an error']!;

  it('keeps no slot of a batch', async () => {
    jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const queue = 'parts-batch';
    const handle = () => {
      throw new Error('no luck');
    };
    const settings = { batch: { size: 2, wait: 0 }, concurrency: 1, backoff: fixed('1h') };
    const app = await here.start({ providers: [handlerClass(queue, handle, settings)] });
    Logger.overrideLogger(loggerThat(fail));
    for (const id of ['a', 'b', 'c', 'd', 'e']) await app.producer.enqueue(queue, {}, { id });
    await eventually(async () => {
      for (const id of ['a', 'b', 'c', 'd', 'e']) expect(await app.producer.get(queue, id)).toMatchObject(FAILED!);
    });
    expect((await here.world.read(queue)).leases).toEqual({});
  });

  it('keeps no application from booting, and none from working after an outage', async () => {
    jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const proxy = endWithTest(await TcpProxy.before(here.world.url));
    const queue = 'parts-outage';
    const ran: string[] = [];
    const root = DelayQueueModule.forRoot({
      connection: proxy.url,
      prefix: here.world.prefix,
      shutdownHooksWarning: false,
    });
    class Root {}
    const app = await NestFactory.createApplicationContext(
      { module: Root, imports: [root], providers: [handlerClass(queue, (_, { id }) => void ran.push(id))] },
      { logger: loggerThat(fail), abortOnError: false },
    );
    endWithTest(app);
    const producer = app.get(DelayQueueProducer);
    await producer.enqueue(queue, {}, { id: 'before' });
    await eventually(() => expect(ran).toEqual(['before']));
    const { connections } = proxy;
    proxy.judge = () => 'cut';
    proxy.cut();
    await eventually(() => expect(proxy.connections).toBeGreaterThan(connections));
    proxy.judge = () => 'pass';
    await eventually(() => producer.enqueue(queue, {}, { id: 'after' }));
    await eventually(() => expect(ran).toEqual(['before', 'after']));
    await eventually(async () => expect((await here.world.read(queue)).leases).toEqual({}));
  });
});
