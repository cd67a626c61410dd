// The test kit as a test of vitest uses it. What a matcher may be given is checked by tsc (tsconfig.json).
import { Injectable, Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DelayQueueModule, DelayQueueProducer, fixed, OnDelayed } from 'nestjs-delay-queue';
import { delayQueueMatchers, DelayQueueHarness, DelayQueueTestingModule } from 'nestjs-delay-queue/testing';
import 'nestjs-delay-queue/testing/vitest';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

expect.extend(delayQueueMatchers);

@Injectable()
class Reminders {
  readonly sent: string[] = [];

  @OnDelayed('reminder', { attempts: 2, backoff: fixed('10m') })
  async send({ to }: { to: string }): Promise<void> {
    this.sent.push(to);
  }
}

@Module({ imports: [DelayQueueModule.forRoot({ connection: 'redis://127.0.0.1:1' })], providers: [Reminders] })
class RemindersModule {}

// Each test runs twice: vitest replaces setTimeout, setImmediate, Date, performance and more, or leaves them alone.
describe.each(['real', 'fake'])('the kit under %s timers', (timers) => {
  let app: INestApplicationContext;
  let jobs: DelayQueueHarness;
  let producer: DelayQueueProducer;
  let sent: string[];

  beforeEach(async () => {
    if (timers === 'fake') vi.useFakeTimers();
    const builder = DelayQueueTestingModule.override(Test.createTestingModule({ imports: [RemindersModule] }));
    app = await (await builder.compile()).init();
    jobs = DelayQueueHarness.of(app);
    producer = app.get(DelayQueueProducer);
    ({ sent } = app.get(Reminders));
  });

  afterEach(async () => {
    await app.close();
    vi.useRealTimers();
  });

  it('moves the time of jobs and nothing else', async () => {
    const read = () => (timers === 'fake' ? [Date.now(), vi.getTimerCount()] : []);
    const before = read();
    await producer.enqueue('reminder', { to: 'you' }, { delay: '3h' });
    await jobs.advance('2h 59m');
    expect(sent).toEqual([]);
    await jobs.advance('1m');
    expect(sent).toEqual(['you']);
    expect(read()).toEqual(before);
  });

  it('has matchers, which are asked and answered with types', async () => {
    await producer.enqueue('reminder', { to: 'you' }, { id: 'A', delay: '3h' });
    await expect(jobs).toHaveEnqueued('reminder', { payload: { to: expect.stringMatching(/^you$/) }, delay: '3h' });
    await expect(jobs).not.toHaveEnqueued('reminder', { delay: '2h' });
    // @ts-expect-error -- there is no such option
    await expect(expect(jobs).toHaveEnqueued('reminder', { dealy: '3h' })).rejects.toThrow('unknown option "dealy"');
    // @ts-expect-error -- nor such a reason
    await expect(jobs).not.toHaveDeadLettered('reminder', { reason: 'tired' });
    const promise: Promise<void> = expect(jobs).not.toHaveCompleted('reminder');
    await promise;
    await expect(expect(jobs).toHaveCompleted('reminder', { id: 'A' })).rejects.toThrow(
      `Expected queue "reminder" to have a job completed like { id: 'A' }. Nothing was found.`,
    );
    await jobs.drain();
    await expect(jobs).toHaveCompleted('reminder', { id: 'A' });
  });

  it('makes jobs fail', async () => {
    jobs.failNext('reminder', new Error('no network'), 2);
    await producer.enqueue('reminder', { to: 'you' });
    await jobs.advance('10m');
    await expect(jobs).toHaveDeadLettered('reminder', { reason: 'exhausted' });
    expect(sent).toEqual([]);
  });
});
