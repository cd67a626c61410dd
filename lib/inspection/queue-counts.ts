import { leftBehindMs, overdueMs } from '../redis/counts.protocol.js';
import type { ShardCounts, ShardTotals } from '../redis/counts.protocol.js';
import type { JobState } from '../redis/letters.js';

export interface QueueCounts {
  delayed: number;
  due: number;
  running: number;
  dead: number;
  /** Completed jobs that `keepCompleted` keeps; those that were ever completed are counted by `totals()`. */
  completed: number;
  paused: boolean;
  /** Every enqueue is refused, see `pausePublishing()`. */
  publishingPaused: boolean;
  /**
   * Age of the oldest due job that no worker has claimed, or time since the end of a lease whose jobs no worker has
   * recovered, ms; 0 without either.
   */
  lagMs: number;
  nextDueAt: Date | undefined;
  schedules: number;
  /**
   * For how long a schedule has needed more occurrences that no worker has made, ms. They are made 30 s and more before they are due;
   * 0 while the queue or its publishing is paused.
   */
  schedulesLateMs: number;
  /** The queue is at a limit of its own, or one of its shards at its share. Only of a queue that uses groups, priorities or limits. */
  limited?: boolean;
  /** Groups in line for a turn, those at a limit, and all; jobs without a group are one more in each shard. Only as `limited`. */
  groups?: { inLine: number; limited: number; total: number };
}

export interface QueueTotals {
  enqueued: number;
  completed: number;
  /** Runs that ended in failure or timeout. */
  failed: number;
  retried: number;
  dead: number;
  expired: number;
  /** Occurrences of schedules that did not run, because of `missed` or `overlap`. */
  skipped: number;
  /** When counting began: the first job of the queue. */
  since: Date | undefined;
}

export function sumCounts(shards: readonly ShardCounts[]): QueueCounts {
  const all = (state: JobState) => sum(shards.map((counts) => counts[state]));
  const lags = shards.map((counts) => Math.max(overdueMs(counts), leftBehindMs(counts)));
  const nexts = shards.map((counts) => counts.oldestDueAt ?? counts.nextDueAt).filter((at) => at !== undefined);
  return {
    delayed: all('delayed'),
    due: all('due'),
    running: all('running'),
    dead: all('dead'),
    completed: all('completed'),
    paused: shards.some(({ paused }) => paused),
    publishingPaused: shards.some(({ publishingPaused }) => publishingPaused),
    lagMs: Math.max(...lags),
    nextDueAt: nexts.length > 0 ? new Date(Math.min(...nexts)) : undefined,
    schedules: sum(shards.map(({ schedules }) => schedules)),
    schedulesLateMs: Math.max(...shards.map(({ schedulesLateMs }) => schedulesLateMs)),
    ...limitsIn(shards),
  };
}

function limitsIn(shards: readonly ShardCounts[]): Pick<QueueCounts, 'limited' | 'groups'> {
  const limits = shards.map((counts) => counts.limits).filter((found) => found !== undefined);
  if (limits.length === 0) return {};
  return {
    limited: limits.some(({ limited }) => limited),
    groups: {
      inLine: sum(limits.map(({ inLine }) => inLine)),
      limited: sum(limits.map(({ atLimit }) => atLimit)),
      total: sum(limits.map(({ groups }) => groups)),
    },
  };
}

export function sumTotals(shards: readonly ShardTotals[]): QueueTotals {
  const all = (kind: Exclude<keyof QueueTotals, 'since'>) => sum(shards.map((totals) => totals[kind]));
  const sinces = shards.map(({ since }) => since).filter((since) => since !== undefined);
  return {
    enqueued: all('enqueued'),
    completed: all('completed'),
    failed: all('failed'),
    retried: all('retried'),
    dead: all('dead'),
    expired: all('expired'),
    skipped: all('skipped'),
    since: sinces.length > 0 ? new Date(Math.min(...sinces)) : undefined,
  };
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
