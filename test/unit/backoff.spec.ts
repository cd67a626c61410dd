import { describe, expect, it } from '@jest/globals';
import { InvalidDelayError, InvalidOptionError, StoredDataError } from '../../lib/delay-queue.errors.js';
import {
  assertBackoff,
  backoffDelay,
  decodeBackoff,
  encodeBackoff,
  exponential,
  fixed,
  steps,
} from '../../lib/job/backoff.js';
import type { Backoff } from '../../lib/job/backoff.js';
import { MAX_DURATION_MS } from '../../lib/job/duration.js';

const MIDDLE = () => 0.5;
const LOWEST = () => 0;
const HIGHEST = () => 1 - Number.EPSILON;

const delays = (backoff: Backoff, attempts: number[], random = MIDDLE) =>
  attempts.map((attempt) => backoffDelay(backoff, attempt, random));

describe('a fixed backoff', () => {
  it('is the same each time', () => {
    expect(delays(fixed('30s'), [1, 2, 1000])).toEqual([30_000, 30_000, 30_000]);
  });

  it('may be nothing', () => {
    expect(backoffDelay(fixed(0), 1)).toBe(0);
  });
});

describe('a backoff in steps', () => {
  it('takes one after another and repeats the last', () => {
    expect(delays(steps(['10s', '1m', 500]), [1, 2, 3, 4, 1000])).toEqual([10_000, 60_000, 500, 500, 500]);
  });
});

describe('an exponential backoff', () => {
  it('doubles by default', () => {
    expect(delays(exponential('1s'), [1, 2, 3, 4])).toEqual([1000, 2000, 4000, 8000]);
    expect(delays(exponential('1s', { factor: 3 }), [1, 2, 3])).toEqual([1000, 3000, 9000]);
    expect(delays(exponential('1s', { factor: 1 }), [1, 2, 1000])).toEqual([1000, 1000, 1000]);
  });

  it('stops at max', () => {
    expect(delays(exponential('1s', { max: '5s' }), [1, 2, 3, 4, 1000])).toEqual([1000, 2000, 4000, 5000, 5000]);
  });

  it('stops at 100 years when there is no max, however many attempts', () => {
    expect(delays(exponential('1s'), [100, 1000])).toEqual([MAX_DURATION_MS, MAX_DURATION_MS]);
    expect(delays(exponential('1h', { factor: 100, jitter: 1 }), [1000], LOWEST)).toEqual([0]);
  });

  it('is spread by jitter to both sides', () => {
    const backoff = exponential('1s', { jitter: 0.2 });
    expect(delays(backoff, [1, 2], LOWEST)).toEqual([800, 1600]);
    expect(delays(backoff, [1, 2], MIDDLE)).toEqual([1000, 2000]);
    expect(delays(backoff, [1, 2], HIGHEST)).toEqual([1200, 2400]);
  });

  it('is spread at max too, instead of gathering there', () => {
    const backoff = exponential('1s', { max: '10s', jitter: 0.2 });
    const seen = new Set<number>();
    for (let i = 0; i < 1000; i++) seen.add(backoffDelay(backoff, 20, () => i / 1000));
    expect(seen.size).toBeGreaterThan(500);
    expect(Math.min(...seen)).toBe(8000);
    expect(Math.max(...seen)).toBe(10_000);
  });

  it('is a whole number from 0 to max, whatever its numbers are', () => {
    for (const jitter of [0, 0.2, 0.5, 1]) {
      for (const factor of [1, 1.1, 2, 100]) {
        for (const max of [7, 1000, undefined]) {
          const backoff = exponential(7, { max, factor, jitter });
          for (const attempt of [0, 1, 2, 3, 10, 64, 1000]) {
            for (const random of [LOWEST, MIDDLE, HIGHEST, Math.random]) {
              const delay = backoffDelay(backoff, attempt, random);
              expect(Number.isSafeInteger(delay)).toBe(true);
              expect(delay).toBeGreaterThanOrEqual(0);
              expect(delay).toBeLessThanOrEqual(max ?? MAX_DURATION_MS);
            }
          }
        }
      }
    }
  });
});

