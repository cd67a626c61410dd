import { describe, expect, it } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import type { DynamicModule, OnApplicationBootstrap, OnModuleDestroy, OnModuleInit } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { setTimeout as sleep } from 'node:timers/promises';
import { DelayQueueModule, DelayQueueProducer, ShutdownError } from '../../../lib/index.js';
import type { DelayedJob, DelayQueueRootOptions } from '../../../lib/index.js';
import { handlerClass, logCollector } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';

const here = inAWorld({});
const end = endingWithEachTest();
const forRoot = (options: DelayQueueRootOptions = {}): DynamicModule =>
  DelayQueueModule.forRoot({ connection: here.world.connection, prefix: here.world.prefix, ...options });

/** Stores a due job while nobody consumes. */
async function store(queue: string, id: string): Promise<void> {
  const { producer, close } = await here.start({ options: { consume: false } });
  await producer.enqueue(queue, {}, { id });
  await close();
}

describe("next to the user's own modules", () => {
  /** A database that needs time to start and to stop, and the handlers that use it. */
  function userModules(queue: string, events: string[], { globalDb = false } = {}) {
    @Injectable()
    class Db implements OnApplicationBootstrap, OnModuleDestroy {
      async onApplicationBootstrap(): Promise<void> {
        await sleep(50);
        events.push('db ready');
      }
      async onModuleDestroy(): Promise<void> {
        events.push('db closed');
      }
    }
    @Module({ providers: [Db], exports: [Db] })
    class DbModule {}
    const db: DynamicModule = { module: DbModule, global: globalDb };

    const Handlers = handlerClass(queue, async () => {
      events.push('handler starts');
      await sleep(50);
      events.push('handler ends');
    });
    @Module({ imports: globalDb ? [] : [DbModule], providers: [Handlers] })
    class PaymentsModule {}
    return { db, payments: PaymentsModule as unknown as DynamicModule };
  }

  it.each<[string, (user: ReturnType<typeof userModules>) => DynamicModule[], { globalDb?: boolean }]>([
    ['imported first', ({ payments }) => [forRoot(), payments], {}],
    ['imported last', ({ payments }) => [payments, forRoot()], {}],
    ['beside a global database', ({ db, payments }) => [payments, db, forRoot()], { globalDb: true }],
  ])('%s, handlers run after the database started and end before it stops', async (layout, imports, settings) => {
    const events: string[] = [];
    const queue = `payments ${layout}`;
    await store(queue, 'a');
    const app = await here.boot({ imports: imports(userModules(queue, events, settings)) });
    await eventually(() => expect(events).toContain('handler starts'));
    await app.close();
    expect(events).toEqual(['db ready', 'handler starts', 'handler ends', 'db closed']);
    expect((await here.world.read(queue)).jobs).toEqual({});
  });

  it.each<[string, (...modules: DynamicModule[]) => DynamicModule[]]>([
    ['first', (db, feature) => [forRoot(), db, feature]],
    ['between them', (db, feature) => [db, forRoot(), feature]],
    ['last', (db, feature) => [db, feature, forRoot()]],
    ['by one of them', (db, feature) => [{ ...feature, imports: [forRoot()] }, db]],
  ])('imported %s, jobs start after all other modules and drain before any of them closes', async (where, imports) => {
    const events: string[] = [];
    const queue = `order ${where}`;
    await store(queue, 'a');
    const said = (event: string) => void events.push(event);
    @Injectable()
    class Db implements OnApplicationBootstrap, OnModuleDestroy {
      onApplicationBootstrap = () => said('db ready');
      onModuleDestroy = () => said('db closed');
    }
    @Module({ providers: [Db] })
    class DbModule {}
    const Handlers = handlerClass(queue, async () => {
      said('handler starts');
      await sleep(50);
      said('handler ends');
    });
    @Module({ providers: [Handlers] })
    class FeatureModule {}
    const app = await here.boot({ imports: imports({ module: DbModule }, { module: FeatureModule }) });
    await eventually(() => expect(events).toContain('handler starts'));
    await app.close();
    expect(events).toEqual(['db ready', 'handler starts', 'handler ends', 'db closed']);
  });

  it('the root module itself starts before the jobs, and closes after they have drained', async () => {
    const events: string[] = [];
    await store('of the root', 'a');
    @Module({ imports: [forRoot()], providers: [handlerClass('of the root', () => void events.push('handler'))] })
    class RootModule implements OnApplicationBootstrap, OnModuleDestroy {
      async onApplicationBootstrap(): Promise<void> {
        await sleep(50);
        events.push('ready');
      }
      onModuleDestroy = () => void events.push('closed');
    }
    const app = await NestFactory.createApplicationContext(RootModule, { logger: false });
    await eventually(() => expect(events).toContain('handler'));
    await app.close();
    expect(events).toEqual(['ready', 'handler', 'closed']);
  });

  it('imported last, no handler runs before the bootstrap of its own module', async () => {
    const events: string[] = [];
    await store('late', 'a');
    @Injectable()
    class Warm implements OnApplicationBootstrap {
      async onApplicationBootstrap(): Promise<void> {
        await sleep(100);
        events.push('warm');
      }
    }
    @Module({ providers: [Warm, handlerClass('late', () => void events.push('handler'))] })
    class FeatureModule {}
    await here.boot({ imports: [FeatureModule, forRoot()] });
    await eventually(() => expect(events).toEqual(['warm', 'handler']));
  });

  it('jobs can be enqueued from the first hook to the last', async () => {
    const outcomes: string[] = [];
    @Injectable()
    class Eager implements OnModuleInit, OnModuleDestroy {
      constructor(private readonly producer: DelayQueueProducer) {}
      async onModuleInit(): Promise<void> {
        outcomes.push((await this.producer.enqueue('hooks', {}, { id: 'first' })).outcome);
      }
      async onModuleDestroy(): Promise<void> {
        outcomes.push((await this.producer.enqueue('hooks', {}, { id: 'destroy' })).outcome);
      }
      async beforeApplicationShutdown(): Promise<void> {
        outcomes.push((await this.producer.enqueue('hooks', {}, { id: 'shutdown' })).outcome);
      }
    }
    @Module({ providers: [Eager] })
    class EagerModule {}
    const app = await here.boot({ imports: [EagerModule, forRoot()] });
    await app.close();
    expect(outcomes).toEqual(['created', 'created', 'created']);
  });
});

