// Jobs that replicas have before the call resolves, and a queue that is spread over the nodes of a Redis Cluster.
import { Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DelayQueueInspector, DelayQueueModule, DelayQueueProducer, NotDurableError } from 'nestjs-delay-queue';
import { redis } from './redis.js';

/** Every process that uses the queue says the same number of shards, producers too. */
@Module({
  imports: [DelayQueueModule.forRoot({ ...redis, queues: { 'sensor.read': { shards: 4, maxSize: 100_000 } } })],
})
export class AppModule {}

/** @returns how many replicas had the job in time; it is stored and will run in any case */
async function enqueueDurably(producer: DelayQueueProducer, id: string): Promise<unknown> {
  const durability = { replicas: 1, timeout: '2s' } as const; // or 'fsync'; also as an option of the module
  try {
    return (await producer.enqueue('ledger.book', { id }, { id, durability })).durability;
  } catch (error) {
    if (error instanceof NotDurableError) return error.reached; // enqueued again under its id, it would wait again
    throw error;
  }
}

export async function run(app: INestApplicationContext) {
  const producer = app.get(DelayQueueProducer);
  const inspector = app.get(DelayQueueInspector);
  const durability = await enqueueDurably(producer, 'l1');

  // The shard of a job follows from its id, so all calls find it; the inspector speaks of the whole queue.
  const ids = Array.from({ length: 100 }, (_, n) => `sensor-${n}`);
  await producer.enqueueMany(
    'sensor.read',
    ids.map((id) => ({ payload: { id }, id, delay: '1h' })),
  );
  const { outcome } = await producer.cancel('sensor.read', 'sensor-42');
  const { delayed } = await inspector.counts('sensor.read');

  // Another number, without losing a job. From then on processes that say 4 are refused, those that say 8 are right.
  const { from, to } = await inspector.reshard('sensor.read', { to: 8, wait: '1m' });
  const next = await NestFactory.createApplicationContext(
    DelayQueueModule.forRoot({ ...redis, queues: { 'sensor.read': { shards: 8 } } }),
    { logger: false },
  );
  const found = await next.get(DelayQueueProducer).get('sensor.read', 'sensor-7');
  await next.close();

  return { durability, outcome, delayed, resharded: { from, to }, found: found?.payload };
}
