import { Logger } from '@nestjs/common';
import type { OnApplicationBootstrap, OnModuleDestroy, OnModuleInit } from '@nestjs/common';
import type { ApplicationConfig, ModulesContainer } from '@nestjs/core';
import { resolveHandlerSettings } from '../delay-queue.options.js';
import type { ResolvedHandlerSettings, ResolvedModuleOptions } from '../delay-queue.options.js';
import { HandlerExplorer } from '../handlers/handler.explorer.js';
import { HandlerInvoker } from '../handlers/handler.invoker.js';
import type { DiscoveredHandler } from '../handlers/handler.explorer.js';
import type { HandlerOptions } from '../handlers/handler.js';
import { encodePayload } from '../job/codec.js';
import { isQueueDefinition } from '../job/queue-definition.js';
import type { QueueDefinition } from '../job/queue-definition.js';
import type { ProducerShards } from '../producer/producer-shards.js';
import { Company } from './company.js';
import { QueueWorker } from './queue-worker.js';
import { watchForShutdownHooks } from './shutdown-hooks.js';

/** What the runner asks of the application's other instances and features. */
export interface KnownInstances {
  readonly names: ReadonlySet<string>;
  /** Runs one part of the boot and cleans up when it fails. */
  booting<T>(part: () => T | Promise<T>): Promise<T>;
  /** What `forFeature()` says of a queue. */
  definition(instance: string, queue: string): QueueDefinition | undefined;
}

/** Reads as: explore in onModuleInit, start in onApplicationBootstrap, drain in onModuleDestroy. */
export class DelayQueueRunner implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy {
  readonly workers = new Map<string, QueueWorker>();
  readonly #company = new Company<QueueWorker>();
  readonly #logger: Logger;
  #handlers: DiscoveredHandler[] = [];
  #stopShutdownWatch: (() => void) | undefined;
  draining = false;

  constructor(
    readonly options: ResolvedModuleOptions,
    private readonly shards: ProducerShards,
    private readonly instances: KnownInstances,
    private readonly modules: ModulesContainer,
    private readonly application: ApplicationConfig,
  ) {
    this.#logger = new Logger(options.name === 'default' ? 'DelayQueue' : `DelayQueue:${options.name}`);
  }

  async onModuleInit(): Promise<void> {
    await this.instances.booting(() => this.#explore());
  }

  async #explore(): Promise<void> {
    const { options } = this;
    if (options.consume === false) return;
    const invoker = new HandlerInvoker(this.modules, this.application, options.globalEnhancers);
    const { handlers, warnings } = await new HandlerExplorer(this.modules, invoker, {
      instance: options.name,
      instances: this.instances.names,
      validate: (handlerOptions, queue) =>
        void this.#settings(queue, handlerOptions, undefined, (option) => `{ ${option} }`),
    }).explore();
    for (const warning of warnings) this.#logger.warn(warning);
    const described = handlers.length > 0 ? invoker.globals.describe() : undefined;
    if (described) this.#logger.log(described);
    for (const { queue, options: own, definition, name } of handlers) {
      this.shards.learnHandler(queue, this.#settings(queue, own, definition, name).attempts);
    }
    this.#handlers = handlers.filter(({ queue, name }) => {
      const consumed = options.consume === true || (options.consume as readonly string[]).includes(queue);
      if (!consumed) this.#logger.log(`Queue "${queue}" (${name}) is not consumed here: it is not in \`consume\`.`);
      return consumed;
    });
  }

  onApplicationBootstrap(): void {
    for (const handler of this.#handlers) this.#startWorker(handler);
    if (this.#handlers.length > 0) {
      const list = this.#handlers.map(({ queue, name }) => `${queue} (${name})`).join(', ');
      this.#logger.log(`Waiting for jobs of ${list}.`);
    }
    if (this.options.shutdownHooksWarning && this.#handlers.length > 0) {
      this.#stopShutdownWatch = watchForShutdownHooks(this.#logger);
    }
  }

  async onModuleDestroy(): Promise<void> {
    this.draining = true;
    this.#stopShutdownWatch?.();
    await Promise.all([...this.workers.values()].map((worker) => worker.stop(this.options.drainTimeoutMs)));
  }

  #startWorker(handler: DiscoveredHandler): void {
    const { queue, name, options, definition } = handler;
    const settings = this.#settings(queue, options, definition, name);
    const worker = new QueueWorker({
      handler,
      settings,
      store: this.shards.store(queue),
      company: this.#company,
      deadLetters: this.options.deadLetters,
      commandTimeoutMs: this.options.commandTimeoutMs,
      encodePayload: (payload) => encodePayload(payload, { queue, maxBytes: this.options.maxPayloadBytes }),
      contextProvider: this.options.contextProvider,
      schema: this.#definition(queue, definition)?.rules.schema,
      logger: this.#logger,
    });
    this.workers.set(queue, worker);
    this.shards.connection.onWake((shard) => {
      if (shard === undefined || shard === this.shards.store(queue).keys.due) worker.kick();
    });
    this.shards.announce(queue);
    // Subscribed before the first step: what comes between the two would be missed for a whole sleep.
    void this.shards.connection.subscribed().then(() => worker.start());
  }

  #definition(queue: string, given: unknown): QueueDefinition | undefined {
    return isQueueDefinition(given) ? given : this.instances.definition(this.options.name, queue);
  }

  #settings(
    queue: string,
    handlerOptions: HandlerOptions,
    definition: unknown,
    source: string | ((option: string) => string),
  ): ResolvedHandlerSettings {
    return resolveHandlerSettings({
      queue,
      handlerOptions,
      definition: this.#definition(queue, definition),
      module: this.options,
      source,
    });
  }
}
