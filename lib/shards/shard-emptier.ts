import { groupNumberIn } from '../job/envelope.js';
import { groupNumberOf } from '../job/place.js';
import type { AnyScriptName } from '../lua/scripts.js';
import { decodeRecord } from '../recurring/schedule-record.js';
import { shardOfJob } from './shard-hash.js';
import type { ShardMarks } from './shard-marks.js';

/** The answer of lib/lua/reshard/move-out.lua about one job. */
const VALUES = 11;
/** The answer of lib/lua/reshard/schedules-out.lua about one schedule. */
const VALUES_OF_SCHEDULES = 9;
const MOST_IDS = 200;
const MOST_BYTES = 1024 * 1024;

/** Values of one record of lib/lua/reshard/move-out.lua. */
const ENVELOPE = 3;
const UNIQUE = 6;
const KEPT = 9;

interface Kind {
  readonly out: 'moveOut' | 'schedulesOut';
  readonly in: 'moveIn' | 'schedulesIn';
  readonly off: 'moveOff' | 'schedulesOff';
  readonly values: number;
  /** The number of the group that such a record names; undefined where it would, but nothing tells any more. */
  groupOf(record: readonly string[]): number | undefined;
}

const JOBS: Kind = { out: 'moveOut', in: 'moveIn', off: 'moveOff', values: VALUES, groupOf: groupOfJob };
const SCHEDULES: Kind = {
  out: 'schedulesOut',
  in: 'schedulesIn',
  off: 'schedulesOff',
  values: VALUES_OF_SCHEDULES,
  groupOf: ([, , text = '']) => groupNumberOf(decodeRecord(text)?.definition.place),
};

/** Runs a script in the shard `to`; its answer says that `from` may let go of what it was given. */
export type Giving = (
  from: ShardMarks,
  to: ShardMarks,
  script: AnyScriptName,
  args: readonly (string | number)[],
) => Promise<void>;

/** Moves what no longer belongs into a shard to the shards that there are after a change of their number. */
export class ShardEmptier {
  /** Jobs, dead letters, uniqueness windows and schedules so far. */
  moved = 0;

  /**
   * @param moving the state in which all of these shards are
   * @param hasGroups only what is stored of a job tells where it belongs
   */
  constructor(
    private readonly news: readonly ShardMarks[],
    private readonly moving: string,
    private readonly hasGroups: boolean,
    private readonly give: Giving,
  ) {}

  async empty(tag: ShardMarks): Promise<void> {
    for (const index of ['due', 'quarantine', 'dead', 'unique', 'completed', 'zoned'] as const) {
      await this.#each(tag, index, JOBS);
    }
    await this.#each(tag, 'ticks', SCHEDULES);
  }

  async #each(tag: ShardMarks, index: Parameters<ShardMarks['pages']>[0], kind: Kind): Promise<void> {
    // Each server has an order of its own: one that takes over, and goes on with the pages of another one, may leave out ids.
    let link: unknown;
    do {
      link = tag.link;
      for await (const page of tag.pages(index)) {
        const ids = this.hasGroups ? page : page.filter((id) => this.#shardOf(id, 0).name !== tag.name);
        while (ids.length > 0) await this.#carry(tag, ids, kind);
      }
    } while (link !== tag.link);
  }

  /** Moves the first of these ids, as many as fit into one call. */
  async #carry(from: ShardMarks, ids: string[], kind: Kind): Promise<void> {
    const args = [this.moving, MOST_BYTES, ...ids.slice(0, MOST_IDS)];
    const values = (await from.run(kind.out, args)) as string[];
    const records = Array.from({ length: values.length / kind.values }, (_, n) =>
      values.slice(n * kind.values, (n + 1) * kind.values),
    );
    ids.splice(0, records.length);
    const leaving = new Map<ShardMarks, string[][]>();
    const gone: string[] = [];
    for (const record of records) {
      const all = this.#destinations(record, kind);
      if (!all.some(({ name }) => name === from.name)) gone.push(record[0]!);
      for (const to of all) if (to.name !== from.name) add(leaving, to, record);
    }
    const give = onceOverEachLink([from, ...leaving.keys()], async () => {
      for (const [to, found] of leaving) await this.give(from, to, kind.in, [this.moving, ...found.flat()]);
    });
    await give();
    if (gone.length === 0) return;
    try {
      await from.run(kind.off, [this.moving, ...gone]);
    } finally {
      await give();
    }
    this.moved += gone.length;
  }

  #destinations(record: readonly string[], kind: Kind): readonly ShardMarks[] {
    if (!this.hasGroups) return [this.#shardOf(record[0]!, 0)];
    const group = kind.groupOf(record);
    return group === undefined ? this.news : [this.#shardOf(record[0]!, group)];
  }

  #shardOf(id: string, group: number): ShardMarks {
    return this.news[shardOfJob(id, group, this.news.length)]!;
  }
}

/**
 * A server that was replaced, or whose slot went to another node, refers to one that may let go of what it never gave, and nobody has waited for
 * a replica of that one. So before something is let go of, and after that, it is given once more; who has it already ignores that.
 *
 * @returns gives, unless it was given since the last change of what these shards are written by
 */
export function onceOverEachLink(shards: readonly ShardMarks[], give: () => Promise<void>): () => Promise<void> {
  const linksNow = () => shards.map(({ link }) => link);
  let given: readonly unknown[] | undefined;
  return async () => {
    for (let links = linksNow(); !given || links.some((link, n) => link !== given![n]); links = linksNow()) {
      await give();
      given = links;
    }
  };
}

function add<Key, Value>(lists: Map<Key, Value[]>, key: Key, value: Value): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

/** Undefined for an id that only its uniqueness window keeps: it is kept in all shards, as its group may be in any. */
function groupOfJob(record: readonly string[]): number | undefined {
  const envelope = record[ENVELOPE]!;
  if (envelope !== '') return groupNumberIn(envelope);
  const kept = record[KEPT]!;
  if (kept !== '') return groupNumberIn(kept.slice(kept.indexOf('\n') + 1));
  return record[UNIQUE] === '' ? 0 : undefined;
}