describe('a backoff as data', () => {
  const all: [Backoff, unknown[]][] = [
    [exponential('1s', { max: '1h', jitter: 0.2 }), ['e', 1000, 2, 3_600_000, 0.2]],
    [exponential(5), ['e', 5, 2, null, 0]],
    [fixed('30s'), ['f', 30_000]],
    [steps(['1s', '2s']), ['s', 1000, 2000]],
  ];

  it.each(all)('%j is frozen and survives JSON', (backoff) => {
    expect(Object.isFrozen(backoff)).toBe(true);
    const copy = assertBackoff(JSON.parse(JSON.stringify(backoff)), 'backoff');
    expect(copy).toEqual(backoff);
    expect(Object.isFrozen(copy)).toBe(true);
  });

  it.each(all)('%j is stored in a job as %j', (backoff, encoded) => {
    expect(encodeBackoff(backoff)).toEqual(encoded);
    expect(decodeBackoff(JSON.parse(JSON.stringify(encoded)))).toEqual(backoff);
  });

  it('freezes the list of steps', () => {
    expect(Object.isFrozen(steps([1]).delays)).toBe(true);
  });

  it('understands durations that a configuration file has as text', () => {
    expect(assertBackoff({ type: 'exponential', first: '1s', max: '1m' }, 'backoff')).toEqual(
      exponential('1s', { max: '1m' }),
    );
  });

  it.each([
    ['nothing', undefined],
    ['text', 'e'],
    ['an empty list', []],
    ['an unknown kind', ['x', 1]],
    ['too few numbers', ['e', 1000, 2]],
    ['too many numbers', ['f', 1, 2]],
    ['a negative delay', ['f', -1]],
    ['no steps', ['s']],
    ['a wrong step', ['s', 1, null]],
    ['a wrong factor', ['e', 1000, 0, null, 0]],
  ])('is not read from %s', (_, encoded) => {
    expect(() => decodeBackoff(encoded)).toThrow(StoredDataError);
  });
});

describe('a wrong backoff is refused', () => {
  it.each<[string, () => unknown, new (message: string) => Error, RegExp]>([
    ['first delay of 0', () => exponential(0), InvalidDelayError, /exponential\(\), first delay: 0 is too short/],
    ['negative delay', () => fixed(-1), InvalidDelayError, /fixed\(\): -1 is negative/],
    ['wrong text', () => fixed('soon'), InvalidDelayError, /"soon"/],
    ['max below first', () => exponential('2s', { max: '1s' }), InvalidOptionError, /max \(1000 ms\) is below/],
    ['factor below 1', () => exponential('1s', { factor: 0.5 }), InvalidOptionError, /factor: 0.5/],
    ['infinite factor', () => exponential('1s', { factor: Infinity }), InvalidOptionError, /factor: Infinity/],
    [
      'jitter above 1',
      () => exponential('1s', { jitter: 20 }),
      InvalidOptionError,
      /jitter: 20 is not a number from 0/,
    ],
    ['NaN', () => exponential('1s', { jitter: NaN }), InvalidOptionError, /jitter: NaN/],
    ['unknown option', () => exponential('1s', { maximum: 1 } as object), InvalidOptionError, /"maximum"/],
    ['null options', () => exponential('1s', null as never), InvalidOptionError, /null/],
    ['no steps', () => steps([]), InvalidOptionError, /1 to 100 delays, but got 0/],
    ['too many steps', () => steps(Array(101).fill(1)), InvalidOptionError, /got 101/],
    ['hole in the steps', () => steps(Array(2)), InvalidDelayError, /steps\(\)\[0\]: undefined/],
    ['wrong step', () => steps(['1s', 'x']), InvalidDelayError, /steps\(\)\[1\]: "x"/],
    ['steps that are no list', () => steps('1s' as never), InvalidOptionError, /"1s"/],
  ])('%s', (_, make, type, message) => {
    expect(make).toThrow(type);
    expect(make).toThrow(message);
  });

  it.each([
    ['null', null],
    ['a number', 1000],
    ['text', 'exponential'],
    ['an array', [1000]],
    ['an object without type', { first: 1000 }],
    ['an unknown type', { type: 'linear', delay: 1000 }],
    ['the shape of another library', { type: 'exponential', delay: 1000 }],
    ['a field too many', { type: 'fixed', delay: 1000, jitter: 0.2 }],
    ['a field too many in steps', { type: 'steps', delays: [1], jitter: 0.2 }],
  ])('%s, naming the field', (_, value) => {
    expect(() => assertBackoff(value, 'forRoot({ defaults: { backoff } })')).toThrow(InvalidOptionError);
    expect(() => assertBackoff(value, 'forRoot({ defaults: { backoff } })')).toThrow(/^forRoot\(\{ defaults/);
  });

  it('a function, saying where functions belong', () => {
    expect(() => assertBackoff(() => 1000, 'backoff')).toThrow(/@OnDelayed\(queue, \{ backoff \}\)/);
  });
});
