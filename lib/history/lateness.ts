import { LATENESS_BOUNDS } from '../tally/tally.js';
import { sum } from './minute-counts.js';

/** How late jobs started, as far as buckets tell it. */
export interface Lateness {
  /** Half of the jobs started within this time, ms; between the bounds of a bucket it is interpolated. */
  p50Ms: number;
  p99Ms: number;
  /** None started later than this: the upper bound of the last bucket with a job. Infinity above five minutes. */
  mostMs: number;
  meanMs: number;
  /** Jobs by lateness: `boundsMs` are the upper bounds, and the last bucket is above all of them. */
  buckets: number[];
}

/** Upper bounds of the buckets of lateness, ms. */
export const LATENESS_BOUNDS_MS: readonly number[] = LATENESS_BOUNDS.map((seconds) => seconds * 1_000);

/** @returns undefined when no job started */
export function latenessOf(buckets: readonly number[], totalMs: number): Lateness | undefined {
  const count = sum(buckets);
  if (count === 0) return undefined;
  const last = buckets.findLastIndex((jobs) => jobs > 0);
  return {
    p50Ms: quantile(buckets, count, 0.5),
    p99Ms: quantile(buckets, count, 0.99),
    mostMs: LATENESS_BOUNDS_MS[last] ?? Infinity,
    meanMs: totalMs / count,
    buckets: [...buckets],
  };
}

/** Above the last bound nothing is known but that bound. */
function quantile(buckets: readonly number[], count: number, part: number): number {
  let below = 0;
  for (const [n, jobs] of buckets.entries()) {
    const from = LATENESS_BOUNDS_MS[n - 1] ?? 0;
    const to = LATENESS_BOUNDS_MS[n] ?? from;
    if (jobs > 0 && below + jobs >= part * count) return from + ((to - from) * (part * count - below)) / jobs;
    below += jobs;
  }
  return LATENESS_BOUNDS_MS.at(-1)!;
}
