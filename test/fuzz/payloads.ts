import fc from 'fast-check';
import { objectOf, spicedText, thrown } from './values.js';

/** What must come back of a payload: a value, nothing because its field is dropped, or a refusal. */
export type Outcome = { readonly value: unknown } | 'dropped' | 'refused';

export interface Sample {
  readonly given: unknown;
  readonly comes: Outcome;
}

const kept = (value: unknown): Sample => ({ given: value, comes: { value } });
const becomes = (given: unknown, value: unknown): Sample => ({ given, comes: { value } });
const refused = (given: unknown): Sample => ({ given, comes: 'refused' });

class Money {
  constructor(
    readonly amount: unknown,
    readonly currency = 'EUR',
  ) {}
}

const throwing = (what: unknown) => () => {
  throw what;
};

const text = fc.oneof(
  spicedText,
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.constantFrom('\ud800', 'a\udc00b', '\u2028', ''),
);
const leaf: fc.Arbitrary<Sample> = fc.oneof(
  { weight: 12, arbitrary: text.map(kept) },
  { weight: 6, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => becomes(n, n + 0)) },
  { weight: 6, arbitrary: fc.oneof(fc.integer(), fc.maxSafeInteger()).map(kept) },
  { weight: 4, arbitrary: fc.constantFrom<unknown>(true, false, null).map(kept) },
  fc.constant(becomes(-0, 0)),
  fc.date({ noInvalidDate: true }).map((date) => becomes(date, date.toISOString())),
  fc.constantFrom(becomes(new String('s'), 's'), becomes(new Number(5), 5), becomes(new Boolean(false), false)),
  fc.constantFrom(becomes(new URL('http://a/b'), 'http://a/b')),
);

const impossible: fc.Arbitrary<Sample> = fc.oneof(
  fc
    .constantFrom<unknown>(
      NaN,
      Infinity,
      -Infinity,
      1n,
      Symbol('s'),
      () => 1,
      new Map([[1, 2]]),
      new Set(),
      new Date(NaN),
      /x/,
      new Error('e'),
      new Uint8Array(3),
      Buffer.from('x'),
      new ArrayBuffer(1),
      new WeakMap(),
      new Number(NaN),
      Object(1n),
      Promise.resolve(),
    )
    .map(refused),
  thrown.map((what) => refused(Object.defineProperty({ a: 1 }, 'b', { enumerable: true, get: throwing(what) }))),
  thrown.map((what) => refused({ toJSON: throwing(what) })),
  thrown.map((what) => refused(new Proxy({ a: 1 }, { get: throwing(what) }))),
  thrown.map((what) => refused(new Proxy({ a: 1 }, { ownKeys: throwing(what) }))),
  fc.constant(null).map(() => {
    const cycle: Record<string, unknown> = { a: [1] };
    (cycle['a'] as unknown[]).push({ deep: cycle });
    return refused(cycle);
  }),
  fc.constant(refused([1, , 2])), // eslint-disable-line no-sparse-arrays
  fc.constant(refused([undefined])),
  fc.constant(refused(Object.assign([], { length: 4_000_000_000 }))),
);

const key = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: 'grapheme-ascii', maxLength: 6 }) },
  fc.constantFrom(
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'valueOf',
    'hasOwnProperty',
    'length',
    '0',
    '-1',
    'then',
  ),
  spicedText.map((one) => one.slice(0, 20)),
);

function objectSample(
  entries: readonly (readonly [string, Sample])[],
  make: (fields: Record<string, unknown>) => unknown,
): Sample {
  const given = make(objectOf(entries.map(([name, sample]) => [name, sample.given])));
  if (entries.some(([, { comes }]) => comes === 'refused')) return refused(given);
  const left = entries.flatMap(([name, { comes }]) =>
    typeof comes === 'object' ? [[name, comes.value] as const] : [],
  );
  return becomes(given, objectOf(left));
}

const KINDS: readonly ((fields: Record<string, unknown>) => unknown)[] = [
  (fields) => fields,
  (fields) => Object.setPrototypeOf(fields, null),
  (fields) => Object.freeze(fields),
  (fields) => Object.assign(fields, { [Symbol('unseen')]: 1 }),
  (fields) => ({ toJSON: () => fields }),
  (fields) => Object.setPrototypeOf(fields, Money.prototype),
];

/** Payloads of any shape. How many of them hold what no JSON does: about `badness` of 20 leaves. */
const treeOf = (badness: number) =>
  fc.letrec<{ node: Sample; array: Sample; object: Sample }>((tie) => ({
    node: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      ...(badness > 0 ? [{ weight: badness, arbitrary: impossible }] : []),
      { weight: 20 - badness, arbitrary: leaf },
      { weight: 8, arbitrary: tie('array') },
      { weight: 12, arbitrary: tie('object') },
    ),
    array: fc.array(tie('node'), { maxLength: 4 }).map((items) => {
      const given = items.map((item) => item.given);
      if (items.some(({ comes }) => comes === 'refused')) return refused(given);
      return becomes(
        given,
        items.map(({ comes }) => (comes as { value: unknown }).value),
      );
    }),
    object: fc
      .tuple(
        fc.uniqueArray(
          fc.tuple(
            key,
            fc.oneof(
              { weight: 9, arbitrary: tie('node') },
              fc.constant<Sample>({ given: undefined, comes: 'dropped' }),
            ),
          ),
          {
            selector: ([name]) => name,
            maxLength: 5,
          },
        ),
        fc.constantFrom(...KINDS),
      )
      // What is called toJSON must not be one by chance.
      .map(([entries, make]) => objectSample(entries, make)),
  })).node;

/** As deep as is taken, and deeper. */
const DEEPEST = 501;
const deep = fc.integer({ min: 1, max: 2 * DEEPEST }).map((depth): Sample => {
  let value: unknown = 1;
  for (let n = 0; n < depth; n++) value = n % 2 ? [value] : { v: value };
  return depth > DEEPEST ? refused(value) : kept(value);
});
const long = fc
  .tuple(fc.integer({ min: 0, max: 400_000 }), fc.constantFrom('x', 'é', '\ud800', '😀'))
  .map(([length, of]) => kept(of.repeat(length / of.length)));
const nothing = fc.constant(refused(undefined));

export const payload: fc.Arbitrary<Sample> = fc.oneof(
  { weight: 10, arbitrary: treeOf(0) },
  { weight: 10, arbitrary: treeOf(2) },
  { weight: 1, arbitrary: impossible },
  { weight: 1, arbitrary: deep },
  { weight: 1, arbitrary: long },
  { weight: 1, arbitrary: nothing },
);

/** The same, by own fields and their values: no `toEqual`, which looks at `__proto__` as a prototype. */
export function same(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || a === null || typeof b !== 'object' || b === null) return Object.is(a, b);
  if (Array.isArray(a) !== Array.isArray(b) || Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  const fieldOf = (of: object, name: string) => Object.getOwnPropertyDescriptor(of, name)?.value as unknown;
  return keys.every((name) => Object.hasOwn(b, name) && same(fieldOf(a, name), fieldOf(b, name)));
}
