import type { DynamicModule } from '@nestjs/common';
import { DelayQueueInstances } from '../delay-queue.instances.js';
import { DelayQueueModule } from '../delay-queue.module.js';
import type { DelayQueueRootOptions } from '../delay-queue.module.js';
import type { ResolvedModuleOptions } from '../delay-queue.options.js';
import { connectionToken, optionsToken } from '../delay-queue.tokens.js';
import { DEFAULT_INSTANCE } from '../handlers/on-delayed.decorator.js';
import { RedisConnection } from '../redis/redis.connection.js';
import { MEMORY_SCHEME } from '../redis/memory.client.js';

/** What is needed of the builder that `Test.createTestingModule()` of `@nestjs/testing` answers. */
interface OverridingBuilder {
  overrideProvider(token: unknown): {
    useFactory(options: { factory: (...args: any[]) => unknown; inject: any[] }): unknown;
  };
}

/** Gives tests an application without a Redis. */
export class DelayQueueTestingModule {
  /** `DelayQueueModule.forRoot()` with a store of its own in memory. */
  static forTest(options: Omit<DelayQueueRootOptions, 'connection'> = {}): DynamicModule {
    return DelayQueueModule.forRoot({ shutdownHooksWarning: false, ...options, connection: MEMORY_SCHEME });
  }

  /**
   * Puts a store in memory under the `forRoot()` or `forRootAsync()` of the modules under test; all their other options hold.
   * By providers, because Nest silently ignores `overrideModule()` of a dynamic module.
   *
   * @param builder of `Test.createTestingModule()`, before `compile()`
   * @returns the builder
   */
  static override<B extends OverridingBuilder>(
    builder: B,
    { instance = DEFAULT_INSTANCE }: { instance?: string } = {},
  ): B {
    builder.overrideProvider(connectionToken(instance)).useFactory({
      factory: (options: ResolvedModuleOptions, instances: DelayQueueInstances) => {
        const connection = new RedisConnection({ ...options, connection: MEMORY_SCHEME });
        instances.onFailedBoot(() => connection.close());
        return connection;
      },
      inject: [optionsToken(instance), DelayQueueInstances],
    });
    return builder;
  }
}
