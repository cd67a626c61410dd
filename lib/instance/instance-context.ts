import { InvalidQueueError } from '../delay-queue.errors.js';
import { DelayQueueLogger } from '../delay-queue.logger.js';
import type { ResolvedModuleOptions } from '../delay-queue.options.js';
import type { JobTracer } from '../delay-queue.tracer.js';
import { queueNamesKey } from '../redis/keys.js';
import type { DurabilityRequirement } from '../redis/replication-barrier.js';
import { ShardCheck } from '../shards/shard-check.js';
import type { RedisConnection } from '../redis/redis.connection.js';
import { forget } from '../redis/session.js';
import { isTransient, typedError } from '../redis/redis.errors.js';
import { shardOfJob } from '../shards/shard-hash.js';
import { ShardStore } from '../redis/shard-store.js';
import { QueueNames } from './queue-names.js';
import { SharedDefinitions } from './shared-definitions.js';
import { Payloads } from '../job/payloads.js';
import { groupNumberOf } from '../job/place.js';
import { isQueueDefinition, queueNameOf } from '../job/queue-definition.js';
import type { QueueDefinition, QueueRef } from '../job/queue-definition.js';
import { CompareAndSet } from './compare-and-set.js';
import { InitWatch } from './init-watch.js';
import { DurableBatchers } from '../producer/durable-batchers.js';
import { EnqueueBatcher } from '../producer/enqueue-batcher.js';
import { forgetIdle, MOST_REMEMBERED } from '../producer/forget-idle.js';
import { PayloadWarnings } from './payload-warnings.js';
import { performance } from '../time-and-randomness.js';

const ANNOUNCED_FOR_MS = 60_000;

/** What says in which shard a job is to be, and how it gets there. */
export interface ShardedJob {
  readonly queue: string;
  readonly id: string;
  readonly place?: string | null | undefined;
  readonly demand?: DurabilityRequirement | undefined;
}

interface KnownHandler {
  readonly queue: string;
  readonly name: string;
  readonly definition: unknown;
}

/** The shards that one process of one instance talks to as a producer, made on first use. */
export class InstanceContext {
  readonly payloads: Payloads;
  readonly durable: DurableBatchers;
  readonly changes: CompareAndSet;
  readonly logger: DelayQueueLogger;
  /** Undefined where no job is to run. */
  readonly initWatch: InitWatch | undefined;
  /** Put here by `nestjs-delay-queue/tracing`, before the workers start. */
  tracer: JobTracer | undefined;
  readonly #queues = new Map<string, (EnqueueBatcher | undefined)[]>();
  readonly #stores = new Map<string, readonly ShardStore[]>();
  readonly #openings = new Map<string, ShardCheck>();
  /** Names that were written into the list, and when; monotonic ms. */
  readonly #announced = new Map<string, number>();
  readonly #attempts = new Map<string, number>();
  readonly #names: QueueNames;
  readonly #definitions: SharedDefinitions;

