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
