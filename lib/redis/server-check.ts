import type { DelayQueueLogger } from '../delay-queue.logger.js';
import type { Redis } from 'ioredis';
import { UnsafeServerError } from '../delay-queue.errors.js';
import type { ResolvedModuleOptions } from '../delay-queue.options.js';
import type { RedisConnection } from './redis.connection.js';
import { NotSentError } from './redis.errors.js';

const OLDEST = [6, 2] as const;
const NO_EVICTION =
  'Set it to noeviction: CONFIG SET maxmemory-policy noeviction and redis.conf, or the parameters of a managed server.';
const WAITAOF_SINCE = [7, 2] as const;

/** What INFO tells of a server, as far as it matters to jobs. */
export interface ServerFacts {
  version: string;
  evictionPolicy: string;
  usedMemory: number;
  maxMemory: number;
  persisted: boolean;
  /** An append-only file is written. */
  appendOnly: boolean;
  replicas: number;
  /** It is a node of a Cluster. */
  clustered: boolean;
  /** A store of `memory://`, which has said for itself that it keeps nothing. */
  inProcess: boolean;
}

/**
 * Of a Cluster what holds of all its masters that answer: the worst of each.
 *
 * @throws what ioredis throws, also when the ACL does not permit INFO
 */
export async function readServerFacts(connection: RedisConnection): Promise<ServerFacts> {
  const { reports, failure } = await askMasters(connection);
  if (reports.length === 0) throw failure;
  return reports.map(({ facts }) => facts).reduce(worse);
}

interface ServerReport {
  readonly address: string;
  readonly server: Redis;
  readonly facts: ServerFacts;
}

/** @returns what those tell that answer; of the others where they are, and why the first of them does not */
async function askMasters(
  connection: RedisConnection,
): Promise<{ reports: ServerReport[]; silent: string[]; failure: Error | undefined }> {
  const masters = mastersOf(connection);
  const answers = await Promise.allSettled(masters.map(({ server }) => factsOf(connection, server)));
  const reports: ServerReport[] = [];
  const silent: string[] = [];
  let failure: Error | undefined = masters.length === 0 ? new NotSentError() : undefined;
  for (const [n, answer] of answers.entries()) {
    const master = masters[n]!;
    if (answer.status === 'fulfilled') reports.push({ ...master, facts: answer.value });
    else {
      silent.push(master.address);
      failure ??= answer.reason as Error;
    }
  }
  return { reports, silent, failure };
}

function worse(one: ServerFacts, other: ServerFacts): ServerFacts {
  const fuller = usage(other) > usage(one) ? other : one;
  return {
    ...fuller,
    version: syncsTooOld(other.version) ? other.version : one.version,
    evictionPolicy: evictionProblem(other.evictionPolicy) ? other.evictionPolicy : one.evictionPolicy,
    persisted: one.persisted && other.persisted,
    appendOnly: one.appendOnly && other.appendOnly,
    replicas: Math.min(one.replicas, other.replicas),
  };
}

function usage({ usedMemory, maxMemory }: ServerFacts): number {
  return maxMemory > 0 ? usedMemory / maxMemory : 0;
}

async function factsOf(connection: RedisConnection, server: Redis): Promise<ServerFacts> {
  const text = await connection.send(() => server.info());
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(text)?.[1] ?? '';
  return {
    version: field('valkey_version') ? `valkey ${field('valkey_version')}` : field('redis_version'),
    evictionPolicy: field('maxmemory_policy'),
    usedMemory: Number(field('used_memory')),
    maxMemory: Number(field('maxmemory')),
    persisted:
      field('aof_enabled') === '1' || Number(field('rdb_saves')) > 0 || Number(field('rdb_last_load_keys_loaded')) > 0,
    appendOnly: field('aof_enabled') === '1',
    replicas: Number(field('connected_slaves')),
    clustered: field('cluster_enabled') === '1',
    inProcess: field('server_name') === 'memory',
  };
}

function mastersOf({ commands, address }: RedisConnection): { address: string; server: Redis }[] {
  if (!('nodes' in commands)) return [{ address, server: commands }];
  return commands.nodes('master').map((server) => {
    const { host, port } = server.options;
    return { address: `${host}:${port}`, server };
  });
}

function syncsTooOld(version: string): boolean {
  return !version.startsWith('valkey') && version !== '' && isOlder(version, WAITAOF_SINCE);
}

