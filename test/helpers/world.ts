import { randomBytes } from 'node:crypto';
import { Cluster, Redis } from 'ioredis';
import type { ChainableCommander, RedisOptions } from 'ioredis';
import type { DelayQueueRootOptions } from '../../lib/index.js';
import { ShardKeys } from '../../lib/redis/keys.js';
import { MEMORY_SCHEME, MemoryClient } from '../../lib/redis/memory.client.js';
import { digitsOf, groupProblems } from './groups.js';

const ZSETS = [
  'due',
  'running',
  'leases',
  'quarantine',
  'dead',
  'unique',
  'idle',
  'completed',
  'grouped',
  'ring',
  'held',
];
const HASHES = ['jobs', 'followups', 'attempts', 'errors', 'debounce', 'meta', 'history', 'rates'];

/**
 * A prefix of its own on the shared Redis, with a client to look at it and to change what is stored. Where `REDIS_URL` is
 * `memory://` it is a store in memory instead, for the project that runs specs against both. Where `REDIS_CONNECTION` holds a
 * `connection` (of a Cluster, or by Sentinels) as JSON, that is used instead, and `url` is one of its servers.
 */
export class World {
  readonly prefix = `t${randomBytes(6).toString('hex')}`;

  private constructor(
    readonly url: string,
    readonly connection: NonNullable<DelayQueueRootOptions['connection']>,
    readonly redis: Redis,
  ) {}

  static async open(url = process.env['REDIS_URL']!): Promise<World> {
    if (url === MEMORY_SCHEME) url += randomBytes(6).toString('hex');
    const shared = url === process.env['REDIS_URL'];
    const { REDIS_ADMIN_URL, REDIS_CONNECTION } = process.env;
    const connection = shared && REDIS_CONNECTION ? JSON.parse(REDIS_CONNECTION) : url;
    // Tests look at what an application may not: there they have a user of their own.
    const redis = clientOf(shared && REDIS_ADMIN_URL ? REDIS_ADMIN_URL : connection);
    redis.on('error', () => {}); // tests kill servers; what is asked of a dead one rejects all the same
    await redis.connect();
    return new World(url, connection, redis);
  }

