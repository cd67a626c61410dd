import type { INestApplicationContext } from '@nestjs/common';
import { InvalidOptionError } from '../delay-queue.errors.js';
import { DelayQueueInstances } from '../instance/delay-queue.instances.js';
import { MemoryClient } from '../redis/memory.client.js';
import type { RedisConnection } from '../redis/redis.connection.js';
import type { DelayQueueRunner } from '../worker/delay-queue.runner.js';
import { HarnessError } from './harness.error.js';
import { MemoryTestStore } from './memory.test-store.js';
import { mayMove } from './permission.js';
import { RedisTestStore } from './redis.test-store.js';
import type { TestStore } from './test-store.js';
import { unknownInstance } from '../instance/unknown-instance.js';

/** @throws UnknownInstanceError */
export function runnerOf(app: INestApplicationContext, instance: string): DelayQueueRunner {
  let instances: DelayQueueInstances | undefined;
  try {
    instances = app.get(DelayQueueInstances, { strict: false });
  } catch {
    // No module of this library at all.
  }
  const runner = instances?.runner(instance);
  if (runner) return runner;
  throw unknownInstance('DelayQueueHarness.of(app)', instance, instances?.names ?? []);
}

/** The store under an application. @throws InvalidOptionError, HarnessError */
export function storeOf(app: INestApplicationContext, connection: RedisConnection, instance: string): TestStore {
  const client: unknown = connection.commands;
  if (client instanceof MemoryClient) {
    const { store } = client;
    if (store) return new MemoryTestStore(store);
    throw new HarnessError(
      'DelayQueueHarness.of(app): the application has not booted. `await app.init()` comes first.',
    );
  }
  if (mayMove(app, connection, instance)) return new RedisTestStore(connection.commands);
  throw new InvalidOptionError(
    `DelayQueueHarness.of(app): instance "${instance}" is connected to ${connection.address}. Give forRoot() ` +
      "`connection: 'memory://'`, or use DelayQueueTestingModule.override(), with `{ redis: url }` for a Redis " +
      'whose jobs may be moved.',
  );
}
