import { InvalidOptionError } from '../delay-queue.errors.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { parseInstant } from '../job/duration.js';
import { integer, readOptions } from '../job/option-rules.js';
import type { OptionRules } from '../job/option-rules.js';
import { typedError } from '../redis/redis.errors.js';
import { sum } from './queue-counts.js';

export interface TimelineOptions {
  /** The first moment that counts: a Date or epoch ms. Default: now, by the clock of Redis. */
  from?: Date | number;
  /** The first moment that counts no more. Default: 24 hours after `from`. */
  to?: Date | number;
  /** Into how many buckets the time is cut: 1 to 120. Default 60. There are fewer when they would be shorter than 1 ms. */
  buckets?: number;
}

/** How many jobs fall due when. */
export interface Timeline {
  /** When it was counted, by the clock of Redis. */
  now: Date;
  from: Date;
  to: Date;
  /** Of a bucket; the last one may be narrower. */
  widthMs: number;
  /** Jobs whose due time lies in each bucket. Running jobs and those in quarantine lie in none. */
  counts: number[];
  /** Jobs that are due by `now`, wherever the timeline begins; those in quarantine among them. */
  overdue: number;
  /** Jobs with a due time before `from`. */
  before: number;
  /** Jobs with a due time at `to` or later. */
  after: number;
  /** The earliest and the latest due time of all; undefined when no job waits. */
  firstDueAt: Date | undefined;
  lastDueAt: Date | undefined;
}

/** So many counts of a range one call of lib/lua/timeline.lua makes at most. */
export const MOST_BUCKETS = 120;
const DEFAULT_LENGTH_MS = 86_400_000;

interface Draft {
  from?: number;
  to?: number;
  buckets: number;
}

const RULES: OptionRules<TimelineOptions, Draft> = {
  from: (draft, value, field) => {
    draft.from = parseInstant(value, field);
  },
  to: (draft, value, field) => {
    draft.to = parseInstant(value, field);
  },
  buckets: (draft, value, field) => {
    draft.buckets = integer(value, 1, MOST_BUCKETS, field);
  },
};

/** Of a queue with shards the sum over its shards, each of which is counted at its own moment. */
export async function readTimeline(
  context: InstanceContext,
  queue: string,
  options: TimelineOptions,
): Promise<Timeline> {
  const naming = (option: string) => `timeline("${queue}", { ${option} })`;
  const { from, to, buckets } = readOptions(options, RULES, { buckets: 60 } as Draft, naming);
  if (from !== undefined && to !== undefined && to <= from) throw emptyRange(naming('to'));
  const [first, ...others] = context.stores(queue);
  try {
    // The shards may lie on servers with different clocks: what the first one takes for now is taken for all.
    const one = parseShard(
      await first!.call('timeline', [from ?? '-', to === undefined ? `+${DEFAULT_LENGTH_MS}` : to, buckets]),
    );
    if (one.counts.length === 0) throw emptyRange(naming('to'));
    const calls = others.map(async (store) => parseShard(await store.call('timeline', [one.from, one.to, buckets])));
    return together([one, ...(await Promise.all(calls))]);
  } catch (error) {
    throw typedError(error, `timeline("${queue}")`);
  }
}

function emptyRange(field: string): InvalidOptionError {
  return new InvalidOptionError(`${field}: is not behind \`from\`, which is now unless it is given.`);
}

type ShardTimeline = ReturnType<typeof parseShard>;

function parseShard(raw: unknown) {
  const [now, from, to, widthMs, overdue, before, after, first, last, ...counts] = raw as number[];
  return {
    now: now!,
    from: from!,
    to: to!,
    widthMs: widthMs!,
    overdue: overdue!,
    before: before!,
    after: after!,
    first: first! < 0 ? [] : [first!],
    last: last! < 0 ? [] : [last!],
    counts,
  };
}

function together(shards: readonly ShardTimeline[]): Timeline {
  const { now, from, to, widthMs, counts } = shards[0]!;
  const all = (of: 'overdue' | 'before' | 'after') => sum(shards.map((shard) => shard[of]));
  const firsts = shards.flatMap(({ first }) => first);
  const lasts = shards.flatMap(({ last }) => last);
  return {
    now: new Date(now),
    from: new Date(from),
    to: new Date(to),
    widthMs,
    counts: counts.map((_, n) => sum(shards.map((shard) => shard.counts[n]!))),
    overdue: all('overdue'),
    before: all('before'),
    after: all('after'),
    firstDueAt: firsts.length > 0 ? new Date(Math.min(...firsts)) : undefined,
    lastDueAt: lasts.length > 0 ? new Date(Math.max(...lasts)) : undefined,
  };
}
