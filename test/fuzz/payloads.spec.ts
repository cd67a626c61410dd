import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { devalueCodec } from '../../lib/devalue/index.js';
import { resolveEnqueueOptions } from '../../lib/job/enqueue-options.js';
import { decodeEnvelope, encodeContent } from '../../lib/job/envelope.js';
import { Payloads } from '../../lib/job/payloads.js';
import { seal } from './envelopes.js';
import { fateNow, fuzz, FUZZ_MS } from './fuzz.js';
import { context } from './options.js';
import { payload, same } from './payloads.js';

const inputs = fc.record({
  sample: payload,
  context: context.good,
  maxPayloadBytes: fc.constantFrom(200, 262_144, 262_144, 10_000_000),
  compressAbove: fc.constantFrom(undefined, undefined, 1, 1_000),
});

describe('Payloads', () => {
  it(
    'come back as they were, with their context, or are refused',
    () =>
      fuzz('payloads', inputs, {
        check: ({ sample, context: given, maxPayloadBytes, compressAbove }) => {
          const payloads = new Payloads({ codec: ['json'], compressAbove, maxPayloadBytes });
          const options = resolveEnqueueOptions({ context: given }, 'mail');
          const header = { context: options.context ?? undefined };
          let stored = '';
          const fate = fateNow(() => {
            const { body, mark } = payloads.encode(sample.given, 'mail');
            stored = seal(encodeContent(header, body, mark));
          });
          if (sample.comes === 'refused') {
            expect(fate).toMatch(/^ERR_DQ_PAYLOAD(?:_TOO_LARGE)?$/);
            return fate;
          }
          const { value } = sample.comes as { value: unknown };
          const tooLarge = Buffer.byteLength(JSON.stringify(value)) > maxPayloadBytes;
          expect(fate).toBe(tooLarge ? 'ERR_DQ_PAYLOAD_TOO_LARGE' : 'accepted');
          if (fate !== 'accepted') return fate;
          // By the way of Redis, which keeps UTF-8.
          const envelope = decodeEnvelope(Buffer.from(stored).toString());
          expect(same(payloads.decode(envelope.body, envelope.mark), value)).toBe(true);
          expect(same(envelope.header.context ?? null, given && { ...given })).toBe(true);
          return fate;
        },
      }),
    FUZZ_MS,
  );

  const anything = fc.anything({
    key: fc.oneof(fc.string(), fc.constantFrom('__proto__', 'constructor', 'toString')),
    withBigInt: true,
    withBoxedValues: true,
    withDate: true,
    withMap: true,
    withNullPrototype: true,
    withSet: true,
    withSparseArray: true,
    withTypedArray: true,
  });
  const impossible = fc.constantFrom<unknown>(
    () => 1,
    Symbol('s'),
    new WeakMap(),
    [new (class A {})()],
    Promise.resolve(),
  );
  it(
    'come back as they were or are refused',
    () =>
      fuzz('payloads by devalue', fc.oneof({ weight: 4, arbitrary: anything }, impossible), {
        check: (given) => {
          const payloads = new Payloads({
            codec: [devalueCodec()],
            compressAbove: undefined,
            maxPayloadBytes: 262_144,
          });
          let encoded: ReturnType<Payloads['encode']> | undefined;
          const fate = fateNow(() => (encoded = payloads.encode(given, 'mail')));
          if (!encoded) return fate;
          const back = payloads.decode(Buffer.from(encoded.body).toString(), encoded.mark);
          // Once more, it is what it was: Map, Set and -0 are told apart by devalue itself.
          expect(payloads.encode(back, 'mail').body).toBe(encoded.body);
          if (typeof given === 'object' && given !== null) {
            expect(Object.prototype.toString.call(back)).toBe(Object.prototype.toString.call(given));
          } else {
            expect(Object.is(back, given)).toBe(true);
          }
          return fate;
        },
      }),
    FUZZ_MS,
  );
});
