// What falls due when, and how a peak is spread.
import { Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import { DelayQueueInspector, DelayQueueModule, DelayQueueProducer } from 'nestjs-delay-queue';
import { redis } from './redis.js';

@Module({ imports: [DelayQueueModule.forRoot({ ...redis, consume: false })] })
export class AppModule {}

const HOUR = 3_600_000;

export async function run(app: INestApplicationContext) {
  const producer = app.get(DelayQueueProducer);
  const inspector = app.get(DelayQueueInspector);

  // Thirty reminders for the same moment, tomorrow at nine so to speak. Jobs of one millisecond are in the order of their ids.
  const nine = new Date(Date.now() + 12 * HOUR);
  await producer.enqueueMany(
    'reminders',
    Array.from({ length: 30 }, (_, n) => ({ payload: { n }, id: `r${100 + n}`, at: nine })),
  );

  // A histogram of the hour: all of them are in its first bucket.
  const range = { from: nine, to: new Date(nine.getTime() + HOUR) };
  const { counts: before } = await inspector.timeline('reminders', { ...range, buckets: 6 });

  // First what would be done, then the act: their due times are spread evenly over the hour.
  const times = { at: nine, spread: '1h' };
  const dry = await inspector.bulk.reschedule('reminders', range, times, { dryRun: true });
  await inspector.bulk.reschedule('reminders', range, times); // with a cursor in the answer: call again with it
  const { counts: after } = await inspector.timeline('reminders', { ...range, buckets: 6 });

  // Those of the last ten minutes are not wanted.
  const late = { from: new Date(nine.getTime() + (5 / 6) * HOUR), to: range.to };
  const { results } = await inspector.bulk.cancel('reminders', late);
  return {
    before, // [30, 0, 0, 0, 0, 0]
    wouldBe: dry.results.length, // 30
    after, // [5, 5, 5, 5, 5, 5]
    cancelled: results.map(({ id, outcome }) => `${id} ${outcome}`), // r125 to r129, in due order
  };
}
