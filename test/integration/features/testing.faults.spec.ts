import 'reflect-metadata';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import type { TestingModule } from '@nestjs/testing';
import {
  defineQueue,
  DelayQueueConsumer,
  DelayQueueInspector,
  DelayQueueModule,
  DelayQueueProducer,
  DelayQueueRegistry,
  DiscardJob,
  fixed,
  OnDelayed,
} from '../../../lib/index.js';
import type { BatchJob, DelayedJob } from '../../../lib/index.js';
import { delayQueueMatchers, DelayQueueHarness, DelayQueueTestingModule } from '../../../lib/testing/index.js';
import '../../../lib/testing/jest.js';
import { World } from '../../helpers/world.js';

expect.extend(delayQueueMatchers);

@Injectable()
class Payments {
  readonly log: string[] = [];
  readonly signals: AbortSignal[] = [];
  answer: (name: string, job: DelayedJob) => unknown = () => undefined;

  @OnDelayed('payment.check', { attempts: 3, backoff: fixed('10m'), lease: '30s', timeout: '5m' })
  async check({ name }: { name: string }, job: DelayedJob): Promise<unknown> {
    this.log.push(`${name} ${job.attempt}`);
    this.signals.push(job.signal);
    return this.answer(name, job);
  }
}

@Injectable()
class Digests {
  readonly batches: string[][] = [];
  answer: (jobs: readonly BatchJob[]) => unknown = () => undefined;

  @OnDelayed('digest.send', { batch: { size: 2 }, concurrency: 1, attempts: 2, backoff: fixed('10m'), timeout: '5m' })
  send(names: string[], jobs: readonly BatchJob[]): unknown {
    this.batches.push(names);
    return this.answer(jobs);
  }
}

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve!: () => void;
  const promise = new Promise<void>((settle) => (resolve = settle));
  return { promise, resolve };
}

// A call of an outage must not wait for this, or the test would.
const options = { commandTimeout: '1h', deadLetters: { max: 100, maxAge: '90d' } };

@Module({
  imports: [DelayQueueModule.forRoot({ connection: 'redis://127.0.0.1:1', ...options })],
  providers: [Payments, Digests],
})
class AppModule {}

