import { ShardCountError } from '../delay-queue.errors.js';
import { ShardKeys, shardName } from '../redis/keys.js';
import type { RedisConnection } from '../redis/redis.connection.js';
import type { Resharding } from './resharding.js';
import { baseState, hasGroupsWord, parseChange, shardTaken, storedCount, WHILE_EMPTY } from './shard-state.js';
import { ShardMarks } from './shard-marks.js';

const TRIES = 5;

/**
 * Makes sure that a queue has as many shards as this process says: once per process, and whenever a script refuses a call
 * because of it. The first process writes the number under the name of the queue and marks each shard. After that, scripts
 * compare by themselves.
 */
export class ShardCheck {
  /** After that a difference is an error for operators: two versions of an application would change the number to and fro. */
  #opened = false;
  #running: Promise<void> | undefined;

  constructor(
    private readonly connection: RedisConnection,
    private readonly prefix: string,
    private readonly queue: string,
    private readonly count: number,
  ) {}

  /** @throws ShardCountError, InvalidQueueError; errors of the connection, also while the number is being changed */
  open(): Promise<void> {
    this.#running ??= this.#open().finally(() => (this.#running = undefined));
    return this.#running;
  }

  /** With `connect: 'lazy'` nothing is checked before that. */
  answered(): void {
    this.#opened = true;
  }

  /**
   * Before the first job with a group is stored in any shard, all are made such that may have them: so whoever finds one that may not
   * needs to look for a job in the shard of its id only.
   *
   * @throws errors of the connection
   */
  async beginGroups(): Promise<void> {
    const { connection, prefix, queue, count } = this;
    await connection.whenReady();
    const shards = Array.from({ length: count }, (_, index) => new ShardKeys(prefix, queue, index, count));
    const begun = shards.map((keys) => connection.run('limit', keys.fixed, keys.session('none'), ['', 'w']));
    await Promise.all(begun);
  }

  async #open(): Promise<void> {
    const { queue, count } = this;
    const base = this.#tag(queue);
    for (let tries = 0; tries < TRIES; tries++) {
      const found = count === 1 ? undefined : await base.mark(baseState(count), 'u', ['']);
      const state = found ? found.state : await base.state();
      const change = parseChange(state);
      if (change?.mark.startsWith(WHILE_EMPTY)) {
        await (await this.#resharding()).finishIfEmpty(change);
        continue;
      }
      if (change) throw new Error(`DQMOVING ${state} of queue "${queue}"`);
      const stored = found?.outcome === 'y' ? count : storedCount(queue, state);
      if (stored === count) {
        if (!(await this.#openShards())) continue; // The number was changed between the two.
        this.#opened = true;
        return;
      }
      if (this.#opened || !(await (await this.#resharding()).runIfEmpty(stored, count))) {
        throw new ShardCountError(queue, stored, count);
      }
    }
    throw new Error(`DQMOVING the shards of queue "${queue}" are being changed to and fro`);
  }

  async #openShards(): Promise<boolean> {
    const { queue, count } = this;
    if (count === 1) return true;
    const tags: ShardMarks[] = [];
    let isNew = false;
    for (let index = 0; index < count; index++) {
      const own = `${index}/${count}`;
      const tag = this.#tag(shardName(queue, index, count));
      const { outcome, state } = await tag.mark(own, 'u', ['', own]);
      tags.push(tag);
      isNew ||= outcome === 'y' && state === '';
      if (outcome === 'u') throw shardTaken(queue, tag.name);
      if (outcome === 'y' || (await (await this.#resharding()).reopen(index, count, state))) continue;
      if (state.startsWith('=')) throw shardTaken(queue, tag.name); // That name is a queue which is split itself.
      return false;
    }
    // Such as one that was removed while others of the queue went on.
    if (isNew && (await anyHasGroups(tags))) await this.beginGroups();
    return true;
  }

  /** Loaded on demand: hardly any process meets a queue that has another number of shards than it says. */
  async #resharding(): Promise<Resharding> {
    const { Resharding } = await import('./resharding.js');
    return new Resharding(this.connection, this.prefix, this.queue);
  }

  #tag(name: string): ShardMarks {
    return new ShardMarks(this.connection, this.prefix, name);
  }
}

async function anyHasGroups(shards: readonly ShardMarks[]): Promise<boolean> {
  const metas = await Promise.all(shards.map((tag) => tag.meta(['needs'])));
  return metas.some(([needs]) => hasGroupsWord(needs));
}
