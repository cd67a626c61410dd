import { describe, expect, it, jest } from '@jest/globals';
import { PayloadError, PayloadTooLargeError } from '../../lib/delay-queue.errors.js';
import { decodePayload, encodePayload } from '../../lib/job/codec.js';
import { getterThrowing, THROWN, throwing } from '../helpers/throwing.js';

const MANY = 1 << 20;
const encode = (value: unknown, maxBytes = MANY) => encodePayload(value, { queue: 'payment.check', maxBytes });

class Money {
  readonly #secret = 1;
  constructor(
    readonly amount: number,
    readonly currency: string,
  ) {}
  get doubled() {
    return this.amount * 2 * this.#secret;
  }
}

class Temperature {
  toJSON(key: string) {
    return { key, celsius: 21 };
  }
}

describe('what JSON keeps is encoded as JSON does', () => {
  it.each<[string, unknown]>([
    ['null', null],
    ['text', 'a "quoted" \n text with 🚀 and \u2028'],
    ['half a surrogate pair', '\ud83d'],
    ['empty text', ''],
    ['numbers', [0, -1, 1.5, 1e21, 5e-324, Number.MAX_SAFE_INTEGER]],
    ['booleans', [true, false]],
    ['an empty object', {}],
    ['an empty array', []],
    [
      'nested data',
      {
        items: [
          { sku: 'a', price: 1.5, tags: ['x', []] },
          { sku: 'b', price: 2 },
        ],
        note: null,
      },
    ],
    ['undefined fields, dropped', { a: undefined, b: 1, c: { d: undefined } }],
    ['a Date, as ISO text', { at: new Date(0), list: [new Date(1)] }],
    ['a Date alone', new Date(0)],
    ['a class instance, its own fields', new Money(5, 'EUR')],
    ['class instances in lists', [new Money(5, 'EUR'), { nested: new Money(6, 'EUR') }]],
    ['an object without prototype', Object.assign(Object.create(null), { a: 1 })],
    ['toJSON, with its key', { room: new Temperature(), rooms: [new Temperature()] }],
    ['toJSON at the top', new Temperature()],
    ['toJSON of the platform', new URL('https://example.com/a?b=c')],
    ['a field called toJSON that is no function', { toJSON: 'text' }],
    ['toJSON that answers undefined in a field, dropped', { a: { toJSON: () => undefined }, b: 1 }],
    ['an object with a getter', { get a() { return 1; } }], // prettier-ignore
    ['inherited fields, left out', Object.create({ inherited: () => 1 }, { own: { value: 1, enumerable: true } })],
    ['symbol keys and hidden fields, left out', Object.defineProperty({ [Symbol('s')]: 1, a: 1 }, 'b', { value: 1n })],
    ['wrapped primitives', [new Number(5), new String('a'), new Boolean(false)]],
    ['one object in two places', ((shared) => ({ a: shared, b: [shared, shared] }))({ x: 1 })],
    ['keys that objects have anyway', JSON.parse('{"__proto__":{"a":1},"constructor":2,"toString":3,"":4}')],
    ['an own tag', { [Symbol.toStringTag]: 'Payment', a: 1 }],
    ['an error with toJSON', Object.assign(new Error('x'), { toJSON: () => ({ message: 'x' }) })],
    ['a match with extra properties', /b(c)/.exec('abc')],
  ])('%s', (_, value) => {
    expect(encode(value)).toBe(JSON.stringify(value));
    // Next to a toJSON() of its own everything goes the slow way; it must not be seen.
    expect(encode([value, new Temperature()])).toBe(JSON.stringify([value, new Temperature()]));
  });

  it('for a thousand random payloads, both ways', () => {
    for (let seed = 1; seed <= 1000; seed++) {
      const payload = randomPayload(seed);
      const text = JSON.stringify(payload);
      expect(encode(payload)).toBe(text);
      expect(encode({ payload, slow: new Temperature() })).toBe(
        `{"payload":${text},"slow":{"key":"slow","celsius":21}}`,
      );
      expect(JSON.stringify(decodePayload(text))).toBe(text);
    }
  });

  it('down to 500 levels', () => {
    const nested = (levels: number) => {
      let value: unknown = 1;
      for (let i = 0; i < levels; i++) value = i % 2 ? [value] : { value };
      return value;
    };
    expect(encode(nested(500))).toBe(JSON.stringify(nested(500)));
    expect(() => encode(nested(10_000))).toThrow(/is nested more than 500 levels deep/);
  });

  it('with an own __proto__ that comes back as data and changes no prototype', () => {
    const payload: unknown = JSON.parse('{"__proto__":{"admin":true},"slow":1}');
    for (const text of [encode(payload), encode(Object.assign(payload as object, { slow: new Temperature() }))]) {
      const decoded = decodePayload(text) as Record<string, unknown>;
      expect(Object.getPrototypeOf(decoded)).toBe(Object.prototype);
      expect(Object.hasOwn(decoded, '__proto__')).toBe(true);
      expect(decoded.admin).toBeUndefined();
    }
  });

  it('calling each toJSON once', () => {
    const toJSON = jest.fn(() => 1);
    encode({ a: { toJSON } });
    expect(toJSON).toHaveBeenCalledTimes(1);
  });
});

