import { describe, expect, it } from '@jest/globals';
import { InvalidDelayError } from '../../lib/delay-queue.errors.js';
import { MAX_DURATION_MS, parseDuration, parseInstant, readable, shown } from '../../lib/job/duration.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const WEEK = 7 * DAY;

describe('a duration', () => {
  it.each<[number | string, number]>([
    [0, 0],
    [1, 1],
    [1500, 1500],
    [MAX_DURATION_MS, MAX_DURATION_MS],
    ['0s', 0],
    ['250ms', 250],
    ['3h', 3 * HOUR],
    ['45m', 45 * MINUTE],
    ['45min', 45 * MINUTE],
    ['1d 2h', DAY + 2 * HOUR],
    ['1d2h', DAY + 2 * HOUR],
    ['2h 1d', DAY + 2 * HOUR],
    ['  3 h  ', 3 * HOUR],
    ['1w', WEEK],
    ['007s', 7 * SECOND],
    ['1 week 2 days 3 hours 4 minutes 5 seconds 6 milliseconds', WEEK + 2 * DAY + 3 * HOUR + 4 * MINUTE + 5006],
    ['2 weeks 1 day 1 hour 1 minute 1 second 1 millisecond', 2 * WEEK + DAY + HOUR + MINUTE + SECOND + 1],
    ['30sec', 30 * SECOND],
    ['2 hrs 5 mins 30 secs', 2 * HOUR + 5 * MINUTE + 30 * SECOND],
    ['1hr', HOUR],
    ['36525d', MAX_DURATION_MS],
    ['PT3H', 3 * HOUR],
    ['P1DT2H', DAY + 2 * HOUR],
    ['P2W', 2 * WEEK],
    ['PT1M', MINUTE],
    ['PT0S', 0],
    ['P1W2DT3H4M5S', WEEK + 2 * DAY + 3 * HOUR + 4 * MINUTE + 5 * SECOND],
    ['PT1.5H', 90 * MINUTE],
    ['PT1,5H', 90 * MINUTE],
    ['PT0.001S', 1],
  ])('%j is %d ms', (value, ms) => {
    expect(parseDuration(value, 'delay')).toBe(ms);
  });

  it.each<[number | string, number]>([
    [0.1, 1],
    [1.0000001, 2],
    ['0.1ms', 1],
    ['1.0001s', 1001],
    ['0.4ms 0.0004s', 1],
    ['PT0.0001S', 1],
  ])('%j is rounded up to %d ms, so that nothing is early', (value, ms) => {
    expect(parseDuration(value, 'delay')).toBe(ms);
  });

  it('is not made a millisecond longer by the rounding errors of fractions', () => {
    for (const [unit, ms] of [
      ['s', SECOND],
      ['h', HOUR],
      ['d', DAY],
      ['w', WEEK],
    ] as const) {
      for (let thousandths = 0; thousandths < 1000; thousandths++) {
        const text = `1.${String(thousandths).padStart(3, '0')}${unit}`;
        expect([text, parseDuration(text, 'delay')]).toEqual([text, ms + (thousandths * ms) / 1000]);
      }
    }
  });

  it('is never -0, which would be encoded as text of another shape', () => {
    expect(Object.is(parseDuration(-0, 'delay'), 0)).toBe(true);
  });

  it.each([
    ['a negative number', -1],
    ['a negative fraction', -0.5],
    ['NaN', NaN],
    ['Infinity', Infinity],
    ['-Infinity', -Infinity],
    ['more than 100 years', MAX_DURATION_MS + 1],
    ['more than 100 years as text', '36526d'],
    ['an absurd number of digits', `${'9'.repeat(400)}h`],
    ['empty text', ''],
    ['blank text', '  '],
    ['a number as text', '5000'],
    ['a unit alone', 'h'],
    ['negative text', '-3h'],
    ['signed text', '+3h'],
    ['rest text before', 'in 3h'],
    ['rest text behind', '3h!'],
    ['rest digits behind', '3h 2'],
    ['an unknown unit', '3 fortnights'],
    ['a unit of unknown length', '3mo'],
    ['upper case', '3H'],
    ['a comma', '1,5h'],
    ['no digit before the point', '.5h'],
    ['two points', '1.5.2h'],
    ['an exponent', '1e3ms'],
    ['a hexadecimal number', '0x10ms'],
    ['other digits', '٣h'],
    ['one unit twice', '1h 30m 1h'],
    ['one unit in two spellings', '1h 1 hour'],
    ['words between', '1h and 30m'],
    ['P alone', 'P'],
    ['PT alone', 'PT'],
    ['a T without time', 'P1DT'],
    ['hours without T', 'P3H'],
    ['ISO units in a wrong order', 'PT1S2H'],
    ['a negative ISO duration', '-PT3H'],
    ['lower case ISO', 'pt3h'],
    ['rest text behind ISO', 'PT3H later'],
    ['null', null],
    ['undefined', undefined],
    ['a boolean', true],
    ['a BigInt', 5n],
    ['a Date', new Date()],
    ['an array', ['3h']],
    ['an object', { hours: 3 }],
  ])('refuses %s', (_, value) => {
    expect(() => parseDuration(value, 'delay')).toThrow(InvalidDelayError);
  });

  it.each(['P1Y', 'P1M', 'P1Y2M10DT2H', 'P1M1D', 'P0.5Y'])('refuses the calendar units of %s and says why', (text) => {
    expect(() => parseDuration(text, 'delay')).toThrow(/years or months, which are not of one length/);
  });

  it('names the field and the value in errors, and what to write instead', () => {
    expect(() => parseDuration('5000', 'forRoot({ drainTimeout })')).toThrow(
      `forRoot({ drainTimeout }): "5000" has no unit. Use ms, or text such as '250ms', '45m', '3h', '1d 2h' or 'PT3H'.`,
    );
    expect(() => parseDuration(-5, 'delay')).toThrow('delay: -5 is negative. A duration is 0 or more.');
  });

  it('keeps bounds', () => {
    expect(parseDuration('100ms', 'lease', { min: 100, max: 200 })).toBe(100);
    expect(parseDuration('200ms', 'lease', { min: 100, max: 200 })).toBe(200);
    expect(() => parseDuration('99ms', 'lease', { min: 100 })).toThrow('lease: "99ms" is too short: at least 100 ms.');
    expect(() => parseDuration(201, 'lease', { max: 200 })).toThrow('lease: 201 is too long: at most 200 ms.');
  });

  it('is refused in no time when it is huge', () => {
    const started = performance.now();
    for (const text of ['1'.repeat(1e5), ' '.repeat(1e5) + 'x', '1h '.repeat(1e4), 'P' + '1'.repeat(1e5)]) {
      expect(() => parseDuration(text, 'delay')).toThrow(InvalidDelayError);
    }
    expect(performance.now() - started).toBeLessThan(1000);
  });
});

