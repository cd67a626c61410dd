import { madeByRoot } from '../instance/made-by-root.js';
import { ShardCountError } from '../delay-queue.errors.js';
import { parseDuration, quoted, readable } from '../job/duration.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { isUnattended, leftBehindMs, overdueMs, parseCounts } from '../redis/counts.protocol.js';
import type { ShardCounts } from '../redis/counts.protocol.js';
import { queueNamesKey } from '../redis/keys.js';
import { isMoving, isTransient, typedError } from '../redis/redis.errors.js';
import { evictionProblem, readServerFacts } from '../redis/server-check.js';
import type { ServerFacts } from '../redis/server-check.js';
import type { ShardStore } from '../redis/shard-store.js';
import { unreadableSchedules } from './unreadable-schedules.js';
import type { DelayQueueRunner } from '../worker/delay-queue.runner.js';
import type { QueueWorker } from '../worker/queue-worker.js';
import { resolveThresholds } from './thresholds.js';
import type { HealthThresholds, ResolvedThresholds } from './thresholds.js';
import { clearTimeout, performance, setTimeout } from '../time-and-randomness.js';

export type HealthStatus = 'up' | 'degraded' | 'down';

/** What nobody knows is left out: numbers of jobs while Redis does not answer, or while the queue cannot be read. */
export interface QueueHealth {
  status: HealthStatus;
  delayed?: number;
  due?: number;
  running?: number;
  dead?: number;
  paused?: boolean;
  /** Age of the oldest due job, or time since the end of a lease whose jobs no worker has recovered. */
  lagMs?: number;
  /**
   * Ms since the last answer to the claim loop of this process. Undefined for a queue that is only pulled, while no
   * `pull()` waits.
   */
  lastClaimMs?: number;
  /** Handlers that run on after their timeout. */
  zombies?: number;
}

export interface DelayQueueHealthResult {
  status: HealthStatus;
  /** Why it is not up: whole sentences. */
  reasons: string[];
  redis: { status: 'up' | 'down'; latencyMs?: number; version?: string; evictionPolicy?: string; memory?: number };
  queues: Record<string, QueueHealth>;
  /**
   * Queues with due jobs, or with jobs of a process that is gone, that no live process claims. Each check of this
   * process reads those that it has found before. Left out when `redis` is down: then nobody knows.
   */
  orphans?: string[];
  /**
   * How many queues this check did not read for orphans, because there are more than about 200. The next checks of this
   * process read them in turn; they always read the queues of this process. Left out when `redis` is down.
   */
  uncheckedQueues?: number;
}

/** What a check writes into. */
type Draft = Required<DelayQueueHealthResult>;

/** A check answers within this time, whatever Redis does. */
const CHECK_LIMIT = '3s';
const FACTS_VALID_MS = 10_000;
/** A live process makes the occurrences of its schedules within some 25 s. */
const SCHEDULES_MADE_WITHIN_MS = 60_000;
/** Of other processes, at one check. */
const MOST_QUEUES = 200;
/** Redis may answer a part of a scan with few names or none. */
const MOST_SCANS = 20;

/** Checks the queues of one instance. It only reads, and never throws. */
export class DelayQueueHealth {
  #facts: { at: number; facts: ServerFacts | undefined } | undefined;
  /** Where the next check goes on with the names of all queues. */
  #scannedTo = '0';
  /** Orphans that the last check found. Each check reads them again, because their turn would not come soon. */
  #orphans: readonly string[] = [];

  /** @internal */
  constructor(
    private readonly shards: InstanceContext,
    private readonly runner: () => DelayQueueRunner | undefined,
  ) {
    madeByRoot(shards, 'DelayQueueHealth');
  }

  async check(thresholds: HealthThresholds = {}): Promise<DelayQueueHealthResult> {
    const result: Draft = {
      status: 'up',
      reasons: [],
      redis: { status: 'up' },
      // Without a prototype: a queue may be called "constructor".
      queues: Object.create(null),
      orphans: [],
      uncheckedQueues: 0,
    };
    let timer: NodeJS.Timeout | undefined;
    try {
      const limits = this.#limits(result, thresholds);
      this.#checkLoops(result, limits);
      const limit = new Promise<never>((_, reject) => {
        timer = setTimeout(
          () => reject(new Error(`no answer within ${CHECK_LIMIT}`)),
          parseDuration(CHECK_LIMIT, 'limit'),
        );
      });
      await Promise.race([this.#checkRedis(result, limits), limit]);
    } catch (error) {
      result.redis.status = 'down';
      const { message } = error as Error;
      const { address } = this.shards.connection;
      // What no waiting cures says where by itself.
      fail(result, message.startsWith('Redis at ') ? message : `Redis at ${address} is not reachable: ${message}`);
      return withoutUnknown(result);
    } finally {
      clearTimeout(timer);
    }
    return result;
  }

  /** A misspelt threshold must not pass for health: it is down, and the rest is judged by the default ones. */
  #limits(result: Draft, thresholds: HealthThresholds): ResolvedThresholds {
    try {
      return resolveThresholds(thresholds);
    } catch (error) {
      fail(result, (error as Error).message);
      return resolveThresholds({});
    }
  }

  /** Judges what this process knows without Redis. */
  #checkLoops(result: Draft, limits: ResolvedThresholds): void {
    const runner = this.runner();
    if (!runner) return;
    if (runner.draining) degrade(result, 'This process is shutting down.');
    for (const [queue, worker] of runner.workers) {
      const health: QueueHealth = { status: 'up', zombies: worker.zombies };
      result.queues[queue] = health;
      this.#checkLoop(result, worker, health, limits);
      if (worker.zombies >= worker.concurrency) {
        degrade(result, `${worker.zombies} handlers of queue "${queue}" ran on after their timeout.`, health);
      }
    }
    // Between two pulls nothing is asked for, and that is no fault of a loop; whether jobs wait too long is still
    // judged.
    for (const queue of runner.pulled) result.queues[queue] ??= { status: 'up', zombies: 0 };
    for (const worker of runner.pullers) {
      const health = (result.queues[worker.queue] ??= { status: 'up', zombies: 0 });
      health.zombies = (health.zombies ?? 0) + worker.zombies;
      if (worker.concurrency > worker.running) this.#checkLoop(result, worker, health, limits);
    }
  }

