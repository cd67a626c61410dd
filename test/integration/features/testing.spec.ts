import 'reflect-metadata';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DelayQueueModule, DelayQueueProducer, DiscardJob, fixed, OnDelayed, SnoozeJob } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import {
  delayQueueMatchers,
  DelayQueueHarness,
  DelayQueueTestingModule,
  HarnessError,
} from '../../../lib/testing/index.js';
import '../../../lib/testing/jest.js';

const HOUR = 3_600_000;
expect.extend(delayQueueMatchers);

@Injectable()
class Payments {
  readonly log: string[] = [];
  readonly answers: (() => unknown)[] = [];
  harness!: DelayQueueHarness;

  constructor(readonly delayed: DelayQueueProducer) {}

  @OnDelayed('payment.check', { attempts: 3, backoff: fixed('10m') })
  async check({ name }: { name: string }, job: DelayedJob): Promise<unknown> {
    const hours = (this.harness.now.getTime() - job.enqueuedAt.getTime()) / HOUR;
    this.log.push(`${name} at ${Math.round(hours * 100) / 100} h`);
    return this.answers.shift()?.();
  }

  @OnDelayed('receipt.send')
  send(): void {}
}

// What an application would have: a Redis that no test could reach.
@Module({
  imports: [
    DelayQueueModule.forRootAsync({ useFactory: () => ({ connection: 'redis://127.0.0.1:1', prefix: 'mine' }) }),
  ],
  providers: [Payments],
})
class AppModule {}

