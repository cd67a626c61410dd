import { HEALTH_DEFAULTS } from '../../defaults.js';
import { UnavailableError } from '../../delay-queue.errors.js';
import { isUnattended, leftBehindMs } from '../../redis/counts.protocol.js';
import type { ShardCounts } from '../../redis/counts.protocol.js';
import { typedError } from '../../redis/redis.errors.js';
import { sum, sumCounts } from '../../inspection/queue-counts.js';
import { performance, within } from '../../time-and-randomness.js';
import { tagged } from '../answers.js';
import type { Tagged } from '../answers.js';
import type { QueueState, QueueStatus, StateResponse } from '../api.js';
import type { InstanceContext } from '../../instance/instance-context.js';

/** However many tabs there are. */
const VALID_MS = 1_000;
/** A state is answered within this time, whatever Redis does. */
const LIMIT_MS = 2_000;
/** Queues that one reading looks at; of more, those in turn that were looked at longest ago. */
const QUEUES_A_READING = 200;
const MOST_QUEUES = 1_000;
const HOUR_VALID_MS = 10_000;
const HOUR_MS = 3_600_000;

/** What the states are read by. */
export interface QueueSource {
  readonly context: InstanceContext;
  queueNames(): Promise<readonly string[]>;
  countsOf(queue: string): Promise<readonly ShardCounts[]>;
}

interface Known {
  state: QueueState;
  /** Monotonic ms. */
  readAt: number;
  hourAt: number;
}

/** All queues of an instance: what the first screen shows, and every tab asks for every other second. */
export class QueueStates {
  readonly #known = new Map<string, Known>();
  #answer: Tagged | undefined;
  #answeredAt = -Infinity;
  #reading: Promise<Tagged> | undefined;
  /** When Redis last answered; monotonic ms. */
  #readAt: number | undefined;
  /** The same by the clock of Redis; undefined where no queue was read. */
  #now: number | undefined;
  #more = 0;

  constructor(private readonly source: QueueSource) {}

  /** Never rejects: while Redis is away it is what was known, and says so. */
  async read(): Promise<Tagged> {
    if (this.#answer && performance.now() - this.#answeredAt < VALID_MS) return this.#answer;
    this.#reading ??= this.#look().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #look(): Promise<Tagged> {
    let redis: StateResponse['redis'] = { up: true };
    this.#now = undefined;
    try {
      const { connection } = this.source.context;
      if (!connection.isReady) throw new Error(connection.trouble);
      await within(LIMIT_MS, this.#refresh(), () => new Error(`no answer within ${LIMIT_MS} ms`));
      this.#readAt = performance.now();
    } catch (error) {
      const { address } = this.source.context.connection;
      redis = { up: false, problem: `Redis at ${address} is not reachable: ${(error as Error).message}` };
    }
    const queues = [...this.#known].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, { state }]) => state);
    const counted = { redis, queues, more: this.#more };
    this.#answeredAt = performance.now();
    const ageMs = redis.up ? 0 : this.#readAt && Math.ceil(this.#answeredAt - this.#readAt);
    const now = redis.up ? this.#now : undefined;
    this.#answer = tagged({ now, ageMs, ...counted } satisfies StateResponse, counted);
    return this.#answer;
  }

  async #refresh(): Promise<void> {
    const names = await this.source.queueNames();
    const chosen = names.slice(0, MOST_QUEUES);
    this.#more = names.length - chosen.length;
    const there = new Set(chosen);
    for (const queue of this.#known.keys()) if (!there.has(queue)) this.#known.delete(queue);
    const readAt = (queue: string) => this.#known.get(queue)?.readAt ?? -Infinity;
    const next = chosen.length > QUEUES_A_READING ? chosen.toSorted((a, b) => readAt(a) - readAt(b)) : chosen;
    const looks = next.slice(0, QUEUES_A_READING).map((queue) => this.#refreshQueue(queue));
    const failures = await Promise.all(looks);
    // Of a Cluster one node may be away, and the queues of the others are read all the same.
    if (failures.length > 0 && failures.every((failure) => failure !== undefined)) throw failures[0]!;
  }

  /** @returns why Redis did not answer */
  async #refreshQueue(queue: string): Promise<UnavailableError | undefined> {
    const known = this.#known.get(queue);
    const now = performance.now();
    const next: Known = { state: known?.state ?? unread(queue), readAt: now, hourAt: known?.hourAt ?? -Infinity };
    this.#known.set(queue, next);
    try {
      const shards = await this.source.countsOf(queue);
      this.#now = shards[0]!.now;
      let { nextHour } = next.state;
      if (now - next.hourAt >= HOUR_VALID_MS) {
        nextHour = await this.#nextHour(queue, shards.length);
        next.hourAt = now;
      }
      next.state = { ...stateOf(queue, shards), nextHour };
      return undefined;
    } catch (error) {
      if (error instanceof UnavailableError) {
        next.state = { ...next.state, status: 'damaged', problem: error.message };
        return error;
      }
      // One damaged queue says nothing of Redis and of the others.
      next.state = { ...unread(queue), problem: typedError(error, `the look at queue "${queue}"`).message };
      return undefined;
    }
  }

  async #nextHour(queue: string, shards: number): Promise<number[]> {
    const { context } = this.source;
    const own = context.stores(queue);
    const stores = own.length === shards ? own : context.storesFor(queue, shards);
    const counts = await Promise.all(
      stores.map(async (store) => ((await store.call('timeline', ['-', `+${HOUR_MS}`, 60])) as number[]).slice(9)),
    );
    return counts[0]!.map((_, n) => sum(counts.map((ofShard) => ofShard[n] ?? 0)));
  }
}

function unread(queue: string): QueueState {
  const nothing = { delayed: 0, due: 0, running: 0, dead: 0, completed: 0, lagMs: 0, shards: 0, nextHour: [] };
  return { queue, status: 'damaged', ...nothing, paused: false, publishingPaused: false };
}

function stateOf(queue: string, shards: readonly ShardCounts[]): Omit<QueueState, 'nextHour'> {
  const { nextDueAt, delayed, due, running, dead, completed, paused, publishingPaused, lagMs, limited } =
    sumCounts(shards);
  const left = shards.filter(isUnattended);
  const waits = left.some((shard) => shard.due > 0 || leftBehindMs(shard) > 0);
  let status: QueueStatus = 'ok';
  if (paused) status = 'paused';
  else if (waits) status = 'unattended';
  else if (lagMs > HEALTH_DEFAULTS.lagDegradedMs) status = 'lagging';
  else if (publishingPaused) status = 'publishingPaused';
  const counts = { delayed, due, running, dead, completed, paused, publishingPaused, lagMs };
  return {
    queue,
    status,
    ...counts,
    ...(nextDueAt && { nextDueAt: nextDueAt.getTime() }),
    shards: shards.length,
    ...(limited !== undefined && { limited }),
  };
}
