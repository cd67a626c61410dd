import { PublishingPausedError, QueueFullError, UnavailableError } from '../delay-queue.errors.js';
import { decodeEnvelope, withoutPlace } from '../job/envelope.js';
import type { Envelope } from '../job/envelope.js';
import { groupNumberOf, placeOf } from '../job/place.js';
import { LEASE_MS } from '../job/queue-definition.js';
import type { EnqueueBatcher } from '../producer/enqueue-batcher.js';
import { Handover } from '../producer/handover.js';
import { movedSpec } from '../producer/job-spec.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { nodeOf } from '../redis/redis.client.js';
import type { DurabilityRequirement } from '../redis/replication-barrier.js';
import { NotSentError, typedError } from '../redis/redis.errors.js';
import { shardsInGroup, shardsOf } from '../instance/job-shards.js';
import type { ShardPage } from './shard-pages.js';

/**
 * What `move()` made of a job:
 * - `'moved'`: the target holds it, the queue does not
 * - `'exists'`: the target has a job under this id already, or had one within its `uniqueFor`; it stays where it is
 * - `'running'`, `'dead'`, `'notFound'`: only waiting jobs are moved; it is as it was
 * - `'cancelled'`: `cancel(queue, id, { running: true })` came while it was on its way, and ended it in both queues
 * - `'leaseLost'`: moving it took longer than the lease; the queue has it again, and the target may have it as well
 */
export type MoveOutcome = 'moved' | 'exists' | 'running' | 'dead' | 'notFound' | 'cancelled' | 'leaseLost';

export interface MoveResult {
  id: string;
  outcome: MoveOutcome;
}

/** Where jobs are that are to be moved, as far as it is known. */
export interface MovedFrom {
  readonly group?: string | undefined;
  readonly shard?: number;
}

interface Held {
  readonly id: string;
  readonly dueAt: number;
}

/** A job as the target is given it. */
interface Item extends Held {
  readonly spec: ReturnType<typeof movedSpec>;
  readonly content: string;
  readonly place: string | undefined;
  /** What must have come about in the target before the queue lets go of it. */
  readonly demand?: DurabilityRequirement | undefined;
  /** Due at a local time. */
  readonly isLocal: boolean;
}

/** Older than all that there are. */
const NO_ZONE_DATA = '';
/** Of its script calls, in errors. */
const MOVE = { call: 'move' } as const;
const CHUNK = 200;
const MAX_BYTES = 1024 * 1024;
/** A chunk makes up to 8 calls of up to `commandTimeout` each, among them one that waits for as long; the lease covers 10. */
const CALLS = 10;
const LEAST_LEASE_MS = 30_000;
const REFUSALS = { r: 'running', x: 'dead', n: 'notFound' } as const;

/**
 * Moves jobs between two queues, which on a Cluster are two slots, so no script sees both. It works like a worker whose
 * handler enqueues the job elsewhere: holds it under a lease, puts it into the target, lets go of it. Cut anywhere, the
 * job is in at least one of them.
 *
 * A failover may lose what the target was given and not that the job was let go of: then it would be lost however long it had been
 * stored. What one link carries is lost from its end on, so the queue is told to let go of a job over the link by which the target was
 * given it. After a change of the link the target is given it once more before that. On a Cluster the two may be on two nodes: see Handover.
 */
export class JobMover {
  readonly #leaseMs: number;
  readonly #handover: Handover;

  constructor(
    private readonly shards: InstanceContext,
    private readonly from: string,
    private readonly to: string,
    private readonly maxSize: number | undefined,
  ) {
    const longest = CALLS * shards.options.commandTimeoutMs;
    this.#handover = new Handover(shards.connection, shards.durable, shards.options);
    this.#leaseMs = Math.min(LEASE_MS.max, Math.max(LEAST_LEASE_MS, longest));
  }

