import type { EventEmitter } from 'node:events';
import { Cluster, Redis } from 'ioredis';
import type { ClusterNode, ClusterOptions, RedisOptions } from 'ioredis';
import { InvalidOptionError } from '../delay-queue.errors.js';
import { cutShort, quoted } from '../job/duration.js';
import { isPlainObject } from '../job/option-rules.js';
import { random } from '../time-and-randomness.js';
import { shownNumber } from './connection-option.js';
import type { ConnectionOption } from './connection-option.js';
import { slotOf } from './keys.js';
import { MEMORY_SCHEME, MemoryClient } from './memory.client.js';
import { NoAnswerError, unknownCommand } from './redis.errors.js';

export type RedisClient = Redis | Cluster;

// Calls are resent by their sessions, which know what was answered; a driver that resends by itself would do it behind their
// back. For the same reason nothing is queued while offline: a call is either sent now or certainly not sent.
// Options of the application that would change what our calls mean are overridden: a `commandTimeout` of the driver would
// reject a call that a session still resends, `stringNumbers` would turn the numbers in answers into text.
const OURS: RedisOptions = {
  commandTimeout: undefined,
  socketTimeout: undefined,
  blockingTimeout: undefined,
  stringNumbers: false,
  enableAutoPipelining: false,
  readOnly: false,
  monitor: false,
  connectTimeout: 5_000,
  disconnectTimeout: 500,
  keepAlive: 10_000,
};

/** Sentinels keep what they are asked in memory. */
const SENTINEL_ANSWER_MS = 2_000;

function settings(name: string): RedisOptions {
  return {
    ...OURS,
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: null,
    connectionName: name,
    retryStrategy: (times: number) => Math.min(50 * 2 ** Math.min(times - 1, 10), 2_000) * (0.75 + random() / 2),
  };
}

function clusterSettings(name: string, redisOptions: RedisOptions = {}): ClusterOptions {
  return {
    lazyConnect: true,
    enableOfflineQueue: false,
    enableAutoPipelining: false,
    autoResubscribe: false,
    // A replica may be behind.
    scaleReads: 'master',
    // A node that comes back under its address may be another server: what waited for the old one must fail with it.
    clusterNodeRetryStrategy: null,
    clusterRetryStrategy: (times: number) => Math.min(50 * 2 ** Math.min(times - 1, 10), 2_000),
    redisOptions: { ...redisOptions, ...OURS, autoResendUnfulfilledCommands: false, connectionName: name },
  } as ClusterOptions;
}

interface Duplicable {
  duplicate(...args: unknown[]): RedisClient;
  isCluster?: boolean;
  options: { redisOptions?: RedisOptions };
}

/**
 * A client of our own for one connection option. The instance of a user is duplicated, never used and never closed.
 *
 * @param instance the name of the `forRoot()`
 */
export function createClient(connection: ConnectionOption, instance: string, role: string): RedisClient {
  const name = `dq:${instance}:${role}`;
  if (typeof connection === 'string') {
    if (connection.startsWith(MEMORY_SCHEME)) return new MemoryClient(connection, instance) as unknown as RedisClient;
    refuseDatabase(pathOf(connection));
    refuseDatabase(new URL(connection).searchParams.get('db') ?? undefined);
    const client = new Redis(connection, settings(name));
    // In ioredis the query of a URL overrides the options given with it.
    Object.assign(client.options, settings(name));
    return client;
  }
  if (typeof (connection as Partial<Duplicable>).duplicate === 'function') {
    const given = connection as unknown as Duplicable;
    if (given.isCluster) {
      return heedingNodes(given.duplicate([], clusterSettings(name, given.options.redisOptions)) as Cluster);
    }
    return heedingSentinels(given.duplicate(settings(name)) as Redis);
  }
  if ('cluster' in connection) {
    const { cluster, ...options } = connection as { cluster: ClusterNode[] } & ClusterOptions;
    return heedingNodes(new Cluster(cluster, { ...options, ...clusterSettings(name, options.redisOptions) }));
  }
  refuseDatabase((connection as RedisOptions).db);
  return heedingSentinels(new Redis({ ...watchingSentinels(connection as RedisOptions), ...settings(name) }));
}

