// A handler that receives many jobs at once, each of which keeps an end of its own.
import { Injectable, Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import { DelayQueueInspector, DelayQueueModule, DelayQueueProducer, OnDelayed } from 'nestjs-delay-queue';
import type { BatchJob } from 'nestjs-delay-queue';
import { redis } from './redis.js';
import { until } from './until.js';

interface Mail {
  to: string;
}

@Injectable()
export class Digests {
  readonly sizes: number[] = [];

  /** Up to a hundred; the first of them waits 200 ms for others at most. */
  @OnDelayed('mail.digest', { batch: { size: 100, wait: '200ms' }, concurrency: 2 })
  async send(payloads: Mail[], jobs: BatchJob<Mail>[]) {
    this.sizes.push(payloads.length);
    for (const job of jobs) {
      if (!job.payload.to.includes('@')) job.discard('no address'); // this one, at once
    }
    // What was not settled by itself is completed when the method returns, and fails when it throws.
  }
}

@Module({ imports: [DelayQueueModule.forRoot(redis)], providers: [Digests] })
export class AppModule {}

export async function run(app: INestApplicationContext) {
  const [producer, inspector, { sizes }] = [
    app.get(DelayQueueProducer),
    app.get(DelayQueueInspector),
    app.get(Digests),
  ];
  const mails = ['a@x.example', 'b@x.example', 'nobody', 'c@x.example'];

  // Paused meanwhile, so that they are due together.
  await inspector.pause('mail.digest');
  await producer.enqueueMany(
    'mail.digest',
    mails.map((to) => ({ payload: { to } })),
  );
  await inspector.resume('mail.digest');

  await until(async () => (await inspector.totals('mail.digest')).completed === 3);
  const { jobs } = await inspector.list('mail.digest', 'dead');
  return { sizes, dead: jobs.map(({ payload, deadReason }) => ({ payload, deadReason })) };
}