describe('what JSON would lose or change is refused, naming the path', () => {
  it.each<[string, unknown, string, string]>([
    ['undefined', undefined, 'payload', 'is undefined'],
    ['a toJSON that answers undefined', { toJSON: () => undefined }, 'payload', 'is undefined'],
    ['a function', () => 1, 'payload', 'is a function'],
    ['a symbol', Symbol('s'), 'payload', 'is a symbol'],
    ['a BigInt', 5n, 'payload', 'is a BigInt'],
    ['NaN', NaN, 'payload', 'is NaN, which JSON turns into null'],
    ['NaN deep inside', { items: [0, 0, 0, { price: NaN }] }, 'payload.items[3].price', 'is NaN'],
    ['Infinity', { a: Infinity }, 'payload.a', 'is Infinity'],
    ['-Infinity', [-Infinity], 'payload[0]', 'is -Infinity'],
    ['a BigInt field', { a: { b: 5n } }, 'payload.a.b', 'is a BigInt'],
    ['a function field', { a: () => 1 }, 'payload.a', 'is a function'],
    ['a method of a class made by an arrow', new (class { m = () => 1 })(), 'payload.m', 'is a function'], // prettier-ignore
    ['a symbol field', { a: Symbol('s') }, 'payload.a', 'is a symbol'],
    ['undefined in an array', { list: [1, undefined] }, 'payload.list[1]', 'is undefined, which JSON turns into null'],
    ['a hole in an array', { list: Array(1) }, 'payload.list[0]', 'is undefined'],
    ['a Map', { a: new Map() }, 'payload.a', 'is a Map'],
    ['a Set', { a: new Set([1]) }, 'payload.a', 'is a Set'],
    ['a Map with fields', { a: Object.assign(new Map(), { b: 1 }) }, 'payload.a', 'is a Map'],
    ['a subclass of Map', { a: new (class Prices extends Map {})() }, 'payload.a', 'is a Map'],
    ['an invalid Date', { a: new Date(NaN) }, 'payload.a', 'is an invalid Date'],
    ['an invalid Date at the top', new Date(NaN), 'payload', 'is an invalid Date'],
    ['a Buffer', { a: Buffer.from('a') }, 'payload.a', 'is binary data'],
    ['a Uint8Array', { a: new Uint8Array(2) }, 'payload.a', 'is binary data'],
    ['a BigInt64Array', { a: new BigInt64Array(1) }, 'payload.a', 'is binary data'],
    ['a DataView', { a: new DataView(new ArrayBuffer(1)) }, 'payload.a', 'is binary data'],
    ['an ArrayBuffer', { a: new ArrayBuffer(1) }, 'payload.a', 'is binary data'],
    ['a SharedArrayBuffer', { a: new SharedArrayBuffer(1) }, 'payload.a', 'is binary data'],
    ['binary data made by toJSON', { a: { toJSON: () => new Uint8Array(2) } }, 'payload.a', 'is binary data'],
    ['a WeakMap', { a: new WeakMap() }, 'payload.a', 'is a WeakMap'],
    ['a WeakSet', { a: new WeakSet() }, 'payload.a', 'is a WeakSet'],
    ['a WeakRef', { a: new WeakRef({}) }, 'payload.a', 'is a WeakRef'],
    ['a Promise', { a: Promise.resolve(1) }, 'payload.a', 'is a Promise. Await it first'],
    ['an Error', { a: new TypeError('x') }, 'payload.a', 'is an Error'],
    ['an Error with fields', { a: Object.assign(new Error('x'), { code: 1 }) }, 'payload.a', 'is an Error'],
    ['a RegExp', { a: /x/ }, 'payload.a', 'is a RegExp, which JSON turns into {}'],
    ['an iterator', { a: [1].values() }, 'payload.a', 'is a Array Iterator'],
    ['URLSearchParams', { a: new URLSearchParams('b=c') }, 'payload.a', 'is a URLSearchParams'],
    ['a wrapped BigInt', { a: Object(5n) }, 'payload.a', 'is a BigInt'],
    ['a wrapped symbol', { a: Object(Symbol('s')) }, 'payload.a', 'is a Symbol'],
    ['a wrapped NaN', { a: new Number(NaN) }, 'payload.a', 'is NaN'],
    ['NaN made by toJSON', { a: { toJSON: () => ({ b: NaN }) } }, 'payload.a.b', 'is NaN'],
    ['a Map made by toJSON', { a: { toJSON: () => new Map() } }, 'payload.a', 'is a Map'],
    ['odd keys', { 'a b': { '5': [{ '': 5n }] } }, 'payload["a b"]["5"][0][""]', 'is a BigInt'],
    ['long keys', { ['k'.repeat(99)]: 5n }, `payload["${'k'.repeat(40)}…"]`, 'is a BigInt'],
  ])('%s', (_, value, path, problem) => {
    expect(() => encode(value)).toThrow(PayloadError);
    expect(() => encode(value)).toThrow(`Queue "payment.check": ${path} ${problem}`);
  });

  it('a BigInt even where somebody taught it toJSON', () => {
    Object.defineProperty(BigInt.prototype, 'toJSON', { value: () => '5', configurable: true });
    try {
      expect(() => encode({ a: 5n })).toThrow(PayloadError);
    } finally {
      delete (BigInt.prototype as { toJSON?: unknown }).toJSON;
    }
  });

  it('cycles, where they close', () => {
    const parent: Record<string, unknown> = { name: 'p' };
    parent.children = [{ parent }];
    expect(() => encode(parent)).toThrow('Queue "payment.check": payload.children[0].parent is one of the objects');
    const self: unknown[] = [];
    self.push([self, self], [self]);
    expect(() => encode(self)).toThrow('payload[0][0] is one of the objects');
  });

  it('what throws while it is read, keeping the error', () => {
    const cause = new Error('no price for secret-4711');
    const fail = () => {
      throw cause;
    };
    const thrown = (value: unknown) => {
      try {
        return encode(value);
      } catch (error) {
        return error;
      }
    };
    const getter = Object.defineProperty({}, 'a', { get: fail, enumerable: true });
    expect(thrown(getter)).toBeInstanceOf(PayloadError);
    expect(thrown(getter)).toMatchObject({
      cause,
      message: 'Queue "payment.check": payload could not be read: a getter or a proxy threw what error.cause says.',
    });
    expect(thrown({ a: { toJSON: fail } })).toMatchObject({
      cause,
      message: 'Queue "payment.check": payload.a could not be converted, its toJSON() threw what error.cause says.',
    });
  });

  it('never showing the payload', () => {
    const secret = { card: '4111111111111111', nested: ['4111111111111111', undefined] };
    expect(() => encode(secret)).toThrow(/^(?!.*4111)/);
  });
});

