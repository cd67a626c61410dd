import { InvalidOptionError } from '../delay-queue.errors.js';
import { isStoredId } from '../job/job-id.js';
import { BEGINNING, SCORE } from './shard-pages.js';

/** How far a bulk act has come. */
export class BulkCursor {
  isAtEnd = false;
  /** This call ends here: some shards failed. */
  isInterrupted = false;
  /** Of a range: the shard that it is in, and the last job that it met there. */
  shard = 0;
  score = BEGINNING.score;
  id = BEGINNING.id;
  /** Ids that are done; of a range jobs of this shard. */
  place = 0;
  /** Of ids: of those that come next, which are left, counted from `place`. Undefined: all. */
  left: readonly number[] | undefined;
  /** Of a range: jobs of this shard that were in it when the walk came to the shard. */
  total = 0;
  /** Of a range: where new due times begin, ms. */
  base: number | undefined;

  /** Jobs that this call has met, changed or not: what bounds it. */
  met = 0;

  private constructor(
    private readonly isOfIds: boolean,
    private readonly shards: number,
  ) {}

  /** @throws InvalidOptionError when it was not made by `toString()` for such a choice and that many shards */
  static read(text: string | undefined, isOfIds: boolean, shards: number, field: string): BulkCursor {
    const cursor = new BulkCursor(isOfIds, shards);
    if (text === undefined) return cursor;
    const values = parsed(text);
    const [place, count, shard, score, id, total, base] = values;
    const isSound =
      isCount(place) &&
      (isOfIds
        ? values.every((value, n) => isCount(value) && (n < 2 || (value as number) > (values[n - 1] as number)))
        : values.length === 7 &&
          isCount(count) &&
          isCount(shard) &&
          isPosition(score, id) &&
          isCount(total) &&
          isTime(base));
    if (!isSound) throw new InvalidOptionError(`${field}: is not what the call before gave as cursor.`);
    cursor.place = place as number;
    if (isOfIds && values.length > 1) cursor.left = values.slice(1) as number[];
    if (isOfIds) return cursor;
    if (count !== shards || (shard as number) >= shards) {
      throw new InvalidOptionError(`${field}: is of a queue with another number of shards; begin anew.`);
    }
    cursor.shard = shard as number;
    cursor.score = score as string;
    cursor.id = id as string;
    cursor.total = total as number;
    cursor.base = (base as number | null) ?? undefined;
    return cursor;
  }

  /** These jobs of the shard are done. */
  passed(found: readonly { score: string; id: string }[], more: boolean): void {
    this.met += found.length;
    const last = found.at(-1);
    if (more && last) {
      this.score = last.score;
      this.id = last.id;
      this.place += found.length;
      return;
    }
    this.shard++;
    this.score = BEGINNING.score;
    this.id = BEGINNING.id;
    this.place = this.total = 0;
    this.isAtEnd = this.shard >= this.shards;
  }

  toString(): string {
    const { place, shards, shard, score, id, total, base } = this;
    const values = this.isOfIds
      ? [place, ...(this.left ?? [])]
      : [place, shards, shard, score, id, total, base ?? null];
    return Buffer.from(JSON.stringify(values)).toString('base64url');
  }
}

function parsed(text: string): unknown[] {
  try {
    const values: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    return Array.isArray(values) ? values : [];
  } catch {
    return [];
  }
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isTime(value: unknown): boolean {
  return value === null || isCount(value);
}

function isPosition(score: unknown, id: unknown): boolean {
  return typeof score === 'string' && SCORE.test(score) && (id === '' || isStoredId(id));
}
