import { shardOf } from './shard-hash.js';
import type { ShardMarks } from './shard-marks.js';

/** The answer of lib/lua/reshard/move-out.lua about one job. */
const VALUES = 11;
/** The answer of lib/lua/reshard/schedules-out.lua about one schedule. */
const VALUES_OF_SCHEDULES = 6;
const MOST_IDS = 200;
const MOST_BYTES = 1024 * 1024;

type Carry = (from: ShardMarks, to: ShardMarks, group: string[]) => Promise<void>;

/** Moves what no longer belongs into a shard to the shards that there are after a change of their number. */
export class ShardEmptier {
  /** Jobs, dead letters, uniqueness windows and schedules so far. */
  moved = 0;

  /** @param moving the state in which all of these shards are */
  constructor(
    private readonly news: readonly ShardMarks[],
    private readonly moving: string,
  ) {}

  async empty(tag: ShardMarks): Promise<void> {
    for (const index of ['due', 'quarantine', 'dead', 'unique', 'completed', 'zoned'] as const) {
      await this.#each(tag, index, this.#carryJobs);
    }
    await this.#each(tag, 'ticks', this.#carrySchedules);
  }

  async #each(tag: ShardMarks, index: Parameters<ShardMarks['pages']>[0], carry: Carry): Promise<void> {
    for await (const ids of tag.pages(index)) {
      const groups = new Map<ShardMarks, string[]>();
      for (const id of ids) {
        const to = this.news[shardOf(id, this.news.length)]!;
        if (to.name === tag.name) continue;
        const group = groups.get(to);
        if (group) group.push(id);
        else groups.set(to, [id]);
      }
      for (const [to, group] of groups) {
        while (group.length > 0) await carry(tag, to, group);
      }
    }
  }

  /** Moves the first ids of a group, as many as fit into one call. */
  readonly #carryJobs: Carry = async (from, to, group) => {
    const args = [this.moving, MOST_BYTES, ...group.slice(0, MOST_IDS)];
    const records = (await from.run('moveOut', args)) as string[];
    const ids = group.splice(0, records.length / VALUES);
    await to.run('moveIn', [this.moving, ...records]);
    await from.run('moveOff', [this.moving, ...ids]);
    this.moved += ids.length;
  };

  readonly #carrySchedules: Carry = async (from, to, group) => {
    const args = [this.moving, MOST_BYTES, ...group.slice(0, MOST_IDS)];
    const records = (await from.run('schedulesOut', args)) as string[];
    const ids = group.splice(0, records.length / VALUES_OF_SCHEDULES);
    await to.run('schedulesIn', [this.moving, ...records]);
    await from.run('schedulesOff', [this.moving, ...ids]);
    this.moved += ids.length;
  };
}
