import type { FactoryProvider, OnApplicationShutdown, OnModuleInit, Provider, Type } from '@nestjs/common';
import { ApplicationConfig, ModulesContainer } from '@nestjs/core';
import { DelayQueueConsumer } from './consumer/delay-queue.consumer.js';
import { DelayQueueLogger } from './delay-queue.logger.js';
import { resolveModuleOptions } from './delay-queue.options.js';
import { connectionToken, getDelayQueueToken, optionsToken, shardsToken } from './delay-queue.tokens.js';
import { inApplication } from './handlers/in-application.js';
import { DelayQueueHealth } from './health/delay-queue.health.js';
import { DelayQueueInspector } from './inspection/delay-queue.inspector.js';
import { DelayQueueInstances } from './instance/delay-queue.instances.js';
import { tellOfRoot } from './instance/service-names.js';
import type { InstanceContext } from './instance/instance-context.js';
import { hookLast } from './instance/module-order.js';
import { closeInstance, makeConnection, makeContext, openInstance } from './instance/start-instance.js';
import { DelayQueueProducer } from './producer/delay-queue.producer.js';
import { DelayQueueRegistry } from './worker/delay-queue.registry.js';
import { DelayQueueRunner } from './worker/delay-queue.runner.js';

tellOfRoot([DelayQueueProducer, DelayQueueInspector, DelayQueueRegistry, DelayQueueConsumer, DelayQueueHealth]);

/**
 * Opens the connection first and closes it last. Not in a provider's factory: an application that cannot be built would
 * leave it open.
 */
class ConnectionKeeper implements OnModuleInit, OnApplicationShutdown {
  constructor(
    private readonly context: InstanceContext,
    private readonly instances: DelayQueueInstances,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.instances.booting(() => {
      const { name, connection } = this.context.options;
      this.instances.checkOverridden(name, connection);
      return openInstance(this.context);
    });
  }

  async onApplicationShutdown(): Promise<void> {
    await closeInstance(this.context);
  }
}

/**
 * The parts of an instance below its services: checked options, connection, context, and the provider that opens and
 * closes them.
 */
export function connectionProviders(name: string, given: (token: symbol) => Provider, testMethod?: string): Provider[] {
  const GIVEN = Symbol(`delay-queue:${name}:given`);
  const [OPTIONS, CONNECTION, SHARDS] = [optionsToken(name), connectionToken(name), shardsToken(name)];
  return [
    given(GIVEN),
    {
      provide: OPTIONS,
      useFactory: (options: unknown, instances: DelayQueueInstances) => {
        instances.claim(name, testMethod);
        return resolveModuleOptions(options, name);
      },
      inject: [GIVEN, DelayQueueInstances],
    },
    {
      provide: CONNECTION,
      useFactory: makeConnection,
      inject: [OPTIONS, DelayQueueInstances],
    },
    {
      provide: SHARDS,
      useFactory: makeContext,
      inject: [CONNECTION, OPTIONS, DelayQueueInstances],
    },
    {
      provide: ConnectionKeeper,
      useFactory: (context, instances) => new ConnectionKeeper(context, instances),
      inject: [SHARDS, DelayQueueInstances],
    },
  ];
}

/** The providers of an instance that an application injects. */
export function serviceProviders(name: string): FactoryProvider[] {
  const SHARDS = shardsToken(name);
  const token = (service: Type<unknown>) => getDelayQueueToken(name, service);
  return [
    { provide: token(DelayQueueProducer), useFactory: (shards) => new DelayQueueProducer(shards), inject: [SHARDS] },
    { provide: token(DelayQueueInspector), useFactory: (shards) => new DelayQueueInspector(shards), inject: [SHARDS] },
    {
      provide: token(DelayQueueRegistry),
      useFactory: (instances: DelayQueueInstances) => new DelayQueueRegistry(() => instances.runner(name)!),
      inject: [DelayQueueInstances],
    },
    {
      provide: token(DelayQueueConsumer),
      useFactory: (instances: DelayQueueInstances) => new DelayQueueConsumer(() => instances.runner(name)!),
      inject: [DelayQueueInstances],
    },
    {
      provide: token(DelayQueueHealth),
      useFactory: (shards: InstanceContext, instances: DelayQueueInstances) => {
        const health = new DelayQueueHealth(shards, () => instances.runner(name));
        instances.addHealth(name, health);
        return health;
      },
      inject: [SHARDS, DelayQueueInstances],
    },
  ];
}

/** Runs the handlers of one instance. */
export function runnerProvider(name: string): FactoryProvider {
  return {
    provide: DelayQueueRunner,
    useFactory: (options, shards, instances: DelayQueueInstances, modules, application) => {
      const runner = new DelayQueueRunner(
        options,
        shards,
        instances,
        inApplication(modules, application, options, instances, () => shards.tracer?.carrier()),
      );
      instances.addRunner(name, runner);
      if (!hookLast(modules, DelayQueueRunner)) {
        DelayQueueLogger.of(name).warn(
          'This version of Nest does not let jobs drain before other modules close. Import DelayQueueModule.forRoot() last.',
        );
      }
      return runner;
    },
    inject: [optionsToken(name), shardsToken(name), DelayQueueInstances, ModulesContainer, ApplicationConfig],
  };
}
