import 'reflect-metadata';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DelayQueueModule, DelayQueueProducer, DiscardJob, fixed, OnDelayed, SnoozeJob } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import { DelayQueueHarness, DelayQueueTestingModule, HarnessError } from '../../../lib/testing/index.js';

const HOUR = 3_600_000;
jest.setTimeout(30_000);

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
  const start = async (options: { patience?: string } = {}) => {
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

  it('works while the timers and clocks of the process are replaced, and leaves them alone', async () => {
    jest.useFakeTimers();
    const { harness, payments, producer } = await start();
    await producer.enqueue('payment.check', { name: 'A' }, { delay: '3h' });
    const before = [Date.now(), jest.getTimerCount()];
    await harness.advance('3h');
    expect(payments.log).toEqual(['A at 3 h']);
    expect([Date.now(), jest.getTimerCount()]).toEqual(before);
  });

  it('names a handler that waits for something that does not come', async () => {
    const { harness, payments, producer } = await start({ patience: '50ms' });
    let answer: () => void;
    payments.answers.push(() => new Promise<void>((resolve) => (answer = resolve)));
    await producer.enqueue('payment.check', { name: 'A' }, { id: 'A' });
    const error = await harness.runDue().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(HarnessError);
    expect((error as Error).message).toMatch(/Still waiting for Payments\.check of queue "payment\.check" \(A\)/);
    answer!();
  });

  it('stops when handlers go on without end', async () => {
    const { harness, payments, producer } = await start();
    const again = () => {
      payments.answers.push(again);
      payments.log.length = 0;
      throw new SnoozeJob(0);
    };
    payments.answers.push(...Array.from({ length: 20 }, () => again));
    await producer.enqueueMany(
      'payment.check',
      Array.from({ length: 20 }, () => ({ payload: { name: 'A' } })),
    );
    await expect(harness.drain()).rejects.toThrow(/More than 10000 runs in one go, in queues "payment.check"/);
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
});
