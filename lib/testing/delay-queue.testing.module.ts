import type { DynamicModule } from '@nestjs/common';
import { InvalidOptionError } from '../delay-queue.errors.js';
import { DelayQueueInstances } from '../instance/delay-queue.instances.js';
import { rootModule } from '../delay-queue.module.js';
import type { DelayQueueRootOptions } from '../delay-queue.module.js';
import type { ResolvedModuleOptions } from '../delay-queue.options.js';
import type { ConnectionOption } from '../redis/connection-option.js';
import { connectionToken, optionsToken } from '../delay-queue.tokens.js';
import { DEFAULT_INSTANCE } from '../handlers/on-delayed.decorator.js';
import { RedisConnection } from '../redis/redis.connection.js';
import { MEMORY_SCHEME } from '../redis/memory.client.js';
import { randomBytes } from '../time-and-randomness.js';
import { permissionToken, permit } from './permission.js';

/** What is needed of the builder that `Test.createTestingModule()` of `@nestjs/testing` answers. */
interface OverridingBuilder {
  overrideProvider(token: unknown): {
    useFactory(options: { factory: (...args: any[]) => unknown; inject: any[] }): unknown;
  };
}

/** The instances that were overridden, by builder. */
const overridden = new WeakMap<OverridingBuilder, Set<string>>();

export interface OverrideOptions {
  /** What `forRoot({ name })` was given. Default: the unnamed one. */
  instance?: string;
  /**
   * A Redis of the test instead of the store in memory, in any form of `connection`. The application's prefix holds. The
   * harness changes whatever jobs it finds under it, so give each test file a prefix or a database of its own.
   */
  redis?: ConnectionOption;
}

/** Gives tests an application without a Redis, or with one whose jobs a harness may move in time. */
export class DelayQueueTestingModule {
  /** `DelayQueueModule.forRoot()` with a store of its own in memory. */
  static forTest(options: Omit<DelayQueueRootOptions, 'connection'> = {}): DynamicModule {
    return rootModule({ shutdownHooksWarning: false, ...options, connection: MEMORY_SCHEME }, 'forTest');
  }

  /**
   * `DelayQueueModule.forRoot()` on a Redis of the test.
   *
   * @param redis in any form of `connection`
   * @param options `prefix` is by default one that nobody else has; `harness.clear()` removes what is under it
   */
  static forRedis(redis: ConnectionOption, options: Omit<DelayQueueRootOptions, 'connection'> = {}): DynamicModule {
    const prefix = `dq-test-${randomBytes(6).toString('hex')}`;
    const root = rootModule({ shutdownHooksWarning: false, prefix, ...options, connection: redis }, 'forRedis');
    const permission = { provide: permissionToken(options.name ?? DEFAULT_INSTANCE), useValue: true };
    return { ...root, providers: [...(root.providers ?? []), permission] };
  }

  /**
   * Puts a store in memory under the `forRoot()` or `forRootAsync()` of the modules under test; all their other options hold.
   * By providers, because Nest silently ignores `overrideModule()` of a dynamic module.
   *
   * @param builder of `Test.createTestingModule()`, before `compile()`
   * @returns the builder
   * @throws InvalidOptionError. The boot throws UnknownInstanceError for an instance that there is not, and InvalidOptionError
   * for one that is left out and would work on the Redis of its `forRoot()`
   */
  static override<B extends OverridingBuilder>(builder: B, options: OverrideOptions = {}): B {
    if (typeof builder?.overrideProvider !== 'function') {
      throw new InvalidOptionError(
        'DelayQueueTestingModule.override(builder): give the builder that Test.createTestingModule() returns, before compile().',
      );
    }
    const unknown = Object.keys(options).find((key) => key !== 'instance' && key !== 'redis');
    if (unknown !== undefined) {
      throw new InvalidOptionError(
        `DelayQueueTestingModule.override(builder, options): unknown option "${unknown}". Known: instance, redis.`,
      );
    }
    const { instance = DEFAULT_INSTANCE, redis } = options;
    const all = overridden.get(builder) ?? new Set<string>();
    overridden.set(builder, all.add(instance));
    builder
      .overrideProvider(DelayQueueInstances)
      .useFactory({ factory: () => new DelayQueueInstances(all), inject: [] });
    builder.overrideProvider(connectionToken(instance)).useFactory({
      factory: (resolved: ResolvedModuleOptions, instances: DelayQueueInstances) => {
        const connection = new RedisConnection({ ...resolved, connection: redis ?? MEMORY_SCHEME });
        if (redis !== undefined) permit(connection);
        instances.onFailedBoot(() => connection.close());
        return connection;
      },
      inject: [optionsToken(instance), DelayQueueInstances],
    });
    return builder;
  }
}