describe('the test kit', () => {
  let app: INestApplicationContext | undefined;
  const start = async (options: { stallTimeout?: string } = {}) => {
    const module = await DelayQueueTestingModule.override(Test.createTestingModule({ imports: [AppModule] }))
      .setLogger(false as never)
      .compile();
    app = await module.init();
    const harness = DelayQueueHarness.of(app, options);
    const payments = app.get(Payments);
    payments.harness = harness;
    return { harness, payments, producer: app.get(DelayQueueProducer) };
  };
  afterEach(async () => {
    jest.useRealTimers();
    await app?.close();
    app = undefined;
  });

  it('runs what becomes due while time is moved, in order and not before', async () => {
    const { harness, payments, producer } = await start();
    const began = harness.now.getTime();
    await producer.enqueue('payment.check', { name: 'late' }, { delay: '3h' });
    await producer.enqueue('payment.check', { name: 'soon' }, { delay: '1h' });
    await harness.advance('59m');
    expect(payments.log).toEqual([]);
    await harness.advance('1m');
    expect(payments.log).toEqual(['soon at 1 h']);
    await harness.advance('10h');
    expect(payments.log).toEqual(['soon at 1 h', 'late at 3 h']);
    expect(harness.now.getTime()).toBe(began + 11 * HOUR);
  });

  it('runs retries, snoozed jobs and jobs made by handlers at their own times', async () => {
    const { harness, payments, producer } = await start();
    payments.answers.push(
      () => Promise.reject(new Error('bank is closed')),
      () => {
        throw new SnoozeJob('2h');
      },
      () => producer.enqueue('payment.check', { name: 'B' }, { delay: '30m' }),
    );
    await producer.enqueue('payment.check', { name: 'A' }, { delay: '1h' });
    await harness.advance('1d');
    expect(payments.log).toEqual(['A at 1 h', 'A at 1.17 h', 'A at 3.17 h', 'B at 0.5 h']);
    expect(await harness.enqueued('payment.check')).toEqual([]);
  });

  it('shows what waits and what died', async () => {
    const { harness, payments, producer } = await start();
    payments.answers.push(() => {
      throw new DiscardJob('no such payment');
    });
    await producer.enqueue('payment.check', { name: 'A' }, { id: 'A' });
    await producer.enqueue('payment.check', { name: 'B' }, { id: 'B', delay: '1h' });
    await producer.enqueue('nobody.handles', { name: 'C' }, { id: 'C' });
    await harness.runDue();
    expect(payments.log).toEqual(['A at 0 h']);
    expect(await harness.deadLetters('payment.check')).toMatchObject([{ id: 'A', deadReason: 'discarded' }]);
    expect(await harness.enqueued('payment.check')).toMatchObject([{ id: 'B', state: 'delayed' }]);
    await harness.drain();
    expect(payments.log).toEqual(['A at 0 h', 'B at 1 h']);
    expect(await harness.enqueued('nobody.handles')).toMatchObject([{ id: 'C', state: 'due' }]);
  });

  it.each<[string, { legacyFakeTimers?: boolean }]>([
    ['modern', {}],
    ['legacy', { legacyFakeTimers: true }],
  ])(
    'works while the timers and clocks of the process are replaced, and leaves them alone (%s)',
    async (_, options) => {
      jest.useFakeTimers(options as object);
      const { harness, payments, producer } = await start();
      await producer.enqueue('payment.check', { name: 'A' }, { delay: '3h' });
      // The legacy ones leave the date alone.
      const seen = () => [options.legacyFakeTimers ? 0 : Date.now(), jest.getTimerCount()];
      const before = seen();
      await harness.advance('3h');
      expect(payments.log).toEqual(['A at 3 h']);
      expect(seen()).toEqual(before);
    },
  );

  it('sets the time without running anything, back as well', async () => {
    const { harness, payments, producer } = await start();
    const began = harness.now.getTime();
    await producer.enqueue('payment.check', { name: 'A' }, { delay: '3h' });
    await harness.setNow(new Date(began + 2 * HOUR));
    expect(harness.now).toEqual(new Date(began + 2 * HOUR));
    await expect(harness).toHaveEnqueued('payment.check', { delay: '1h' });
    await harness.setNow(began + HOUR);
    await expect(harness).toHaveEnqueued('payment.check', { delay: '2h' });
    await harness.setNow(began + 2 * HOUR);
    await harness.advance('59m');
    expect(payments.log).toEqual([]);
    await harness.advance('1m');
    expect(payments.log).toEqual(['A at 3 h']);
    await expect(harness.setNow(Number.NaN)).rejects.toThrow(/setNow\(at\)/);
  });

  it('awaits handlers in real time, while the time of jobs stands still', async () => {
    const { harness, payments, producer } = await start();
    payments.answers.push(() => new Promise((resolve) => setTimeout(resolve, 60)));
    await producer.enqueue('payment.check', { name: 'A' }, { delay: '3h' });
    await producer.enqueue('payment.check', { name: 'B' }, { delay: '3h' });
    await harness.advance('3h');
    expect(payments.log.sort()).toEqual(['A at 3 h', 'B at 3 h']);
    expect(harness.runs('payment.check')).toMatchObject([{ completed: true }, { completed: true }]);
  });

  it('does one thing at a time, in the order in which it was asked for', async () => {
    const { harness, payments, producer } = await start();
    const began = harness.now.getTime();
    await producer.enqueue('payment.check', { name: 'A' }, { delay: '1h' });
    await producer.enqueue('payment.check', { name: 'B' }, { delay: '3h' });
    await Promise.all([harness.advance('2h'), harness.advance('2h'), harness.runDue()]);
    expect(payments.log).toEqual(['A at 1 h', 'B at 3 h']);
    expect(harness.now.getTime()).toBe(began + 4 * HOUR);
  });

  it('names a handler that waits on a timer for longer than a second', async () => {
    const { harness, payments, producer } = await start();
    let timer: NodeJS.Timeout;
    let answer: () => void;
    payments.answers.push(
      () =>
        new Promise<void>((resolve) => {
          answer = resolve;
          timer = setTimeout(resolve, 60_000);
        }),
    );
    await producer.enqueue('payment.check', { name: 'A' }, { id: 'A', delay: '1h' });
    await expect(harness.advance('3h')).rejects.toThrow(
      /No handler ended for 1000 ms of real time\. Still waiting for Payments\.check of queue "payment\.check" \(A\)/,
    );
    clearTimeout(timer!);
    answer!();
  });

  it('names a handler that waits for something that does not come', async () => {
    const { harness, payments, producer } = await start({ stallTimeout: '50ms' });
    let answer: () => void;
    payments.answers.push(() => new Promise<void>((resolve) => (answer = resolve)));
    await producer.enqueue('payment.check', { name: 'A' }, { id: 'A' });
    const error = await harness.runDue().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(HarnessError);
    expect((error as Error).message).toMatch(/Still waiting for Payments\.check of queue "payment\.check" \(A\)/);
    // Not for the 10 s of drainTimeout, after which the hooks of a test framework give up.
    const began = performance.now();
    await app!.close();
    expect(performance.now() - began).toBeLessThan(5_000);
    answer!();
  });

  it('does not take a handler for one that hangs because others have the processor', async () => {
    const { harness, payments, producer } = await start({ stallTimeout: '50ms' });
    payments.answers.push(async () => {
      for (let turn = 0; turn < 3; turn++) {
        for (const from = performance.now(); performance.now() - from < 60;);
        await new Promise(setImmediate);
      }
    });
    await producer.enqueue('payment.check', { name: 'A' }, { id: 'A', delay: '1h' });
    await harness.advance('3h');
    expect(payments.log).toHaveLength(1);
  });

  it('names the handlers that only their timeouts end, before a test framework gives up', async () => {
    const { harness, payments, producer } = await start();
    const hangs = new Promise(() => undefined);
    payments.answers.push(...Array.from({ length: 9 }, () => () => hangs));
    const timed = { timeout: '5s', attempts: 9, backoff: fixed('25s') };
    await producer.enqueue('payment.check', { name: 'A' }, { ...timed, delay: '1h' });
    await expect(harness.advance('3h')).rejects.toThrow(
      /4 times in one call no handler ended for 1000 ms of real time.*waited for Payments\.check of queue "payment\.check" \(4\)/,
    );
    expect(payments.log).toHaveLength(4);
    // For the next call the count begins anew.
    await harness.advance('5s');
    expect(payments.log).toHaveLength(4);
  });

  it('ends more runs at their timeouts, to the ms, where each is waited for less', async () => {
    const { harness, payments, producer } = await start({ stallTimeout: '20ms' });
    const [began, times, hangs] = [harness.now.getTime(), [] as number[], new Promise(() => undefined)];
    const hang = () => {
      times.push(harness.now.getTime() - began);
      return hangs;
    };
    payments.answers.push(...Array.from({ length: 9 }, () => hang));
    const timed = { timeout: '5m', attempts: 9, backoff: fixed('25m') };
    await producer.enqueue('payment.check', { name: 'A' }, timed);
    await harness.advance('4h 5m');
    expect(times).toEqual(Array.from({ length: 9 }, (_, at) => (at * HOUR) / 2));
    await expect(harness).toHaveDeadLettered('payment.check', { reason: 'exhausted' });
  });

  it('runs thousands of jobs that are due at one moment', async () => {
    const { harness, producer } = await start();
    const payloads = Array.from({ length: 3_000 }, () => ({ payload: { name: 'A' } }));
    await producer.enqueueMany('payment.check', payloads);
    await harness.runDue();
    expect(harness.runs('payment.check')).toHaveLength(3_000);
  });

  it('moves to the next job where something else needs the process for longer than until then', async () => {
    const { harness, payments, producer } = await start();
    const at = harness.now.getTime() + HOUR;
    for (let n = 0; n < 20; n++) await producer.enqueue('payment.check', { name: `${n}` }, { at: at + n });
    const busyUntil = (end: number) => {
      while (performance.now() < end);
    };
    let isBusy = true;
    const occupy = () => {
      busyUntil(performance.now() + 3);
      if (isBusy) setImmediate(occupy);
    };
    occupy();
    try {
      await harness.advance('2h');
    } finally {
      isBusy = false;
    }
    expect(payments.log).toHaveLength(20);
  });

  it('stops when handlers go on without end', async () => {
    const { harness, payments, producer } = await start();
    let times = 0;
    const again = async () => {
      payments.answers.push(again);
      payments.log.length = 0;
      if (++times === 500) await producer.enqueue('receipt.send', {});
      throw new SnoozeJob(0);
    };
    payments.answers.push(...Array.from({ length: 20 }, () => again));
    await producer.enqueueMany(
      'payment.check',
      Array.from({ length: 20 }, () => ({ payload: { name: 'A' } })),
    );
    // Not of the queue that had a job as well.
    const says = /More than 1\d\d\d runs at one moment, of queue "payment\.check" \(1\d\d\d\)\. Do handlers/;
    await expect(harness.drain()).rejects.toThrow(says);
    payments.answers.length = 0;
  });

  it('refuses an application that is connected to a Redis', async () => {
    app = await Test.createTestingModule({
      imports: [DelayQueueModule.forRoot({ connection: 'redis://127.0.0.1:1', connect: 'lazy' })],
    })
      .setLogger(false as never)
      .compile();
    expect(() => DelayQueueHarness.of(app!)).toThrow(/connected to 127\.0\.0\.1:1.*DelayQueueTestingModule\.override/);
  });

  it('forTest() is a forRoot() on a store of its own', async () => {
    @Module({ imports: [DelayQueueTestingModule.forTest()], providers: [Payments] })
    class FeatureOnly {}
    app = await (
      await Test.createTestingModule({ imports: [FeatureOnly] })
        .setLogger(false as never)
        .compile()
    ).init();
    const harness = DelayQueueHarness.of(app);
    app.get(Payments).harness = harness;
    await app.get(DelayQueueProducer).enqueue('payment.check', { name: 'A' }, { delay: '1h' });
    await harness.advance('1h');
    expect(app.get(Payments).log).toEqual(['A at 1 h']);
  });

  it('starts an application that asks for durability, which counts as reached', async () => {
    const connection = 'redis://127.0.0.1:1';
    @Module({ imports: [DelayQueueModule.forRoot({ connection, durability: { replicas: 2 } })], providers: [Payments] })
    class Durable {}
    const builder = Test.createTestingModule({ imports: [Durable] }).setLogger(false as never);
    app = await (await DelayQueueTestingModule.override(builder).compile()).init();
    const [harness, producer, payments] = [DelayQueueHarness.of(app), app.get(DelayQueueProducer), app.get(Payments)];
    payments.harness = harness;
    const enqueue = (name: string, durability?: 'async' | 'fsync') =>
      producer.enqueue('payment.check', { name }, { delay: '1h', ...(durability && { durability }) });
    expect(await enqueue('A')).toMatchObject({ outcome: 'created', durability: { replicas: 2 } });
    expect(await enqueue('B', 'fsync')).toMatchObject({ durability: { fsync: true } });
    expect(await enqueue('C', 'async')).not.toHaveProperty('durability');
    const [fourth] = await producer.enqueueMany('payment.check', [{ payload: { name: 'D' }, delay: '1h' }]);
    expect(fourth).toMatchObject({ durability: { replicas: 2 } });
    await harness.disconnect();
    await expect(enqueue('E')).rejects.toMatchObject({ code: 'ERR_DQ_UNAVAILABLE' });
    await harness.reconnect();
    await harness.advance('1h');
    expect(payments.log.sort()).toEqual(['A at 1 h', 'B at 1 h', 'C at 1 h', 'D at 1 h']);
  });
});
