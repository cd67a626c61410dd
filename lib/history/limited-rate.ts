import type { QueueLimits } from '../job/queue-limits.js';
import type { ShardCounts } from '../redis/counts.protocol.js';
import type { MinuteCounts } from './minute-counts.js';

/** At most `max` starts within any window of this length. */
export interface StartWindow {
  readonly max: number;
  readonly lengthMs: number;
  /** When its next start may be, if it is full now. */
  readonly opensAt: number | undefined;
}

/** A rate as the limits of the queue leave it, and what decides it, if that is one of them. */
export interface LimitedRate {
  /** Jobs per second. */
  readonly rate: number;
  readonly limit: 'globalConcurrency' | 'rateLimit' | undefined;
  /** Whether or not it decides in the long run: a window lets many start at once. */
  readonly window: StartWindow | undefined;
}

/**
 * @param rate of the processes: jobs per second, when there is enough to do
 * @param limits of the queue; those of groups are left out, because nobody knows how the jobs are divided among groups
 * @param counts what the processes counted lately: how long runs last
 */
export function limitedRate(
  rate: number,
  limits: QueueLimits | undefined,
  { ran = 0, ranMs = 0 }: MinuteCounts,
  { limits: present }: ShardCounts,
): LimitedRate {
  const { globalConcurrency, rateLimit } = limits ?? {};
  const most = {
    globalConcurrency:
      globalConcurrency !== undefined && ranMs > 0 ? (globalConcurrency * 1_000 * ran) / ranMs : Infinity,
    rateLimit: rateLimit ? (rateLimit.max * 1_000) / Number(rateLimit.per) : Infinity,
  };
  const lowest = most.globalConcurrency < most.rateLimit ? 'globalConcurrency' : 'rateLimit';
  const window = rateLimit && {
    max: rateLimit.max,
    lengthMs: Number(rateLimit.per),
    opensAt: present?.limited ? present.nextStartAt : undefined,
  };
  return { rate: Math.min(rate, most[lowest]), limit: most[lowest] < rate ? lowest : undefined, window };
}
