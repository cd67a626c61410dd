import { Inject, Module } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import type {
  Abstract,
  DynamicModule,
  FactoryProvider,
  ModuleMetadata,
  OnModuleInit,
  Type,
  Provider,
} from '@nestjs/common';
import { InvalidOptionError } from './delay-queue.errors.js';
import { DelayQueueInstances, DelayQueueInstancesModule } from './instance/delay-queue.instances.js';
import { noteRootName } from './instance/service-names.js';
import type { DelayQueueModuleOptions } from './delay-queue.options.js';
import { getDelayQueueToken, optionsToken, shardsToken } from './delay-queue.tokens.js';
import { connectionProviders, runnerProvider, serviceProviders } from './delay-queue.providers.js';
import { noteRoot } from './handlers/decorated-classes.js';
import { DEFAULT_INSTANCE } from './handlers/on-delayed.decorator.js';
import { shown } from './job/duration.js';
import type { Given } from './job/payload-types.js';
import { boolean, isPlainObject, notOptions, reading } from './job/option-rules.js';
import { isQueueDefinition } from './job/queue-definition.js';
import type { QueueDefinition } from './job/queue-definition.js';
import { loggedNameProblem } from './job/queue-name.js';
import { DelayQueue, getQueueToken } from './producer/delay-queue.js';
import type { DelayQueueProducer } from './producer/delay-queue.producer.js';

export type DelayQueueRootOptions = DelayQueueModuleOptions & InstanceExtras;

interface InstanceExtras {
  /**
   * Name of this instance, when an application has several: 1 to 64 printable characters without braces. Default: the
   * unnamed one.
   */
  name?: string;
  /** Makes the producer and the other services injectable everywhere. Default true. */
  isGlobal?: boolean;
}

/** What a factory gives. `name` and `isGlobal` stand beside it. */
type OptionsOfFactory = DelayQueueModuleOptions & { readonly [extra in keyof InstanceExtras]?: never };

export interface DelayQueueOptionsFactory {
  createDelayQueueOptions(): OptionsOfFactory | Promise<OptionsOfFactory>;
}

export interface DelayQueueRootAsyncOptions extends InstanceExtras, Pick<ModuleMetadata, 'imports'> {
  useFactory?: (...args: any[]) => OptionsOfFactory | Promise<OptionsOfFactory>;
  useClass?: Type<DelayQueueOptionsFactory>;
  useExisting?: Type<DelayQueueOptionsFactory> | Abstract<DelayQueueOptionsFactory> | string | symbol;
  inject?: FactoryProvider['inject'];
}

/** Says at boot, not at the first enqueue, that an instance is missing. */
class FeatureCheck implements OnModuleInit {
  constructor(
    private readonly instances: DelayQueueInstances,
    private readonly instance: string,
    private readonly call: string,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.instances.booting(() => this.instances.checkDeclared(this.instance, this.call));
  }
}

@Module({})
class DelayQueueFeatureModule {}

/** Connection and producer. Global, so it starts first and stops last. */
@Module({})
class DelayQueueCoreModule {}

/**
 * `DelayQueueModule.forRoot()` connects, makes `DelayQueueProducer` injectable, and runs the `@OnDelayed` handlers.
 *
 * Two modules in truth: the connection lives in a global one, which starts first and stops last, the runner in this one, which
 * starts last and stops first (see `hookLast`), so that handlers find everything ready that they use.
 */
@Module({ imports: [DelayQueueInstancesModule] })
export class DelayQueueModule implements OnModuleInit {
  /** @internal */
  constructor(@Inject(DelayQueueInstances) private readonly instances: DelayQueueInstances) {}

  onModuleInit(): void {
    if (this.instances.names.size > 0) return;
    throw new InvalidOptionError(
      'imports: [DelayQueueModule] alone starts nothing. Import DelayQueueModule.forRoot({ connection }) in the root module.',
    );
  }

  /**
   * @throws InvalidOptionError, InvalidDelayError, InvalidQueueError at boot, naming the option
   * @throws DuplicateInstanceError at boot, for a second one with the same `name`
   */
  static forRoot(options: Given<DelayQueueRootOptions> = {}): DynamicModule {
    return rootModule(options);
  }

  /**
   * The same with options from a factory. `name` and `isGlobal` must be known before it runs, so they are no part of
   * its result.
   */
  static forRootAsync(options: DelayQueueRootAsyncOptions): DynamicModule {
    const given = readable(options, 'forRootAsync(options)');
    const { name, isGlobal, imports = [], useFactory, useClass, useExisting, inject = [] } = given;
    if ([useFactory, useClass, useExisting].filter(Boolean).length !== 1) {
      throw new InvalidOptionError('forRootAsync(): give exactly one of useFactory, useClass and useExisting.');
    }
    return assemble(
      { name, isGlobal },
      imports,
      (token): FactoryProvider => {
        if (useFactory)
          return {
            provide: token,
            useFactory: async (...args: unknown[]) => returned(await useFactory(...args), 'useFactory'),
            inject,
          };
        return {
          provide: token,
          useFactory: async (factory: DelayQueueOptionsFactory) => {
            if (typeof factory?.createDelayQueueOptions === 'function') {
              return returned(await factory.createDelayQueueOptions(), 'createDelayQueueOptions()');
            }
            const given = useExisting ?? useClass;
            const name = typeof given === 'function' ? given.name : shown(given);
            throw new InvalidOptionError(
              `forRootAsync(): ${name} has no method createDelayQueueOptions(), by which useClass and useExisting give the options.`,
            );
          },
          inject: [(useExisting ?? useClass)!],
        };
      },
      useClass ? [useClass] : [],
    );
  }

