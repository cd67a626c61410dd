// Making jobs, and changing them before they run. No process here has handlers, so everything stays where it is put.
import { Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import { BulkEnqueueError, DelayQueueModule, DelayQueueProducer } from 'nestjs-delay-queue';
import { redis } from './redis.js';

@Module({ imports: [DelayQueueModule.forRoot({ ...redis, queues: { 'mail.promo': { maxSize: 2 } } })] })
export class AppModule {}

export async function run(app: INestApplicationContext) {
  const producer = app.get(DelayQueueProducer);

  // In three hours by the clock of the Redis server. Once this resolves, Redis holds the job.
  const check = await producer.enqueue('payment.check', { paymentId: 'p1' }, { delay: '3h' });

  // At a moment, under an id of one's own. The second call finds the first job and changes nothing: 'created', 'kept'.
  const at = new Date('2099-01-01T09:00:00Z');
  const first = await producer.enqueue('payment.check', { paymentId: 'p2' }, { at, id: 'check-p2' });
  const again = await producer.enqueue('payment.check', { paymentId: 'p2' }, { at, id: 'check-p2' });

  // Many in one call, a quarter of an hour apart.
  const items = ['a', 'b', 'c', 'd'].map((to) => ({ payload: { to } }));
  const spread = await producer.enqueueMany('mail.send', items, { spread: '1h' });

  // A debounce: each call puts the job off by 10 s and brings the newest payload, for a minute at most.
  const debounce = { id: 'user-7', onDuplicate: 'replace', delay: '10s', maxWait: '1m' } as const;
  for (const name of ['Ad', 'Ada']) await producer.enqueue('profile.index', { name }, debounce);
  const index = await producer.get('profile.index', 'user-7');

  // Another payload for a job that waits, at the time it has: by a call that never makes one, and by one that does if it must.
  const payload = { name: 'Ada L.' };
  const updated = await producer.update('profile.index', 'user-7', payload); // 'updated', with its dueAt
  const keep = { id: 'user-7', onDuplicate: 'replace', dueAt: 'keep', delay: '10s' } as const;
  const replaced = await producer.enqueue('profile.index', payload, keep);

  // Unique for a day, also after the job has run: 'created', then 'kept'.
  const daily = { id: 'daily-7', uniqueFor: '1d' } as const;
  const once = await producer.enqueue('report.daily', { userId: 7 }, daily);
  const twice = await producer.enqueue('report.daily', { userId: 7 }, daily);

  // One that starts within five minutes of its due time, or not at all.
  await producer.enqueue('push.notify', { text: 'Your taxi is here' }, { id: 'taxi', expiresIn: '5m', delay: '1h' });

  // The same content, the same id: a second call makes no second job.
  const same = await Promise.all(
    [1, 2].map(() => producer.enqueue('page.warm', { url: '/home' }, { idFromPayload: true })),
  );

  // A queue with a `maxSize` takes what fits, and an error tells of each job what became of it.
  const promo = items.slice(0, 3).map((item) => ({ ...item, delay: '1h' }));
  const accepted = await producer.enqueueMany('mail.promo', promo).catch((error: unknown) => {
    if (error instanceof BulkEnqueueError) return error.results.map((result) => 'outcome' in (result as object));
    throw error;
  });

  const sooner = await producer.reschedule('payment.check', check.id, { delay: '10m' }); // 'rescheduled', with its dueAt
  const cancelled = await producer.cancel('payment.check', check.id); // 'cancelled'
  const gone = await producer.cancel('payment.check', check.id); // 'notFound'

  return {
    outcomes: [check, first, again, once, twice, sooner, cancelled, gone].map(({ outcome }) => outcome),
    newYear: first.dueAt, // 2099-01-01T09:00:00Z
    minutesApart: spread.map(({ dueAt }) => Math.round((dueAt.getTime() - spread[0]!.dueAt.getTime()) / 60_000)), // 0, 15, 30, 45
    sameId: same[0]!.id === same[1]!.id, // true
    accepted, // [true, true, false]
    indexed: index?.payload, // { name: 'Ada' }
    updated: [updated.outcome, replaced.dueAt.getTime() === updated.dueAt!.getTime()], // ['updated', true]
  };
}
