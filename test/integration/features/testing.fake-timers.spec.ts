import 'reflect-metadata';
import { afterEach, expect, it, jest } from '@jest/globals';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DelayQueueProducer, OnDelayed } from '../../../lib/index.js';
import type { HandlerOptions } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { DelayQueueHarness, DelayQueueTestingModule } from '../../../lib/testing/index.js';
import { eventually } from '../../helpers/eventually.js';

let close: (() => Promise<void>) | undefined;
afterEach(async () => {
  jest.useRealTimers();
  await close?.();
});

/** An application in memory, with timers and clocks that stand still from its boot on. */
async function standingStill(handlers: unknown, shards: number) {
  @Module({
    imports: [DelayQueueTestingModule.forTest({ queues: { q: { shards } }, drainTimeout: 0 })],
    providers: [handlers as never],
  })
  class TestModule {}
  jest.useFakeTimers();
  const app = await NestFactory.createApplicationContext(TestModule, { logger: false });
  close = () => app.close();
  return { producer: app.get(DelayQueueProducer), harness: DelayQueueHarness.of(app) };
}

const items = Array.from({ length: 20 }, (_, n) => ({ payload: n, delay: '1h' }));

it.each([1, 4])('a batch handler waited for timers of a test that stood still (%i shards)', async (shards) => {
  const seen: number[] = [];
  class Handlers {
    run(payloads: number[]): void {
      seen.push(...payloads);
    }
  }
  const options: HandlerOptions = { batch: { size: 5, wait: '20ms' }, timeout: '1m', concurrency: 2 };
  OnDelayed('q', options)(Handlers.prototype, 'run', Object.getOwnPropertyDescriptor(Handlers.prototype, 'run')!);
  const { producer, harness } = await standingStill(Handlers, shards);
  await producer.enqueueMany('q', items);
  await harness.advance('1h');
  expect(seen.sort((a, b) => a - b)).toEqual(items.map(({ payload }) => payload));
});

it('shards that wait for a slot waited for timers of a test that stood still', async () => {
  const seen: number[] = [];
  const { producer, harness } = await standingStill(
    handlerClass('q', (payload: number) => void seen.push(payload), { concurrency: 1 }),
    4,
  );
  await producer.enqueueMany('q', items);
  await harness.advance('1h');
  await eventually(() => expect(seen).toHaveLength(items.length));
});
