import type { OnApplicationBootstrap, OnModuleDestroy, OnModuleInit } from '@nestjs/common';
import { DelayQueueLogger } from '../delay-queue.logger.js';
import { resolveHandlerSettings } from '../handlers/handler-settings.js';
import type { ResolvedModuleOptions } from '../delay-queue.options.js';
import type { ResolvedHandlerSettings } from '../handlers/handler-settings.js';
import {
  ConnectionError,
  InvalidOptionError,
  InvalidQueueError,
  LayoutError,
  ShardCountError,
} from '../delay-queue.errors.js';
import { HandlerRegistry } from '../handlers/handler.registry.js';
import type { HandlerDiscovery } from '../handlers/in-application.js';
import type { DiscoveredHandler } from '../handlers/handler.explorer.js';
import type { HandlerOptions } from '../handlers/handler.js';
import { MAX_TIMER_MS, readable } from '../job/duration.js';
import { isQueueDefinition } from '../job/queue-definition.js';
import type { QueueDefinition } from '../job/queue-definition.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { locationOf } from '../redis/redis.client.js';
import { typedError } from '../redis/redis.errors.js';
import { wallClock } from '../time-and-randomness.js';
import { Tickers } from '../recurring/tickers.js';
import { FleetEventsOfQueues } from './fleet-events.js';
import { misspeltQueues } from './misspelt-queues.js';
import type { Probe } from './probe.js';
import { IsolationGate } from './isolation/isolation-gate.js';
import { processGate } from './isolation/process-gate.js';
import { QueueWorker } from './queue-worker.js';
import { RestWatch } from '../redis/rest-watch.js';
import { setLimits } from './set-limits.js';
import type { ShardWorker } from './shard-worker.js';
import { watchForShutdownHooks } from './shutdown-hooks.js';

/** What the runner needs from the application's other instances and features. */
export interface KnownInstances {
  /** Runs one part of the boot and cleans up when it fails. */
  booting<T>(part: () => T | Promise<T>): Promise<T>;
  /** The definition of a queue from `forFeature()`. */
  definition(instance: string, queue: string): QueueDefinition | undefined;
  definedQueues(instance: string): Iterable<string>;
}

const REFUSED_AT_BOOT = [ConnectionError, LayoutError, ShardCountError, InvalidQueueError];

/** A process may pull from a queue per customer, and their names must not fill its memory. */
const MOST_PULLED = 200;

/** Reads as: explore in onModuleInit, start in onApplicationBootstrap, drain in onModuleDestroy. */
export class DelayQueueRunner implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy {
  readonly handlers = new HandlerRegistry();
  readonly workers = new Map<string, QueueWorker>();
  /** In pull mode. */
  readonly pullers: QueueWorker[] = [];
  /** Queues that were pulled from here, the latest ones last, even if no `pull()` waits now. */
  readonly pulled = new Set<string>();
  readonly probe: Probe = {};
  /** They make the occurrences of recurring jobs. */
  readonly tickers: Tickers;
  readonly #leaving = new Set<QueueWorker>();
  /** By queue: what sets the limits of this process. */
  readonly #limits = new Map<string, () => Promise<unknown>>();
  readonly #ignoreWakes = new Map<QueueWorker, () => void>();
  readonly #pullAgain = new WeakMap<QueueWorker, () => void>();
  /** Of the process. */
  readonly gate: IsolationGate;
  readonly #logger: DelayQueueLogger;
  readonly #rest: RestWatch;
  readonly #fleet: FleetEventsOfQueues;
  #booted = false;
  #stopShutdownWatch: (() => void) | undefined;
  readonly #whenDraining = new Set<() => void>();
  draining = false;