describe('close()', () => {
  it('claims nothing more and waits for the handlers that run', async () => {
    const ended: string[] = [];
    const slow = async (_: unknown, { id }: DelayedJob) => {
      await sleep(100);
      ended.push(id);
    };
    const { producer, close } = await here.start({ providers: [handlerClass('drain', slow, { concurrency: 1 })] });
    await producer.enqueueMany('drain', [
      { payload: {}, id: 'a' },
      { payload: {}, id: 'b' },
    ]);
    await eventually(async () => expect((await producer.get('drain', 'a'))?.state).toBe('running'));
    await close();
    expect(ended).toEqual(['a']);
    const { due, running, jobs } = await here.world.read('drain');
    expect({ due: Object.keys(due), running, jobs: Object.keys(jobs) }).toEqual({
      due: ['b'],
      running: {},
      jobs: ['b'],
    });
  });

  it('aborts at drainTimeout what still runs, and hands it back uncharged, due when it was', async () => {
    let reason: unknown;
    const obedient = (_: unknown, { signal }: DelayedJob) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          reason = signal.reason;
          reject(reason as Error);
        });
      });
    const stubborn = () => new Promise(() => undefined);
    const { producer, close } = await here.start({
      providers: [handlerClass('obedient', obedient), handlerClass('stubborn', stubborn)],
      options: { drainTimeout: 100 },
    });
    const { dueAt } = await producer.enqueue('obedient', {}, { id: 'a' });
    await producer.enqueue('stubborn', {}, { id: 'b' });
    for (const [queue, id] of [
      ['obedient', 'a'],
      ['stubborn', 'b'],
    ] as const) {
      await eventually(async () => expect((await producer.get(queue, id))?.state).toBe('running'));
    }
    await close();

    expect(reason).toBeInstanceOf(ShutdownError);
    expect(reason).toMatchObject({ code: 'ERR_DQ_SHUTDOWN', queue: 'obedient', id: 'a' });
    for (const queue of ['obedient', 'stubborn']) {
      const { running, leases, attempts, quarantine } = await here.world.read(queue);
      expect({ running, leases, attempts, quarantine }).toEqual({
        running: {},
        leases: {},
        attempts: {},
        quarantine: {},
      });
      expect(await here.world.violations(queue)).toEqual([]);
    }
    expect((await here.world.read('obedient')).due).toEqual({ a: dueAt.getTime() });
  });

  it('leaves no connection and no key but those of the jobs', async () => {
    const { app, producer, inspector, close } = await here.start({
      providers: [handlerClass('tidy', () => undefined)],
    });
    await Promise.all(Array.from({ length: 20 }, (_, n) => producer.enqueue('tidy', n)));
    await eventually(async () => expect((await inspector.totals('tidy')).completed).toBe(20));
    await producer.enqueue('tidy', {}, { delay: '1h' });
    await inspector.removeDead('tidy', 'all');
    expect(await here.world.keys('tidy')).toContainEqual(expect.stringMatching(/^session:/));
    await close();
    await app.close();
    expect((await here.world.keys('tidy')).filter((name) => name !== 'changed')).toEqual(['due', 'jobs', 'meta']);
    await eventually(async () => expect(await here.world.clientNames()).toEqual([]));
  });

  it('right after boot, while Redis is away or not yet spoken to, ends everything all the same', async () => {
    const runs: unknown[] = [];
    await store('brief', 'a');
    const providers = [handlerClass('brief', (payload) => void runs.push(payload))];
    const connection = 'redis://127.0.0.1:1';
    const away = await here.start({ providers, options: { connect: 'lazy', connection } });
    await away.close();
    const brief = await here.start({ providers });
    await brief.close();
    const before = runs.length;
    await eventually(async () => expect(await here.world.clientNames()).toEqual([]));
    expect(runs.length).toBe(before);
    expect(await here.world.violations('brief')).toEqual([]);
    expect((await here.world.read('brief')).running).toEqual({});
  });
});

