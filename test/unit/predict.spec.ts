import { describe, expect, it } from '@jest/globals';
import { coarsest, predict, predictWindows } from '../../lib/history/predict.js';
import type { Arrivals, Backlog } from '../../lib/history/predict.js';

const NOW = 1_000_000;
const MINUTE = 60_000;

/** What really happens to jobs that start one after the other, each so long after the one before: the latest one, and the end. */
function happens(dues: readonly number[], perMs: number): { latestMs: number; until: number } {
  let [free, latestMs, until] = [NOW, 0, NOW];
  for (const due of dues) {
    const start = Math.max(free, due);
    if (start - due > latestMs) latestMs = start - due;
    free = start + 1 / perMs;
    if (start > due) until = free;
  }
  return { latestMs, until };
}

/** How many of them are before that time; they are in order. */
function before(dues: readonly number[], time: number): number {
  let [low, high] = [0, dues.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (dues[middle]! < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Due times counted as the timeline counts them, and looked at more closely as the forecast does. */
function counted(dues: readonly number[], perMs: number): Arrivals[] {
  const look = (from: number, to: number): Arrivals[] => {
    const width = Math.max(1, Math.ceil((to - from) / 120));
    const spans: Arrivals[] = [];
    for (let start = from; start < to; start += width) {
      const end = Math.min(start + width, to);
      const jobs = before(dues, end) - before(dues, start);
      if (jobs > 0) spans.push({ from: start, to: end, jobs });
    }
    return spans;
  };
  let spans = [...(dues[0]! < NOW ? look(dues[0]!, NOW) : []), ...look(NOW, NOW + 24 * 60 * MINUTE)];
  for (let n = 0; n < 16; n++) {
    const coarse = coarsest(spans, perMs);
    if (!coarse) break;
    const finer = look(coarse.from, coarse.to);
    spans = spans.flatMap((span) => (span === coarse ? finer : span));
  }
  return spans;
}

const worst = (backlogs: readonly Backlog[]) => backlogs.toSorted((a, b) => b.latestMs - a.latestMs)[0]!;
const burst = 200_000;
const times = (count: number, at: (n: number) => number) => Array.from({ length: count }, (_, n) => Math.floor(at(n)));
const SHAPES: Record<string, readonly number[]> = {
  'all at one moment, in an hour': times(burst, () => NOW + 60 * MINUTE),
  'all at one moment, a moment from now': times(burst, () => NOW + 30_000),
  'over ten seconds': times(burst, (n) => NOW + MINUTE + n * (10_000 / burst)),
  'ever more over twenty seconds': times(burst, (n) => NOW + MINUTE + 20_000 * Math.sqrt(n / burst)),
  'overdue since a minute': times(burst, (n) => NOW - MINUTE + n * (MINUTE / burst)),
  'half of it overdue, the other half to come': times(burst, (n) => NOW - 5_000 + n * (10_000 / burst)),
  'on top of a steady load that alone would fit': [
    ...times(600_000, (n) => NOW + n),
    ...times(burst, () => NOW + 2 * MINUTE),
  ].toSorted((a, b) => a - b),
};

describe('a burst of 200,000 jobs', () => {
  it.each(Object.keys(SHAPES))('%s: the latest job and the end are foretold within two percent', (shape) => {
    const dues = SHAPES[shape]!;
    for (const perSecond of [2_000, 9_500]) {
      const real = happens(dues, perSecond / 1_000);
      const found = worst(predict(counted(dues, perSecond / 1_000), NOW, perSecond / 1_000));
      expect(found.latestMs / real.latestMs).toBeGreaterThan(0.98);
      expect(found.latestMs / real.latestMs).toBeLessThan(1.02);
      const [takes, took] = [found.until - NOW, real.until - NOW];
      expect(takes / took).toBeGreaterThan(0.98);
      expect(takes / took).toBeLessThan(1.02);
    }
  });
});

describe('a burst of 200,000 jobs under a rate limit', () => {
  const lengthMs = 10_000;
  /** The same where a job starts only when that which is `max` before it has left the window. */
  function happensWithin(dues: readonly number[], perMs: number, max: number): { latestMs: number; until: number } {
    const starts: number[] = [];
    let latestMs = 0;
    for (const [n, due] of dues.entries()) {
      const opens = n < max ? NOW : starts[n - max]! + lengthMs;
      const start = Math.max(due, opens, (starts[n - 1] ?? NOW) + 1 / perMs);
      starts.push(start);
      latestMs = Math.max(latestMs, start - due);
    }
    return { latestMs, until: starts.at(-1)! };
  }

  it.each(Object.keys(SHAPES).slice(0, -1))(
    '%s: the latest job and the end are foretold within five percent',
    (shape) => {
      const dues = SHAPES[shape]!;
      const perMs = 9.5;
      // Many windows, a few, and more than can be looked at in parts.
      for (const max of [1_000, 90_000, 3]) {
        const real = happensWithin(dues, perMs, max);
        const found = predictWindows(counted(dues, Math.min(perMs, max / lengthMs)), NOW, perMs, {
          max,
          lengthMs,
          opensAt: undefined,
        });
        expect([max, Math.abs(worst(found).latestMs / real.latestMs - 1) < 0.05]).toEqual([max, true]);
        expect([max, Math.abs((found.at(-1)!.until - NOW) / (real.until - NOW) - 1) < 0.05]).toEqual([max, true]);
      }
    },
  );

  it('waits for a window that is full, and has no backlog where it has room', () => {
    const arrivals = [{ from: NOW, to: NOW, jobs: 100 }];
    const window = { max: 100, lengthMs, opensAt: NOW + 3_000 };
    expect(predictWindows(arrivals, NOW, 1, window)[0]!.latestMs).toBeGreaterThanOrEqual(3_000);
    const room = predictWindows(arrivals, NOW, 1, { ...window, opensAt: undefined });
    expect(worst(room).latestMs).toBeLessThan(100);
  });
});

describe('the prediction', () => {
  it('has no backlog while everything can be started in time', () => {
    expect(predict([{ from: NOW, to: NOW + 1_000, jobs: 900 }], NOW, 1)).toEqual([]);
  });

  it('tells two backlogs apart when jobs start on time between them', () => {
    const at = (from: number): Arrivals => ({ from, to: from + 1, jobs: 1_000 });
    const found = predict([at(NOW + 1_000), at(NOW + 5_000)], NOW, 1);
    expect(found.map(({ from, until, jobs }) => ({ from, until, jobs }))).toEqual([
      { from: NOW + 1_000, until: NOW + 2_000, jobs: 1_000 },
      { from: NOW + 5_000, until: NOW + 6_000, jobs: 1_000 },
    ]);
  });

  it('takes backlogs that run into each other for one', () => {
    const at = (from: number): Arrivals => ({ from, to: from + 1, jobs: 1_000 });
    const [one, ...others] = predict([at(NOW + 1_000), at(NOW + 1_500)], NOW, 1);
    expect(others).toEqual([]);
    expect(one).toMatchObject({ from: NOW + 1_000, until: NOW + 3_000, jobs: 2_000, latestDueAt: NOW + 1_501 });
    expect(one!.latestMs).toBe(3_000 - 1_501);
  });

  it('ends a backlog where jobs that come more slowly catch up', () => {
    const found = predict(
      [
        { from: NOW, to: NOW, jobs: 1_000 },
        { from: NOW, to: NOW + 10_000, jobs: 5_000 },
      ],
      NOW,
      1,
    );
    expect(found).toMatchObject([{ until: NOW + 2_000, latestMs: 1_000 }]);
    expect(found[0]!.jobs).toBe(2_000);
  });
});