/** Of a connection to a node, private to the driver. */
interface NodeQueues {
  flushQueue(error: Error, which?: { offlineQueue?: boolean; commandQueue?: boolean }): void;
}

/**
 * When a connection to a node closes, the driver sends its calls to another node, also those that have left and may have run. In a process
 * that woke after hours they were given up, and Redis had forgotten the session and took the copy for a new call.
 * So these fail in words that the driver does not know, and who sent them sends them again. What has not left it goes on sending.
 */
function failingWhatHasLeft(node: NodeQueues): void {
  const flush = node.flushQueue.bind(node);
  node.flushQueue = (error, which) => {
    flush(new NoAnswerError('The connection to a node closed before the answer.', error), {
      ...which,
      offlineQueue: false,
    });
    flush(error, { ...which, commandQueue: false });
  };
}

/**
 * While a slot moves, the driver sends ASKING before a call and looks at no answer. If the connection closed before that answer, the
 * rejection would be nobody's, and would end the process. The call itself fails with the connection as well, and is sent again.
 */
function heedingAsking(node: Redis): void {
  const ask = node.asking.bind(node) as () => Promise<'OK'>;
  node.asking = () => heeded(ask());
}

function heedingNodes(client: Cluster): Cluster {
  client.on('+node', (node: Redis) => {
    heedingAsking(node);
    failingWhatHasLeft(node as unknown as NodeQueues);
  });
  return client;
}

/** An answer of which somebody hears when it does not come, although the driver does not wait for it. */
function heeded<Answer>(answer: Promise<Answer>): Promise<Answer> {
  answer.catch(() => undefined);
  return answer;
}

/** How the driver makes its connections to Sentinels, where it has some. */
interface SentinelConnector {
  connectToSentinel?(...args: unknown[]): Redis;
}

/**
 * A connection to a Sentinel that was lost and comes back subscribes again, and the driver looks at no answer. If the Sentinel did not
 * answer in time, or the driver closed the connection before, the rejection would be nobody's, and would end the process. Other errors
 * the driver throws, or writes to the console. If none answers, the client says so.
 */
function heedingSentinels(client: Redis): Redis {
  const { connector } = client as unknown as { connector: SentinelConnector };
  const connect = connector.connectToSentinel?.bind(connector);
  if (!connect) return client;
  connector.connectToSentinel = (...args) => {
    const sentinel = connect(...args);
    sentinel.on('error', () => undefined);
    const subscribe = sentinel.subscribe.bind(sentinel) as (...channels: string[]) => Promise<unknown>;
    sentinel.subscribe = (...channels: unknown[]) => heeded(subscribe(...(channels as string[])));
    return sentinel;
  };
  return client;
}

/**
 * A master that Sentinels replace on request goes on for some ten seconds before they demote it. It acknowledges writes in that
 * time, which are lost; so a client that hears of the change leaves at once. It costs a connection to each Sentinel.
 *
 * A Sentinel that takes a question and never answers would else be waited for as long as its connection lasts, though others could be
 * asked.
 */
function watchingSentinels(options: RedisOptions): RedisOptions {
  return options.sentinels
    ? { failoverDetector: true, sentinelCommandTimeout: SENTINEL_ANSWER_MS, ...options }
    : options;
}

/**
 * The driver asks for INFO on each new connection, to learn whether the server still loads its data. It gives up a connection whose
 * server has no such command; a missing permission it takes for ready. A server that loads refuses calls all the same.
 *
 * @returns whether this error was about that; from the next connection on it is not asked
 */
export function skipReadyCheck(client: RedisClient, error: Error): boolean {
  if (unknownCommand(error) !== 'info' || 'nodes' in client || !client.options.enableReadyCheck) return false;
  client.options.enableReadyCheck = false;
  return true;
}

/** A second client for the same connection option: of a store in memory it must be the very same store. */
export function createSecondClient(
  first: RedisClient,
  connection: ConnectionOption,
  instance: string,
  role: string,
): RedisClient {
  const client: unknown = first;
  return client instanceof MemoryClient
    ? (client.duplicate() as unknown as RedisClient)
    : createClient(connection, instance, role);
}

/**
 * The database that a client was given; 0 on a Cluster, which has no other, and in memory.
 *
 * @throws InvalidOptionError for what is no number of a database: the driver would make 0, or another number, of it
 */
