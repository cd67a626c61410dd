import { types } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { MAX_DURATION_MS, parseDuration, parseInstant } from '../../lib/job/duration.js';
import { fateNow, fuzz, FUZZ_MS } from './fuzz.js';
import { nothingUseful, spicedText, unboxed } from './values.js';

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };
const SCALE = 20;
const DIGITS = '0123456789'.split('');

/** A duration as text, and what it comes to in 10^-20 ms. */
interface Text {
  readonly text: string;
  readonly exact: bigint;
}

const amount = fc.tuple(
  fc.oneof(
    fc.nat(100).map(String),
    fc.nat(1_000_000).map(String),
    fc.string({ unit: fc.constantFrom(...DIGITS), minLength: 1, maxLength: 30 }),
  ),
  fc.option(fc.string({ unit: fc.constantFrom(...DIGITS), minLength: 1, maxLength: SCALE }), { nil: undefined }),
);
const valueOf = (digits: string, decimals = '') => BigInt(digits + decimals.padEnd(SCALE, '0'));
const spaces = fc.constantFrom('', ' ', '  ');

const plain: fc.Arbitrary<Text> = fc
  .uniqueArray(fc.tuple(fc.constantFrom(...Object.keys(UNITS)), amount, spaces), {
    selector: ([unit]) => unit,
    minLength: 1,
    maxLength: 4,
  })
  .map((parts) => ({
    text: parts
      .map(
        ([unit, [digits, decimals], space]) =>
          `${digits}${decimals === undefined ? '' : `.${decimals}`}${space}${unit}`,
      )
      .join(' '),
    exact: parts.reduce((sum, [unit, given]) => sum + valueOf(...given) * BigInt(UNITS[unit as 'ms']), 0n),
  }));

const iso: fc.Arbitrary<Text> = fc
  .record({
    W: fc.option(amount),
    D: fc.option(amount),
    H: fc.option(amount),
    M: fc.option(amount),
    S: fc.option(amount),
  })
  .filter((parts) => Object.values(parts).some((part) => part !== null))
  .map(({ W, D, ...time }) => {
    const write = (part: [string, string | undefined] | null, letter: string) =>
      part ? `${part[0]}${part[1] === undefined ? '' : `,${part[1]}`}${letter}` : '';
    const clock = write(time.H, 'H') + write(time.M, 'M') + write(time.S, 'S');
    const worth = (part: [string, string | undefined] | null, unit: keyof typeof UNITS) =>
      part ? valueOf(...part) * BigInt(UNITS[unit]) : 0n;
    return {
      text: `P${write(W, 'W')}${write(D, 'D')}${clock === '' ? '' : `T${clock}`}`,
      exact: worth(W, 'w') + worth(D, 'd') + worth(time.H, 'h') + worth(time.M, 'm') + worth(time.S, 's'),
    };
  });

const spoilt = fc.tuple(fc.oneof(plain, iso), fc.nat(), spicedText).map(([{ text }, at, spice]) => {
  const place = at % (text.length + 1);
  return { given: text.slice(0, place) + spice + text.slice(place) };
});

type Input = { given: unknown } | Text;
const numbers = fc.oneof(
  fc.double(),
  fc.integer(),
  fc.integer({ min: 0, max: MAX_DURATION_MS }),
  fc.constantFrom(-0, 0.1, 5e-324, MAX_DURATION_MS, MAX_DURATION_MS + 1),
);
const inputs: fc.Arbitrary<Input> = fc.oneof(
  plain,
  iso,
  spoilt,
  numbers.map((given) => ({ given })),
  fc.oneof(spicedText, nothingUseful).map((given) => ({ given })),
);

const ONE = 10n ** BigInt(SCALE);
/** What is less than a billionth of a second is no reason for a millisecond more. */
const SPECK = 10n ** BigInt(SCALE - 6);

describe('Lengths of time', () => {
  it(
    'mean what they say, rounded up, or are refused',
    () =>
      fuzz('durations', inputs, {
        check: (input) => {
          const given = 'text' in input ? input.text : unboxed(input.given);
          let ms: number | undefined;
          const fate = fateNow(() => (ms = parseDuration(given, 'delay')));
          if ('exact' in input) {
            const whole = input.exact / ONE + (input.exact % ONE > SPECK ? 1n : 0n);
            const tooLong = whole > BigInt(MAX_DURATION_MS);
            expect({ given, fate, ms }).toEqual({
              given,
              fate: tooLong ? 'ERR_DQ_INVALID_DELAY' : 'accepted',
              ms: tooLong ? undefined : Number(whole),
            });
          } else if (typeof given === 'number') {
            const isFine = given >= 0 && given <= MAX_DURATION_MS;
            expect({ given, fate, ms }).toEqual({
              given,
              fate: isFine ? 'accepted' : 'ERR_DQ_INVALID_DELAY',
              ms: isFine ? Math.ceil(given) + 0 : undefined,
            });
          } else if (fate === 'accepted') {
            expect(given).toMatch(/^\s*(?:P[\d.,WDTHMS]+|(?:\s*\d+(?:\.\d+)?\s*[a-z]+)+)\s*$/);
            expect(Number.isSafeInteger(ms) && ms! >= 0 && ms! <= MAX_DURATION_MS).toBe(true);
          }
          return fate;
        },
      }),
    FUZZ_MS,
  );

  const NOW = Date.now();
  const LAST = NOW + MAX_DURATION_MS;
  const moments = fc.oneof(
    fc.date({ noInvalidDate: false }),
    fc.double(),
    fc.integer({ min: 0, max: LAST }),
    fc.integer({ min: 0, max: LAST }).map((ms) => new Date(ms)),
    fc.constantFrom(-0, LAST, LAST + 1, -1),
    nothingUseful,
  );
  it(
    'are the moment that they say, rounded up, or are refused',
    () =>
      fuzz('instants', moments, {
        check: (input) => {
          const given: unknown = unboxed(input);
          let ms: number | undefined;
          const fate = fateNow(() => (ms = parseInstant(given, 'at', NOW)));
          const number = types.isDate(given) ? given.getTime() : given;
          const isInSeconds = typeof given === 'number' && given >= 1e9 && given < 1e11;
          const isFine = typeof number === 'number' && number >= 0 && number <= LAST && !isInSeconds;
          expect(fate).toBe(isFine ? 'accepted' : 'ERR_DQ_INVALID_DELAY');
          if (isFine) expect(ms).toBe(Math.ceil(number) + 0);
          return fate;
        },
      }),
    FUZZ_MS,
  );
});
