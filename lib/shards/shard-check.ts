import { ShardCountError } from '../delay-queue.errors.js';
import { shardName } from '../redis/keys.js';
import type { RedisConnection } from '../redis/redis.connection.js';
import { Resharding, WHILE_EMPTY } from '../shards/resharding.js';
import { baseState, parseChange, shardTaken, storedCount } from './shard-state.js';
import { ShardMarks } from './shard-marks.js';

const TRIES = 5;

/**
 * Makes sure that a queue has as many shards as this process says, once per process and whenever a script says that it is
 * not so. The first one to come writes the number under the name of the queue, and marks each shard: after that, scripts
 * compare by themselves.
 */
export class ShardCheck {
  /** A later difference is for people to solve: two versions of an application would change it to and fro. */
  #opened = false;
  #running: Promise<void> | undefined;

  constructor(
    private readonly connection: RedisConnection,
    private readonly prefix: string,
    private readonly queue: string,
    private readonly count: number,
  ) {}

  /** @throws ShardCountError, InvalidQueueError; what the connection throws, also while the number is being changed */
  open(): Promise<void> {
    this.#running ??= this.#open().finally(() => (this.#running = undefined));
    return this.#running;
  }

  async #open(): Promise<void> {
    const { queue, count } = this;
    const resharding = new Resharding(this.connection, this.prefix, queue);
    const base = this.#tag(queue);
    for (let tries = 0; tries < TRIES; tries++) {
      const found = count === 1 ? undefined : await base.mark(baseState(count), 'u', ['']);
      const state = found ? found.state : await base.state();
      const change = parseChange(state);
      if (change?.mark.startsWith(WHILE_EMPTY)) {
        await resharding.finishIfEmpty(change);
        continue;
      }
      if (change) throw new Error(`DQMOVING ${state} of queue "${queue}"`);
      const stored = found?.outcome === 'y' ? count : storedCount(queue, state);
      if (stored === count) {
        if (!(await this.#openShards(resharding))) continue; // The number was changed between the two.
        this.#opened = true;
        return;
      }
      if (this.#opened || !(await resharding.runIfEmpty(stored, count))) {
        throw new ShardCountError(queue, stored, count);
      }
    }
    throw new Error(`DQMOVING the shards of queue "${queue}" are being changed to and fro`);
  }

  async #openShards(resharding: Resharding): Promise<boolean> {
    const { queue, count } = this;
    if (count === 1) return true;
    for (let index = 0; index < count; index++) {
      const own = `${index}/${count}`;
      const tag = this.#tag(shardName(queue, index, count));
      const { outcome, state } = await tag.mark(own, 'u', ['', own]);
      if (outcome === 'u') throw shardTaken(queue, tag.name);
      if (outcome === 'y' || (await resharding.reopen(index, count, state))) continue;
      if (state.startsWith('=')) throw shardTaken(queue, tag.name); // That name is a queue which is split itself.
      return false;
    }
    return true;
  }

  #tag(name: string): ShardMarks {
    return new ShardMarks(this.connection, this.prefix, name);
  }
}