  /** @param where the group or the shard of all these jobs; neither when the caller does not say */
  async move(ids: readonly string[], where: MovedFrom): Promise<MoveResult[]> {
    const unique = [...new Set(ids)];
    const outcomes = new Map<string, MoveOutcome>();
    const shards = this.shards.stores(this.from).length;
    const shardOfId = await this.#find(unique, where);
    for (let shard = 0; shard < shards; shard++) {
      const left = unique.filter((id) => shardOfId.get(id) === shard);
      while (left.length > 0) left.splice(0, await this.#moveChunk(shard, left.slice(0, CHUNK), outcomes));
    }
    return unique.map((id) => ({ id, outcome: outcomes.get(id)! }));
  }

  async #find(ids: readonly string[], { group, shard }: MovedFrom): Promise<Map<string, number>> {
    if (shard !== undefined) return new Map(ids.map((id) => [id, shard]));
    if (group !== undefined) return shardsInGroup(this.shards, this.from, ids, group);
    try {
      return await shardsOf(this.shards, 'move', this.from, ids);
    } catch (error) {
      throw typedError(error, `move from queue "${this.from}"`);
    }
  }

  /** @returns how many ids, counted from the first, have a known outcome; at least 1 */
  async #moveChunk(shard: number, ids: readonly string[], outcomes: Map<string, MoveOutcome>): Promise<number> {
    const queue = this.shards.ofShard(this.from, shard);
    const answer = await queue.run('reserve', ids[0]!, [this.#leaseMs, MAX_BYTES, ...ids], MOVE);
    const [claim, ...words] = answer.split(' ') as [string, ...string[]];
    const held: Held[] = [];
    for (const [index, word] of words.entries()) {
      if (word.startsWith('h')) held.push({ id: ids[index]!, dueAt: Number(word.slice(1)) });
      else outcomes.set(ids[index]!, REFUSALS[word as keyof typeof REFUSALS]);
    }
    if (held.length > 0) await this.#handOver(shard, claim, held, outcomes);
    return words.length;
  }

  async #handOver(
    shard: number,
    claim: string,
    held: readonly Held[],
    outcomes: Map<string, MoveOutcome>,
  ): Promise<void> {
    const moved: string[] = [];
    const stay: string[] = [];
    let failure: unknown;
    const items = new Map<string, Item>();
    let links = await this.#links(shard);
    const hasChanged = () => this.#haveChanged(shard, links);
    // What a replica has is not written again: by then it may have run.
    const writeAgain = async (ids: readonly string[]) => {
      const [now, demand] = [await this.#links(shard), this.#demands(shard)];
      const again = ids.map((id) => items.get(id)!).filter((item) => !item.demand);
      await Promise.all(again.map(async (item) => items.set(item.id, await this.#writeAgain(item, demand))));
      links = now;
    };
    // A node of a Cluster that was replaced refers the driver to the new one, which may let go of what it did not give.
    const isCluster = 'nodes' in this.shards.connection.commands;
    const before = async () => {
      while (await hasChanged()) {
        // Elsewhere a job that the queue holds no longer was let go of behind what the target was given, and may have run.
        const kept: Map<string, unknown> = isCluster ? items : await this.#envelopes(shard, claim, held.length);
        await writeAgain(moved.filter((id) => kept.has(id)));
      }
    };
    const sent = await this.#send(shard, claim, held, items).catch((error: unknown) => held.map(() => error));
    for (const [index, { id }] of held.entries()) {
      const result = sent[index];
      if (result === 'created') moved.push(id);
      else if (result === 'kept' || result === undefined) stay.push(id);
      else {
        failure ??= result;
        // Perhaps the target has the job, so it is not given back now: both queues would run it.
        if (!(result instanceof UnavailableError && result.maybeAccepted)) stay.push(id);
      }
    }
    const all = [...moved, ...stay];
    if (all.length > 0) {
      let answer = '';
      try {
        // To wait for a replica may take longer than a call may. What else fails the call tries again.
        if (isCluster) await before().catch(throwIfInDoubt);
        const args = [claim, moved.length, ...all];
        answer = await this.shards.ofShard(this.from, shard).run('unreserve', all[0]!, args, { ...MOVE, before });
      } finally {
        if (isCluster && (await hasChanged().catch(() => true))) await writeAgain(moved);
      }
      const words = answer.split(' ');
      for (const [index, word] of words.entries()) {
        const id = all[index]!;
        const left = index < moved.length;
        if (word === 'c' && left) await this.#callsTo(id, items.get(id)?.place).run('cancel', id, [id, 1], MOVE);
        outcomes.set(id, outcomeOf(word, sent[held.findIndex((job) => job.id === id)]));
      }
    }
    if (failure !== undefined) throw failure;
  }

  /** The calls to the shard of the target in which the job is, or is to be. */
  #callsTo(id: string, place: string | undefined): EnqueueBatcher {
    return this.shards.of({ queue: this.to, id, place });
  }

  /**
   * Puts held jobs into the target.
   *
   * @param items is given what was written of each of them
   * @returns for each job: `'created'`; `'kept'`, if the target had a job under the id; the error, if the target refused
   *   it; undefined, if the lease was lost before it was sent
   */
  async #send(shard: number, claim: string, held: readonly Held[], items: Map<string, Item>): Promise<unknown[]> {
    const envelopes = await this.#envelopes(shard, claim, held.length);
    const demand = this.#demands(shard);
    const sent = held.map(async ({ id, dueAt }) => {
      const content = envelopes.get(id);
      if (content === undefined) return undefined; // The lease is lost: another worker may run the job.
      const read = readable(content);
      const place = read && placeOf(read.header.group, read.priority);
      const isLocal = read?.header.zoned?.at === dueAt;
      const item = { id, spec: movedSpec(dueAt, this.maxSize), content: withoutPlace(content), place, dueAt, isLocal };
      const asked: Item = { ...item, demand: await demand(item) };
      items.set(id, asked);
      return this.#write(asked);
    });
    const settled = await Promise.allSettled(sent);
    return settled.map((result) => (result.status === 'fulfilled' ? result.value : result.reason));
  }

  /** What must have come about in the target before the queue lets go of a job; asked once for each shard of the target. */
  #demands(from: number): (item: Item) => Promise<DurabilityRequirement | undefined> {
    const asked = new Map<number, Promise<DurabilityRequirement | undefined>>();
    const here = this.shards.stores(this.from)[from]!.keys;
    return ({ id, place }) => {
      const shard = this.shards.shardOf(this.to, id, groupNumberOf(place));
      let demand = asked.get(shard);
      if (!demand) {
        demand = this.#handover.demand(here, this.shards.stores(this.to)[shard]!.keys).catch((error: unknown) => {
          throw typedError(error, `move to queue "${this.to}"`);
        });
        asked.set(shard, demand);
      }
      return demand;
    };
  }

  /** @returns `'created'` or `'kept'` @throws what the target refuses it with, UnavailableError */
  async #write(item: Item): Promise<unknown> {
    const server = item.demand && this.#serverOf(item);
    const { outcome, reached, shortfall } = await this.#put(item);
    if (shortfall === undefined || outcome !== 'created') return outcome;
    return this.#takeBack(item, shortfall, reached === undefined ? undefined : server);
  }

  /**
   * After a change of the links the target may be on a node of its own, as when its slot went there meanwhile: so a replica is waited for
   * where none was. First it is written: what is lost in both queues must not wait for an answer to what is to be waited for. The job is not
   * taken back, because the queue may have let go of it.
   *
   * @returns with what has come about
   * @throws what the target refuses it with, UnavailableError, what `demands` throws
   */
  async #writeAgain(item: Item, demands: (item: Item) => Promise<DurabilityRequirement | undefined>): Promise<Item> {
    const written = { ...item, spec: movedSpec(item.dueAt, undefined) };
    await this.#put(written);
    const again = { ...written, demand: await demands(item) };
    const shortfall = again.demand && (await this.#put(again)).shortfall;
    if (shortfall === undefined) return again;
    const advice = 'It may be in both queues. Look when the lease of this call is over, and cancel it in one of them.';
    throw new UnavailableError(`move("${this.from}", ids, "${this.to}"): ${shortfall} ${advice}`, {
      ids: [item.id],
      maybeAccepted: true,
      cause: this.shards.durable.problem,
    });
  }

  /** @returns also how many replicas have it, and in words what is missing @throws what the target refuses it with, UnavailableError */
  async #put(item: Item): Promise<{ outcome: string; reached: number | undefined; shortfall: string | undefined }> {
    const { id, spec, content, place, dueAt, isLocal, demand } = item;
    // Nobody knows by which zone data it was computed: the next process that boots looks at it again.
    if (isLocal) await this.#callsTo(id, place).run('zone', id, [NO_ZONE_DATA, id, dueAt], MOVE);
    const calls = this.shards.of({ queue: this.to, id, place, demand });
    const [reply] = await calls.enqueueMany([{ id, spec, content, place }]);
    if (reply instanceof Error) throw reply;
    const { outcome, dueAt: size, reached } = reply!;
    if (outcome === 'queueFull') throw new QueueFullError(this.to, this.maxSize!, size);
    if (outcome === 'publishingPaused') throw new PublishingPausedError(this.to);
    return { outcome, reached, shortfall: demand && this.#handover.shortfall(demand, reached) };
  }

  /** The link to the server that has the shard of the target, if calls that wait for replicas go to that server as well. */
  #serverOf({ id, place }: Item): object | undefined {
    const { connection, durable } = this.shards;
    const { due } = this.shards.stores(this.to)[this.shards.shardOf(this.to, id, groupNumberOf(place))]!.keys;
    const [node, other] = [connection, durable.connection].map((one) => one && nodeOf(one.commands, due));
    const { options, stream } = (node ?? {}) as { options?: { host?: string; port?: number }; stream?: object };
    return other && other.options.host === options?.host && other.options.port === options?.port ? stream : undefined;
  }

  /**
   * The target has it, and not as safely as it must.
   *
   * @param server that was given it, if that is known
   * @returns `'created'` when the target has begun with it already
   * @throws UnavailableError when the target has it no longer
   */
  async #takeBack(item: Item, shortfall: string, server: object | undefined): Promise<unknown> {
    const { id, place } = item;
    const answer = await this.#callsTo(id, place).run('cancel', id, [id, 0], MOVE);
    // It may have run to its end meanwhile. But another server may have taken over without it, and then it would be nowhere.
    const isLost = answer.startsWith('n') && (server === undefined || server !== this.#serverOf(item));
    if (!answer.startsWith('c') && !isLost) return 'created';
    throw new UnavailableError(
      `move("${this.from}", ids, "${this.to}"): ${shortfall} So it stays in its queue. Move it again when that node's replicas follow it.`,
      { ids: [id], cause: this.shards.durable.problem },
    );
  }

  /** Where that shard of the queue and those of the target are written at this moment; undefined of one of which nobody knows. */
  #links(from: number): Promise<unknown[]> {
    const stores = [this.shards.stores(this.from)[from]!, ...this.shards.stores(this.to)];
    return Promise.all(stores.map(({ keys }) => this.#handover.linkTo(keys).catch(() => undefined)));
  }

  /** @throws NotSentError where nobody knows */
  async #haveChanged(from: number, links: readonly unknown[]): Promise<boolean> {
    const now = await this.#links(from);
    if (now.includes(undefined)) throw new NotSentError();
    return now.some((link, n) => link !== links[n]);
  }

  /** The envelopes of the jobs that the claim still holds, by id. */
  async #envelopes(shard: number, claim: string, count: number): Promise<Map<string, string>> {
    let raw: string[];
    try {
      // `list` gives running jobs in the order of their claims, from this claim on. It needs no limit of bytes here:
      // reserve.lua limited them when it claimed the jobs.
      const args = ['r', '-', '-', claim, '', count, Number.MAX_SAFE_INTEGER];
      const page = (await this.shards.stores(this.from)[shard]!.call('list', args)) as ShardPage;
      raw = page.slice(1) as string[];
    } catch (error) {
      throw typedError(error, `move from queue "${this.from}"`);
    }
    const envelopes = new Map<string, string>();
    for (let i = 0; i < raw.length; i += 5) {
      if (Number(raw[i + 1]) === Number(claim)) envelopes.set(raw[i]!, raw[i + 4]!);
    }
    return envelopes;
  }
}

/** The target was given the jobs, and no replica has them. */
function throwIfInDoubt(error: unknown): void {
  if (error instanceof UnavailableError && error.maybeAccepted) throw error;
}

/** Undefined for what no library can read: the worker says what is wrong with it. */
function readable(envelope: string): Envelope | undefined {
  try {
    return decodeEnvelope(envelope);
  } catch {
    return undefined;
  }
}

/**
 * @param word what lib/lua/unreserve.lua answered about the job
 * @param sent what the target answered before that
 */
function outcomeOf(word: string, sent: unknown): MoveOutcome {
  if (word === 'c') return 'cancelled';
  if (sent === 'kept') return 'exists';
  return sent === 'created' && word !== 'l' ? 'moved' : 'leaseLost';
}