/** Why a server cannot say when its disk has a write; undefined if it can. */
export function fsyncProblem({ version, appendOnly }: ServerFacts): string | undefined {
  if (syncsTooOld(version)) {
    return `is version ${version}; durability 'fsync' needs Redis ${WAITAOF_SINCE.join('.')} or Valkey. Upgrade it, or choose another \`durability\`.`;
  }
  return appendOnly
    ? undefined
    : "writes no append-only file, which durability 'fsync' needs. Set appendonly yes, or choose another `durability`.";
}

function isOlder(version: string, than: readonly [number, number]): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major < than[0] || (major === than[0] && minor < than[1]);
}

function durabilityProblem({ durability }: ResolvedModuleOptions, facts: ServerFacts): string | undefined {
  if (durability === 'async') return undefined;
  if (durability.replicas === 0) return fsyncProblem(facts);
  if (durability.replicas <= facts.replicas) return undefined;
  return `has ${facts.replicas} connected replicas, but durability asks for ${durability.replicas}. Connect as many, or lower \`durability: { replicas }\`.`;
}

/**
 * What a policy under which Redis deletes keys would do to jobs; undefined for `noeviction`. Whether there is a limit
 * yet does not matter: `maxmemory` may be set at any time, and nothing would check again. Keys with a TTL hold no jobs,
 * but the answers that a repeated call gets: without them it is executed a second time.
 */
export function evictionProblem(policy: string): string | undefined {
  if (policy.startsWith('allkeys-'))
    return `has maxmemory-policy ${policy}, which deletes jobs when memory is short. ${NO_EVICTION}`;
  if (!policy.startsWith('volatile-')) return undefined;
  return (
    `has maxmemory-policy ${policy}, which deletes keys with a TTL when memory is short, and with them what is remembered ` +
    `of calls, so that a repeated one makes a second job. ${NO_EVICTION}`
  );
}

/**
 * Refuses a server that would lose jobs by itself, and warns of one that might.
 *
 * @throws UnsafeServerError with `startupChecks: 'strict'`
 */
export async function checkServer(
  connection: RedisConnection,
  options: ResolvedModuleOptions,
  logger: DelayQueueLogger,
): Promise<void> {
  if (options.startupChecks === 'off') return;
  const { reports, silent, failure } = await askMasters(connection);
  if (connection.isClosed) return; // by an application that does not wait for the end of its boot
  if (failure) {
    const where = silent.join(', ') || connection.address;
    logger.warn(`INFO of Redis at ${where} cannot be read, so its settings were not checked: ${failure.message}`);
  }
  for (const { address, server, facts } of reports) {
    if (facts.clustered && !('nodes' in connection.commands) && (await holdsPartOfTheSlots(connection, server))) {
      // Whatever it is asked of slots that others hold, it answers by naming them, which only a client of the Cluster follows.
      const problem = 'is one node of a Redis Cluster. Give `connection: { cluster: [{ host, port }] }`.';
      complain(address, problem, options, logger);
    }
    judge(address, facts, options, logger);
  }
}

/** A Cluster of one master serves as a single server does. Where asking is not permitted, that is believed. */
async function holdsPartOfTheSlots(connection: RedisConnection, server: Redis): Promise<boolean> {
  const text = await connection.send(() => server.cluster('INFO')).catch(() => '');
  return Number(/^cluster_size:(\d+)/m.exec(String(text))?.[1] ?? 1) > 1;
}

function complain(
  address: string,
  problem: string,
  { startupChecks }: ResolvedModuleOptions,
  logger: DelayQueueLogger,
): void {
  const message = `Redis at ${address} ${problem}`;
  if (startupChecks === 'strict') {
    throw new UnsafeServerError(`${message} (startupChecks: 'warn' boots all the same.)`);
  }
  logger.warn(message);
}

function judge(address: string, facts: ServerFacts, options: ResolvedModuleOptions, logger: DelayQueueLogger): void {
  const refuse = (problem: string) => complain(address, problem, options, logger);
  const tooOld = !facts.version.startsWith('valkey') && facts.version !== '' && isOlder(facts.version, OLDEST);
  if (tooOld)
    refuse(
      `is version ${facts.version}; at least ${OLDEST.join('.')} is needed. Upgrade it: calls and handlers may fail on it.`,
    );
  const undurable = durabilityProblem(options, facts);
  if (undurable && facts.inProcess) {
    logger.warn(`${address} has no copies and no disk: \`durability\` counts as reached at once.`);
  } else if (undurable) {
    refuse(undurable);
  }
  const evicting = evictionProblem(facts.evictionPolicy);
  if (evicting) refuse(evicting);
  if (!facts.persisted && facts.replicas === 0 && !facts.inProcess) {
    logger.warn(
      `Redis at ${address} has no append-only file, no snapshot since it started and no replica: a restart of it may lose all jobs. Set appendonly yes.`,
    );
  }
}