describe('the limit', () => {
  it.each<[string, unknown, number]>([
    ['ASCII', 'aaaa', 6],
    ['two bytes', 'éé', 6],
    ['three bytes', '€€', 8],
    ['four bytes', '🚀', 6],
    ['an escaped half of a pair', '\ud83d', 8],
    ['an object', { a: [1, 2] }, 11],
    ['a number', 7, 1],
    ['the slow way', { t: new Temperature() }, 30],
  ])('counts bytes of UTF-8: %s', (_, value, bytes) => {
    expect(Buffer.byteLength(encode(value))).toBe(bytes);
    expect(encode(value, bytes)).toBe(encode(value));
    expect(() => encode(value, bytes - 1)).toThrow(PayloadTooLargeError);
  });

  it('is in the error together with the size', () => {
    expect(() => encode({ text: 'x'.repeat(100) }, 50)).toThrow(
      'Queue "payment.check": payload has 111 bytes, but maxPayloadBytes is 50. ' +
        'Store the data elsewhere and send its key, or raise the limit.',
    );
  });

  it('is kept without writing out objects that are shared at every level', () => {
    let shared: unknown = 'x';
    for (let i = 0; i < 60; i++) shared = [shared, shared];
    expect(() => encode(shared, 262_144)).toThrow('payload has more than 2097152 bytes, but maxPayloadBytes is 262144');
    expect(() => encode([new Temperature(), shared], 262_144)).toThrow(PayloadTooLargeError);
    expect(() => encode(Array(10_000).fill('x'.repeat(1_000_000)))).toThrow(PayloadTooLargeError);
  });
});

