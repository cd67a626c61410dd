/** What one shard holds, as lib/lua/counts.lua answers it. Times are the server's, in ms. */
export interface ShardCounts {
  readonly now: number;
  readonly delayed: number;
  /** Those in quarantine are among them. */
  readonly due: number;
  readonly running: number;
  readonly dead: number;
  readonly quarantined: number;
  readonly paused: boolean;
  /** Of the job that has been due for longest; undefined without one. */
  readonly oldestDueAt: number | undefined;
  /** The same of jobs that no limit holds; only of a queue that uses limits. */
  readonly waitingSince?: number | undefined;
  /** Of the delayed job that comes next; undefined without one. */
  readonly nextDueAt: number | undefined;
  /** Processes that sleep until they are woken. */
  readonly idle: number;
  readonly totals: ShardTotals;
  /** When a worker last sent a step; 0 when none ever did. */
  readonly seenAt: number;
  readonly publishingPaused: boolean;
  /** Completed jobs that are kept. */
  readonly completed: number;
  /** Time since the end of the oldest lease whose jobs no worker has recovered. */
  readonly overMs: number;
  readonly schedules: number;
  /** For how long a schedule has needed more occurrences that nobody has made; 0 while the queue is paused. */
  readonly schedulesLateMs: number;
  /** Only of a queue that uses groups, priorities or limits. */
  readonly limits?: {
    /** The queue is at a limit of its own. */
    readonly limited: boolean;
    readonly inLine: number;
    readonly atLimit: number;
    readonly groups: number;
    /** When the next job may start; undefined while none can before a run ends. */
    readonly nextStartAt: number | undefined;
  };
}

/** A live worker recovers the jobs of a dead one within a second or two after their lease. */
const RECOVERED_WITHIN_MS = 5_000;

/** In one shard: age of the oldest due job that no worker has claimed and no limit holds. */
export function overdueMs({ now, oldestDueAt, waitingSince, limits }: ShardCounts): number {
  const since = limits ? waitingSince : oldestDueAt;
  return since === undefined ? 0 : now - since;
}

/** In one shard: how long the lease of a process that is gone has been over. */
export function leftBehindMs({ overMs }: ShardCounts): number {
  return overMs > RECOVERED_WITHIN_MS ? overMs : 0;
}

/** A worker that does not rest looks every 5 s. */
const LOOKED_WITHIN_MS = 15_000;

/** In one shard: no live worker has looked, and none that rests can be expected to look yet. */
export function isUnattended(counts: ShardCounts): boolean {
  const { now, seenAt, idle } = counts;
  if (now - seenAt <= LOOKED_WITHIN_MS) return false;
  return idle === 0 || overdueMs(counts) > LOOKED_WITHIN_MS || leftBehindMs(counts) > 0;
}

/** Counters since the first job. */
export interface ShardTotals {
  readonly enqueued: number;
  readonly completed: number;
  readonly failed: number;
  readonly retried: number;
  readonly dead: number;
  readonly expired: number;
  /** Occurrences of schedules that did not run, because of `missed` or `overlap`. */
  readonly skipped: number;
  /** Undefined before the first job. */
  readonly since: number | undefined;
}

export function parseCounts(raw: unknown): ShardCounts {
  const [now, delayed, due, running, dead, quarantined, paused, oldest, next, idle, ...others] = raw as number[];
  const [enqueued, ended, failed, retried, buried, expired, since, seenAt, publishingPaused, kept, ...more] = others;
  const [overMs = 0, skipped = 0, schedules = 0, schedulesLateMs = 0, ...ofLimits] = more;
  const [limited, inLine, atLimit, groups, waiting, nextStart] = ofLimits;
  return {
    now: now!,
    delayed: delayed!,
    due: due!,
    running: running!,
    dead: dead!,
    quarantined: quarantined!,
    paused: paused === 1,
    oldestDueAt: oldest! < 0 ? undefined : oldest,
    nextDueAt: next! < 0 ? undefined : next,
    idle: idle!,
    totals: {
      enqueued: enqueued!,
      completed: ended!,
      failed: failed!,
      retried: retried!,
      dead: buried!,
      expired: expired!,
      skipped,
      since: since! > 0 ? since : undefined,
    },
    seenAt: seenAt!,
    publishingPaused: publishingPaused === 1,
    completed: kept!,
    overMs,
    schedules,
    schedulesLateMs,
    ...(limited !== undefined && {
      waitingSince: waiting! < 0 ? undefined : waiting,
      limits: {
        limited: limited === 1,
        inLine: inLine!,
        atLimit: atLimit!,
        groups: groups!,
        nextStartAt: nextStart! < 0 ? undefined : nextStart,
      },
    }),
  };
}
