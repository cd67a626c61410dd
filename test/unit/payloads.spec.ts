import { deflateSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { devalueCodec } from '../../lib/devalue/index.js';
import { LayoutError, PayloadError, StoredDataError, UnknownCodecError } from '../../lib/delay-queue.errors.js';
import { decodeEnvelope, encodeContent } from '../../lib/job/envelope.js';
import { contentId } from '../../lib/job/job-id.js';
import type { CodecOption, PayloadCodec } from '../../lib/job/payload-codec.js';
import { Payloads } from '../../lib/job/payloads.js';
import type { PayloadSettings } from '../../lib/job/payloads.js';

const SECRET = 'card-4111';
const text: PayloadCodec<string> = { name: 'text', encode: (value) => `<\n${JSON.stringify(value)}>`, decode: (data) => JSON.parse(data.slice(2, -1)) }; // prettier-ignore
const bytes: PayloadCodec<Buffer> = { name: 'bytes', encode: (value) => value as Buffer, decode: (data) => data };
const ALL_BYTES = Buffer.from(Array.from({ length: 256 }, (_, n) => n));
const LONG = { note: 'again and again, '.repeat(100) };

const payloads = (codec: CodecOption | CodecOption[] = 'json', settings: Partial<PayloadSettings> = {}) =>
  new Payloads({ codec: [codec].flat(), compressAbove: undefined, maxPayloadBytes: 1 << 20, ...settings });

/** What lib/lua/shared/envelope.lua makes of it: `2` in front asks for version 2. */
function seal(rest: string, times = `-${','.repeat(14)}`): string {
  return rest.startsWith('2') ? `2${times}${rest.slice(1)}` : `1${times}${rest}`;
}

function stored(by: Payloads, value: unknown): { envelope: string; read: (reader?: Payloads) => unknown } {
  const { body, mark } = by.encode(value, 'mail');
  const envelope = seal(encodeContent({}, body, mark));
  const read = (reader = by) => {
    const parts = decodeEnvelope(envelope);
    return reader.decode(parts.body, parts.mark);
  };
  return { envelope, read };
}

describe('payloads', () => {
  it('are plain JSON by default, without a mark', () => {
    expect(stored(payloads(), { a: 1 }).envelope).toBe(`1-${','.repeat(14)}\n{"a":1}`);
    expect(payloads().encode({ a: 1 }, 'mail').mark).toBeUndefined();
  });

  it.each<[string, CodecOption, unknown]>([
    ['text with line feeds', text, { a: '\n\n' }],
    ['all bytes there are', bytes, ALL_BYTES],
    ['no bytes', bytes, Buffer.alloc(0)],
    ['types that JSON lacks', devalueCodec(), { at: new Date(0), map: new Map([[1n, new Set([undefined])]]), n: [NaN, -0] }], // prettier-ignore
  ])('come back from a codec: %s', (_, codec, value) => {
    for (const compressAbove of [undefined, 1]) {
      const { envelope, read } = stored(payloads(codec, { compressAbove }), value);
      expect(read()).toEqual(value);
      expect(envelope[0]).toBe('2');
      expect(Buffer.from(envelope).toString()).toBe(envelope);
    }
  });

  it('of a text codec can be read by eye', () => {
    expect(stored(payloads(devalueCodec()), { at: new Date(0) }).envelope).toBe(
      `2-${','.repeat(14)}{"e":"devalue"}\n[{"at":1},["Date","1970-01-01T00:00:00.000Z"]]`,
    );
  });

  it('may be a view into something larger', () => {
    const { read } = stored(payloads(bytes), new Uint8Array(ALL_BYTES.buffer, ALL_BYTES.byteOffset + 5, 3));
    expect(read()).toEqual(ALL_BYTES.subarray(5, 8));
  });

  it('are read by processes that know their codec, and JSON by all', () => {
    const json = stored(payloads(), { a: 1 });
    const written = stored(payloads([text, bytes]), { a: 1 });
    expect(json.read(payloads(text))).toEqual({ a: 1 });
    expect(written.read(payloads(['json', text]))).toEqual({ a: 1 });
    expect(() => written.read(payloads())).toThrow(UnknownCodecError);
    expect(() => written.read(payloads(bytes))).toThrow('written by codec "text"; add that to `codec` of forRoot()');
  });

  it('that were cut off are not handed out as if they were whole', () => {
    const { body, mark } = payloads(bytes).encode(ALL_BYTES, 'mail');
    expect(() => payloads(bytes).decode(body.slice(0, -4), mark)).toThrow(StoredDataError);
  });

  it('that a codec cannot read are reported without what they hold', () => {
    const failing = { ...text, decode: (data: string) => JSON.parse(`${SECRET}${data}`) };
    const { read } = stored(payloads(text), { a: 1 });
    expect(() => read(payloads(failing))).toThrow('Codec "text" cannot decode the stored payload (SyntaxError).');
    const keyless = { ...text, decode: () => { throw new UnknownCodecError('Key "2027" is not here.'); } }; // prettier-ignore
    expect(() => read(payloads(keyless))).toThrow(UnknownCodecError);
  });

  it.each<[string, (value: unknown) => unknown, string]>([
    ['a promise', async () => 'x', 'codec "text" must give text or bytes, at once and not as a promise'],
    ['nothing', () => undefined, 'must give text or bytes'],
    ['half a character', () => 'x\ud83d', 'half a surrogate pair'],
    ['an error', () => { throw new TypeError(SECRET); }, 'codec "text" cannot encode the payload (TypeError)'], // prettier-ignore
    ['a PayloadError', () => { throw new PayloadError('payload.a is wrong'); }, 'Queue "mail": payload.a is wrong'], // prettier-ignore
  ])('for which a codec gives %s are refused, naming queue and codec', (_, encode, message) => {
    const encoding = () => payloads({ ...text, encode: encode as () => string }).encode({}, 'mail');
    expect(encoding).toThrow(PayloadError);
    expect(encoding).toThrow(message);
    expect(encoding).toThrow('Queue "mail": ');
    expect(encoding).toThrow(/^(?!.*4111)/);
  });
});

describe('devalue', () => {
  const encode = (value: unknown) => () => payloads(devalueCodec()).encode(value, 'mail');
  it.each<[string, unknown, string]>([
    ['a function', { items: [{ send() {} }] }, 'Queue "mail": payload.items[0].send: Cannot stringify a function'],
    ['a symbol', { a: Symbol('x') }, 'payload.a: Cannot stringify a Symbol primitive'],
    ['a promise', [Promise.resolve()], 'payload[0]: '],
    ['a class instance', new (class Money { amount = 1 })(), 'payload: Cannot stringify arbitrary non-POJOs'], // prettier-ignore
  ])('refuses %s with its path', (_, value, message) => {
    expect(encode(value)).toThrow(PayloadError);
    expect(encode(value)).toThrow(message);
  });

  it('keeps classes that it is given, under a name of their own', () => {
    class Money {
      constructor(readonly amount: number) {}
    }
    const reducers = { Money: (value: unknown) => value instanceof Money && value.amount };
    const revivers = { Money: (amount: number) => new Money(amount) };
    const { envelope, read } = stored(payloads(devalueCodec({ name: 'money.1', reducers, revivers })), new Money(5));
    expect(read()).toEqual(new Money(5));
    expect(envelope).toContain('"e":"money.1"');
  });
});

describe('compression', () => {
  it('is for what is above the limit, and only if it helps', () => {
    const size = JSON.stringify(LONG).length;
    const above = (compressAbove: number) => payloads('json', { compressAbove }).encode(LONG, 'mail').mark;
    expect(above(size)).toBeUndefined();
    expect(above(size - 1)).toEqual({ codec: undefined, bytes: undefined, inflated: size });
    expect(stored(payloads('json', { compressAbove: 1 }), LONG).envelope.length).toBeLessThan(size / 4);
    expect(payloads('json', { compressAbove: 1 }).encode('xyz', 'mail').mark).toBeUndefined();
    const random = payloads(bytes, { compressAbove: 1 }).encode(ALL_BYTES, 'mail');
    expect(random).toMatchObject({ body: ALL_BYTES.toString('base64'), mark: { inflated: undefined } });
  });

  it('counts bytes, not characters', () => {
    const value = 'é'.repeat(100);
    const marks = [201, 202].map((compressAbove) => payloads('json', { compressAbove }).encode(value, 'mail').mark);
    expect(marks).toEqual([{ codec: undefined, bytes: undefined, inflated: 202 }, undefined]);
    expect(stored(payloads('json', { compressAbove: 201 }), value).read()).toBe(value);
  });

  it('comes after maxPayloadBytes was checked', () => {
    const settings = { compressAbove: 10, maxPayloadBytes: 500 };
    for (const codec of ['json', text] as const) {
      expect(() => payloads(codec, settings).encode(LONG, 'mail')).toThrow('maxPayloadBytes is 500');
    }
  });

  it('is undone by readers that do not compress, also when they would accept less', () => {
    expect(stored(payloads('json', { compressAbove: 1 }), LONG).read(payloads('json', { maxPayloadBytes: 10 }))).toEqual(LONG); // prettier-ignore
  });

  it('that would inflate to more than it says is stopped there', () => {
    const bomb = deflateSync(Buffer.alloc(8 << 20)).toString('base64');
    const inflate = (inflated: number) => () =>
      payloads().decode(bomb, { codec: undefined, bytes: undefined, inflated });
    expect(inflate(100)).toThrow('is no zlib stream of 100 bytes');
    expect(inflate(9 << 20)).toThrow('has 8388608 bytes instead of 9437184');
    expect(inflate(0)).toThrow(StoredDataError);
  });

  it('to more than a reader may hold is left to others', () => {
    const mark = { codec: undefined, bytes: undefined, inflated: (16 << 20) + 1 };
    expect(() => payloads().decode('', mark)).toThrow(UnknownCodecError);
    expect(() => payloads().decode('', mark)).toThrow('has 16777217 bytes when inflated; raise maxPayloadBytes');
    expect(() => payloads('json', { maxPayloadBytes: 17 << 20 }).decode('', mark)).toThrow(StoredDataError);
  });
});

describe('an id from the payload', () => {
  const idOf = (by: Payloads, value: unknown) => by.idOf(value, by.encode(value, 'mail'), 'enqueue("mail")', 'mail');

  it('hashes what the codec gave, whether that is compressed or not', () => {
    expect(idOf(payloads(), LONG)).toBe(contentId(JSON.stringify(LONG)));
    expect(idOf(payloads('json', { compressAbove: 1 }), LONG)).toBe(contentId(JSON.stringify(LONG)));
    const by = payloads(devalueCodec());
    expect(idOf(by, new Map([[1, 2]]))).toBe(idOf(by, new Map([[1, 2]])));
    expect(idOf(by, new Map([[1, 2]]))).not.toBe(idOf(by, new Map([[1, 3]])));
  });

  it('is refused when a codec encodes differently each time, unless it has an identity', () => {
    let n = 0;
    const random = { ...text, encode: () => String(n++) };
    expect(() => idOf(payloads(random), 1)).toThrow(
      'enqueue("mail"): codec "text" encodes one payload differently each time. Give `id`, or the codec identity().',
    );
    expect(idOf(payloads({ ...random, identity: (value) => `key ${String(value)}` }), 1)).toBe(contentId('key 1'));
  });

  it('encodes the second time as carefully as the first: what a codec throws then says neither it nor the payload', () => {
    let n = 0;
    const once = {
      ...text,
      encode: () => {
        if (n++ > 0) throw new Error(SECRET);
        return 'x';
      },
    };
    const by = payloads(once);
    const encoded = by.encode(1, 'mail');
    const again = () => by.idOf(1, encoded, 'enqueue("mail")', 'mail');
    expect(again).toThrow(PayloadError);
    expect(again).toThrow(/^Queue "mail": codec "text" cannot encode the payload \(Error\)\.$/);
  });

  it.each<[string, (view: Uint8Array<ArrayBuffer>) => ArrayBufferView]>([
    ['a DataView', ({ buffer }) => new DataView(buffer)],
    ['a Uint16Array', ({ buffer }) => new Uint16Array(buffer)],
  ])('hashes the bytes of %s', (_, viewOf) => {
    const by = payloads({ ...bytes, encode: () => viewOf(new Uint8Array([1, 2, 3, 4])) as never });
    expect(idOf(by, 1)).toBe(contentId(Buffer.from([1, 2, 3, 4])));
  });
});

describe('envelopes', () => {
  const times = 'x,,,,,,-,,,,,,.,,,,,,/';

  it('of older and present versions are readable, newer ones are refused as newer', () => {
    const expected = { enqueuedAt: 1, dueAt: 2, expiresAt: 3, header: { attempts: 3 }, body: 'null' };
    expect(decodeEnvelope(`1${times}{"a":3}\nnull`)).toMatchObject({ ...expected, mark: undefined });
    const mark = { codec: 'x', bytes: 4, inflated: 5 };
    const rest = encodeContent({ attempts: 3 }, 'null', mark);
    expect(decodeEnvelope(seal(rest, times))).toMatchObject({ ...expected, mark });
    for (const version of ['3', '9', 'a', 'z']) {
      expect(() => decodeEnvelope(`${version}${times}\nnull`)).toThrow(LayoutError);
    }
    expect(() => decodeEnvelope(`3${times}\nnull`)).toThrow('layout "3", this library reads up to 2. Upgrade it');
  });

  it('whose mark is none are not envelopes', () => {
    for (const mark of ['{"e":1}', '{"y":"4"}', '{"z":null}', '{']) {
      expect(() => decodeEnvelope(`2${times}${mark}\nnull`)).toThrow(StoredDataError);
    }
  });
});