export function databaseOf(client: RedisClient): number {
  if ('isCluster' in client && client.isCluster) {
    const { startupNodes = [] } = client as unknown as { startupNodes?: readonly unknown[] };
    const { redisOptions } = client.options as ClusterOptions;
    const asked = [redisOptions, ...startupNodes].map(databaseAskedFor).find((db) => db !== undefined);
    if (asked !== undefined && asked !== '0') {
      throw new InvalidOptionError(
        `forRoot({ connection }): a Cluster has database 0 only, and ${shownNumber(asked)} is asked for.`,
      );
    }
    return 0;
  }
  const { db = 0 } = client.options as RedisOptions;
  refuseDatabase(db);
  return db;
}

function databaseAskedFor(node: unknown): string | undefined {
  if (typeof node === 'string' && URL.canParse(node)) return pathOf(node);
  const { db } = (typeof node === 'object' && node !== null ? node : {}) as { db?: string | number };
  return db === undefined ? undefined : String(db);
}

/** Of the URL of a server the number of the database. */
function pathOf(url: string): string | undefined {
  return new URL(url).pathname.slice(1) || undefined;
}

/** The driver reads as much of a number as it finds. */
function refuseDatabase(db: string | number | null | undefined): void {
  if (db === undefined || /^\d+$/.test(String(db))) return;
  throw new InvalidOptionError(
    `forRoot({ connection }): ${shownNumber(db)} is no database. Give its number, as in redis://host:6379/2.`,
  );
}

/** Where a client connects to, for messages: never with credentials. */
export function addressOf(client: RedisClient): string {
  const options = client.options as RedisOptions & { sentinels?: { host?: string; port?: number }[]; name?: string };
  if ('isCluster' in client && client.isCluster) return 'the Redis Cluster';
  if (options.sentinels?.length) {
    const { host = 'localhost', port = 26_379 } = options.sentinels[0]!;
    return `master ${quoted(cutShort(options.name))} of the Sentinels at ${cutShort(host)}:${port}`;
  }
  return options.path ? cutShort(options.path) : `${cutShort(options.host)}:${options.port}`;
}

/** The same with the database, where the server has several: what two processes must have in common to share their queues. */
export function locationOf(client: RedisClient): string {
  const address = addressOf(client);
  const hasSeveral = !('isCluster' in client && client.isCluster) && !address.startsWith(MEMORY_SCHEME);
  return hasSeveral ? `${address}, database ${databaseOf(client)}` : address;
}

/** The same for two clients of one database. Undefined of a store in memory, which is the client's own, unless it has a name. */
export function placeOf(client: RedisClient): string | undefined {
  const address = addressOf(client);
  if (address.startsWith(MEMORY_SCHEME)) return undefined;
  const { startupNodes = [] } = client as unknown as { startupNodes?: readonly unknown[] };
  const nodes = startupNodes.map((node) =>
    isPlainObject(node) ? `${String(node['host'])}:${String(node['port'])}` : String(node),
  );
  return [address, databaseOf(client), ...nodes].join(' ');
}

/**
 * For good, until it is told to connect again. A socket that is told to end in the middle of its TLS handshake may fail
 * twice, and the driver listens for one error: the second one would end the process.
 */
export function disconnect(client: RedisClient): void {
  const nodes = 'nodes' in client ? client.nodes() : [client];
  for (const node of nodes) (node as { stream?: EventEmitter }).stream?.on('error', () => undefined);
  client.disconnect();
}

/**
 * The connection to the server that has this key; of a Cluster to the master that has it, as far as the client knows. If the client has lost that
 * node it sends calls for the key to any other one, and learns nothing where that one happens to be the right one by now. So it asks who has the
 * slot: a connection and a command, one at a time.
 */
export function nodeOf(client: RedisClient, key: string): Redis | undefined {
  if (!('nodes' in client)) return client;
  const address = client.slots[slotOf(key)]?.[0];
  const node = client.nodes('master').find(({ options }) => `${options.host}:${options.port}` === address);
  if (!node) client.refreshSlotsCache();
  return node;
}

/** By what this key is written at this moment. */
export function linkOf(client: RedisClient, key: string): unknown {
  return (nodeOf(client, key) as { stream?: object } | undefined)?.stream;
}
