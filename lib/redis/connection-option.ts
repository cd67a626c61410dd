import type { ClusterNode, ClusterOptions, RedisOptions } from 'ioredis';
import { InvalidOptionError } from '../delay-queue.errors.js';
import { nearestOption } from '../job/near-names.js';
import { isPlainObject } from '../job/option-rules.js';

/** An ioredis `Redis` or `Cluster`, told by its shape: an application may well have two copies of ioredis installed. */
export interface RedisInstance {
  duplicate(...args: any[]): unknown;
  readonly options: object;
}

/** Start nodes of a Redis Cluster, together with ioredis' cluster options. */
export type ClusterConnection = ClusterOptions & { cluster: ClusterNode[] };

/**
 * A URL (`redis://`, `rediss://`, or `memory://` for tests), ioredis options (also with `sentinels`), cluster nodes, or an
 * ioredis instance, of which duplicates are used and which itself is never touched.
 */
export type ConnectionOption = string | RedisOptions | ClusterConnection | RedisInstance;

/**
 * What other clients call things that ioredis calls otherwise. ioredis passes over names that it does not know, and would connect to
 * localhost:6379.
 */
const NAMES_OF_OTHER_CLIENTS: Readonly<Record<string, string>> = {
  url: 'give the URL itself: `connection: url`',
  uri: 'give the URL itself: `connection: uri`',
  socket: '`host`, `port`, `path` and `tls` stand beside the other options',
  hostname: 'ioredis calls it `host`',
  database: 'ioredis calls it `db`',
  user: 'ioredis calls it `username`',
  nodes: 'the nodes of a Cluster go into `cluster`',
  rootNodes: 'the nodes of a Cluster go into `cluster`',
};

/** Checks the shape only. Never shows what it refuses, because it may hold a password. */
export function checkConnection(value: unknown, field: string): ConnectionOption {
  if (typeof value === 'string') return checkUrl(value, field);
  if (isRedisInstance(value)) {
    refuseKeyPrefix(value.options, field);
    return value;
  }
  if (!isPlainObject(value) || 'duplicate' in value) {
    throw new InvalidOptionError(`${field}: is neither a URL, nor ioredis options, nor an ioredis instance.`);
  }
  refuseKeyPrefix(value, field);
  for (const [name, advice] of Object.entries(NAMES_OF_OTHER_CLIENTS)) {
    if (name in value) throw new InvalidOptionError(`${field}: ioredis has no option \`${name}\`; ${advice}.`);
  }
  refuseMisspelt(value, field);
  if ('cluster' in value && !isFilledArray(value.cluster)) {
    throw new InvalidOptionError(`${field}: \`cluster\` must be an array of at least one node.`);
  }
  if ('sentinels' in value && !(isFilledArray(value.sentinels) && typeof value.name === 'string')) {
    throw new InvalidOptionError(
      `${field}: with \`sentinels\`, an array of at least one, goes the \`name\` of the master.`,
    );
  }
  return Object.freeze({ ...value });
}

/** Options of ioredis 5 and 6 for a server, Sentinels and a Cluster. */
const OF_IOREDIS =
  'autoPipeliningIgnoredCommands autoResendUnfulfilledCommands autoResubscribe blockingTimeout blockingTimeoutGrace ' +
  'clientInfoTag clusterRetryStrategy commandQueue commandTimeout connectTimeout connectionName connector db ' +
  'disableClientInfo disconnectTimeout dnsLookup enableAutoPipelining enableOfflineQueue enableReadyCheck ' +
  'enableTLSForSentinelMode failoverDetector family host keepAlive keyPrefix lazyConnect maxLoadingRetryTime ' +
  'maxRedirections maxRetriesPerRequest monitor name natMap noDelay offlineQueue password path port preferredSlaves ' +
  'protocol readOnly reconnectOnError redisOptions replyMapping resolveSrv retryDelayOnClusterDown retryDelayOnFailover ' +
  'retryDelayOnMoved retryDelayOnTryAgain retryStrategy role scaleReads scripts sentinelCommandTimeout ' +
  'sentinelMaxConnections sentinelPassword sentinelReconnectStrategy sentinelRetryStrategy sentinelTLS sentinelUsername ' +
  'sentinels shardedSubscribers showFriendlyErrorStack slotsRefreshInterval slotsRefreshTimeout socketTimeout ' +
  'stringNumbers subscriberNames tls updateSentinels useSRVRecords username cluster';
const KNOWN = OF_IOREDIS.split(' ');

/** An unknown name that is near to none of these is let through: a later ioredis may know it. */
function refuseMisspelt(options: object, field: string): void {
  for (const name of Object.keys(options)) {
    if (KNOWN.includes(name)) continue;
    const nearest = nearestOption(name, KNOWN);
    if (nearest === undefined) continue;
    throw new InvalidOptionError(
      `${field}: ioredis has no option \`${name}\`, and would connect without it. Is it \`${nearest}\`?`,
    );
  }
}

function checkUrl(value: string, field: string): string {
  const scheme = /^[a-z+]+:\/\//i.exec(value)?.[0] ?? 'text without a scheme';
  if (!/^(rediss?|memory):\/\/$/.test(scheme) || !URL.canParse(value)) {
    const found = scheme.startsWith('redis') || scheme === 'memory://' ? 'a malformed URL' : scheme;
    throw new InvalidOptionError(`${field}: ${found} instead of a redis://, rediss:// or memory:// URL.`);
  }
  const { username, password, searchParams } = new URL(value);
  if (![username, password].every(isDecodable)) {
    throw new InvalidOptionError(
      `${field}: the user or the password in the URL has a % that is no escape. Write %25 for a %, or give { host, username, password }.`,
    );
  }
  // ioredis takes options from the query.
  refuseKeyPrefix(Object.fromEntries(searchParams), field);
  return value;
}

/** The driver decodes both, and its URIError names nothing. */
export function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function isRedisInstance(value: unknown): value is RedisInstance {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as Partial<RedisInstance>).duplicate === 'function' &&
    isObject((value as Partial<RedisInstance>).options) &&
    // What tells the clients of the `redis` package apart, which have the other two as well.
    !('isOpen' in value)
  );
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

function refuseKeyPrefix(options: object, field: string): void {
  const { keyPrefix, redisOptions } = options as { keyPrefix?: unknown; redisOptions?: { keyPrefix?: unknown } };
  if (keyPrefix || redisOptions?.keyPrefix) {
    throw new InvalidOptionError(
      `${field}: keyPrefix is refused. ioredis would put it before keys but not before the channels of wake-ups, ` +
        'nor into what scripts answer. Use the option `prefix` of forRoot() instead.',
    );
  }
}

function isFilledArray(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}
