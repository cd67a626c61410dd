// A schedule whose jobs come again and again, and one that its handler declares.
import { Injectable, Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import { DelayedJob, DelayQueueModule, DelayQueueProducer, OnDelayed } from 'nestjs-delay-queue';
import { redis } from './redis.js';
import { until } from './until.js';

@Injectable()
export class Reports {
  readonly sent: string[] = [];

  @OnDelayed('report.send')
  async send({ customer }: { customer: string }, job: DelayedJob) {
    this.sent.push(`${customer} by ${job.schedule?.id}`);
  }

  /** Declared in code: an application that boots without it removes it. */
  @OnDelayed('report.daily', { repeat: { cron: '0 6 * * *', timeZone: 'Europe/Berlin', payload: { kind: 'daily' } } })
  async daily() {}
}

@Module({ imports: [DelayQueueModule.forRoot(redis)], providers: [Reports] })
export class AppModule {}

export async function run(app: INestApplicationContext) {
  const [producer, { sent }] = [app.get(DelayQueueProducer), app.get(Reports)];

  const workdays = { cron: '0 9 * * 1-5', timeZone: 'Europe/Berlin' };
  const { outcome, next } = await producer.schedule('report.send', 'acme', workdays, { customer: 'acme' });
  const again = await producer.schedule('report.send', 'acme', workdays, { customer: 'acme' });

  // Now, and not only on the next workday.
  await producer.triggerSchedule('report.send', 'acme');
  await until(() => sent.length === 1);

  const declared = async () =>
    (await producer.listSchedules('report.daily')).schedules.map(({ id, cron }) => ({ id, cron }));
  await until(async () => (await declared()).length === 1);
  const removed = await producer.unschedule('report.send', 'acme');
  return {
    outcomes: [outcome, again.outcome, removed.outcome],
    hours:
      next &&
      new Intl.DateTimeFormat('en', { hour: 'numeric', hourCycle: 'h23', timeZone: 'Europe/Berlin' }).format(next),
    sent,
    declared: await declared(),
  };
}
