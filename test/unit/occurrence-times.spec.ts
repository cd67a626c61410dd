import { describe, expect, it } from '@jest/globals';
import { jitterOf, timesOf } from '../../lib/recurring/occurrence-times.js';

/** All times of a stretch. */
async function between(cron: string, timeZone: string, from: string, to: string): Promise<string[]> {
  const times = await timesOf({ cron, timeZone }, 'test');
  const found: string[] = [];
  for (let at = times.next(Date.parse(from)); at! < Date.parse(to); at = times.next(at!))
    found.push(new Date(at!).toISOString().slice(5, 16));
  return found;
}

describe('when clocks change', () => {
  const spring = ['2027-03-27T23:00Z', '2027-03-28T03:00Z'] as const;
  const autumn = ['2027-10-30T22:00Z', '2027-10-31T03:00Z'] as const;

  it.each([
    ['30 2 * * *', ['03-28T01:00'], ['10-31T00:30']],
    ['0,30 2 * * *', ['03-28T01:00'], ['10-31T00:00', '10-31T00:30']],
    [
      '0 * * * *',
      ['03-28T00:00', '03-28T01:00', '03-28T02:00'],
      ['10-30T23:00', '10-31T00:00', '10-31T01:00', '10-31T02:00'],
    ],
  ])('%s occurs at times that exist, and a fixed time once', async (cron, inSpring, inAutumn) => {
    expect(await between(cron, 'Europe/Berlin', ...spring)).toEqual(inSpring);
    expect(await between(cron, 'Europe/Berlin', ...autumn)).toEqual(inAutumn);
  });
});

describe('times that are counted without a visit to each', () => {
  const DAY = 86_400_000;
  const crons = [
    '*/5 * * * *',
    '*/7 2 * * *',
    '*/20 30 1-3 * * *',
    '5 0,2,3 * * *',
    '0 2 * * 0',
    '@hourly',
    '59 23 28-31 * *',
  ];
  // Their clocks change in these stretches: by an hour, by half an hour, at midnight, and for a month.
  const stretches = [
    ['UTC', '2027-03-27T22:10Z'],
    ['Europe/Berlin', '2027-03-26T22:10Z'],
    ['Europe/Berlin', '2027-10-29T22:10Z'],
    ['Australia/Lord_Howe', '2027-04-02T07:00Z'],
    ['Australia/Lord_Howe', '2027-10-01T07:00Z'],
    ['America/Santiago', '2027-04-02T11:11Z'],
    ['America/Santiago', '2027-09-03T11:11Z'],
    ['Africa/Cairo', '2027-04-28T11:11Z'],
    ['Africa/Casablanca', '2027-02-06T11:11Z'],
    ['Asia/Kathmandu', '2027-02-06T11:11Z'],
  ] as const;

  it.each(stretches)('are as many, in %s from %s', async (timeZone, from) => {
    const after = Date.parse(from);
    const until = after + 3 * DAY;
    for (const cron of crons) {
      const times = await timesOf({ cron, timeZone }, '');
      const all: number[] = [];
      for (let at = times.next(after)!; at <= until; at = times.next(at)!) all.push(at);
      const untilThen = (end: number) => all.filter((at) => at <= end);
      const counted = (end: number, most: number) => {
        let [count, reached] = [0, after];
        for (;;) {
          const part = times.count(reached, end, most - count);
          count += part.count;
          reached = part.until;
          expect([cron, reached, count]).toEqual([cron, reached, untilThen(reached).length]);
          if (part.isOver) return count;
        }
      };
      for (const part of [0.37, 0.52, 1]) {
        const end = Math.floor(after + part * (until - after));
        expect([cron, part, counted(end, Infinity)]).toEqual([cron, part, untilThen(end).length]);
        expect([cron, part, times.latest(after, end)]).toEqual([cron, part, untilThen(end).at(-1)]);
        const most = Math.floor(part * all.length);
        expect([cron, most, counted(until, most)]).toEqual([cron, most, most]);
      }
    }
  });

  it('of a grid as well', async () => {
    const times = await timesOf({ everyMs: 1_000, anchor: 250 }, '');
    expect(times.count(250, 250 + 90 * DAY, Infinity)).toMatchObject({ count: 90 * 86_400, isOver: true });
    expect(times.count(250, 250 + 90 * DAY, 7)).toEqual({ count: 7, until: 7_250, isOver: true });
    expect(times.count(250, 1_249, 7)).toMatchObject({ count: 0, isOver: true });
    expect([times.latest(250, 1_249), times.latest(250, 1_250)]).toEqual([undefined, 1_250]);
  });
});

describe('the jitter', () => {
  it('of an occurrence is always the same, and spread over the whole of it', () => {
    const all = Array.from({ length: 1_000 }, (_, n) => jitterOf('s', n * 60_000, 1_000));
    expect(all).toEqual(Array.from({ length: 1_000 }, (_, n) => jitterOf('s', n * 60_000, 1_000)));
    expect(Math.min(...all)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...all)).toBeLessThan(1_000);
    const mean = all.reduce((sum, ms) => sum + ms) / all.length;
    expect(Math.abs(mean - 500)).toBeLessThan(50);
  });
});
