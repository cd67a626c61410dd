import { describe, expect, it } from '@jest/globals';
import { randomOf } from '../chaos/random.mjs';
import { tableOf, verdictOf } from '../soak/verdict.mjs';
import type { Measure, Sample } from '../soak/verdict.mjs';

const LEVEL: Record<Measure, number> = {
  heap: 30,
  external: 3,
  rss: 110,
  handles: 6,
  timers: 40,
  redis: 3,
  keys: 40,
  connections: 5,
};
/** What is ordinary: a heap that breathes, timers that come and go. */
const NOISE: Partial<Record<Measure, number>> = { heap: 0.5, rss: 3, timers: 25, redis: 0.05 };

/** Ten minutes that warm up for three; `more` is what one measure has on top at a time. */
function run(changed?: Measure, more: (seconds: number) => number = () => 0): Sample[] {
  const random = randomOf(5);
  return Array.from({ length: 120 }, (_, n) => {
    const seconds = (n + 1) * 5;
    const of = (name: Measure) => {
      const warming = name === 'rss' || name === 'heap' ? Math.min(0, seconds - 180) / 20 : 0;
      return (
        LEVEL[name] + warming + (random.next() - 0.5) * (NOISE[name] ?? 0) + (changed === name ? more(seconds) : 0)
      );
    };
    return { seconds, ...Object.fromEntries(Object.keys(LEVEL).map((name) => [name, of(name as Measure)])) } as Sample;
  });
}

describe('The verdict on a soak', () => {
  it('is flat for one that warms up and breathes', () => {
    const verdict = verdictOf(run());
    expect(verdict.rows.filter(({ isFlat }) => !isFlat)).toEqual([]);
    expect(verdict.isFlat).toBe(true);
  });

  it.each<[Measure, string, (seconds: number) => number]>([
    ['heap', '20 bytes of each of 200 jobs per second', (seconds) => (seconds * 200 * 20) / 2 ** 20],
    ['external', '2 KiB per second', (seconds) => seconds * 0.002],
    ['rss', '1 MiB a minute', (seconds) => seconds / 60],
    ['handles', 'a socket every five minutes', (seconds) => Math.floor(seconds / 300)],
    ['timers', 'a timer every twenty seconds', (seconds) => seconds / 20],
    ['redis', '3 bytes of each of 200 jobs per second', (seconds) => (seconds * 600) / 2 ** 20],
    ['keys', 'a key a minute', (seconds) => Math.floor(seconds / 60)],
    ['connections', 'one that is never closed', (seconds) => (seconds > 400 ? 1 : 0)],
  ])('finds what grows: %s, by %s', (name, _, more) => {
    const verdict = verdictOf(run(name, more));
    expect(verdict.rows.filter(({ isFlat }) => !isFlat).map((row) => row.name)).toEqual([name]);
    expect(verdict.isFlat).toBe(false);
    expect(tableOf(verdict)).toMatch(/\| NO \|/);
  });

  it('does not mind what only falls', () => {
    expect(verdictOf(run('heap', (seconds) => -seconds / 50)).isFlat).toBe(true);
  });
});
