import type { ClusterNode, ClusterOptions, RedisOptions } from 'ioredis';
import { InvalidOptionError } from '../delay-queue.errors.js';
import { shown } from '../job/duration.js';
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
    refuseWrong(value.options, field);
    return value;
  }
  if (!isPlainObject(value) || 'duplicate' in value) {
    throw new InvalidOptionError(
      `${field}: is neither a URL, nor ioredis options, nor an ioredis instance. Write 'redis://host:6379' or { host, port }; if it ` +
        'comes from an environment variable, look whether that is set.',
    );
  }
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
  refuseWrong(value, field);
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
  refuseCutShort(value, field, 'host, username, password');
  const scheme = /^[a-z+]{1,40}:\/\//i.exec(value)?.[0] ?? (value === '' ? 'an empty text' : 'text without a scheme');
  if (!/^(rediss?|memory):\/\/$/.test(scheme) || !URL.canParse(value)) {
    const found = scheme.startsWith('redis') || scheme === 'memory://' ? malformed(value) : scheme;
    throw new InvalidOptionError(
      `${field}: ${found} instead of a redis://, rediss:// or memory:// URL.${urlMeant(value)}`,
    );
  }
  const { username, password, hostname, port, pathname, searchParams } = new URL(value);
  if (hostname === '' && /^\/\D/.test(pathname) && !value.startsWith('memory:')) {
    throw new InvalidOptionError(
      `${field}: the URL has no host. For the socket of a server on this machine give { path }.`,
    );
  }
  if (hostname === 'undefined' || hostname === 'null') {
    throw new InvalidOptionError(
      `${field}: the host in the URL is "${hostname}". If it comes from an environment variable, look whether that is set.`,
    );
  }
  refusePort(port || undefined, 'connection.port', field);
  if (![username, password].every(isDecodable)) {
    throw new InvalidOptionError(
      `${field}: the user or the password in the URL has a % that is no escape. Write %25 for a %, or give { host, username, password }.`,
    );
  }
  // ioredis takes options from the query.
  const options = Object.fromEntries(searchParams);
  refuseWrong(options, field);
  return value;
}

/**
 * A URL takes what stands before a /, ? or # for the host, so with one of these in the password the start of it is taken for the port:
 * that is refused, or connects to a host that nobody meant. An @ behind it tells; as the value of an option it may stand in a query.
 */