  /** Removes every key under the prefix, and the client. */
  async close(): Promise<void> {
    for await (const key of this.#keys(`${this.prefix}:`)) await this.redis.unlink(key);
    this.redis.disconnect();
  }

  key(queue: string, name: string): string {
    return `${this.prefix}:{${queue}}:${name}`;
  }

  /** The server's clock in ms. */
  async now(): Promise<number> {
    const [seconds, micros] = await this.redis.time();
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  }

  /** Moves a waiting job: tests own their time by moving data, never by sleeping. */
  async makeDue(queue: string, id: string, agoMs = 0): Promise<void> {
    const at = (await this.now()) - agoMs;
    const was = await this.redis.zscore(this.key(queue, 'due'), id);
    if (was === null) return;
    const member = `${digitsOf(Number(was))}${id}`;
    const place = await this.redis.zscore(this.key(queue, 'grouped'), member);
    if (place !== null) {
      await this.redis.zrem(this.key(queue, 'grouped'), member);
      await this.redis.zadd(this.key(queue, 'grouped'), place, `${digitsOf(at)}${id}`);
      const base = String(Number(place) - (Number(place) % 16) + 9);
      await this.redis.zadd(this.key(queue, 'ring'), 'LT', String(at), base);
    }
    await this.redis.zadd(this.key(queue, 'due'), 'XX', String(at), id);
    await this.markChanged(queue);
  }

  /** Workers at rest look at the queue: nothing else tells them of what a test has changed by hand. */
  async markChanged(queue: string): Promise<void> {
    await this.redis.set(this.key(queue, 'changed'), `${(await this.now()) * 1_000}`);
  }

  /** Commands that are executed at one moment, as the store in memory executes those of each pipeline. */
  together(): ChainableCommander {
    return this.url.startsWith(MEMORY_SCHEME) ? this.redis.pipeline() : this.redis.multi();
  }

  /** Everything that is stored about one queue but its sessions, in plain values, as it is at one moment. */
  async read(queue: string): Promise<StoredQueue> {
    const ask = (together: ReturnType<typeof this.redis.pipeline>) => {
      for (const name of ZSETS) together.zrange(this.key(queue, name), '0', '-1', 'WITHSCORES');
      for (const name of HASHES) together.hgetall(this.key(queue, name));
      return together.exec();
    };
    const answers = await ask(this.together()).catch((error: Error) => {
      // A server without room takes no transaction, not even one that reads.
      if (!error.message.includes('EXECABORT')) throw error;
      return ask(this.redis.pipeline());
    });
    const replies = answers!.map(([error, reply]) => {
      if (error) throw error;
      return reply as string[] | Record<string, string>;
    });
    const fields = (reply: string[] | Record<string, string>) =>
      Array.isArray(reply) ? Object.fromEntries(pairsOf(reply)) : reply;
    const numbers = (found: Record<string, string>) =>
      Object.fromEntries(Object.entries(found).map(([member, score]) => [member, Number(score)]));
    const names = [...ZSETS, ...HASHES];
    const stored = replies.map((reply, n) => [names[n], n < ZSETS.length ? numbers(fields(reply)) : fields(reply)]);
    return Object.fromEntries(stored) as StoredQueue;
  }

  /** The invariant of the storage: each record in exactly one index, a followup only for a running job. */
  async violations(queue: string): Promise<string[]> {
    return violationsOf(await this.read(queue));
  }

  /** Where the invariant is broken, or a key still holds something about ids or claims that are gone. */
  async problems(queue: string): Promise<string[]> {
    const stored = await this.read(queue);
    const { jobs, dead, attempts, errors, debounce, running, leases } = stored;
    const found = [...violationsOf(stored), ...groupProblems(stored, await this.now()).map(({ what }) => what)];
    for (const [name, map] of Object.entries({ attempts, errors, debounce })) {
      for (const id of Object.keys(map)) if (!(id in jobs) && !(id in dead)) found.push(`${name} still knows ${id}`);
    }
    const claims = new Set(Object.values(running).map(String));
    for (const claim of claims) if (!(claim in leases)) found.push(`claim ${claim} has no lease`);
    for (const claim of Object.keys(leases)) if (!claims.has(claim)) found.push(`lease ${claim} holds nothing`);
    return found;
  }

  /** Names of all keys of a queue, without what they begin with. */
  async keys(queue: string): Promise<string[]> {
    const start = this.key(queue, '');
    const found = new Set<string>();
    for await (const key of this.#keys(start)) found.add(key.slice(start.length));
    return [...found].sort();
  }

  async *#keys(start: string): AsyncGenerator<string> {
    const client = this.redis as Redis | Cluster;
    const servers = client instanceof Cluster ? client.nodes('master') : [client];
    for (const server of servers) {
      for (let cursor = '0'; ;) {
        const [next, keys] = await server.scan(cursor, 'COUNT', 1_000);
        yield* keys.filter((key: string) => key.startsWith(start));
        cursor = next;
        if (cursor === '0') break;
      }
    }
  }

  /** Names of all clients of the server but those that have none, such as this world's own. */
  async clientNames(): Promise<string[]> {
    const list = (await this.redis.client('LIST')) as string;
    return [...list.matchAll(/ name=(\S+)/g)].map(([, name]) => name!).sort();
  }

  shardKeys(queue: string): ShardKeys {
    return new ShardKeys(this.prefix, queue);
  }
}

/** A client that connects when it is told to. */
export function clientOf(connection: World['connection']): Redis {
  if (typeof connection === 'string') {
    if (connection.startsWith(MEMORY_SCHEME)) return new MemoryClient(connection) as unknown as Redis;
    return new Redis(connection, { lazyConnect: true });
  }
  if ('cluster' in connection) {
    return new Cluster(connection.cluster, { lazyConnect: true }) as unknown as Redis;
  }
  return new Redis({ ...(connection as RedisOptions), lazyConnect: true });
}

function violationsOf(stored: StoredQueue): string[] {
  const { due, running, quarantine, dead, jobs, followups, completed, history } = stored;
  const found: string[] = [];
  const ids = new Set([due, running, quarantine, dead, jobs].flatMap((map) => Object.keys(map)));
  for (const id of ids) {
    const indexes = Object.entries({ due, running, quarantine, dead })
      .filter(([, map]) => id in map)
      .map(([name]) => name);
    if (indexes.length !== 1) found.push(`${id} is in ${indexes.join(' and ') || 'no index'}`);
    if (!(id in jobs) && !(id in dead)) found.push(`${id} has no record`);
  }
  for (const id of Object.keys(followups)) if (!(id in running)) found.push(`${id} has a followup and does not run`);
  for (const id of new Set([completed, history].flatMap((map) => Object.keys(map)))) {
    if (!(id in completed && id in history)) found.push(`${id} is completed but half of what was kept is missing`);
    if (ids.has(id)) found.push(`${id} is completed and there`);
  }
  return found;
}

function pairsOf(flat: readonly string[]): [string, string][] {
  return Array.from({ length: flat.length / 2 }, (_, n) => [flat[2 * n]!, flat[2 * n + 1]!]);
}

type Scores = Record<string, number>;
type Texts = Record<string, string>;

export interface StoredQueue {
  grouped: Scores;
  ring: Scores;
  held: Scores;
  rates: Texts;
  due: Scores;
  running: Scores;
  leases: Scores;
  quarantine: Scores;
  dead: Scores;
  unique: Scores;
  idle: Scores;
  jobs: Texts;
  followups: Texts;
  attempts: Texts;
  errors: Texts;
  debounce: Texts;
  meta: Texts;
  completed: Scores;
  history: Texts;
}
