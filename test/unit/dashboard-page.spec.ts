import { describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { commandFor } from '../../lib/dashboard/page/command.js';
import { duration, fromInput, near, parseDuration, rate, relative, toInput } from '../../lib/dashboard/page/format.js';
import { indented, parseJson } from '../../lib/dashboard/page/json-text.js';
import { marksOf } from '../../lib/dashboard/page/parts/axis.js';
import { bucketsBetween } from '../../lib/dashboard/page/parts/brush.js';
import { alone } from '../../lib/dashboard/page/parts/lone-points.js';
import { peaksOf } from '../../lib/dashboard/page/parts/histogram-plot.js';
import { hashOf, parseHash, timeOf } from '../../lib/dashboard/page/route.js';

const shown = (text: string) => {
  const node = parseJson(text);
  return node && indented(node);
};

it('a value of a chart without a neighbour is a point of its own: no line would show it', () => {
  expect(alone([null, 5, null, 1, 2, null, undefined, 0])).toEqual([1, 7]);
  expect(alone([3])).toEqual([0]);
});

describe('a payload as it is stored', () => {
  it('keeps every digit of its numbers', () => {
    const text = '{"a":12345678901234567890,"b":1.10,"c":-0,"d":1E400,"e":[0.1e-7]}';
    expect(shown(text)?.replace(/\s/g, '')).toBe(text);
  });

  it('is indented as JSON.stringify would', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        expect(shown(text)).toBe(JSON.stringify(JSON.parse(text), null, 2));
      }),
    );
  });

  it('keeps names that come twice, and names of prototypes', () => {
    expect(shown('{"__proto__":1,"a":2,"a":3}')).toBe('{\n  "__proto__": 1,\n  "a": 2,\n  "a": 3\n}');
  });

  it.each(['', '{', '[1,]', '{"a":1,}', "{'a':1}", '01', '1.', 'nul', '"a\nb"', '1 2', '[1 2]', `${'['.repeat(300)}`])(
    'is text when it is no JSON: %j',
    (text) => {
      expect(parseJson(text)).toBeUndefined();
    },
  );

  it('is text when it is nested too deep for a browser', () => {
    expect(parseJson(`${'['.repeat(10_000)}${']'.repeat(10_000)}`)).toBeUndefined();
  });
});

