import { expect, it } from '@jest/globals';
import { LATENESS_BOUNDS_MS, latenessOf } from '../../lib/history/lateness.js';

const buckets = (jobs: Record<number, number>) => [...LATENESS_BOUNDS_MS, Infinity].map((bound) => jobs[bound] ?? 0);

it('is not known without jobs', () => {
  expect(latenessOf(buckets({}), 0)).toBeUndefined();
});

it('is interpolated within a bucket', () => {
  // A hundred jobs between 250 and 500 ms.
  expect(latenessOf(buckets({ 500: 100 }), 40_000)).toMatchObject({
    p50Ms: 375,
    p99Ms: 497.5,
    mostMs: 500,
    meanMs: 400,
  });
});

it('tells the few late ones from the many on time', () => {
  const { p50Ms, p99Ms, mostMs } = latenessOf(buckets({ 1: 980, 30_000: 20 }), 0)!;
  expect(p50Ms).toBeLessThanOrEqual(1);
  expect(p99Ms).toBe(17_500);
  expect(mostMs).toBe(30_000);
});

it('knows no bound for what was later than five minutes', () => {
  expect(latenessOf(buckets({ [Infinity]: 1 }), 0)).toMatchObject({ p50Ms: 300_000, mostMs: Infinity });
});
