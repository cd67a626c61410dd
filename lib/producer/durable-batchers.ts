import { UnsafeServerError } from '../delay-queue.errors.js';
import type { ResolvedModuleOptions } from '../delay-queue.options.js';
import { ReplicationBarrier } from '../redis/replication-barrier.js';
import type { DurabilityRequirement } from '../redis/replication-barrier.js';
import type { ShardKeys } from '../redis/keys.js';
import { forget } from '../redis/session.js';
import { isTransient, NoAnswerError } from '../redis/redis.errors.js';
import { RedisConnection } from '../redis/redis.connection.js';
import { fsyncProblem, readServerFacts } from '../redis/server-check.js';
import type { ShardStore } from '../redis/shard-store.js';
import { performance } from '../time-and-randomness.js';
import type { PayloadReader } from './doubtful-jobs.js';
import { EnqueueBatcher } from './enqueue-batcher.js';
import { forgetIdle, MOST_REMEMBERED } from './forget-idle.js';

/**
 * The way of jobs that must be durable before their call is answered. Over a connection of their own, opened for the
 * first of them: WAIT holds up the connection that it is sent on, and a worker's steps must not stand behind it.
 */
export class DurableBatchers {
  readonly #queues = new Map<string, EnqueueBatcher>();
  /** The latest ones, to be cleaned up. */
  readonly #keys = new Set<string>();
  #connection: RedisConnection | undefined;
  #barrier: ReplicationBarrier | undefined;
  /** Asked once; a server that may be better tomorrow is asked each time. */
  #fsyncs = false;
  #closed = false;

  constructor(
    private readonly main: RedisConnection,
    private readonly options: ResolvedModuleOptions,
    private readonly payloads: PayloadReader,
  ) {}

  /** Once a call has asked for durability. */
  get connection(): RedisConnection | undefined {
    return this.#connection;
  }

  /** Why a wait could not be done at all, if that is why it was in vain. */
  get problem(): unknown {
    return this.#barrier?.problem;
  }

  /** Jobs of one shard that ask for the same. */
  of(store: ShardStore, demand: DurabilityRequirement): EnqueueBatcher {
    const name = `${demand.replicas} ${demand.timeoutMs} ${store.keys.due}`;
    let queue = this.#queues.get(name);
    if (!queue) {
      forgetIdle(this.#queues, ({ isIdle }) => isIdle);
      const connection = this.#open();
      const durable = store.over(connection);
      const key = this.#keyOf(durable.keys);
      const barrier = this.#barrier!;
      queue = new EnqueueBatcher(durable, this.options.commandTimeoutMs + demand.timeoutMs, this.payloads, {
        link: () => barrier.link(key),
        wait: (link) => barrier.wait(link, key, demand),
      });
      this.#queues.set(name, queue);
    }
    return queue;
  }

  /**
   * Writes something else to a shard over this connection; once more where that has changed meanwhile, or was only made by the write.
   *
   * @param write may have taken effect when this fails
   * @returns how many replicas have it; of the append-only file 1 or 0
   * @throws errors of the connection
   */
  async write(
    keys: ShardKeys,
    demand: DurabilityRequirement,
    write: (over: RedisConnection) => Promise<unknown>,
  ): Promise<number> {
    const connection = this.#open();
    const key = this.#keyOf(keys);
    const until = performance.now() + this.options.commandTimeoutMs;
    for (;;) {
      await connection.whenReady();
      const link = this.#barrier!.link(key);
      await write(connection);
      try {
        return await this.#barrier!.wait(link, key, demand);
      } catch (error) {
        if (!(error instanceof NoAnswerError) || performance.now() >= until) throw error;
      }
    }
  }

  /** See `ProducerShards.forgetDoubts`. */
  forgetDoubts({ keys }: ShardStore, id?: string): void {
    for (const [name, queue] of this.#queues) if (name.endsWith(` ${keys.due}`)) queue.forget(id);
  }

  /**
   * Refuses a durability that the server cannot give, before anything is sent.
   *
   * @throws UnsafeServerError
   */
  async assertPossible({ replicas }: DurabilityRequirement): Promise<void> {
    if (replicas > 0 || this.#fsyncs || this.main.isInMemory) return;
    try {
      const problem = fsyncProblem(await readServerFacts(this.main));
      if (problem) throw new UnsafeServerError(`Redis at ${this.main.address} ${problem} Nothing was sent.`);
      this.#fsyncs = true;
    } catch (error) {
      if (error instanceof UnsafeServerError) throw error;
      // Without a connection, or a permission for INFO: the server's answer will tell.
      this.#fsyncs = !isTransient(error);
    }
  }

  async close(ms: number): Promise<void> {
    const connection = this.#connection;
    if (connection) {
      const queues = [...this.#queues.values()];
      await Promise.all(queues.map((queue) => queue.close(ms)));
      const { main } = this;
      await Promise.all([
        ...[...this.#keys].map((key) => main.send(() => main.commands.unlink(key), key).catch(() => undefined)),
        ...queues.map(({ sessions }) => forget(main, sessions).catch(() => undefined)),
      ]);
    }
    this.disconnect();
  }

  disconnect(): void {
    this.#closed = true;
    this.#connection?.close();
  }

  /** It goes away by itself as a session does, and must be none: those are numbered in digits and small letters. */
  #keyOf(keys: ShardKeys): string {
    const key = keys.session(`${this.#connection!.processName}.WAIT`);
    if (this.#keys.size >= MOST_REMEMBERED) this.#keys.delete(this.#keys.values().next().value!);
    this.#keys.add(key);
    return key;
  }

  #open(): RedisConnection {
    if (!this.#connection) {
      // A call stands behind one WAIT at most, which lasts no longer than a command may take.
      const commandTimeoutMs = this.options.commandTimeoutMs * 2;
      this.#connection = new RedisConnection({ ...this.options, commandTimeoutMs }, this.main);
      this.#barrier = new ReplicationBarrier(this.#connection);
      if (this.#closed) this.#connection.close();
    }
    return this.#connection;
  }
}
