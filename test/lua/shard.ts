import { DelayQueueInspector } from '../../lib/inspection/delay-queue.inspector.js';
import { decodeEnvelope } from '../../lib/job/envelope.js';
import type { AnyScriptName } from '../../lib/lua/scripts.js';
import { DelayQueueProducer } from '../../lib/producer/delay-queue.producer.js';
import type { InstanceContext } from '../../lib/instance/instance-context.js';
import type { ShardKeys } from '../../lib/redis/keys.js';
import type { RedisConnection } from '../../lib/redis/redis.connection.js';
import { parseAttempts } from '../../lib/redis/step.protocol.js';
import type { Settlement } from '../../lib/worker/settlement.js';
import type { StoredQueue, World } from '../helpers/world.js';
import { Peer } from './peer.js';

export type State = (typeof STATES)[number];
export const STATES = [
  'none',
  'delayed',
  'due',
  'running',
  'quarantined',
  'dead',
  'completed',
  'cancelled',
  'expired',
] as const;

const ENDINGS: Partial<Record<State, Settlement>> = {
  completed: { verb: 'complete' },
  expired: { verb: 'expired' },
  dead: { verb: 'dead', reason: 'exhausted', error: '{}', charge: true },
};

/** What is stored of one id. */
export interface Seen {
  state: 'none' | 'delayed' | 'due' | 'running' | 'quarantined' | 'dead';
  payload?: unknown;
  /** Score in `due`. */
  dueAt?: number;
  attempts?: number;
  /** Payload of the followup, or 'cancelled', or 'held': on its way to another queue. */
  followup?: unknown;
  /** A followup of a run that was cancelled before. */
  aborts?: true;
}

export const HOUR = 3_600_000;
const MARKS: Record<string, string> = { '!': 'cancelled', '=': 'held' };

let queues = 0;

/** One shard, of a queue that nobody else uses, and the ways into it. */
export class Shard {
  readonly queue = `q${queues++}`;
  readonly keys: ShardKeys;
  readonly producer: DelayQueueProducer;
  readonly inspector: DelayQueueInspector;
  /** A worker for whatever a test needs done, not for what it tests. */
  readonly #helper: Peer;

  constructor(
    readonly world: World,
    readonly connection: RedisConnection,
    producers: InstanceContext,
  ) {
    this.keys = world.shardKeys(this.queue);
    this.producer = new DelayQueueProducer(producers);
    this.inspector = new DelayQueueInspector(producers);
    this.#helper = this.peer();
  }

  key(name: string): string {
    return this.world.key(this.queue, name);
  }

  run(script: AnyScriptName, session: string, args: (string | number)[]): Promise<unknown> {
    return this.connection.run(script, this.keys.fixed, session, args);
  }

  peer(): Peer {
    return new Peer(this);
  }

  read(): Promise<StoredQueue> {
    return this.world.read(this.queue);
  }

  now(): Promise<number> {
    return this.world.now();
  }

  meta(fields: Record<string, string | number>): Promise<unknown> {
    return this.world.redis.hset(this.key('meta'), fields);
  }

  /** Stores jobs that are due, the first one first. */
  async fill(...ids: string[]): Promise<void> {
    const from = (await this.now()) - 1_000;
    const jobs = ids.map((id, n) => ({ payload: id, id, at: from + Math.min(n, 999) }));
    await this.producer.enqueueMany(this.queue, jobs);
  }

  /** Ends a lease `agoMs` ago; of a job that is alone the mark stays. */
  async expire(claim: number, agoMs = 1): Promise<void> {
    const was = Number(await this.world.redis.zscore(this.key('leases'), claim));
    await this.world.redis.zadd(this.key('leases'), 'XX', (await this.now()) - agoMs + (was % 1), claim);
  }

  /** A job that failed once, in this state. @returns the claim number of a running one, and of one in quarantine the lost one */
  async put(state: State, id: string, payload: unknown = 'old'): Promise<number> {
    if (state === 'none') return 0;
    const helper = this.#helper;
    await this.producer.enqueue(this.queue, payload, { id });
    await helper.settle(await helper.take(id), id, { verb: 'retry', delayMs: 0, error: '{}' });
    if (state === 'cancelled') await this.producer.cancel(this.queue, id);
    if (state === 'delayed') await this.world.makeDue(this.queue, id, -HOUR);
    if (state === 'due') await this.world.makeDue(this.queue, id, 1_000);
    if (['cancelled', 'delayed', 'due'].includes(state)) return 0;
    const claim = await helper.take(id);
    const ending = ENDINGS[state];
    if (ending) await helper.settle(claim, id, ending);
    if (state === 'quarantined') {
      await this.expire(claim);
      await helper.step({ sweep: true });
    }
    return claim;
  }

  async see(id: string): Promise<Seen> {
    const { due, running, quarantine, dead, jobs, followups, attempts } = await this.read();
    const now = await this.now();
    const state = ((): Seen['state'] => {
      if (id in running) return 'running';
      if (id in quarantine) return 'quarantined';
      if (id in dead) return 'dead';
      return id in due ? (due[id]! > now ? 'delayed' : 'due') : 'none';
    })();
    const after = followups[id];
    return {
      state,
      ...(jobs[id] !== undefined && { payload: payloadOf(jobs[id]) }),
      ...(due[id] !== undefined && { dueAt: due[id] }),
      ...(attempts[id] !== undefined && { attempts: parseAttempts(attempts[id]).charged }),
      ...(after !== undefined && { followup: MARKS[after] ?? MARKS[after[0]!.replace('!', '')] ?? payloadOf(after.replace(/^!/, '')) }), // prettier-ignore
      ...(after?.startsWith('!') && after !== '!' && { aborts: true }),
    };
  }

  /** Everything but sessions, for tests that nothing changed. `seen` and `since` only say that somebody looked. */
  async stored(): Promise<StoredQueue> {
    const all = await this.read();
    for (const field of ['seenAt', 'since', 'layout', 'leader', 'wokenAt']) delete all.meta[field];
    return all;
  }

  /** See `World.problems`. */
  problems(): Promise<string[]> {
    return this.world.problems(this.queue);
  }
}

export function payloadOf(envelope: string): unknown {
  return JSON.parse(decodeEnvelope(envelope).body);
}
