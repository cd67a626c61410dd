// What all processes did, which of them live, and whether what is coming will fit.
import { Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import { DelayQueueModule, DelayQueueProducer, OnDelayed } from 'nestjs-delay-queue';
import { DelayQueueHistory, DelayQueueHistoryModule } from 'nestjs-delay-queue/history';
import { redis } from './redis.js';
import { until } from './until.js';

export class Newsletter {
  @OnDelayed('newsletter', { concurrency: 5 })
  send() {
    return 'sent';
  }
}

@Module({ imports: [DelayQueueModule.forRoot(redis), DelayQueueHistoryModule], providers: [Newsletter] })
export class AppModule {}

const HOUR = 3_600_000;

export async function run(app: INestApplicationContext) {
  const producer = app.get(DelayQueueProducer);
  const history = app.get(DelayQueueHistory);

  // Each process shows itself when it starts, and then every 15 seconds.
  await until(async () => (await history.processes()).length > 0);
  const [process] = await history.processes();

  // Six hundred letters for one moment, in an hour. What if ten can be sent in a second?
  const at = new Date(Date.now() + HOUR);
  await producer.enqueueMany(
    'newsletter',
    Array.from({ length: 600 }, (_, n) => ({ payload: { n }, at })),
  );
  const { peaks, basis } = await history.forecast('newsletter', { rate: 10 });

  // Counted when the minute is over; this application has just begun.
  const { minutes } = await history.minutes('newsletter');
  return {
    works: process?.queues.map(({ queue, slots }) => `${queue}: ${slots} slots`), // ['newsletter: 5 slots']
    basis, // 'given'
    peaks: peaks.map(({ jobs, latestMs }) => `${jobs} jobs, the latest ${Math.round(latestMs / 1_000)} s late`),
    minutes: minutes.length,
  };
}