it('a process that closes before its wake-ups were confirmed claims nothing when they are', async () => {
  const runs: string[] = [];
  let confirming = false;
  await store('unconfirmed', 'a');
  const proxy = end(await Proxy.before(here.world.url));
  proxy.judge = (direction, chunk) => (direction === 'reply' && chunk.includes('subscribe') ? 'swallow' : 'pass');
  @Injectable()
  class ClosesSlowly implements OnModuleDestroy {
    async onModuleDestroy(): Promise<void> {
      if (confirming) return; // Closed once more, after the test.
      confirming = true;
      proxy.judge = () => 'pass';
      proxy.cut();
      await eventually(async () => {
        expect(await here.world.redis.pubsub('CHANNELS', `${here.world.prefix}:wake:*`)).toHaveLength(1);
      });
      await sleep(50);
    }
  }
  @Module({ providers: [ClosesSlowly, handlerClass('unconfirmed', (_, { id }) => void runs.push(id))] })
  class FeatureModule {}
  const app = await here.boot({ imports: [FeatureModule, forRoot({ connection: proxy.url })] });
  await app.close();
  expect(runs).toEqual([]);
  expect(Object.keys((await here.world.read('unconfirmed')).due)).toEqual(['a']);
});

it('an application that is closed while it boots starts no worker, although Nest goes on with its hooks', async () => {
  const runs: string[] = [];
  const log: string[] = [];
  await store('cut-short', 'a');
  @Injectable()
  class Closer implements OnModuleInit {
    onModuleInit(): Promise<void> {
      return app.close();
    }
  }
  @Module({
    imports: [forRoot({ shutdownHooksWarning: false })],
    providers: [Closer, handlerClass('cut-short', (_, { id }) => void runs.push(id))],
  })
  class Root {}
  // Nest lets an application without a server boot to the end before it closes it.
  const app = await NestFactory.create(Root, { logger: logCollector(log), abortOnError: false });
  await app.init();
  expect(log).not.toContainEqual(expect.stringContaining('Waiting for jobs'));
  expect(runs).toEqual([]);
  await eventually(async () => expect(await here.world.clientNames()).toEqual([]));
  expect(Object.keys((await here.world.read('cut-short')).due)).toEqual(['a']);
});

describe('`consume`', () => {
  it('false makes a producer of the application: its handlers do not run', async () => {
    const runs: string[] = [];
    const handlerOf = (process: string) => [handlerClass('consume-false', () => void runs.push(process))];
    const { producer } = await here.start({ providers: handlerOf('producer'), options: { consume: false } });
    await producer.enqueue('consume-false', 1);
    await here.start({ providers: handlerOf('consumer') });
    await producer.enqueue('consume-false', 2);
    await eventually(() => expect(runs).toEqual(['consumer', 'consumer']));
  });

  it('may name the queues whose handlers run here', async () => {
    const runs: string[] = [];
    const note = (_: unknown, { queue }: DelayedJob) => void runs.push(queue);
    const log: string[] = [];
    const { producer } = await here.start({
      providers: ['one', 'two', 'three'].map((queue) => handlerClass(queue, note)),
      options: { consume: ['one', 'three'] },
      log,
    });
    for (const queue of ['two', 'one', 'three']) await producer.enqueue(queue, {}, { id: 'a' });
    await eventually(() => expect(runs.sort()).toEqual(['one', 'three']));
    expect((await producer.get('two', 'a'))?.state).toBe('due');
    expect(log).toContainEqual(expect.stringContaining('Queue "two" (TestHandlers.run) is not consumed here'));
  });
});
