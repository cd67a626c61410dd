import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { DelayQueueError } from '../../lib/index.js';
import { decodeEnvelope } from '../../lib/job/envelope.js';
import type { Envelope } from '../../lib/job/envelope.js';
import { decodeError, describeError, encodeError, summarizeError } from '../../lib/job/error-record.js';
import { parseSnapshot } from '../../lib/redis/job-snapshot.js';
import { readCursor } from '../../lib/inspection/shard-pages.js';
import { anyEnvelope, READER } from './envelopes.js';
import { fateNow, fuzz, FUZZ_MS } from './fuzz.js';
import { hostile, spicedText, thrown, unboxed } from './values.js';

function isTexts(value: unknown): boolean {
  return (
    value === undefined ||
    (typeof value === 'object' &&
      value !== null &&
      !Array.isArray(value) &&
      Object.values(value).every((text) => typeof text === 'string'))
  );
}

function expectSound({ enqueuedAt, dueAt, expiresAt, header }: Envelope): void {
  for (const time of [enqueuedAt, dueAt, expiresAt ?? 0]) expect(Number.isNaN(new Date(time).getTime())).toBe(false);
  const { attempts = 1, timeoutMs = 1, keepExpired = false, backoff = { type: 'fixed' }, context, trace } = header;
  expect(Number.isInteger(attempts) && attempts >= 1).toBe(true);
  expect(Number.isFinite(timeoutMs) && timeoutMs > 0).toBe(true);
  expect(typeof keepExpired).toBe('boolean');
  expect(backoff.type).toMatch(/^(?:fixed|steps|exponential)$/);
  expect([context, trace].every(isTexts)).toBe(true);
}

describe('What is stored', () => {
  it(
    'are read whole, or refused by a typed error; a payload also by that of JSON.parse',
    () =>
      fuzz('envelopes', anyEnvelope, {
        check: (text) => {
          let envelope: Envelope | undefined;
          const fate = fateNow(() => (envelope = decodeEnvelope(text)));
          if (!envelope) {
            expect(fate).toMatch(/^ERR_DQ_(?:STORED_DATA|LAYOUT)$/);
            return fate;
          }
          expectSound(envelope);
          try {
            READER.decode(envelope.body, envelope.mark);
          } catch (error) {
            if (error instanceof SyntaxError) return 'no JSON';
            expect((error as DelayQueueError).code).toMatch(/^ERR_DQ_(?:STORED_DATA|UNKNOWN_CODEC)$/);
            return (error as DelayQueueError).code;
          }
          return fate;
        },
      }),
    FUZZ_MS,
  );

  const junk = fc.oneof(spicedText, fc.constantFrom('', '-inf', 'inf', 'nan', '1e999', '-1', '0', '1 2 3 4', 'x y'));
  const record = fc.oneof(
    fc.jsonValue().map((value) => JSON.stringify(value)),
    fc
      .record(
        {
          name: fc.jsonValue(),
          message: fc.jsonValue(),
          stack: fc.jsonValue(),
          at: fc.oneof(fc.jsonValue(), fc.constant({ toString: 1, valueOf: 1 })),
        },
        { requiredKeys: [] },
      )
      .map((value) => JSON.stringify(value)),
    junk,
  );
  const answers = fc.record({
    state: fc.constantFrom('l', 'd', 'r', 'x', 'c'),
    score: junk,
    attempts: junk,
    error: fc.oneof(
      fc.constant(''),
      fc.tuple(fc.oneof(fc.constantFrom('retry', 'exhausted'), junk), record).map((parts) => parts.join('\n')),
    ),
    envelope: anyEnvelope,
    cursor: fc.oneof(
      spicedText,
      fc.string({ unit: fc.constantFrom(...'0123456789.e+-inf:|'.split('')), maxLength: 12 }),
      fc
        .oneof(
          fc.array(
            fc.oneof(fc.constant(null), fc.tuple(fc.oneof(fc.constantFrom('-', '1.5e3', 's17', '-inf'), junk), junk)),
          ),
          fc.tuple(fc.tuple(fc.constantFrom('-', '1.5e3', 's17', '-inf', 'nan'), fc.constantFrom('', 'A', 'é', 'a{'))),
          fc.tuple(fc.oneof(fc.constant(null), fc.tuple(fc.constantFrom('1.5e3', '17'), fc.constantFrom('A', 'é')))),
          fc.anything(),
        )
        .map((value) => Buffer.from(JSON.stringify(value) ?? '').toString('base64url')),
    ),
  });
  it(
    'are shown as far as they can be read; only cursors are refused',
    () =>
      fuzz('snapshots', answers, {
        check: ({ state, score, attempts, error, envelope, cursor }) => {
          const snapshot = parseSnapshot('id', 'mail', [state, score, attempts, error, envelope], 10, READER);
          expect([snapshot.dueAt, snapshot.enqueuedAt].every((date) => date instanceof Date)).toBe(true);
          expect(Number.isFinite(snapshot.attempts) && snapshot.attempts >= 0).toBe(true);
          expect(isTexts(snapshot.context)).toBe(true);
          const { lastError } = snapshot;
          if (lastError) {
            expect([typeof lastError.name, typeof lastError.message]).toEqual(['string', 'string']);
            expect(['string', 'undefined']).toContain(typeof lastError.stack);
            expect(lastError.at).toBeInstanceOf(Date);
          }
          return fateNow(() => {
            for (const one of readCursor(cursor, 1, 'list({ cursor })'))
              expect([typeof one?.score, typeof one?.id]).toEqual(['string', 'string']);
          });
        },
      }),
    FUZZ_MS,
  );

  const long = fc
    .tuple(fc.constantFrom('x', '\n', '\0', 'é', '\ud800'), fc.integer({ min: 0, max: 200_000 }))
    .map(([letter, count]) => letter.repeat(count));
  const errors = fc.oneof(
    fc
      .record({ message: fc.oneof(long, spicedText), name: fc.oneof(long, spicedText) })
      .map(({ message, name }) => Object.assign(new Error(message), { name })),
    fc.anything(),
    long,
    thrown,
    hostile,
    fc.record({ name: fc.anything(), message: fc.anything(), stack: fc.anything(), code: fc.anything() }),
    fc
      .tuple(long, fc.anything(), fc.array(fc.oneof(fc.anything(), hostile)))
      .map(([message, cause, errors]) => Object.assign(new AggregateError(errors, message), { cause })),
  );
  /** All texts, whose letters may take six bytes each, and what stands around them. */
  const MOST_BYTES = 6 * 17_000;
  it(
    'of whatever was thrown are kept and told, within bounds',
    () =>
      fuzz('errors', errors, {
        neverRefused: true,
        check: (input) => {
          const error: unknown = unboxed(input);
          const text = encodeError(error);
          expect(Buffer.byteLength(text)).toBeLessThan(MOST_BYTES);
          const back = decodeError(`exhausted\n${text}`);
          expect(back.reason).toBe('exhausted');
          expect(typeof back.error!.name).toBe('string');
          expect(back.error!.message).toBe(describeError(error).message);
          const line = summarizeError(error);
          expect(line.length).toBeLessThan(1_500);
          expect(line).not.toMatch(/[\p{Cc}\u2028\u2029]/u);
          return 'accepted';
        },
      }),
    FUZZ_MS,
  );
});
