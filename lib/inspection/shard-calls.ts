import type { InstanceContext } from '../instance/instance-context.js';
import { parseCounts } from '../redis/counts.protocol.js';
import type { ShardCounts } from '../redis/counts.protocol.js';
import { typedError } from '../redis/redis.errors.js';
import { FIRST_PAGE, parsePage } from '../recurring/occurrence-pages.js';
import type { Cursor } from '../recurring/occurrence-pages.js';
import { countMadeAhead } from '../recurring/made-ahead.js';
import { shardsInGroup, shardsOf } from '../instance/job-shards.js';
import { CHUNK } from './inspector-options.js';

/** Jobs of these states can be purged. */
export const PURGED_STATES = ['waiting', 'dead', 'completed'] as const;
export type PurgedState = (typeof PURGED_STATES)[number];
/** The same as remove.lua takes them. */
const LETTERS = { waiting: 'w', dead: 'x', completed: 'c' } as const;

/** The calls of the inspector to the shards of a queue. */
export class ShardCalls {
  constructor(private readonly context: InstanceContext) {}

  /** What each shard holds. */
  async counts(queue: string, call?: string): Promise<ShardCounts[]> {
    return (await this.each(queue, 'counts', () => [], call)).map(parseCounts);
  }

  /** How many jobs of each state a purge of each shard would remove. */
  async purgeable(queue: string): Promise<Record<PurgedState, number>[]> {
    const counts = await this.counts(queue, 'purge');
    const stores = this.context.stores(queue);
    try {
      return await Promise.all(
        counts.map(async ({ delayed, due, dead, completed, schedules }, shard) => {
          const ahead = schedules > 0 ? await countMadeAhead(stores[shard]!) : 0;
          return { waiting: Math.max(0, delayed + due - ahead), dead, completed };
        }),
      );
    } catch (error) {
      throw typedError(error, `purge of queue "${queue}"`);
    }
  }

  /**
   * The ids of dead letters of each shard; without ids all shards.
   *
   * @param group that of all these jobs; undefined when the caller does not say
   * @throws InvalidOptionError when several groups have such a dead letter
   */
  async byShard(
    call: string,
    queue: string,
    ids: readonly string[] | undefined,
    group?: string,
  ): Promise<[number, string[] | undefined][]> {
    const stores = this.context.stores(queue);
    if (!ids) return stores.map((_, shard) => [shard, undefined]);
    try {
      const shards =
        group === undefined
          ? await shardsOf(this.context, call, queue, ids, 'dead')
          : shardsInGroup(this.context, queue, ids, group);
      const byShard = stores.map((): string[] => []);
      for (const id of ids) byShard[shards.get(id)!]!.push(id);
      return byShard.map((of, shard) => [shard, of]);
    } catch (error) {
      throw typedError(error, `${call} of queue "${queue}"`);
    }
  }

  /** Removes jobs in one state, in bounded steps: those that schedules have made ahead stay. @returns how many */
  async purge(queue: string, state: PurgedState, shards: Iterable<number>, limit: number): Promise<number> {
    const counts = state === 'waiting' ? await this.counts(queue, 'purge') : [];
    let removed = 0;
    for (const shard of shards) {
      const most = limit - removed;
      if (counts[shard]?.schedules) removed += await this.#purgeBesideSchedules(queue, shard, most);
      else removed += (await this.remove(queue, LETTERS[state], [[shard, undefined]], most)).removed;
    }
    return removed;
  }

  async #purgeBesideSchedules(queue: string, shard: number, limit: number): Promise<number> {
    const calls = this.context.ofShard(queue, shard);
    const { movedMs } = this.context.connection;
    let removed = 0;
    let cursor: Cursor | undefined = FIRST_PAGE;
    while (cursor && removed < limit) {
      const most = Math.min(CHUNK, limit - removed);
      const page = parsePage(await calls.run('purgeWaiting', 'all', [CHUNK, most, ...cursor, movedMs]));
      removed += parseInt(page.found, 10);
      cursor = page.cursor;
    }
    return removed;
  }

  /** Removes jobs in one state, in bounded steps. @returns how many, and how many each shard still has */
  async remove(
    queue: string,
    state: 'w' | 'x' | 'c',
    shards: Iterable<readonly [number, readonly string[] | undefined]>,
    limit: number,
  ): Promise<{ removed: number; left: Map<number, number> }> {
    let removed = 0;
    const left = new Map<number, number>();
    for (const [shard, ids] of shards) {
      for (let at = 0; ;) {
        const most = Math.min(CHUNK, limit - removed);
        const chunk = ids?.slice(at, at + most) ?? [];
        if (most <= 0 || (ids && chunk.length === 0)) break;
        at += chunk.length;
        const call = this.context.ofShard(queue, shard).run('remove', chunk[0] ?? 'all', [state, most, -1, ...chunk]);
        const [gone, remaining] = (await call).split(' ').map(Number) as [number, number];
        removed += gone;
        left.set(shard, remaining);
        if (!ids && gone === 0) break;
      }
    }
    return { removed, left };
  }

  /**
   * Switches a flag of the queue. The last call wins, also when a call that was given up arrives after it. Each shard first gives the call
   * a place in the order of all such calls, for the copy of a call that arrives late looks like a new one.
   */
  async set(
    queue: string,
    script: 'pause' | 'pausePublishing',
    value: '0' | '1',
    call: string = script,
  ): Promise<void> {
    const places = (await this.each(queue, script, () => ['?'], call)) as string[];
    await this.each(queue, script, (shard) => [value, places[shard]!], call);
  }

  /**
   * Calls a script in every shard for which there are arguments.
   *
   * @param call what the user called, for messages
   */
  async each(
    queue: string,
    script: 'counts' | 'list' | 'listGroup' | 'pause' | 'pausePublishing',
    argsOf: (index: number) => (string | number)[] | undefined,
    call: string = script,
  ): Promise<unknown[]> {
    const calls = this.context.stores(queue).map(async (store, index) => {
      const args = argsOf(index);
      return args && store.call(script, args);
    });
    try {
      return await Promise.all(calls);
    } catch (error) {
      throw typedError(error, `${call} of queue "${queue}"`);
    }
  }
}
