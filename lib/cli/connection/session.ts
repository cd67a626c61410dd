import type { DelayQueueModuleOptions, ResolvedModuleOptions } from '../../delay-queue.options.js';
import { resolveModuleOptions } from '../../delay-queue.options.js';
import { serverTime } from '../../history/server-time.js';
import { DelayQueueInspector } from '../../inspection/delay-queue.inspector.js';
import { InstanceContext } from '../../instance/instance-context.js';
import { assertQueueName } from '../../job/queue-name.js';
import { DelayQueueProducer } from '../../producer/delay-queue.producer.js';
import { queueNamesKey } from '../../redis/keys.js';
import { locationOf } from '../../redis/redis.client.js';
import { RedisConnection } from '../../redis/redis.connection.js';
import { typedError } from '../../redis/redis.errors.js';
import { ShardMarks } from '../../shards/shard-marks.js';
import { countIn } from '../../shards/shard-state.js';
import { notFound } from '../exit-codes.js';
import { inWordsOfTheCommand } from './in-words-of-the-command.js';

const INSTANCE = 'cli';

/** Queues whose number of shards is asked for at once. */
const AT_ONCE = 50;

function connectionOf(options: DelayQueueModuleOptions): [ResolvedModuleOptions, RedisConnection] {
  try {
    const resolved = resolveModuleOptions(options, INSTANCE);
    return [resolved, new RedisConnection(resolved)];
  } catch (error) {
    throw inWordsOfTheCommand(error, '--redis');
  }
}

/** The library on one server, beneath Nest and without workers. It knows how many shards each queue has that a command names. */
export class Session {
  readonly producer: DelayQueueProducer;
  readonly inspector: DelayQueueInspector;

  private constructor(
    readonly context: InstanceContext,
    /** Of all queues that were ever used. */
    readonly names: readonly string[],
    private readonly given: DelayQueueModuleOptions,
  ) {
    this.producer = new DelayQueueProducer(context);
    this.inspector = new DelayQueueInspector(context);
  }

  /**
   * @param queues what the command is about; undefined for all
   */
  static async open(options: DelayQueueModuleOptions, queues: readonly string[] | undefined): Promise<Session> {
    for (const queue of queues ?? []) assertQueueName(queue, 'queue');
    const [resolved, connection] = connectionOf(options);
    try {
      await connection.open(true);
      return await Session.#over(connection, options, resolved.prefix, queues);
    } catch (error) {
      connection.close();
      throw inWordsOfTheCommand(typedError(error, 'looking at the queues'), '--redis');
    }
  }

  static async #over(
    connection: RedisConnection,
    options: DelayQueueModuleOptions,
    prefix: string,
    queues: readonly string[] | undefined,
  ): Promise<Session> {
    const key = queueNamesKey(prefix);
    const names = (await connection.send(() => connection.commands.smembers(key), key)).toSorted();
    const shards = await shardsOf(connection, prefix, queues ?? names);
    const settings = { ...options.queues };
    for (const [queue, count] of shards) settings[queue] = { ...settings[queue], shards: count };
    const complete = resolveModuleOptions({ ...options, queues: settings }, INSTANCE);
    return new Session(new InstanceContext(connection, complete, () => undefined), names, options);
  }

  /** All queues over the same connection as they are now. What was begun with this session goes on. */
  again(): Promise<Session> {
    const { connection, options } = this.context;
    return Session.#over(connection, this.given, options.prefix, undefined);
  }

  /** The address of the server, and the database. */
  get location(): string {
    return locationOf(this.context.connection.commands);
  }

  /** By the clock of Redis, ms. */
  now(): Promise<number> {
    return serverTime(this.context.connection);
  }

  /** @throws CommandError for a queue that nobody has ever used: a slip of the pen would make it */
  known(queue: string): void {
    if (this.names.includes(queue)) return;
    const { prefix } = this.context.options;
    const others =
      this.names.length === 0
        ? 'There is none.'
        : `There are: ${this.names.slice(0, 10).join(', ')}${this.names.length > 10 ? ', ...' : ''}.`;
    throw notFound(`No queue "${queue}" was ever used under the prefix "${prefix}". ${others}`);
  }

  async close(): Promise<void> {
    await this.context.close(1_000);
    this.context.connection.close();
  }
}

/**
 * How many shards the queues have, as Redis says: a process without their options would take them for queues in one piece. What
 * cannot be read, or is being changed, shows itself when the queue is used.
 */
async function shardsOf(connection: RedisConnection, prefix: string, queues: readonly string[]) {
  const counts = new Map<string, number>();
  for (let at = 0; at < queues.length; at += AT_ONCE) {
    const asked = queues.slice(at, at + AT_ONCE).map(async (queue) => {
      const [needs] = await new ShardMarks(connection, prefix, queue).meta(['needs']).catch(() => [null]);
      const count = countIn(needs) ?? 1;
      if (count > 1) counts.set(queue, count);
    });
    await Promise.all(asked);
  }
  return counts;
}
