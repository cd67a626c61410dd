// Fetching jobs instead of having a method called, and handlers that come and go while the process runs.
import { Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import { DelayQueueConsumer, DelayQueueModule, DelayQueueProducer, DelayQueueRegistry } from 'nestjs-delay-queue';
import { redis } from './redis.js';
import { until } from './until.js';

@Module({ imports: [DelayQueueModule.forRoot(redis)] })
export class AppModule {}

export async function run(app: INestApplicationContext) {
  const producer = app.get(DelayQueueProducer);
  const consumer = app.get(DelayQueueConsumer);
  const registry = app.get(DelayQueueRegistry);
  for (const id of ['b1', 'b2']) await producer.enqueue('letters.bulk', { id }, { id });
  for (const id of ['u1', 'u2']) await producer.enqueue('letters.urgent', { id }, { id });

  // Those of the first queue come first. With `wait` it would wait for a job, by wake-up. Leases are renewed meanwhile.
  const jobs = await consumer.pull(['letters.urgent', 'letters.bulk'], { max: 3, wait: '5s' });
  const [u1, u2, b1] = jobs;
  await u1!.complete();
  await u2!.retry({ delay: '1h' }); // a failed attempt, again in an hour
  await b1!.release(); // back to where it was, uncharged; also: fail(error), snooze(delay), discard(reason)
  const retried = await producer.get('letters.urgent', 'u2');

  // Deletes what it gives: what becomes of these payloads is the caller's business.
  const taken = await consumer.take('letters.bulk', 10);

  // A plain function as handler: no guards and pipes, but retries, snoozes and middleware.
  const handled: unknown[] = [];
  registry.register('letters.reply', (payload) => void handled.push(payload), { concurrency: 2 });
  await producer.enqueue('letters.reply', { text: 'Thank you' });
  await until(() => handled.length === 1);
  await registry.unregister('letters.reply'); // once its running handlers have ended

  return {
    order: jobs.map(({ id }) => id), // ['u1', 'u2', 'b1']
    retried: { state: retried?.state, attempts: retried?.attempts }, // 'delayed', 1
    taken, // [{ id: 'b1' }, { id: 'b2' }]
    handled,
    queues: registry.queues().includes('letters.reply'), // false
  };
}
