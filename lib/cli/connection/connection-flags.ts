import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Option } from 'commander';
import type { Command } from 'commander';
import type { DelayQueueModuleOptions } from '../../delay-queue.options.js';
import { isCutShort, isDecodable } from '../../redis/connection-option.js';
import { usage } from '../exit-codes.js';

/** What the flags, or their environment variables, say of the server. */
export interface ConnectionFlags {
  readonly redis?: string;
  readonly cluster?: string;
  readonly sentinel?: string;
  readonly master?: string;
  readonly username?: string;
  readonly tls?: boolean;
  readonly tlsCa?: string;
  readonly prefix?: string;
  readonly config?: string;
  readonly timeout: string;
}

/** In the order of their sections in the help. */
export function addConnectionFlags(program: Command): void {
  const flags = [
    new Option('--redis <url>', 'redis:// or rediss:// (default redis://127.0.0.1:6379; also REDIS_URL)').env(
      'DELAY_QUEUE_REDIS',
    ),
    new Option('--cluster <nodes>', 'nodes of a Cluster: host:port,host:port').env('DELAY_QUEUE_CLUSTER'),
    new Option('--sentinel <nodes>', 'Sentinels: host:port,host:port').env('DELAY_QUEUE_SENTINEL'),
    new Option('--master <name>', 'the master that the Sentinels watch').env('DELAY_QUEUE_MASTER'),
    new Option('--username <name>', 'the password is read from DELAY_QUEUE_PASSWORD').env('DELAY_QUEUE_USERNAME'),
    new Option('--tls', 'to nodes of a Cluster, and to the master behind Sentinels').env('DELAY_QUEUE_TLS'),
    new Option('--tls-ca <file>', 'certificate of the authority, PEM').env('DELAY_QUEUE_TLS_CA'),
    new Option('--prefix <text>', 'the start of every key (default dq)').env('DELAY_QUEUE_PREFIX'),
    new Option('--config <file>', 'a module whose default export is the options of forRoot()').env(
      'DELAY_QUEUE_CONFIG',
    ),
    new Option('--timeout <duration>', 'how long to wait for Redis').default('5s').env('DELAY_QUEUE_TIMEOUT'),
  ];
  for (const flag of flags) program.addOption(flag.helpGroup('Connection:'));
}

/**
 * Flags come before the environment, and that before the file.
 *
 * @param isFlag tells flags from what the environment says
 */
export async function moduleOptions(
  flags: ConnectionFlags,
  isFlag: (name: string) => boolean,
): Promise<DelayQueueModuleOptions> {
  const file = flags.config === undefined ? {} : await fromFile(flags.config);
  const connection = connectionOf(flags, isFlag) ?? file.connection;
  return {
    ...file,
    ...(connection !== undefined && { connection }),
    ...(flags.prefix !== undefined && { prefix: flags.prefix }),
    connectTimeout: flags.timeout,
    commandTimeout: flags.timeout,
    connect: 'eager',
    startupChecks: 'warn',
    // Nothing is handled here.
    consume: false,
    middleware: [],
    shutdownHooksWarning: false,
  };
}

function connectionOf(
  flags: ConnectionFlags,
  isFlag: (name: string) => boolean,
): DelayQueueModuleOptions['connection'] {
  const given = (['redis', 'cluster', 'sentinel'] as const).filter((way) => flags[way] !== undefined);
  const ways = given.some(isFlag) ? given.filter(isFlag) : given;
  if (ways.length > 1) {
    throw usage(`Give one of --redis, --cluster and --sentinel, not ${ways.map((way) => `--${way}`).join(' and ')}.`);
  }
  const common = { ...credentials(flags), ...encryption(flags) };
  if (ways[0] === 'cluster') return { cluster: nodesOf(flags.cluster!, '--cluster'), redisOptions: common };
  if (ways[0] === 'sentinel') {
    if (flags.master === undefined) throw usage('--sentinel: say with --master which master the Sentinels watch.');
    return { sentinels: nodesOf(flags.sentinel!, '--sentinel'), name: flags.master, ...common };
  }
  const url = flags.redis ?? process.env['REDIS_URL'];
  return url === undefined || Object.keys(common).length === 0 ? url : { ...fromUrl(url), ...common };
}

function credentials({ username }: ConnectionFlags) {
  const password = process.env['DELAY_QUEUE_PASSWORD'];
  return { ...(username !== undefined && { username }), ...(password !== undefined && { password }) };
}

function encryption({ tls, tlsCa }: ConnectionFlags) {
  if (tlsCa === undefined) return tls ? { tls: {} } : {};
  try {
    return { tls: { ca: readFileSync(tlsCa, 'utf8') } };
  } catch (error) {
    throw usage(`--tls-ca: ${(error as Error).message}`);
  }
}

/** The parts of a URL, which ioredis does not take together with other options. Never shown: it may hold a password. */
function fromUrl(text: string) {
  if (isCutShort(text)) {
    throw usage('--redis: the user or the password has a /, ? or # that ends the host. Write %2F, %3F or %23.');
  }
  if (!/^rediss?:\/\//.test(text) || !URL.canParse(text)) throw usage('--redis: is not a redis:// or rediss:// URL.');
  const { protocol, hostname, port, username, password, pathname } = new URL(text);
  if (![username, password].every(isDecodable)) {
    throw usage('--redis: the user or the password has a % that is no escape. Write %25 for a %.');
  }
  const db = Number(pathname.slice(1) || 0);
  return {
    host: hostname.replaceAll(/^\[|\]$/g, ''),
    port: Number(port || 6379),
    db,
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
    ...(protocol === 'rediss:' && { tls: {} }),
  };
}

function nodesOf(text: string, flag: string): { host: string; port: number }[] {
  return text.split(',').map((node) => {
    const [, host, port] = /^(.+):(\d{1,5})$/.exec(node.trim()) ?? [];
    if (host === undefined) throw usage(`${flag}: "${node}" is not host:port.`);
    return { host: host.replaceAll(/^\[|\]$/g, ''), port: Number(port) };
  });
}

async function fromFile(file: string): Promise<DelayQueueModuleOptions> {
  let loaded: { default?: unknown };
  try {
    loaded = (await import(pathToFileURL(resolve(file)).href)) as { default?: unknown };
  } catch (error) {
    throw usage(`--config: ${file} cannot be loaded: ${(error as Error).message}`);
  }
  const options: unknown = await (typeof loaded.default === 'function' ? loaded.default() : loaded.default);
  if (typeof options !== 'object' || options === null) {
    throw usage(`--config: ${file} must export the options of forRoot() as its default.`);
  }
  return options;
}