describe('times and durations', () => {
  it.each([
    [0, '0 ms'],
    [999, '999 ms'],
    [4_200, '4.2 s'],
    [5_000, '5 s'],
    [59_999, '1 min'],
    [80_000, '1 min 20 s'],
    [3_600_000, '1 h'],
    [273_600_000, '3 d 4 h'],
  ])('%i ms are "%s"', (ms, text) => {
    expect(duration(ms)).toBe(text);
  });

  it('say how far away they are', () => {
    expect([relative(1_000_000, 0), relative(0, 90_000), relative(0, 400)]).toEqual(['in 16 min', '1 min ago', 'now']);
  });

  it.each([
    ['1h 30m', 5_400_000],
    ['2d', 172_800_000],
    ['1.5s', 1_500],
    ['250ms', 250],
    ['10 min', 600_000],
    ['10', undefined],
    ['1 fortnight', undefined],
    ['-5s', undefined],
    ['', undefined],
  ])('read "%s"', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it('go into a field of the browser and come back', () => {
    const at = Date.UTC(2026, 10, 23, 8, 12, 8);
    for (const zone of ['utc', 'local'] as const) expect(fromInput(toInput(at, zone), zone)).toBe(at);
    expect(fromInput('tomorrow', 'utc')).toBeUndefined();
  });

  it('name the day where it is another one', () => {
    const now = Date.UTC(2026, 10, 23, 12);
    expect(near(now + 60_000, now, 'utc')).toBe('12:01:00');
    expect(near(now + 86_400_000, now, 'utc')).toBe('24 Nov, 12:00');
  });

  it('say a rate in words', () => {
    expect([rate(1_200, 600_000), rate(60, 600_000), rate(1, 600_000), rate(90_000, 1_000)]).toEqual([
      '2 a second',
      'one each 10 s',
      'at once',
      '90,000 a second',
    ]);
  });
});

describe('the chart', () => {
  const bars = { from: 1_000, to: 1_950, widthMs: 100, counts: Array(10).fill(1), now: 1_050, overdue: 3 };

  it('gives whole buckets to whoever brushes a part of them', () => {
    expect(bucketsBetween(1_120, 1_380, bars)).toEqual({ from: 1_100, to: 1_400 });
    expect(bucketsBetween(1_380, 1_120, bars)).toEqual({ from: 1_100, to: 1_400 });
    expect(bucketsBetween(1_150, 1_150, bars)).toEqual({ from: 1_100, to: 1_200 });
    expect(bucketsBetween(1_940, 1_950, bars)).toEqual({ from: 1_900, to: 1_950 });
  });

  it('gives all that are overdue to whoever begins at the left of it', () => {
    expect(bucketsBetween(980, 1_150, bars)).toEqual({ from: undefined, to: 1_200 });
    expect(bucketsBetween(980, 985, bars)).toEqual({ from: undefined, to: 1_050 });
  });

  it('numbers what stands out, and nothing of a plain', () => {
    expect(peaksOf([1, 1, 9, 1, 1, 1, 1, 1, 7, 1])).toEqual([2, 8]);
    expect(peaksOf([1, 1, 1, 9, 8, 7, 6, 5, 1, 1, 1, 1, 1, 1, 1, 1])).toEqual([3]);
    expect(peaksOf([5, 5, 5, 5])).toEqual([]);
    expect(peaksOf([0, 0])).toEqual([]);
  });

  it('marks its axis at full hours', () => {
    const from = Date.UTC(2026, 10, 23, 8, 12);
    const { at, step } = marksOf(from, from + 86_400_000, 9, 'utc');
    expect(step).toBe(3 * 3_600_000);
    expect(at[0]).toBe(Date.UTC(2026, 10, 23, 9));
    expect(at).toHaveLength(8);
  });
});

describe('an address', () => {
  it('holds any name and comes back', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (queue) => {
        const isWellFormed = (queue as string & { isWellFormed(): boolean }).isWellFormed();
        const wellFormed = isWellFormed ? queue : 'x';
        const { screen, params } = parseHash(hashOf('jobs', { queue: wellFormed, from: undefined }));
        expect([screen, params['queue'] ?? '', 'from' in params]).toEqual(['jobs', wellFormed, false]);
      }),
    );
  });

  it('of no screen is the first one', () => {
    expect(parseHash('#/<script>?a=1').screen).toBe('queues');
    expect(parseHash('').screen).toBe('queues');
  });
});

describe('the command for a shell', () => {
  it('quotes what a shell would take for its own', () => {
    expect(commandFor('payment.check', 'order-1')).toBe('npx nestjs-delay-queue get payment.check order-1');
    expect(commandFor('q', "a'b; rm -rf $HOME")).toBe(`npx nestjs-delay-queue get q 'a'\\''b; rm -rf $HOME'`);
    expect(commandFor('q', '-x')).toBe('npx nestjs-delay-queue get -- q -x');
  });
});

describe('a time in the address', () => {
  it.each(['', 'tomorrow', 'NaN', '1e3', '1.5', '99999999999999999', '8640000000000001', ' 1', undefined])(
    'that is none counts as none: %j',
    (text) => {
      expect(timeOf(text)).toBeUndefined();
    },
  );

  it.each([NaN, Infinity, 1e20])('of a field is empty for what is no time: %d', (at) => {
    expect(toInput(at, 'utc')).toBe('');
  });

  it('is ms since 1970', () => {
    expect([timeOf('0'), timeOf('1800000000000')]).toEqual([0, 1_800_000_000_000]);
  });
});