export function isCutShort(url: string): boolean {
  return /^rediss?:\/\/[^/?#]*[/?#].*@/i.test(url.replace(/\?\w+=.*$/, ''));
}

function refuseCutShort(url: string, field: string, instead: string): void {
  if (!isCutShort(url)) return;
  throw new InvalidOptionError(
    `${field}: the user or the password in the URL has a /, ? or # that ends the host. Write %2F, %3F or %23, or give { ${instead} }.`,
  );
}

/**
 * As DNS has it, in at most 253 characters, of which 63 between two dots: a token, which may have dots, is longer. One without a dot
 * and a port may as well be a password, unless it is a usual name of a host.
 */
const BARE_HOST = /^(?!-)(?=.*[.:]|(?:localhost|redis|valkey)$)[a-z\d-]{1,63}(?:\.[a-z\d-]{1,63})*(?::(\d+))?$/i;

/** Only a bare host and port is quoted: other text may hold a password. */
function urlMeant(value: string): string {
  if (['', 'undefined', 'null'].includes(value))
    return ' If it comes from an environment variable, look whether that is set.';
  if (/^[\s"']|[\s"']$/.test(value)) return ' Leave out the blanks or quotes around it.';
  if (/^(\/|unix:)/.test(value)) return ' For the socket of a server on this machine give { path }.';
  if (value.includes('://')) return '';
  const port = value.length < 260 ? BARE_HOST.exec(value) : null;
  return port && (port[1] === undefined || isPort(port[1])) ? ` Write redis://${value}.` : ' Write redis://host:6379.';
}

/** Where a URL without a host ends in a password, that stands where a port would: it is not shown. */
function malformed(url: string): string {
  const port = /^[a-z]+:\/\/(?:[^/?#]*@)?(?:\[[^\]]*\]|[^/?#:@]*):([^/?#]*)/i.exec(url)?.[1];
  return port && !isPort(port) ? 'a URL whose port is no whole number from 1 to 65535' : 'a malformed URL';
}

/**
 * Which name of a host was given without a value, as of an environment variable that is not set. The driver takes localhost
 * then, which many mean on their own machine: so it is no error.
 */
export function unsetHost(connection: ConnectionOption): string | undefined {
  if (!isPlainObject(connection)) return undefined;
  const { cluster, sentinels, path } = connection;
  for (const [name, nodes] of Object.entries({ cluster, sentinels })) {
    if (!Array.isArray(nodes)) continue;
    const index = nodes.findIndex(isHostUnset);
    return index < 0 ? undefined : `connection.${name}[${index}].host`;
  }
  return !path && isHostUnset(connection) ? 'connection.host' : undefined;
}

function isHostUnset(server: unknown): boolean {
  return isPlainObject(server) && Object.hasOwn(server, 'host') && (server['host'] ?? '') === '';
}

/** Also of the nodes of a Cluster, and of Sentinels. */
function refuseWrong(options: object, field: string): void {
  refuseKeyPrefix(options, field);
  const { cluster, sentinels } = options as Readonly<Record<string, unknown>>;
  refuseServer(options, 'connection', field);
  for (const [name, nodes] of Object.entries({ cluster, sentinels })) {
    if (!Array.isArray(nodes)) continue;
    for (const [index, node] of nodes.entries()) refuseNode(node, `connection.${name}[${index}]`, field);
  }
}

/** These go into messages and the log, so none of them may be a URL with its password. */
const SHOWN = [
  ['host', /[\s/@]/, 'host, which has no blank, / or @'],
  ['path', /:\/\//, 'path'],
  ['name', /:\/\//, 'name'],
] as const;

function refuseServer(server: object, place: string, field: string): void {
  const given = server as Readonly<Record<string, unknown>>;
  for (const [part, wrong, what] of SHOWN) {
    const value = given[part];
    if (value && (typeof value !== 'string' || wrong.test(value))) throw misplaced(`${place}.${part}`, what, field);
  }
  refusePort(given['port'], `${place}.port`, field);
}

function misplaced(name: string, what: string, field: string): InvalidOptionError {
  const isNode = name.includes('[');
  const advice = isNode ? 'Give { host, port }' : '`connection` takes the URL itself, or { host, port, password }';
  return new InvalidOptionError(`${field}: \`${name}\` is no ${what}. ${advice}.`);
}

function refuseNode(node: unknown, name: string, field: string): void {
  if (isObject(node) && !Array.isArray(node)) return refuseServer(node, name, field);
  // ioredis takes numbers and texts as nodes of a Cluster only, and else passes over them.
  if (name.startsWith('connection.sentinels')) throw misplaced(name, 'object', field);
  if (typeof node !== 'string' || /^\d+$/.test(node)) return refusePort(node, name, field);
  const url = node.includes('://') ? node : `redis://${node}`;
  refuseCutShort(url, `${field}: \`${name}\``, 'host, port');
  if (URL.canParse(url)) return refusePort(new URL(url).port || undefined, name, field);
  throw new InvalidOptionError(`${field}: \`${name}\` is ${malformed(url)}. Give { host, port }.`);
}

/** The driver takes digits as text, too; for another port the socket itself throws, where nobody would expect it. */
function refusePort(port: unknown, name: string, field: string): void {
  if (port === undefined || isPort(port)) return;
  throw new InvalidOptionError(
    `${field}: \`${name}\` is ${shownNumber(port)}, and a port is a whole number from 1 to 65535. Leave it out for 6379; ` +
      'if it comes from an environment variable, look whether that is set.',
  );
}

function isPort(port: unknown): boolean {
  const number = typeof port === 'string' && /^\d+$/.test(port) ? Number(port) : port;
  return Number.isInteger(number) && (number as number) >= 1 && (number as number) <= 65_535;
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

/** Text that is no number is not shown: it may be a URL, or a password, in the wrong place. */
export function shownNumber(value: unknown): string {
  return typeof value === 'string' && Number.isNaN(Number(value)) ? 'text' : shown(value);
}

function isObject(value: unknown): value is object {
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
