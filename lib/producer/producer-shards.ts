import { InvalidQueueError } from '../delay-queue.errors.js';
import type { ResolvedModuleOptions } from '../delay-queue.options.js';
import { queueNamesKey } from '../redis/keys.js';
import type { Demand } from '../redis/barrier.js';
import type { RedisConnection } from '../redis/redis.connection.js';
import { ShardStore } from '../redis/shard.store.js';
import { Payloads } from '../job/payloads.js';
import { isQueueDefinition, queueNameOf } from '../job/queue-definition.js';
import type { QueueDefinition, QueueRef } from '../job/queue-definition.js';
import { DurableQueues } from './durable-queues.js';
import { ProducerQueue } from './producer-queue.js';

/** The shards that one process of one instance talks to as a producer, made on first use. */
export class ProducerShards {
  readonly payloads: Payloads;
  readonly durable: DurableQueues;
  readonly #queues = new Map<string, ProducerQueue>();
  readonly #stores = new Map<string, ShardStore>();
  readonly #announced = new Set<string>();
  readonly #attempts = new Map<string, number>();

  constructor(
    readonly connection: RedisConnection,
    readonly options: ResolvedModuleOptions,
    /** What `forFeature()` says of a queue that is named by text. */
    readonly definitionOf: (queue: string) => QueueDefinition | undefined,
  ) {
    this.payloads = new Payloads(options);
    this.durable = new DurableQueues(connection, options);
  }

  store(queue: string): ShardStore {
    let store = this.#stores.get(queue);
    if (!store) {
      store = new ShardStore(this.connection, this.options.prefix, queue);
      this.#stores.set(queue, store);
    }
    return store;
  }

  /** @param demand sends over a connection of its own, and answers when it is met or the time is up */
  of(queue: string, demand?: Demand): ProducerQueue {
    if (demand) {
      this.announce(queue);
      return this.durable.of(this.store(queue), demand);
    }
    let producer = this.#queues.get(queue);
    if (!producer) {
      producer = new ProducerQueue(this.store(queue), this.options.commandTimeoutMs);
      this.#queues.set(queue, producer);
    }
    this.announce(queue);
    return producer;
  }

  /**
   * Writes the name into the list of known queues. It lives in another slot than the queue, so it cannot be part of the
   * enqueue; it serves people who look, is tried again with the next call, and is never a reason to refuse.
   */
  announce(queue: string): void {
    if (this.#announced.has(queue)) return;
    this.#announced.add(queue);
    const { commands } = this.connection;
    this.connection
      .send(() => commands.sadd(queueNamesKey(this.options.prefix), queue))
      .catch(() => this.#announced.delete(queue));
  }

  /** A handler of this process knows better than the module options. */
  learnHandler(queue: string, attempts: number): void {
    this.#attempts.set(queue, attempts);
  }

  /**
   * @returns the checked name
   * @throws InvalidQueueError also for a name that nobody declared, with `strictQueues`
   */
  nameOf(queue: QueueRef, field: string): string {
    const name = queueNameOf(queue, field);
    const { strictQueues, queues } = this.options;
    if (
      !strictQueues ||
      isQueueDefinition(queue) ||
      name in queues ||
      this.#attempts.has(name) ||
      this.definitionOf(name)
    )
      return name;
    throw new InvalidQueueError(
      `${field}: "${name}" is neither handled here, nor a definition, nor listed in forRoot({ queues }), which strictQueues asks for.`,
    );
  }

  /** Runs that a job of this queue gets when it does not say otherwise, as far as this process knows. */
  attemptsOf(queue: string): number {
    return this.#attempts.get(queue) ?? this.options.queues[queue]?.attempts ?? this.options.defaults.attempts;
  }

  async close(ms: number): Promise<void> {
    const queues = [...this.#queues];
    await Promise.all([this.durable.close(ms), ...queues.map(([, producer]) => producer.close(ms))]);
    const { commands } = this.connection;
    await Promise.all(
      queues.map(([, producer]) =>
        this.connection.send(() => commands.unlink(...producer.laneKeys)).catch(() => undefined),
      ),
    );
  }
}