// Once on the store in memory and once on a Redis, whose jobs are moved instead of its clock.
describe.each(['memory', 'redis'] as const)('the harness on %s', (where) => {
  const close: (() => Promise<unknown>)[] = [];
  const start = async (stallTimeout = '1s') => {
    let module: TestingModule;
    if (where === 'memory') {
      module = await DelayQueueTestingModule.override(Test.createTestingModule({ imports: [AppModule] }))
        .setLogger(false as never)
        .compile();
    } else {
      const world = await World.open();
      close.push(() => world.close());
      const { url, prefix } = world;
      const root = DelayQueueTestingModule.forRedis(url, { ...options, prefix });
      module = await Test.createTestingModule({ imports: [root], providers: [Payments, Digests] })
        .setLogger(false as never)
        .compile();
    }
    const app = await module.init();
    close.push(() => app.close());
    const harness = DelayQueueHarness.of(app, { stallTimeout });
    return {
      harness,
      payments: app.get(Payments),
      digests: app.get(Digests),
      producer: app.get(DelayQueueProducer),
      inspector: app.get(DelayQueueInspector),
      consumer: app.get(DelayQueueConsumer),
      registry: app.get(DelayQueueRegistry),
    };
  };
  afterEach(async () => {
    jest.useRealTimers();
    for (const one of close.splice(0).reverse()) await one();
  });

  it('refuses a stallTimeout of nothing, with which each handler that waits for anything would count as one that hangs', async () => {
    await expect(start('0s')).rejects.toThrow('stallTimeout: "0s" is too short: at least 1 ms.');
  });

  it('runs delayed jobs and retries at their times, and shows what became of them', async () => {
    const { harness, payments, producer } = await start();
    const began = harness.now.getTime();
    harness.failNext('payment.check', new Error('bank is closed'), 2);
    await producer.enqueue('payment.check', { name: 'A' }, { delay: '3h' });
    await expect(harness).toHaveEnqueued('payment.check', { payload: { name: 'A' }, delay: '3h' });
    await expect(harness).not.toHaveEnqueued('payment.check', { payload: { name: 'A' }, delay: '2h' });
    await expect(harness).not.toHaveEnqueued('payment.check', { payload: { name: 'B' } });
    await harness.advance('2h');
    await expect(harness).toHaveEnqueued('payment.check', { delay: '1h' });
    await harness.advance('1h 5m');
    expect(payments.log).toEqual([]);
    await expect(harness).toHaveEnqueued('payment.check', { payload: { name: 'A' }, delay: '5m' });
    await expect(harness).not.toHaveCompleted('payment.check');
    await harness.advance('16m');
    expect(payments.log).toEqual(['A 3']);
    await expect(harness).toHaveCompleted('payment.check', { payload: expect.objectContaining({ name: 'A' }) });
    await expect(harness).not.toHaveDeadLettered('payment.check');
    const passed = harness.now.getTime() - began;
    expect(passed).toBeGreaterThanOrEqual(3 * 3_600_000 + 21 * 60_000);
    expect(passed).toBeLessThan(4 * 3_600_000);
  });

  it('works while the timers and clocks of the process are replaced', async () => {
    // The driver of a real Redis goes on with its work by this one.
    jest.useFakeTimers({ doNotFake: where === 'redis' ? ['nextTick'] : [] });
    const { harness, payments, producer } = await start();
    harness.failNext('payment.check', new Error('bank is closed'));
    await producer.enqueue('payment.check', { name: 'A' }, { delay: '3h' });
    const before = Date.now();
    await harness.advance('3h 15m');
    expect(payments.log).toEqual(['A 2']);
    await expect(harness).toHaveCompleted('payment.check');
    expect(Date.now()).toBe(before);
  });

  it('fails as often as the test says, with the error that the test gives', async () => {
    const { harness, payments, producer } = await start();
    harness.failNext('payment.check', new Error('first'), 3);
    harness.failNext('payment.check', new DiscardJob('second'));
    await producer.enqueue('payment.check', { name: 'A' }, { id: 'A' });
    await harness.advance('1d');
    await producer.enqueue('payment.check', { name: 'B' }, { id: 'B' });
    await producer.enqueue('payment.check', { name: 'C' }, { id: 'C', delay: 5 });
    await harness.advance('1d');
    expect(payments.log).toEqual(['C 1']);
    await expect(harness).toHaveDeadLettered('payment.check', { id: 'A', reason: 'exhausted' });
    await expect(harness).toHaveDeadLettered('payment.check', { payload: { name: 'B' }, reason: 'discarded' });
    await expect(harness).not.toHaveDeadLettered('payment.check', { id: 'B', reason: 'exhausted' });
    expect((await harness.deadLetters('payment.check'))[0]!.lastError).toMatchObject({ message: 'first' });
    await expect(async () => harness.failNext('payment.check', undefined, 0)).rejects.toThrow(
      /0 is not a whole number/,
    );
  });

  it('shows a job that becomes due while it looks', async () => {
    const { harness, inspector, producer } = await start();
    await producer.enqueue('mail.send', null, { id: 'a', delay: '1h' });
    await producer.enqueue('mail.send', null, { id: 'later', delay: '2h' });
    const list = inspector.list.bind(inspector);
    jest.spyOn(inspector, 'list').mockImplementationOnce(async (...args) => {
      const page = await list(...args);
      await harness.advance('1h');
      return page;
    });
    expect(await harness.enqueued('mail.send')).toMatchObject([
      { id: 'a', state: 'due' },
      { id: 'later', state: 'delayed' },
    ]);
  });

  it('finds a job that a worker holds and whose handler has not begun', async () => {
    const { harness, producer, registry } = await start();
    const { promise, resolve } = deferred();
    let asked = 0;
    // It is asked by the producer, then by the worker.
    const validate = async (value: unknown) => {
      if (++asked > 1) await promise;
      return { value };
    };
    const mails = defineQueue('mail.send', { schema: { '~standard': { version: 1, vendor: 'test', validate } } });
    registry.register(mails, () => undefined);
    await producer.enqueue(mails, { to: 'you' }, { id: 'a' });
    while (asked < 2) await new Promise((turn) => void setImmediate(turn));
    await expect(harness).toHaveEnqueued(mails, { id: 'a', payload: { to: 'you' }, delay: 0 });
    await expect(harness).not.toHaveEnqueued(mails, { id: 'a', delay: '1h' });
    resolve();
    await harness.runDue();
    await expect(harness).toHaveCompleted(mails, { id: 'a' });
  });

  it('knows the payload of a run as it was, whatever its handler has changed in it', async () => {
    const { harness, producer, registry } = await start();
    registry.register('mail.send', (payload: any) => {
      payload.to.push('nobody');
      payload.done = true;
    });
    await producer.enqueue('mail.send', { to: ['you'] }, { delay: '1h' });
    await harness.advance('1h');
    await expect(harness).toHaveCompleted('mail.send', { payload: { to: ['you'] } });
    expect(harness.runs('mail.send')[0]!.payload).toEqual({ to: ['you'] });
  });

  it('refuses to look for what is misspelt, which would match any job', async () => {
    const { harness, producer } = await start();
    await producer.enqueue('mail.send', null, { delay: '1h' });
    const misspelt = { dealy: '3h' } as object;
    for (const matcher of ['toHaveEnqueued', 'toHaveCompleted', 'toHaveDeadLettered'] as const) {
      await expect(expect(harness)[matcher]('mail.send', misspelt)).rejects.toThrow(
        `${matcher}(queue, { ... }): unknown option "dealy".`,
      );
    }
  });

  it('says what it found when it did not find what was expected', async () => {
    const { harness, producer } = await start();
    await producer.enqueue('payment.check', { name: 'A' }, { id: 'A', delay: '1h' });
    const wrong = expect(harness).toHaveEnqueued('payment.check', { payload: { name: 'B' } });
    await expect(wrong).rejects.toThrow(/to have a job enqueued like .* 'B'.*Found: .*id: 'A'/);
    harness.failNext('payment.check', new Error('bank is closed'), 3);
    await harness.advance('2d');
    await expect(expect(harness).toHaveCompleted('payment.check')).rejects.toThrow(
      "attempt: 3, completed: false, ended: 'dead letter (exhausted): Error: bank is closed' }.",
    );
    await expect(expect({}).toHaveCompleted('payment.check')).rejects.toThrow(/give expect\(\) the DelayQueueHarness/);
  });

  it('loses what runs when its worker crashes; another one takes it when the lease has ended', async () => {
    const { harness, payments, producer } = await start();
    const hangs = deferred();
    payments.answer = () => (payments.log.length === 1 ? hangs.promise : undefined);
    await producer.enqueue('payment.check', { name: 'A' }, { id: 'A' });
    const running = harness.runDue();
    while (payments.log.length === 0) await new Promise((resolve) => setImmediate(resolve));
    await harness.crashWorker();
    await running;
    expect(payments.signals[0]!.aborted).toBe(true);
    expect(await producer.get('payment.check', 'A')).toMatchObject({ state: 'running' });
    await harness.advance('20s');
    expect(payments.log).toEqual(['A 1']);
    await harness.advance('11s');
    expect(payments.log).toHaveLength(2);
    // Whoever was killed has no say any more.
    hangs.resolve();
    await harness.runDue();
    expect(await producer.get('payment.check', 'A')).toBeUndefined();
    expect(harness.runs('payment.check').map(({ completed }) => completed)).toEqual([false, true]);
  });

  it('ends a handler at its timeout, without losing its lease on the way', async () => {
    const { harness, payments, producer } = await start('100ms');
    const hangs = deferred();
    const states: unknown[] = [];
    payments.answer = async (name, { attempt }) => {
      if (name === 'A' && attempt === 1) await hangs.promise;
      if (name === 'B') states.push((await producer.get('payment.check', 'A'))?.state);
    };
    await producer.enqueue('payment.check', { name: 'A' }, { id: 'A' });
    await producer.enqueue('payment.check', { name: 'B' }, { delay: '2m' });
    await expect(harness.advance('4m')).rejects.toThrow(/Still waiting for Payments\.check of queue "payment\.check"/);
    await harness.advance('2h');
    expect(payments.log).toEqual(['A 1', 'B 1', 'A 2']);
    expect(states).toEqual(['running']);
    expect(payments.signals[0]!.reason).toMatchObject({ code: 'ERR_DQ_TIMEOUT' });
    hangs.resolve();
  });

  it('ends a batch at its timeout', async () => {
    const { harness, digests, producer } = await start('100ms');
    const hangs = deferred();
    digests.answer = () => (digests.batches.length === 1 ? hangs.promise : undefined);
    await producer.enqueueMany('digest.send', [{ payload: 'A' }, { payload: 'B' }]);
    await expect(harness.advance('4m')).rejects.toThrow(/Still waiting for Digests\.send of queue "digest\.send"/);
    await harness.advance('14m');
    expect(digests.batches).toEqual([['A', 'B']]);
    expect(await harness.enqueued('digest.send')).toMatchObject([{ attempts: 1 }, { attempts: 1 }]);
    await harness.advance('1m');
    expect(digests.batches).toEqual([
      ['A', 'B'],
      ['A', 'B'],
    ]);
    hangs.resolve();
  });

  it('frees the slot of a batch that settled its jobs and does not end, at its timeout', async () => {
    const { harness, digests, producer } = await start('100ms');
    const hangs = deferred();
    digests.answer = ([job]) => job!.complete() && hangs.promise;
    await producer.enqueue('digest.send', 'A');
    await harness.advance('6m');
    await producer.enqueue('digest.send', 'B');
    await harness.runDue();
    expect(digests.batches).toEqual([['A'], ['B']]);
    hangs.resolve();
  });

  it('lets the lease of a pulled job run out that nobody extends', async () => {
    const { harness, producer, consumer } = await start();
    await producer.enqueue('mail.send', 'hello', { id: 'M' });
    const [pulled] = await consumer.pull('mail.send', { lease: '1m', autoExtend: false });
    await harness.advance('50s');
    expect(await producer.get('mail.send', 'M')).toMatchObject({ state: 'running' });
    await harness.advance('11s');
    expect(await producer.get('mail.send', 'M')).toMatchObject({ state: 'due' });
    // Nobody has started it again, so that a late ending counts.
    await pulled!.complete();
    expect(await producer.get('mail.send', 'M')).toBeUndefined();
  });

  it('moves the due time of what follows a run, also of one that was cancelled', async () => {
    const { harness, producer, consumer } = await start();
    await producer.enqueue('mail.send', 'hello', { id: 'M' });
    const [pulled] = await consumer.pull('mail.send');
    await producer.cancel('mail.send', 'M', { running: true });
    await producer.enqueue('mail.send', 'again', { id: 'M', delay: '1h' });
    await harness.advance('50m');
    await pulled!.complete();
    expect(await producer.get('mail.send', 'M')).toMatchObject({ state: 'delayed', payload: 'again' });
    await harness.advance('11m');
    expect(await producer.get('mail.send', 'M')).toMatchObject({ state: 'due' });
  });

  it('loses what was pulled when its worker crashes', async () => {
    const { harness, producer, consumer } = await start();
    await producer.enqueue('mail.send', 'hello', { id: 'M' });
    const [pulled] = await consumer.pull('mail.send');
    await harness.advance('5m');
    expect(await producer.get('mail.send', 'M')).toMatchObject({ state: 'running' }); // Its lease is renewed.
    await harness.crashWorker();
    expect(pulled!.job.signal.aborted).toBe(true);
    await harness.advance('31s');
    expect(await producer.get('mail.send', 'M')).toMatchObject({ state: 'due' });
    await expect(pulled!.complete()).rejects.toMatchObject({ code: 'ERR_DQ_LEASE_LOST' });
    const [again] = await consumer.pull('mail.send', { wait: '5s' });
    await again!.complete();
    expect(await producer.get('mail.send', 'M')).toBeUndefined();
  });

  it('moves expiry, uniqueness windows, debounce bursts and the age of dead letters', async () => {
    const { harness, payments, producer, inspector } = await start();
    await inspector.pause('payment.check');
    await producer.enqueue('payment.check', { name: 'late' }, { delay: '1h', expiresIn: '30m' });
    await producer.enqueue('payment.check', { name: 'once' }, { id: 'once', uniqueFor: '2h' });
    const burst = { id: 'burst', onDuplicate: 'replace', delay: '1h', maxWait: '90m' } as const;
    await producer.enqueue('payment.check', { name: 'burst' }, burst);
    await harness.advance('45m');
    const { dueAt } = await producer.enqueue('payment.check', { name: 'burst' }, burst);
    const left = dueAt.getTime() - harness.serverNow;
    expect(Math.round(left / 60_000)).toBe(45);
    await harness.advance('50m');
    await inspector.resume('payment.check');
    await harness.runDue();
    expect(payments.log).toEqual(['once 1', 'burst 1']);
    expect(await inspector.totals('payment.check')).toMatchObject({ expired: 1 });
    const again = () => producer.enqueue('payment.check', { name: 'again' }, { id: 'once', uniqueFor: '2h' });
    expect(await again()).toMatchObject({ outcome: 'kept' });
    await harness.advance('30m');
    harness.failNext('payment.check', new DiscardJob('no'));
    expect(await again()).toMatchObject({ outcome: 'created' });
    await harness.advance('89d');
    expect(await harness.deadLetters('payment.check')).toHaveLength(1);
    await harness.advance('2d');
    expect(await harness.deadLetters('payment.check')).toEqual([]);
  });

  it('makes calls fail while it is disconnected, and loses nothing', async () => {
    const { harness, payments, producer } = await start();
    await producer.enqueue('payment.check', { name: 'A' }, { delay: '1h' });
    await harness.disconnect();
    const refused = { code: 'ERR_DQ_UNAVAILABLE', retryable: true };
    await expect(producer.enqueue('payment.check', { name: 'B' })).rejects.toMatchObject(refused);
    await expect(producer.get('payment.check', 'A')).rejects.toMatchObject(refused);
    await harness.advance('2h');
    expect(payments.log).toEqual([]);
    await harness.reconnect();
    await harness.runDue();
    expect(payments.log).toEqual(['A 1']);
    await producer.enqueue('payment.check', { name: 'C' });
    await harness.runDue();
    expect(payments.log).toEqual(['A 1', 'C 1']);
  });

  it('keeps what a handler has ended while it was disconnected, until it is connected again', async () => {
    const { harness, payments, producer } = await start();
    payments.answer = () => harness.disconnect();
    await producer.enqueue('payment.check', { name: 'A' }, { id: 'A', delay: '1h' });
    await harness.advance('1h');
    await expect(harness).not.toHaveCompleted('payment.check');
    await harness.reconnect();
    await harness.runDue();
    await expect(harness).toHaveCompleted('payment.check', { id: 'A' });
    expect(payments.log).toEqual(['A 1']);
  });

  it('leaves nothing behind when the application is closed during an outage', async () => {
    const { harness, producer } = await start();
    await producer.enqueue('payment.check', { name: 'A' }, { delay: '1h' });
    await harness.disconnect();
    await expect(close.pop()!()).resolves.toBeUndefined();
  });
});

it('override({ redis }) moves the jobs of that Redis, under the prefix of the application', async () => {
  const world = await World.open();
  const connection = 'redis://127.0.0.1:1';
  @Module({ imports: [DelayQueueModule.forRoot({ connection, prefix: world.prefix })], providers: [Payments] })
  class Application {}
  const builder = Test.createTestingModule({ imports: [Application] }).setLogger(false as never);
  const app = await (await DelayQueueTestingModule.override(builder, { redis: world.url }).compile()).init();
  try {
    const harness = DelayQueueHarness.of(app);
    await app.get(DelayQueueProducer).enqueue('payment.check', { name: 'A' }, { delay: '3h' });
    await app.get(DelayQueueProducer).enqueue('payment.check', { name: 'B' }, { delay: '30d' });
    await harness.advance('3h');
    expect(app.get(Payments).log).toEqual(['A 1']);
    await harness.clear();
    expect(await world.keys('payment.check')).not.toContain('jobs');
  } finally {
    await app.close();
    await world.close();
  }
  expect(() => DelayQueueTestingModule.override(builder, { url: 'x' } as never)).toThrow(/unknown option "url"/);
});
