// The test kit as a test of this application would use it: without a Redis, and hours ahead.
import { Injectable, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DelayQueueModule, DelayQueueProducer, OnDelayed } from 'nestjs-delay-queue';
import {
  type DelayQueueMatchers,
  delayQueueMatchers,
  DelayQueueHarness,
  DelayQueueTestingModule,
} from 'nestjs-delay-queue/testing';
import 'nestjs-delay-queue/testing/jest';
import 'nestjs-delay-queue/testing/vitest';

@Injectable()
class Reminders {
  readonly sent: string[] = [];

  @OnDelayed('package.reminder')
  send({ to }: { to: string }): void {
    this.sent.push(to);
  }
}

@Module({ imports: [DelayQueueModule.forRoot({ connection: 'redis://127.0.0.1:1' })], providers: [Reminders] })
class RemindersModule {}

/** @returns what was sent before and after three hours, and which matchers there are */
export async function tryTheKit(): Promise<{ before: number; after: number; matchers: (keyof DelayQueueMatchers)[] }> {
  const builder = DelayQueueTestingModule.override(Test.createTestingModule({ imports: [RemindersModule] }));
  const app = await (await builder.setLogger(false as never).compile()).init();
  const jobs = DelayQueueHarness.of(app);
  await app.get(DelayQueueProducer).enqueue('package.reminder', { to: 'you' }, { delay: '3h' });
  const { sent } = app.get(Reminders);
  await jobs.advance('2h 59m');
  const before = sent.length;
  await jobs.advance('1m');
  await app.close();
  return {
    before,
    after: sent.length,
    matchers: Object.keys(delayQueueMatchers).sort() as (keyof DelayQueueMatchers)[],
  };
}
