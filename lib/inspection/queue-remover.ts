import { QueueNotEmptyError } from '../delay-queue.errors.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { parseCounts } from '../redis/counts.protocol.js';
import { fleetKey } from '../redis/fleet.protocol.js';
import { queueNamesKey, shardName } from '../redis/keys.js';
import { baseState, MOST_SHARDS, parseChange, storedCount } from '../shards/shard-state.js';
import type { ShardState } from '../shards/shard-state.js';
import { ShardMarks } from '../shards/shard-marks.js';

/**
 * Deletes a queue whole: the keys of its shards, the marks of shards that ended, then what says how many shards there are, then its
 * name in the list of queues. Killed anywhere, it is called again. Sessions are left to expire, so a resent call still finds its answer.
 */
export class QueueRemover {
  readonly #base: ShardMarks;

  constructor(
    private readonly shards: InstanceContext,
    private readonly queue: string,
  ) {
    this.#base = this.#tag(queue);
  }

  /** @returns how many jobs went with it */
  async run(force: boolean): Promise<number> {
    const { queue, shards } = this;
    const state = await this.#base.state();
    if (parseChange(state)) throw new Error(`DQMOVING ${state} of queue "${queue}"`);
    const count = storedCount(queue, state);
    const stores = shards.storesFor(queue, count);
    let jobs = 0;
    for (const [index, store] of stores.entries()) {
      if (!(await this.#has(index, count))) continue;
      const { delayed, due, running, dead } = parseCounts(await store.call('counts', []));
      jobs += delayed + due + running + dead;
    }
    // Before the first shard goes: one that is refused is refused whole.
    if (jobs > 0 && !force) throw new QueueNotEmptyError(queue, jobs);
    shards.forgetDoubts(queue);
    for (const index of stores.keys()) {
      if (!(await this.#has(index, count))) continue;
      const tag = this.#tag(shardName(queue, index, count));
      const left = await endShard(tag, ownState(index, count), force ? 'f' : 'j');
      // They came in meanwhile.
      if (left !== 'OK') throw new QueueNotEmptyError(queue, Number(left));
    }
    await this.#forgetEnded();
    // Jobs in a shard that somebody has made anew would be in no queue without the number of shards.
    if (count > 1 && !(await this.#hasAny(count))) await this.#base.run('endShard', [baseState(count), '', 'f']);
    await this.#forgetEvents();
    const { connection, options } = shards;
    const key = queueNamesKey(options.prefix);
    await connection.send(() => connection.commands.srem(key, queue), key);
    shards.unannounce(queue);
    // A producer, or a worker that goes on, may have made it anew before its name was gone. From here on they write that, too.
    if ((await isUsed(this.#base)) || (count > 1 && (await this.#hasAny(count)))) {
      if (count > 1) await this.#base.mark(baseState(count), 'u', ['']);
      await connection.send(() => connection.commands.sadd(key, queue), key);
    }
    return jobs;
  }

  /**
   * Marks that changes of the number of shards left where shards had been. How many there once were is written nowhere that outlives
   * a removal by an older version, so every name that a shard can have is looked at: 256 reads, in one go.
   */
  async #forgetEnded(): Promise<void> {
    const names = Array.from({ length: MOST_SHARDS }, (_, index) => this.#tag(`${this.queue}:${index}`));
    const needs = await Promise.all(names.map((tag) => tag.meta(['needs'])));
    for (const [index, tag] of names.entries()) {
      const [, state = ''] = /(?:^|\s)shards:(\S+)/.exec(needs[index]![0] ?? '') ?? [];
      if (!state.startsWith('-/')) continue;
      try {
        await tag.run('endShard', [state, '', '']);
      } catch (error) {
        // A change that has begun since uses the name again.
        if (!(error instanceof Error && error.message.startsWith('DQMOVED'))) throw error;
      }
    }
  }

  /** What the processes told each other. Minutes of history end by themselves. */
  async #forgetEvents(): Promise<void> {
    const { connection, options } = this.shards;
    const key = fleetKey(options.prefix, this.queue);
    await connection.send(() => connection.commands.unlink(key), key);
  }

  /** False when a removal that was killed has deleted the shard; perhaps another queue has its name by now. */
  async #has(index: number, count: number): Promise<boolean> {
    const tag = this.#tag(shardName(this.queue, index, count));
    return (await tag.state()) === ownState(index, count);
  }

  /** Of several shards. */
  async #hasAny(count: number): Promise<boolean> {
    const there = await Promise.all(Array.from({ length: count }, (_, index) => this.#has(index, count)));
    return there.includes(true);
  }

  #tag(name: string): ShardMarks {
    return new ShardMarks(this.shards.connection, this.shards.options.prefix, name);
  }
}

/** @returns OK, or how many jobs are there */
async function endShard(tag: ShardMarks, state: ShardState, keeps: 'f' | 'j'): Promise<unknown> {
  for (;;) {
    const [since] = await tag.meta(['since']);
    const answer = await tag.run('endShard', [state, '', keeps, since ?? '']);
    // Its first job, or its first worker, came in between.
    if (answer !== 'anew') return answer;
  }
}

async function isUsed(tag: ShardMarks): Promise<boolean> {
  return (await tag.meta(['layout', 'needs'])).some((field) => field !== null);
}

function ownState(index: number, count: number): ShardState {
  return count === 1 ? baseState(1) : `${index}/${count}`;
}
