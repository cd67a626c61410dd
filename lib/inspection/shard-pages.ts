import { InvalidOptionError } from '../delay-queue.errors.js';
import { isStoredId } from '../job/job-id.js';

/**
 * How far a listing has come in one shard: score and id of the last job that was listed. A number of jobs would not do: when
 * some of them have gone, that many others would be skipped.
 */
export interface ShardCursor {
  readonly score: string;
  readonly id: string;
}

/** Undefined for a shard whose end was reached. */
export type Cursors = readonly (ShardCursor | undefined)[];

/** What lib/lua/list.lua answers of one shard. */
export type ShardPage = readonly [more: number, ...values: string[]];

export const BEGINNING: ShardCursor = { score: '-', id: '' };
/** Values that lib/lua/list.lua tells of one job. */
const WIDTH = 5;
/** A score as Redis tells it, `-` before the first one, `s` and a score in quarantine. */
export const SCORE = /^(?:-|s?-?(?:inf|\d{1,20}(?:\.\d{1,20})?(?:e[+-]?\d{1,3})?))$/;

/** @throws InvalidOptionError when it was not made by `writeCursor` for that many shards */
export function readCursor(text: string, shards: number, field: string): Cursors {
  let entries: unknown;
  try {
    entries = JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    // The error below says it.
  }
  if (!Array.isArray(entries) || entries.length === 0) throw notACursor(field);
  const cursors = entries.map((entry) => {
    if (entry === null && entries.length > 1) return undefined;
    const [score, id] = Array.isArray(entry) && entry.length === 2 ? entry : [];
    const isId = id === '' || isStoredId(id);
    if (typeof score !== 'string' || !SCORE.test(score) || !isId) throw notACursor(field);
    return { score, id: id as string };
  });
  if (cursors.length !== shards)
    throw new InvalidOptionError(`${field}: is of a queue with another number of shards; list from the beginning.`);
  return cursors;
}

function notACursor(field: string): InvalidOptionError {
  return new InvalidOptionError(`${field}: is not what list() gave as cursor.`);
}

function writeCursor(cursors: Cursors): string {
  const entries = cursors.map((cursor) => (cursor ? [cursor.score, cursor.id] : null));
  return Buffer.from(JSON.stringify(entries)).toString('base64url');
}

/** Jobs in quarantine are listed after all due jobs. */
function rank(score: string): number {
  return score.startsWith('s') ? Infinity : Number(score);
}

/**
 * Puts the pages of all shards together to one, in the order of their scores. It ends where the page of a shard with more jobs
 * ends: its further jobs may come before those that are left of the other pages.
 *
 * @param pages what lib/lua/list.lua answered, for each shard that had not ended
 * @returns the jobs as listed, and where to go on; no cursor after the last one
 */
export function mergePages(
  pages: readonly (ShardPage | undefined)[],
  cursors: Cursors,
  limit: number,
): { jobs: string[][]; cursor?: string } {
  const jobs: string[][] = [];
  const raws = pages.map((page) => page?.slice(1) as string[] | undefined);
  const taken = raws.map(() => 0);
  const scoreAt = (shard: number, n: number) => raws[shard]?.[n * WIDTH + 1];
  const isUnknown = (shard: number) => pages[shard]?.[0] === 1 && scoreAt(shard, taken[shard]!) === undefined;
  while (jobs.length < limit && !raws.some((_, shard) => isUnknown(shard))) {
    let next = -1;
    for (let shard = 0; shard < raws.length; shard++) {
      const score = scoreAt(shard, taken[shard]!);
      if (score !== undefined && (next < 0 || rank(score) < rank(scoreAt(next, taken[next]!)!))) next = shard;
    }
    if (next < 0) break;
    const at = taken[next]!++ * WIDTH;
    jobs.push(raws[next]!.slice(at, at + WIDTH));
  }
  const after = cursors.map((cursor, shard) => {
    const raw = raws[shard];
    const count = taken[shard]!;
    if (!cursor || !raw || (count * WIDTH === raw.length && !isUnknown(shard))) return undefined;
    return count === 0 ? cursor : { score: scoreAt(shard, count - 1)!, id: raw[(count - 1) * WIDTH]! };
  });
  return after.every((cursor) => !cursor) ? { jobs } : { jobs, cursor: writeCursor(after) };
}