  /**
   * Declares queues and gives a typed handle for each: `@InjectQueue(paymentCheck) checks: DelayQueue<CheckPayment>`.
   *
   * @param definitions made by `defineQueue()`; they also hold for handlers that name the queue as text
   * @param instance what `forRoot({ name })` was given, or nothing
   * @throws InvalidOptionError, UnknownInstanceError at boot
   */
  static forFeature(definitions: readonly QueueDefinition<any>[], instance: string = DEFAULT_INSTANCE): DynamicModule {
    reading(
      () => 'forFeature(definitions)',
      () => {
        if (Array.isArray(definitions) && definitions.every(isQueueDefinition)) return;
        const hint =
          Array.isArray(definitions) && definitions.includes(undefined as never)
            ? ' One of them is undefined: if it is imported, look for a circular import.'
            : '';
        throw new InvalidOptionError(`forFeature(definitions): give an array of what defineQueue() made.${hint}`);
      },
    );
    if (typeof instance !== 'string' || instance === '') {
      throw new InvalidOptionError(
        `forFeature(definitions, instance): ${shown(instance)} is not the name of an instance.`,
      );
    }
    const call = `forFeature([${definitions.map(({ name }) => name).join(', ')}])`;
    const token = getDelayQueueToken(instance);
    const handles = definitions.map((definition): FactoryProvider => ({
      provide: getQueueToken(definition, instance),
      useFactory: (instances: DelayQueueInstances, container: ModuleRef) => {
        instances.addDefinitions(instance, definitions);
        // Of the container, which has what a test puts in its place.
        let producer: DelayQueueProducer | undefined;
        return new DelayQueue(
          definition,
          () => (producer ??= container.get<DelayQueueProducer>(token, { strict: false })),
        );
      },
      inject: [DelayQueueInstances, ModuleRef],
    }));
    const check: FactoryProvider = {
      provide: FeatureCheck,
      useFactory: (instances: DelayQueueInstances) => new FeatureCheck(instances, instance, call),
      inject: [DelayQueueInstances],
    };
    return {
      module: DelayQueueFeatureModule,
      imports: [DelayQueueInstancesModule],
      providers: [...handles, check],
      exports: handles.map(({ provide }) => provide),
    };
  }
}

/** @param testMethod of `DelayQueueTestingModule`, where that calls */
export function rootModule(options: Given<DelayQueueRootOptions>, testMethod?: string): DynamicModule {
  const { name, isGlobal, ...rest } = readable(options, 'forRoot(options)');
  return assemble({ name, isGlobal }, [], (token) => ({ provide: token, useValue: rest }), [], testMethod);
}

/** @throws InvalidOptionError: a `return` that was forgotten would mean the defaults, and a Redis on this machine */
function returned(options: DelayQueueModuleOptions, by: string): DelayQueueModuleOptions {
  if (options !== undefined && options !== null) return readable(options, `forRootAsync(), ${by}`);
  throw new InvalidOptionError(
    `forRootAsync(): ${by} returned ${shown(options)}. Return the options; {} means the defaults.`,
  );
}

/** A copy, so that a getter or a proxy that throws does so here. */
function readable<Options extends object>(options: Options, where: string): Options {
  return reading(
    () => where,
    () => {
      if (isPlainObject(options)) return { ...(options as Options) };
      throw notOptions(options, where, typeof options === 'string' ? ' Give { connection: url }.' : '');
    },
  );
}

function assemble(
  extras: InstanceExtras,
  imports: NonNullable<ModuleMetadata['imports']>,
  given: (token: symbol) => Provider,
  extraProviders: Provider[] = [],
  testMethod?: string,
): DynamicModule {
  noteRoot();
  const { name = DEFAULT_INSTANCE, isGlobal = true } = extras;
  // The name is part of every log line, as the prefix is part of every key.
  const problem = loggedNameProblem(name, 64);
  if (problem !== undefined) {
    throw new InvalidOptionError(`forRoot({ name }): ${problem}. Use 1 to 64 printable characters without braces.`);
  }
  boolean(isGlobal, 'forRoot({ isGlobal })');
  noteRootName(name === DEFAULT_INSTANCE ? undefined : name);
  const services = serviceProviders(name);
  const core: DynamicModule = {
    module: DelayQueueCoreModule,
    global: isGlobal,
    imports: [DelayQueueInstancesModule, ...imports],
    providers: [...extraProviders, ...connectionProviders(name, given, testMethod), ...services],
    exports: [optionsToken(name), shardsToken(name), ...services.map(({ provide }) => provide)],
  };
  return {
    module: DelayQueueModule,
    imports: [core, DelayQueueInstancesModule],
    providers: [runnerProvider(name)],
    exports: [core],
  };
}
