import fc from 'fast-check';
import { DiscardJob, SnoozeJob } from '../../lib/index.js';

/** What user code throws when it does not throw errors. */
export const thrown = fc.constantFrom<unknown>(
  new Error('two\nlines'),
  'text',
  undefined,
  null,
  Symbol('thrown'),
  Object.create(null),
  {
    toString() {
      throw new Error('no text');
    },
  },
);

/** What fast-check must not look at: it would fail like everybody. */
class Boxed {
  constructor(readonly make: () => unknown) {}
}
export const unboxed = (value: unknown): any => (value instanceof Boxed ? value.make() : value);

/** Objects that fight back when they are looked at; to be unboxed. */
export const hostile = thrown.chain((what) => {
  const fight = () => {
    throw what;
  };
  return fc.constantFrom(
    new Boxed(() => Object.defineProperty({}, 'field', { enumerable: true, get: fight })),
    new Boxed(() => new Proxy({}, { get: fight, ownKeys: fight })),
    new Boxed(() => new Proxy([], { get: fight })),
    new Boxed(() => Object.assign(new SnoozeJob(0), { delayMs: what })),
    new Boxed(() => Object.assign(new DiscardJob('why'), { reason: what })),
    new Boxed(() => new Proxy(new SnoozeJob(0), { get: fight })),
    new Boxed(() => {
      const { proxy, revoke } = Proxy.revocable({}, {});
      revoke();
      return proxy;
    }),
  );
});

/** Of no use as a duration, name, number, flag or choice. */
export const nothingUseful: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    NaN,
    -1,
    -0.001,
    Infinity,
    -Infinity,
    1e21,
    5n,
    Symbol('value'),
    '',
    ' ',
    '\0',
    'a{b}',
    '3x',
    '-1s',
    '\ud800',
    '__proto__\n',
    'x'.repeat(300),
    new Date(NaN),
    [],
    [1],
    new Map(),
    () => 1,
    Object.create(null),
    { __proto__: null, toString: 1 },
  ),
  hostile,
);

/** An object with these fields as its own, `__proto__` included, and out of their boxes. */
export function objectOf(
  entries: readonly (readonly [string, unknown])[],
  prototype: object | null = Object.prototype,
) {
  const object = Object.create(prototype) as Record<string, unknown>;
  for (const [key, given] of entries) {
    const value: unknown = unboxed(given);
    Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
  }
  return object;
}

/** Text of all sorts: of any code units, of letters, and with what has a meaning to Redis, to keys, or to JavaScript. */
const SPICES = [
  ['{', '}', '{}', '}:jobs', ':', '~', ':0', '~0/2~', '*', '?', '[a]', '%', '/', '\\', '"', "'", '`', '..'],
  ['\n', '\r', '\0', '\t', '\x1b[2J', '\x7f', '\x85', '\u2028', '\u2029', '\ud800', '\udc00', '😀', 'é', 'e\u0301'],
  ['\u00a0', '\ufeff', '\u200b', '\u202e', ' ', '  ', '__proto__', 'constructor', 'toString', 'due', 'queues', 'meta'],
].flat();
const letters = fc.string({ unit: 'grapheme-ascii', maxLength: 12 });
const units = fc
  .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 12 })
  .map((codes) => String.fromCharCode(...codes));
export const spicedText = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.array(fc.oneof(letters, fc.constantFrom(...SPICES)), { maxLength: 4 }).map((parts) => parts.join('')),
  },
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  units,
  fc.constantFrom(...SPICES),
  fc
    .tuple(
      fc.constantFrom('a', 'é', '😀', '\n', '{'),
      fc.constantFrom(63, 64, 65, 127, 128, 129, 255, 256, 257, 10_000),
    )
    .map(([letter, count]) => letter.repeat(count)),
);

/** What stays a name: enough of them for tests to have both kinds. */
export const plainName = fc.oneof(
  fc.string({ unit: fc.constantFrom(...Array.from('abcXYZ019.-_:~/ é😀*?[]%"\'`\\')), minLength: 1, maxLength: 20 }),
  fc.constantFrom(
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'due',
    'queues',
    'a:0',
    '~0/2~',
    'payment.check',
  ),
);
export const anyName = fc.oneof(plainName, spicedText);

/** By the words of the contract: so many printable characters without braces. */
export function isName(text: unknown, most: number, { ends }: { ends: boolean }): boolean {
  if (typeof text !== 'string') return false;
  const characters = Array.from(text);
  if (characters.length < 1 || characters.length > most) return false;
  if (ends && text.trim() !== text) return false;
  return characters.every((character) => {
    const code = character.codePointAt(0)!;
    const isControl = code < 0x20 || (code >= 0x7f && code <= 0x9f) || code === 0x2028 || code === 0x2029;
    return !isControl && !(code >= 0xd800 && code <= 0xdfff) && character !== '{' && character !== '}';
  });
}