  constructor(
    readonly connection: RedisConnection,
    readonly options: ResolvedModuleOptions,
    /** What `forFeature()` says of a queue that is named by text. */
    readonly definitionOf: (queue: string) => QueueDefinition | undefined,
    /** The queues for which it says something. */
    definedQueues: () => Iterable<string> = () => [],
    handledElsewhere?: ConstructorParameters<typeof QueueNames>[2],
  ) {
    const known = () => [...Object.keys(options.queues), ...this.#attempts.keys(), ...definedQueues()];
    this.#names = new QueueNames(options.name, known, handledElsewhere);
    this.#definitions = new SharedDefinitions(options.name, definitionOf);
    this.payloads = new Payloads(options, new PayloadWarnings());
    this.durable = new DurableBatchers(connection, options, this.payloads);
    this.changes = new CompareAndSet(options.commandTimeoutMs);
    this.logger = DelayQueueLogger.of(options.name);
    this.initWatch = options.consume === false ? undefined : new InitWatch(this.logger);
  }

  /** All shards of a queue. */
  stores(queue: string): readonly ShardStore[] {
    let stores = this.#stores.get(queue);
    if (!stores) {
      stores = this.storesFor(queue, this.options.queues[queue]?.shards ?? 1, this.#opening(queue));
      // A store holds nothing but names, so a caller may go on with one that was forgotten here.
      if (this.#stores.size >= MOST_REMEMBERED) this.#stores.delete(this.#stores.keys().next().value!);
      this.#stores.set(queue, stores);
    }
    return stores;
  }

  /** The same for a number of shards that this process does not use; only to read. */
  storesFor(queue: string, count: number, opening?: ShardCheck): readonly ShardStore[] {
    const { connection, options } = this;
    const onNew = () => {
      this.unannounce(queue);
      this.announce(queue);
    };
    return Array.from(
      { length: count },
      (_, index) => new ShardStore(connection, options.prefix, queue, index, count, opening, onNew),
    );
  }

  /** The shard in which a job of this id is, or would be. @param group number of its group; 0 for none */
  shardOf(queue: string, id: string, group: number): number {
    const count = this.stores(queue).length;
    return count === 1 ? 0 : shardOfJob(id, group, count);
  }

  /**
   * The calls to the shard of a job that is to be stored. Those with a demand go over a connection of their own, and are answered when it is
   * met or the time is up.
   */
  of({ queue, id, place, demand }: ShardedJob): EnqueueBatcher {
    const shard = this.shardOf(queue, id, groupNumberOf(place));
    if (!demand) return this.ofShard(queue, shard);
    this.announce(queue);
    return this.durable.of(this.stores(queue)[shard]!, demand);
  }

  /** An enqueue under this id, or under any, is a new one from now on, not the repeat of one in doubt: what that made is removed. */
  forgetDoubts(queue: string, id?: string): void {
    for (const producer of this.#queues.get(queue) ?? []) producer?.forget(id);
    for (const store of this.stores(queue)) this.durable.forgetDoubts(store, id);
  }

  ofShard(queue: string, index: number): EnqueueBatcher {
    let producers = this.#queues.get(queue);
    if (!producers) {
      forgetIdle(this.#queues, (all) => all.every((producer) => !producer || producer.isIdle));
      this.#queues.set(queue, (producers = []));
    }
    const { options, payloads } = this;
    producers[index] ??= new EnqueueBatcher(this.stores(queue)[index]!, options.commandTimeoutMs, payloads);
    this.announce(queue);
    return producers[index];
  }

  /**
   * Settles how many shards the queues have of which this process says so.
   *
   * @throws ShardCountError, InvalidQueueError. Trouble of Redis is none here: the first use of a queue tries again
   */
  async open(): Promise<void> {
    const openings = Object.keys(this.options.queues).map(async (queue) => {
      try {
        await this.#opening(queue)?.open();
      } catch (error) {
        if (!isTransient(error)) throw typedError(error, `opening the shards of queue "${queue}"`);
      }
    });
    await Promise.all(openings);
  }

  /** Only for a queue whose number of shards this process sets. */
  #opening(queue: string): ShardCheck | undefined {
    const count = this.options.queues[queue]?.shards;
    if (count === undefined) return undefined;
    let opening = this.#openings.get(queue);
    if (!opening) {
      opening = new ShardCheck(this.connection, this.options.prefix, queue, count);
      this.#openings.set(queue, opening);
    }
    return opening;
  }

  /**
   * Writes the name into the list of known queues. It lives in another slot than the queue, so it cannot be part of the
   * enqueue; it only serves operators, is tried again with the next call, and is never a reason to refuse.
   */
  announce(queue: string): void {
    const now = performance.now();
    const announced = this.#announced.get(queue);
    // Written again from time to time, although scripts report a new queue: the list of names may be lost by itself.
    if (announced !== undefined && now - announced < ANNOUNCED_FOR_MS) return;
    if (announced === undefined && this.#announced.size >= MOST_REMEMBERED) this.#announced.clear();
    this.#announced.set(queue, now);
    this.initWatch?.sends(queue);
    const { commands } = this.connection;
    const names = queueNamesKey(this.options.prefix);
    this.connection.send(() => commands.sadd(names, queue), names).catch(() => this.#announced.delete(queue));
  }

  /** Its name is no longer in the list. */
  unannounce(queue: string): void {
    this.#announced.delete(queue);
  }

  /** A handler of this process knows better than the module options. */
  learnHandler({ queue, definition, name }: KnownHandler, attempts: number): void {
    this.#attempts.set(queue, attempts);
    if (isQueueDefinition(definition)) this.#definitions.look(definition, name);
  }

  /**
   * @returns the checked name
   * @throws InvalidQueueError also, with `strictQueues`, for a name that is not declared
   */
  nameOf(queue: QueueRef, field: string): string {
    // What was announced was checked before.
    if (typeof queue === 'string' && !this.options.strictQueues && this.#announced.has(queue)) return queue;
    const name = queueNameOf(queue, field);
    const { strictQueues, queues } = this.options;
    if (field === 'enqueue(queue)') {
      if (!(name in queues)) this.#names.lookElsewhere(name, field);
      if (isQueueDefinition(queue)) this.#definitions.look(queue, field);
    }
    if (isQueueDefinition(queue) || name in queues || this.#attempts.has(name) || this.definitionOf(name)) return name;
    if (!strictQueues) {
      this.#names.look(name, field);
      return name;
    }
    const near = this.#names.near(name);
    throw new InvalidQueueError(
      `${field}: "${name}" is neither handled here, nor a definition, nor listed in forRoot({ queues }), which strictQueues asks for.` +
        (near === undefined ? '' : ` Is it "${near}"?`),
    );
  }

  /**
   * Runs that a job of this queue gets when it does not say otherwise, as far as this process knows: by its handler,
   * else by what the application says of the queue, or of all queues. Undefined when it says nothing: the handler of
   * another process may.
   */
  attemptsOf(ref: QueueRef): number | undefined {
    const queue = queueNameOf(ref);
    const definition = isQueueDefinition(ref) ? ref : this.definitionOf(queue);
    const { queues, statedAttempts } = this.options;
    return this.#attempts.get(queue) ?? queues[queue]?.attempts ?? definition?.defaults.attempts ?? statedAttempts;
  }

  async close(ms: number): Promise<void> {
    this.initWatch?.end();
    const producers = [...this.#queues.values()].flat().filter((producer) => producer !== undefined);
    await Promise.all([this.durable.close(ms), ...producers.map((producer) => producer.close(ms))]);
    await Promise.all(producers.map(({ sessions }) => forget(this.connection, sessions).catch(() => undefined)));
  }
}