  #checkLoop(result: Draft, worker: QueueWorker, health: QueueHealth, limits: ResolvedThresholds): void {
    const lastClaimMs = Math.max(0, Math.round(performance.now() - worker.lastAnswerAt));
    health.lastClaimMs = Math.max(lastClaimMs, health.lastClaimMs ?? 0);
    if (this.runner()?.draining || worker.paused) return;
    if (lastClaimMs <= limits.lastClaimDownMs) {
      // The reads of health may succeed, but no answer has ever shown that the claim loop works.
      if (worker.fault && !worker.hasAnswer)
        degrade(result, `The claim loop of queue "${worker.queue}" cannot begin: ${worker.fault.message}`, health);
      return;
    }
    const why = worker.fault ? `: ${worker.fault.message}` : '.';
    fail(result, `The claim loop of queue "${worker.queue}" had no answer for ${readable(lastClaimMs)}${why}`, health);
  }

  async #checkRedis(result: Draft, limits: ResolvedThresholds): Promise<void> {
    const { connection } = this.shards;
    const since = performance.now();
    if (!connection.isReady) throw new Error(connection.trouble);
    await connection.send(() => (connection.commands as { ping(): Promise<string> }).ping());
    result.redis.latencyMs = Math.round((performance.now() - since) * 10) / 10;
    this.#judgeServer(result, await this.#serverFacts(), limits);
    const looks = (await this.#queueNames(result)).map(async (queue) => {
      try {
        await this.#checkQueue(result, queue, limits);
      } catch (error) {
        if (isTransient(error) && !isMoving(error)) throw error;
        // A damaged queue says nothing about Redis or the other queues.
        const { message } = typedError(error, 'the look at it');
        degrade(result, `Queue "${queue}" cannot be read: ${message}`, result.queues[queue]);
      }
    });
    await Promise.all(looks);
    this.#orphans = result.orphans.slice(0, MOST_QUEUES);
  }

  #judgeServer(result: Draft, facts: ServerFacts | undefined, limits: ResolvedThresholds): void {
    if (!facts) return;
    result.redis.version = facts.version;
    result.redis.evictionPolicy = facts.evictionPolicy;
    if (facts.maxMemory > 0) {
      const memory = Math.round((facts.usedMemory / facts.maxMemory) * 100) / 100;
      result.redis.memory = memory;
      if (memory >= limits.memoryDegraded)
        degrade(result, `Redis uses ${Math.round(memory * 100)} % of its maxmemory.`);
    }
    const evicting = evictionProblem(facts.evictionPolicy);
    if (evicting) fail(result, `Redis ${evicting}`);
  }

  async #checkQueue(result: Draft, queue: string, limits: ResolvedThresholds): Promise<void> {
    const shards = await this.#countsOf(queue);
    const all = (state: 'delayed' | 'due' | 'running' | 'dead') =>
      shards.reduce((total, counts) => total + counts[state], 0);
    const [delayed, due, running, dead] = [all('delayed'), all('due'), all('running'), all('dead')];
    const paused = shards.some((counts) => counts.paused);
    const oldestMs = Math.max(...shards.map(overdueMs));
    const leftForMs = Math.max(...shards.map(leftBehindMs));
    const lagMs = Math.max(oldestMs, leftForMs);
    const local = result.queues[queue];
    const left = shards.filter(isUnattended);
    if (!local && !paused && left.some((counts) => counts.due > 0 || leftBehindMs(counts) > 0)) {
      result.orphans.push(queue);
      degrade(
        result,
        due > 0
          ? `Queue "${queue}" has ${due} due ${due === 1 ? 'job' : 'jobs'} and no live process claims them. Start one with its handler, or move or remove them.`
          : `Queue "${queue}" has jobs of a process that is gone: their lease ended ${readable(leftForMs)} ago, and no live process takes them back.`,
      );
    }
    await this.#judgeSchedules(result, queue, shards, local);
    if (!local) return;
    Object.assign(local, { delayed, due, running, dead, paused, lagMs });
    if (limits.dead !== undefined && dead > limits.dead) {
      degrade(result, `Queue "${queue}" has ${dead} dead letters.`, local);
    }
    if (paused) return;
    const why = leftForMs > oldestMs ? ': so long ago a lease ended whose jobs nobody has taken back.' : '.';
    const lags = `Queue "${queue}" lags ${readable(lagMs)} behind${why}`;
    if (limits.lagDownMs !== undefined && lagMs > limits.lagDownMs) fail(result, lags, local);
    else if (lagMs > limits.lagDegradedMs) degrade(result, lags, local);
  }

  /** Occurrences are made 30 s and more before they are due, so nothing is late as yet. */
  async #judgeSchedules(
    result: Draft,
    queue: string,
    shards: readonly ShardCounts[],
    local: QueueHealth | undefined,
  ): Promise<void> {
    const lateMs = Math.max(...shards.map(({ schedulesLateMs }) => schedulesLateMs));
    if (lateMs <= SCHEDULES_MADE_WITHIN_MS) return;
    const unreadable = await unreadableSchedules(this.shards.storesFor(queue, shards.length));
    const why =
      unreadable.length > 0
        ? `a newer library wrote ${unreadable.map(quoted).join(', ')}, and no live process with that library works on the queue.`
        : 'no live process that works on the queue makes them.';
    degrade(
      result,
      `A schedule of queue "${queue}" has needed more occurrences for ${readable(lateMs)}: ${why}`,
      local,
    );
  }

  /** Of each shard, as lib/lua/counts.lua tells it. */
  async #countsOf(queue: string): Promise<ShardCounts[]> {
    const look = (stores: readonly ShardStore[]) =>
      Promise.all(stores.map(async (store) => parseCounts(await store.call('counts', []))));
    const { options } = this.shards;
    const runner = this.runner();
    const own = options.queues[queue]?.shards !== undefined || runner?.workers.has(queue) || runner?.pulled.has(queue);
    return look(this.shards.stores(queue)).catch((error: unknown) => {
      // A queue that this process has nothing to do with may have any number of shards.
      const typed = own ? undefined : typedError(error, `queue "${queue}"`);
      if (typed instanceof ShardCountError) return look(this.shards.storesFor(queue, typed.stored));
      throw error;
    });
  }

  /** Those of this process, the orphans of the last check, and the next ones in the list of all names. */
  async #queueNames(result: Draft): Promise<string[]> {
    const own = [...Object.keys(result.queues), ...this.#orphans];
    try {
      const { names, all } = await this.#nextNames();
      const chosen = new Set([...own, ...names]);
      if (all !== undefined) result.uncheckedQueues = Math.max(0, all - chosen.size);
      return [...chosen];
    } catch (error) {
      if (isTransient(error)) throw error;
      degrade(result, typedError(error, 'the list of the names of the queues').message);
      return own;
    }
  }

  /** @returns a part of the names; `all`: how many there are, when this is not all of them */
  async #nextNames(): Promise<{ names: Set<string>; all?: number }> {
    const { connection, options } = this.shards;
    const key = queueNamesKey(options.prefix);
    const begin = this.#scannedTo;
    const names = new Set<string>();
    let cursor = begin;
    for (let n = 0; n < MOST_SCANS && names.size < MOST_QUEUES; n++) {
      const from = cursor;
      const scan = () => connection.commands.sscan(key, from, 'COUNT', MOST_QUEUES);
      const [next, part] = await connection.send(scan, key);
      for (const name of part) names.add(name);
      cursor = next;
      if (cursor === '0') break;
    }
    this.#scannedTo = cursor;
    if (begin === '0' && cursor === '0') return { names };
    return { names, all: await connection.send(() => connection.commands.scard(key), key) };
  }

  async #serverFacts(): Promise<ServerFacts | undefined> {
    const now = performance.now();
    if (!this.#facts || now - this.#facts.at > FACTS_VALID_MS) {
      // A server that does not permit INFO can still be healthy.
      this.#facts = { at: now, facts: await readServerFacts(this.shards.connection).catch(() => undefined) };
    }
    return this.#facts.facts;
  }
}

/** After a look at Redis that failed: what it has not answered is not 0, and no queue that it has not read is up. A copy, because answers may come yet. */
function withoutUnknown({ status, reasons, redis, queues }: Draft): DelayQueueHealthResult {
  const known: DelayQueueHealthResult['queues'] = Object.create(null);
  for (const [name, health] of Object.entries(queues)) {
    known[name] = { ...health, status: health.due === undefined ? 'down' : health.status };
  }
  return { status, reasons: [...reasons], redis: { ...redis }, queues: known };
}

function degrade(result: Draft, reason: string, queue?: QueueHealth): void {
  result.reasons.push(reason);
  if (result.status === 'up') result.status = 'degraded';
  if (queue?.status === 'up') queue.status = 'degraded';
}

function fail(result: Draft, reason: string, queue?: QueueHealth): void {
  result.reasons.push(reason);
  result.status = 'down';
  if (queue) queue.status = 'down';
}
