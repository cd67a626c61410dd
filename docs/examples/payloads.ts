// Payloads that JSON cannot hold, large ones, and those that are too large.
import { Injectable, Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import {
  DelayQueueModule,
  DelayQueueProducer,
  OnDelayed,
  PayloadError,
  PayloadTooLargeError,
} from 'nestjs-delay-queue';
import { devalueCodec } from 'nestjs-delay-queue/devalue';
import { redis } from './redis.js';
import { until } from './until.js';

interface Trip {
  on: Date;
  seats: Map<string, bigint>;
}

@Injectable()
export class Trips {
  readonly booked: Trip[] = [];

  @OnDelayed('trip.book')
  book(trip: Trip) {
    this.booked.push(trip);
  }
}

@Module({
  imports: [
    DelayQueueModule.forRoot({
      ...redis,
      codec: devalueCodec(), // jobs that JSON wrote are read as well
      compressAbove: 1024, // bytes
      maxPayloadBytes: 64 * 1024, // before compression
    }),
  ],
  providers: [Trips],
})
export class AppModule {}

export async function run(app: INestApplicationContext) {
  const producer = app.get(DelayQueueProducer);
  const { booked } = app.get(Trips);

  await producer.enqueue('trip.book', { on: new Date(0), seats: new Map([['12A', 1n]]) });
  await until(() => booked.length === 1);

  // Stored compressed, because that makes it smaller; nobody who reads it notices.
  const { id } = await producer.enqueue('trip.note', { text: 'far '.repeat(5_000) }, { delay: '1h' });
  const note = (await producer.get('trip.note', id))?.payload as { text: string };

  // Refused before anything is sent.
  const refusals: unknown[] = [];
  for (const payload of [{ text: 'x'.repeat(70_000) }, { call: () => 1 }]) {
    await producer.enqueue('trip.note', payload).catch((error: unknown) => refusals.push(error));
  }
  return {
    trip: booked[0], // a Date and a Map, as they were enqueued
    noteLength: note.text.length, // 20,000
    tooLarge: refusals[0] instanceof PayloadTooLargeError,
    notData: refusals[1] instanceof PayloadError, // its message names the path, payload.call
  };
}
