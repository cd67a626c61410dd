import { InvalidOptionError } from '../delay-queue.errors.js';

/** How far a listing has come in one shard: the last score, and how many jobs of that score were listed. */
export interface ShardCursor {
  readonly score: string;
  readonly skip: number;
}

/** Undefined for a shard whose end was reached. */
export type Cursors = readonly (ShardCursor | undefined)[];

export const BEGINNING: ShardCursor = { score: '-', skip: 0 };
const ENDED = '.';
/** Values that lib/lua/list.lua tells of one job. */
const WIDTH = 5;

/** @throws InvalidOptionError when it was not made by `writeCursor` for that many shards */
export function readCursor(text: string, shards: number, field: string): Cursors {
  const parts = text.split('|');
  const cursors = parts.map((part) => {
    if (part === ENDED && parts.length > 1) return undefined;
    const [, score, skip] = /^(-?[\d.e+]+|-?inf|-):(\d{1,9})$/.exec(part) ?? [];
    if (skip === undefined) throw new InvalidOptionError(`${field}: is not what list() gave as cursor.`);
    return { score: score!, skip: Number(skip) };
  });
  if (cursors.length !== shards)
    throw new InvalidOptionError(`${field}: is of a queue with another number of shards; list from the beginning.`);
  return cursors;
}

function writeCursor(cursors: Cursors): string {
  return cursors.map((cursor) => (cursor ? `${cursor.score}:${cursor.skip}` : ENDED)).join('|');
}

/** Suspects come after all that is due: their place in the line is behind it. */
function rank(score: string): number {
  return score === '-inf' ? Infinity : Number(score);
}

/**
 * Puts the pages of all shards together to one, in the order of their scores.
 *
 * @param raws what lib/lua/list.lua answered, for each shard that had not ended
 * @returns the jobs as told, and where to go on; no cursor when that is nowhere
 */
export function mergePages(
  raws: readonly (readonly string[] | undefined)[],
  cursors: Cursors,
  limit: number,
): { jobs: string[][]; cursor?: string } {
  const jobs: string[][] = [];
  const taken = raws.map(() => 0);
  const scoreAt = (shard: number, n: number) => raws[shard]?.[n * WIDTH + 1];
  while (jobs.length < limit) {
    let next = -1;
    for (let shard = 0; shard < raws.length; shard++) {
      const score = scoreAt(shard, taken[shard]!);
      if (score !== undefined && (next < 0 || rank(score) < rank(scoreAt(next, taken[next]!)!))) next = shard;
    }
    if (next < 0) return { jobs };
    const at = taken[next]!++ * WIDTH;
    jobs.push(raws[next]!.slice(at, at + WIDTH));
  }
  const after = cursors.map((cursor, shard) => {
    const raw = raws[shard];
    if (!cursor || !raw || (taken[shard] === raw.length / WIDTH && taken[shard]! < limit)) return undefined;
    if (taken[shard] === 0) return cursor;
    const score = scoreAt(shard, taken[shard]! - 1)!;
    let skip = 0;
    for (let n = 0; n < taken[shard]!; n++) if (scoreAt(shard, n) === score) skip++;
    return { score, skip: score === cursor.score ? skip + cursor.skip : skip };
  });
  return after.every((cursor) => !cursor) ? { jobs } : { jobs, cursor: writeCursor(after) };
}