describe('an instant', () => {
  const now = Date.UTC(2030, 0, 1);

  it.each<[string, Date | number, number]>([
    ['a Date', new Date(now), now],
    ['epoch ms', now, now],
    ['the past', 1, 1],
    ['the beginning', 0, 0],
    ['a fraction, rounded up', now + 0.5, now + 1],
    ['100 years ahead', now + MAX_DURATION_MS, now + MAX_DURATION_MS],
  ])('may be %s', (_, value, ms) => {
    expect(parseInstant(value, 'at', now)).toBe(ms);
  });

  it.each([
    ['an invalid Date', new Date(NaN)],
    ['NaN', NaN],
    ['Infinity', Infinity],
    ['before 1970', -1],
    ['a Date before 1970', new Date(-1)],
    ['more than 100 years ahead', now + MAX_DURATION_MS + 1],
    ['microseconds', now * 1000],
    ['date text', '2030-01-01T00:00:00Z'],
    ['a duration', '3h'],
    ['null', null],
    ['undefined', undefined],
    ['an object with getTime', { getTime: () => now }],
  ])('is not %s', (_, value) => {
    expect(() => parseInstant(value, 'at', now)).toThrow(InvalidDelayError);
    expect(() => parseInstant(value, 'at', now)).toThrow(/^at: /);
  });
});

describe('a refused value in a message', () => {
  it.each<[unknown, string]>([
    ['abc', '"abc"'],
    ['x'.repeat(41), `"${'x'.repeat(40)}"…`],
    ['a\nb', String.raw`"a\nb"`],
    ['\u009b31m\u2028', String.raw`"\u009b31m\u2028"`],
    [5n, 'a BigInt'],
    [Symbol('secret'), 'a symbol'],
    [() => 'secret', 'a function'],
    [null, 'null'],
    [undefined, 'undefined'],
    [NaN, 'NaN'],
    [['secret'], 'an array'],
    [{ secret: 1 }, 'an object'],
    [new Date(0), '1970-01-01T00:00:00.000Z'],
    [new Date(NaN), 'an invalid Date'],
  ])('is short, on one line and without content (%#)', (value, text) => {
    expect(shown(value)).toBe(text);
  });
});

describe('a duration for people', () => {
  it.each<[number, string]>([
    [0, '0 ms'],
    [812.4, '812 ms'],
    [999.4, '999 ms'],
    [999.6, '1 s'],
    [1_000, '1 s'],
    [1_540, '1.5 s'],
    [9_949, '9.9 s'],
    [9_960, '10 s'],
    [45 * SECOND, '45 s'],
    [59_700, '1 min'],
    [150 * SECOND, '2 min 30 s'],
    [HOUR - 1, '1 h'],
    [HOUR, '1 h'],
    [90 * MINUTE, '1 h 30 min'],
    [DAY - 1, '1 d'],
    [50 * HOUR, '2 d 2 h'],
    [100 * 365 * DAY, '36500 d'],
    [NaN, 'NaN ms'],
  ])('%d ms is %s', (ms, text) => {
    expect(readable(ms)).toBe(text);
  });
});