  constructor(
    readonly options: ResolvedModuleOptions,
    readonly shards: InstanceContext,
    private readonly instances: KnownInstances,
    private readonly discover: HandlerDiscovery,
  ) {
    // A store in memory does not outlive the process, so in a test each instance may stand for a process.
    this.gate = shards.connection.isInMemory ? new IsolationGate() : processGate();
    this.#logger = DelayQueueLogger.of(options.name);
    this.#rest = new RestWatch(shards.connection, this.#logger);
    this.tickers = new Tickers(shards, this.#logger, this.#rest);
    this.#fleet = new FleetEventsOfQueues(shards.connection, options, this.#logger);
  }

  async onModuleInit(): Promise<void> {
    await this.instances.booting(() => this.#explore());
  }

  async #explore(): Promise<void> {
    const { handlers, warnings, enhancers, left } = await this.discover(
      (own, queue) => void this.#settings(queue, own, undefined, (option) => `{ ${option} }`),
    );
    if (left && left.length > 0)
      this.#logger.log(`Not consumed here, because \`consume\` is false: ${left.join(', ')}.`);
    if (this.options.consume === false) return;
    const misspelt = misspeltQueues(this.options, handlers, this.instances.definedQueues(this.options.name));
    for (const warning of [...warnings, ...misspelt]) this.#logger.warn(warning);
    if (enhancers) this.#logger.log(enhancers);
    for (const handler of handlers) {
      const { queue, options: own, definition, name } = handler;
      this.shards.learnHandler(handler, this.#settings(queue, own, definition, name).attempts);
    }
    for (const handler of handlers) await this.tickers.check(handler);
    await this.#refuseOtherLayouts(handlers);
    for (const handler of handlers) {
      if (this.#consumes(handler.queue)) this.handlers.add(handler);
      else
        this.#logger.log(`Queue "${handler.queue}" (${handler.name}) is not consumed here: it is not in \`consume\`.`);
    }
  }

  onApplicationBootstrap(): void {
    // Closed while it booted: Nest goes on with the hooks of the boot all the same.
    if (this.draining) return;
    this.#booted = true;
    const handlers = this.handlers.all() as DiscoveredHandler[];
    for (const handler of handlers) this.#startWorker(handler);
    if (handlers.length === 0) return;
    const list = handlers.map(({ queue, name }) => `${queue} (${name})`).join(', ');
    const { connection, options } = this.shards;
    this.#logger.log(`Waiting for jobs of ${list} at ${locationOf(connection.commands)}, prefix "${options.prefix}".`);
    if (this.options.shutdownHooksWarning) this.#stopShutdownWatch = watchForShutdownHooks(this.#logger);
  }

  /** @throws DuplicateHandlerError, InvalidOptionError, InvalidDelayError */
  add(handler: DiscoveredHandler): void {
    const { queue, name, options, definition } = handler;
    if (!this.#consumes(queue) || this.draining) {
      const why = this.draining ? 'the process is shutting down' : '`consume` of forRoot() excludes it';
      throw new InvalidOptionError(`register("${queue}"): this process does not consume the queue, because ${why}.`);
    }
    const settings = this.#settings(
      queue,
      options,
      definition,
      (option) => `register("${queue}", ${name}, { ${option} })`,
    );
    this.tickers.refuse(handler);
    this.handlers.add(handler);
    this.shards.learnHandler(handler, settings.attempts);
    if (this.#booted) this.#startWorker(handler);
  }

  /** @returns true once the handlers of the queue that ran have ended; false when there was none */
  async remove(queue: string): Promise<boolean> {
    if (!this.handlers.remove(queue)) return false;
    this.tickers.stop(queue);
    if (this.#isPulled(queue)) {
      // Its schedules go on, and say nothing of a handler any more.
      const nobody = { queue, name: queue, options: {}, definition: undefined };
      this.tickers.start(nobody, false, this.#limitsOf(queue));
    } else {
      this.#limits.delete(queue);
    }
    const worker = this.workers.get(queue);
    this.workers.delete(queue);
    if (!worker) return true;
    this.#deafen(worker);
    this.#leaving.add(worker);
    await worker.stop(MAX_TIMER_MS);
    this.#leaving.delete(worker);
    return true;
  }

  /**
   * A queue that a newer library wrote, or that has another number of shards, is refused at boot, where an operator
   * notices. This needs the connection: with `connect: 'lazy'` the first step refuses.
   *
   * @throws LayoutError, ShardCountError, InvalidQueueError, ConnectionError
   */
  async #refuseOtherLayouts(handlers: readonly DiscoveredHandler[]): Promise<void> {
    if (!this.shards.connection.isReady) return;
    const queues = handlers.map(({ queue }) => queue).filter((queue) => this.#consumes(queue));
    const stores = queues.flatMap((queue) => this.shards.stores(queue));
    const looks = stores.map((store) =>
      store.call('counts', []).catch((error: unknown) => {
        const typed = typedError(error, `queue "${store.queue}"`);
        if (REFUSED_AT_BOOT.some((type) => typed instanceof type)) throw typed;
      }),
    );
    await Promise.all(looks);
  }

  #consumes(queue: string): boolean {
    const { consume } = this.options;
    return typeof consume === 'boolean' ? consume : consume.includes(queue);
  }

  async onModuleDestroy(): Promise<void> {
    this.draining = this.shards.connection.isEnding = true;
    this.#stopShutdownWatch?.();
    for (const listener of this.#whenDraining) listener();
    const workers = [...this.workers.values(), ...this.#leaving, ...this.pullers];
    const drainTimeoutMs = Math.min(this.options.drainTimeoutMs, this.probe.drainMs ?? Infinity);
    const running = perQueue(workers, ({ running: count }) => count);
    if (running.total > 0) {
      const until = new Date(wallClock() + drainTimeoutMs).toISOString();
      this.#logger.log(
        `Shutting down: waiting for ${count(running.total, 'handler')} ${running.list}, until ${until} (${readable(drainTimeoutMs)}).`,
      );
    }
    await Promise.all([this.tickers.stopAll(), ...workers.map((worker) => worker.stop(drainTimeoutMs))]);
    await this.#fleet.close();
    const handedBack = perQueue(workers, (worker) => worker.handedBack);
    if (handedBack.total > 0) {
      const jobs = count(handedBack.total, 'job');
      this.#logger.warn(
        `Shutting down: ${jobs} handed back, no attempt used, because the handlers had not ended in time ${handedBack.list}.`,
      );
    }
  }

  /** For health: a process that pulls a queue consumes it, although between two pulls no job of it runs here. */
  notePull(queue: string): void {
    this.pulled.delete(queue);
    this.pulled.add(queue);
    if (this.pulled.size > MOST_PULLED) this.pulled.delete(this.pulled.values().next().value!);
  }

  /** Calls back when the application begins to close. @returns ends that */
  onDrain(listener: () => void): () => void {
    this.#whenDraining.add(listener);
    return () => this.#whenDraining.delete(listener);
  }

  /** A worker in pull mode: it claims nothing until its concurrency is raised. @param workWith called with each new one */
  addPuller(handler: DiscoveredHandler, heartbeats: boolean, workWith: (worker: QueueWorker) => void): void {
    const worker = this.#makeWorker(handler, heartbeats, true);
    this.tickers.start(handler, false, this.#limitsOf(handler.queue));
    worker.concurrency = 0;
    this.pullers.push(worker);
    this.#pullAgain.set(worker, () => this.addPuller(handler, heartbeats, workWith));
    workWith(worker);
  }

  /** A worker that is no longer needed leaves its shards, as at shutdown. */
  removePuller(worker: QueueWorker): void {
    const at = this.pullers.indexOf(worker);
    if (at < 0) return;
    this.pullers.splice(at, 1);
    const { queue } = worker;
    if (!this.workers.has(queue) && !this.#isPulled(queue)) {
      this.tickers.stop(queue);
      this.#limits.delete(queue);
    }
    this.#deafen(worker);
    this.#leaving.add(worker);
    void worker.stop(MAX_TIMER_MS).finally(() => this.#leaving.delete(worker));
  }

  #isPulled(queue: string): boolean {
    return this.pullers.some((puller) => puller.queue === queue);
  }

  /** Ends all workers as `end` says, and puts new ones in their place. */
  replaceWorkers(end: (shard: ShardWorker) => void): void {
    const pullers = this.pullers.splice(0);
    for (const worker of [...this.workers.values(), ...pullers]) {
      this.#deafen(worker);
      for (const shard of worker.shards) end(shard);
    }
    for (const handler of this.handlers.all() as DiscoveredHandler[]) this.#startWorker(handler);
    for (const worker of pullers) this.#pullAgain.get(worker)!();
  }

  #deafen(worker: QueueWorker): void {
    this.#ignoreWakes.get(worker)?.();
    this.#ignoreWakes.delete(worker);
  }

  #startWorker(handler: DiscoveredHandler): void {
    this.workers.set(handler.queue, this.#makeWorker(handler, true, false));
    this.tickers.start(handler, true, this.#limitsOf(handler.queue));
  }

  #makeWorker(handler: DiscoveredHandler, heartbeats: boolean, pulls: boolean): QueueWorker {
    const { queue, name, options, definition } = handler;
    const settings = this.#settings(queue, options, definition, name);
    const stores = this.shards.stores(queue);
    const worker = new QueueWorker({
      heartbeats,
      // Who pulls jobs, or takes a batch of them, says how many. Of shards that share their slots, the one that has waited longest is next.
      prefetch: settings.prefetch && !pulls && !settings.batch && stores.length === 1,
      handler,
      settings,
      stores,
      gate: this.gate,
      rest: this.#rest,
      deadLetters: this.options.deadLetters,
      commandTimeoutMs: this.options.commandTimeoutMs,
      payloads: this.shards.payloads,
      contextProvider: this.options.contextProvider,
      tracer: this.shards.tracer,
      fleet: this.#fleet.of(queue),
      schema: this.#definition(queue, definition)?.rules.schema,
      probe: this.probe,
      logger: this.#logger,
    });
    const ignoreWakes = this.shards.connection.onWake((shard) => {
      if (shard === undefined) this.shards.announce(queue); // Perhaps the first time that Redis can be reached.
      worker.wake(shard);
    });
    this.#ignoreWakes.set(worker, ignoreWakes);
    this.shards.announce(queue);
    // Subscribed before the first step: a wake-up between the two would be missed for a whole sleep.
    // And limits are set before it, or the first claims would exceed them.
    const { limits } = settings;
    const isOver = () => this.draining || this.shards.connection.isClosed;
    // Of a worker that has gone, or where others were said since, a try that waits for Redis would set them back.
    const set = async (isPast: () => boolean) =>
      limits && setLimits(stores, limits, this.#logger, () => isOver() || isPast());
    const again = () => set(() => this.#limits.get(queue) !== again);
    if (limits) this.#limits.set(queue, again);
    void this.shards.connection
      .subscribed()
      .then(() => set(() => !this.#ignoreWakes.has(worker)))
      .then(() => worker.start());
    return worker;
  }

  /** Sets the limits of a queue again. */
  #limitsOf(queue: string): () => void {
    return () => void this.#limits.get(queue)?.();
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

const MOST_QUEUES_NAMED = 10;

/** How many in all, and of which queues: `(a 2, b 1)`. */
function perQueue(workers: readonly QueueWorker[], of: (worker: QueueWorker) => number) {
  const counts = new Map<string, number>();
  let total = 0;
  for (const worker of workers) {
    const found = of(worker);
    if (found > 0) counts.set(worker.queue, (counts.get(worker.queue) ?? 0) + found);
    total += found;
  }
  const named = Array.from(counts, ([queue, found]) => `"${queue}" ${found}`).slice(0, MOST_QUEUES_NAMED);
  return { total, list: `(${named.join(', ')}${counts.size > named.length ? ', ...' : ''})` };
}

function count(total: number, what: string): string {
  return `${total} ${what}${total === 1 ? '' : 's'}`;
}