describe('decoding', () => {
  it('gives what was encoded', () => {
    const payload = { paymentId: 'A-17', items: [{ price: 1.5 }], note: null };
    expect(decodePayload(encode(payload))).toEqual(payload);
  });

  it('refuses what is no JSON', () => {
    expect(() => decodePayload('{')).toThrow(SyntaxError);
  });
});

/** The same data for the same seed. */
function randomPayload(seed: number): unknown {
  let state = seed * 2654435761;
  const next = (below: number) => {
    state = (state * 1103515245 + 12345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
  const value = (depth: number): unknown => {
    switch (next(depth > 4 ? 6 : 9)) {
      case 0:
        return null;
      case 1:
        return next(2) === 1;
      case 2:
        return next(1e9) - 5e8;
      case 3:
        return next(1e9) / 1e4;
      case 4:
        return String.fromCodePoint(...Array.from({ length: next(6) }, () => next(0x10ffff)));
      case 5:
        return new Date(next(2e9) * 1000);
      case 6:
        return Array.from({ length: next(5) }, () => value(depth + 1));
      default: {
        const fields = Array.from({ length: next(5) }, (_, i) => [
          ['a', '__proto__', 'toJSON', 'x y', '5'][next(5)]! + (next(2) ? i : ''),
          next(6) ? value(depth + 1) : undefined,
        ]);
        return Object.fromEntries(fields);
      }
    }
  };
  return value(0);
}

describe('a payload whose getter threw something that has no text made enqueue() throw a TypeError', () => {
  it.each(Object.entries(THROWN))('%s', (_, what) => {
    const encoding = (payload: unknown) => () => encode(payload);
    expect(encoding(getterThrowing('a', what))).toThrow(PayloadError);
    expect(encoding({ toJSON: throwing(what) })).toThrow(PayloadError);
  });
});

it('a field of a payload whose name holds a control character broke the line of its refusal', () => {
  const encoding = () => encode({ 'two\u0085lines': NaN });
  expect(encoding).toThrow('payload["two\\u0085lines"] is NaN');
});
