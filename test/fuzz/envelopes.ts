import fc from 'fast-check';
import { encodeContent } from '../../lib/job/envelope.js';
import { Payloads } from '../../lib/job/payloads.js';
import { spicedText } from './values.js';

const HOUR = 3_600_000;
const NOW = 1_900_000_000_000;

function digits(ms: number): string {
  let text = '';
  for (let rest = ms, n = 0; n < 7; n++, rest = Math.floor(rest / 79))
    text = String.fromCharCode(44 + (rest % 79)) + text;
  return text;
}

/** As lib/lua/shared/envelope.lua does. */
export function seal(rest: string, { due = NOW, expiry }: { due?: number; expiry?: number } = {}): string {
  const [version, tail] = rest.startsWith('2') ? ['2', rest.slice(1)] : ['1', rest];
  const times =
    expiry === undefined ? `-${digits(NOW)}${digits(due)}` : `x${digits(NOW)}${digits(due)}${digits(expiry)}`;
  return version + times + tail;
}

/** What the payloads and contexts of all good envelopes hold. */
export const SECRET = 'card-4111-1111';

const plain = new Payloads({ codec: ['json'], compressAbove: undefined, maxPayloadBytes: 262_144 });
const packed = new Payloads({ codec: ['json'], compressAbove: 1, maxPayloadBytes: 262_144 });
const bytes = {
  name: 'bytes',
  encode: (value: unknown) => Buffer.from(JSON.stringify(value)),
  decode: (data: Buffer) => JSON.parse(data.toString()) as unknown,
};
const own = new Payloads({ codec: [bytes], compressAbove: undefined, maxPayloadBytes: 262_144 });
/** Reads all of them. */
export const READER = new Payloads({ codec: ['json', bytes], compressAbove: undefined, maxPayloadBytes: 262_144 });

/** Stored as the library stores, of all versions and options. */
export const goodEnvelope = fc
  .record({
    payload: fc.oneof(fc.jsonValue(), fc.constant({})),
    header: fc.record(
      {
        attempts: fc.integer({ min: 1, max: 1_000 }),
        timeoutMs: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
        keepExpired: fc.boolean(),
        backoff: fc.constantFrom(
          { type: 'fixed', delay: 5 } as const,
          { type: 'exponential', first: 1, factor: 2, jitter: 0 } as const,
        ),
        context: fc.constantFrom({}, { user: SECRET }, JSON.parse('{"__proto__":"x"}') as Record<string, string>),
        trace: fc.constant({ traceparent: '00-1-2-03' }),
      },
      { requiredKeys: [] },
    ),
    way: fc.constantFrom(plain, plain, packed, own),
    expires: fc.boolean(),
  })
  .map(({ payload, header, way, expires }) => {
    const { body, mark } = way.encode({ secret: SECRET, payload }, 'mail');
    return seal(encodeContent(header, body, mark), expires ? { expiry: NOW + 100 * HOUR } : {});
  });

const byte = fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code));
const snippet = fc.oneof(
  spicedText.map((text) => text.slice(0, 20)),
  byte,
  fc.constantFrom('\n', '{', '}', '"', ':', ',', '-', 'x', '1e999', '[]', 'null'),
);

const damage = fc.record({
  kind: fc.constantFrom('insert', 'overwrite', 'remove', 'cut', 'version', 'flag', 'unquote'),
  at: fc.nat(1_000),
  count: fc.nat(30),
  what: snippet,
  version: fc.constantFrom(...'0123456789abzZ!é'.split('')),
  flag: fc.constantFrom('-', 'x', '1', ' '),
});
type Damage = typeof damage extends fc.Arbitrary<infer D> ? D : never;

function damagedBy(text: string, { kind, at, count, what, version, flag }: Damage): string {
  // Near the beginning more often: payloads are long.
  const from = at % Math.min(text.length + 1, at % 2 ? 80 : Infinity);
  const put = (over: number, instead: string) => text.slice(0, from) + instead + text.slice(from + over);
  switch (kind) {
    case 'insert':
      return put(0, what);
    case 'overwrite':
      return put(what.length, what);
    case 'remove':
      return put(count, '');
    case 'cut':
      return text.slice(0, at % (text.length + 1));
    case 'version':
      return version + text.slice(1);
    case 'flag':
      return text.slice(0, 1) + flag + text.slice(2);
    default:
      // Parsers quote what stands around the place where they gave up.
      return text.replace(`{"secret":"${SECRET}"`, `{"secret":${SECRET}`);
  }
}

const damaged = fc
  .tuple(goodEnvelope, fc.array(damage, { minLength: 1, maxLength: 4 }))
  .map(([text, all]) => all.reduce(damagedBy, text));

/** A header of JSON in which fields are of any type. */
const wrongHeader = fc
  .tuple(
    fc.constantFrom('1', '2'),
    fc.record(
      Object.fromEntries(
        'abtkcweyz'
          .split('')
          .map((name) => [
            name,
            fc.oneof(
              fc.jsonValue({ maxDepth: 2 }),
              fc.constantFrom<unknown>(-1, 0, 0.5, 1e308, 1, 'json', 'bytes', { a: 1 }, null),
            ),
          ]),
      ),
      { requiredKeys: [] },
    ),
    fc.constantFrom('{}', '', 'null', 'eJw=', '[1'),
  )
  .map(([version, fields, body]) => seal(`${version === '2' ? '2' : ''}${JSON.stringify(fields)}\n${body}`));

const noise = fc.oneof(
  spicedText,
  fc.uint8Array({ maxLength: 80 }).map((array) => Buffer.from(array).toString('latin1')),
  fc.uint8Array({ maxLength: 80 }).map((array) => Buffer.from(array).toString()),
  fc
    .tuple(
      fc.constantFrom('1-', '1x', '2-', '2x', '3-', 'a-'),
      fc.string({ unit: fc.constantFrom(...'0123456789abcdefxz-+ \n{}"'.split('')), maxLength: 60 }),
    )
    .map((parts) => parts.join('')),
);

export const anyEnvelope: fc.Arbitrary<string> = fc.oneof(
  { weight: 2, arbitrary: goodEnvelope },
  { weight: 5, arbitrary: damaged },
  { weight: 3, arbitrary: wrongHeader },
  { weight: 2, arbitrary: noise },
);
