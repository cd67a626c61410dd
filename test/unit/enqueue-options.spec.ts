import { describe, expect, it } from '@jest/globals';
import { InvalidDelayError, InvalidIdError, InvalidOptionError } from '../../lib/delay-queue.errors.js';
import { exponential, fixed } from '../../lib/job/backoff.js';
import { assertContext, resolveEnqueueOptions } from '../../lib/job/enqueue-options.js';
import type { EnqueueOptions, ResolvedEnqueueOptions } from '../../lib/job/enqueue-options.js';
import { queueNameOf } from '../../lib/job/queue-definition.js';
import { getterThrowing, revoked, THROWN, throwing } from '../helpers/throwing.js';

const resolve = (options: unknown) => resolveEnqueueOptions(options, 'payment.check');
const NOTHING: ResolvedEnqueueOptions = { idFromPayload: false, onDuplicate: 'keep' };

describe('the options of one enqueue', () => {
  it.each<[string, EnqueueOptions | undefined, Partial<ResolvedEnqueueOptions>]>([
    ['none', undefined, {}],
    ['an empty object', {}, {}],
    ['an object without prototype', Object.create(null), {}],
    ['undefined values, which count as left out', { delay: undefined, at: undefined, id: undefined }, {}],
    ['delay', { delay: '3h' }, { due: { kind: 'delay', ms: 10_800_000 } }],
    ['a delay of 0, which is not the same as none', { delay: 0 }, { due: { kind: 'delay', ms: 0 } }],
    ['a delay next to an undefined at', { delay: 5, at: undefined }, { due: { kind: 'delay', ms: 5 } }],
    ['at as a Date', { at: new Date(5) }, { due: { kind: 'at', ms: 5 } }],
    ['at in epoch ms', { at: 5 }, { due: { kind: 'at', ms: 5 } }],
    ['id', { id: 'order-4711' }, { id: 'order-4711' }],
    ['id and idFromPayload: false', { id: 'a', idFromPayload: false }, { id: 'a' }],
    ['idFromPayload', { idFromPayload: true }, { idFromPayload: true }],
    ['keep', { onDuplicate: 'keep' }, {}],
    ['replace', { onDuplicate: 'replace' }, { onDuplicate: 'replace' }],
    ['reschedule', { onDuplicate: 'reschedule' }, { onDuplicate: 'reschedule' }],
    ['reject', { onDuplicate: 'reject' }, { onDuplicate: 'reject' }],
    ['maxWait', { maxWait: '1m' }, { maxWaitMs: 60_000 }],
    ['uniqueFor', { uniqueFor: '1d' }, { uniqueForMs: 86_400_000 }],
    ['attempts', { attempts: 1 }, { attempts: 1 }],
    ['backoff', { backoff: fixed(5) }, { backoff: fixed(5) }],
    ['timeout', { timeout: '1s' }, { timeoutMs: 1000 }],
    ['expiresIn', { expiresIn: '1s' }, { expiresInMs: 1000 }],
    ['expiresAt', { expiresAt: new Date(7) }, { expiresAtMs: 7 }],
    ['keepExpired', { keepExpired: true }, { keepExpired: true }],
    ['context', { context: { tenant: 'eu' } }, { context: { tenant: 'eu' } }],
    ['an empty context', { context: {} }, { context: {} }],
    ['no inherited context', { context: null }, { context: null }],
  ])('may be %s', (_, options, expected) => {
    expect(resolve(options)).toEqual({ ...NOTHING, ...expected });
  });

  it('may be all together', () => {
    expect(
      resolve({
        at: 5,
        id: 'a',
        onDuplicate: 'replace',
        maxWait: 1,
        uniqueFor: 2,
        attempts: 3,
        backoff: exponential(4),
        timeout: 5,
        expiresIn: 6,
        keepExpired: false,
        context: { a: 'b' },
      }),
    ).toEqual({
      due: { kind: 'at', ms: 5 },
      id: 'a',
      idFromPayload: false,
      onDuplicate: 'replace',
      maxWaitMs: 1,
      uniqueForMs: 2,
      attempts: 3,
      backoff: exponential(4),
      timeoutMs: 5,
      expiresInMs: 6,
      keepExpired: false,
      context: { a: 'b' },
    });
  });

  it('do not leak from one call into the next', () => {
    resolve({ id: 'a', delay: 5, onDuplicate: 'replace' });
    expect(resolve(undefined)).toEqual(NOTHING);
    expect(resolve({})).toEqual(NOTHING);
  });

  it('are own ones only', () => {
    const polluted = Object.prototype as { delay?: unknown };
    try {
      polluted.delay = 'polluted';
      expect(resolve({})).toEqual(NOTHING);
      expect(resolve({ at: 5 })).toEqual({ ...NOTHING, due: { kind: 'at', ms: 5 } });
    } finally {
      delete polluted.delay;
    }
  });
});

describe('refused, naming queue and option', () => {
  it.each<[string, unknown, new (message: string) => Error, string]>([
    ['null', null, InvalidOptionError, 'must be a plain object, but are null'],
    ['a list', [{ delay: 5 }], InvalidOptionError, 'but are an array'],
    ['a duration', '3h', InvalidOptionError, 'but are "3h"'],
    ['a number', 5, InvalidOptionError, 'but are 5'],
    ['a Date', new Date(5), InvalidOptionError, 'but are 1970-01-01T00:00:00.005Z'],
    ['a Map', new Map([['delay', 5]]), InvalidOptionError, 'but are an object'],
    ['a function', () => ({ delay: 5 }), InvalidOptionError, 'but are a function'],
    ['a class instance', new (class { delay = 5 })(), InvalidOptionError, 'plain object'], // prettier-ignore
    ['inherited options', Object.create({ delay: 5 }), InvalidOptionError, 'plain object'],
    ['a misspelt option', { dealy: 5 }, InvalidOptionError, 'unknown option "dealy". The nearest known one is "delay"'],
    ['other case', { Delay: 5 }, InvalidOptionError, 'is "delay"'],
    ['an unknown option without a value', { dealy: undefined }, InvalidOptionError, '"dealy"'],
    ['an option of another library', { jobId: 'a' }, InvalidOptionError, 'Known: attempts, backoff, timeout'],
    ['what objects have anyway', { toString: 5 }, InvalidOptionError, 'unknown option "toString"'],
    ['own __proto__', JSON.parse('{"__proto__":{"delay":5}}'), InvalidOptionError, 'unknown option "__proto__"'],
    ['delay with at', { delay: 5, at: 5 }, InvalidOptionError, 'use either `delay` or `at`'],
    ['id with idFromPayload', { id: 'a', idFromPayload: true }, InvalidOptionError, 'either `id` or `idFromPayload`'],
    ['both expiries', { expiresIn: 5, expiresAt: 5 }, InvalidOptionError, 'either `expiresIn` or `expiresAt`'],
    ['a wrong delay', { delay: 'soon' }, InvalidDelayError, 'enqueue("payment.check", { delay }): "soon"'],
    ['null as delay', { delay: null }, InvalidDelayError, '{ delay }): null'],
    ['a Date as delay', { delay: new Date(5) }, InvalidDelayError, '{ delay })'],
    ['date text as at', { at: '2030-01-01' }, InvalidDelayError, '{ at })'],
    ['an invalid Date', { at: new Date(NaN) }, InvalidDelayError, '{ at }): an invalid Date'],
    ['a wrong id', { id: '' }, InvalidIdError, 'enqueue("payment.check", { id }): is empty'],
    ['a number as id', { id: 5 }, InvalidIdError, 'String(id)'],
    ['a wrong flag', { idFromPayload: 'yes' }, InvalidOptionError, '{ idFromPayload }): "yes"'],
    ['a wrong choice', { onDuplicate: 'ignore' }, InvalidOptionError, `'keep', 'replace', 'reschedule', 'reject'`],
    ['a wrong maxWait', { maxWait: -1 }, InvalidDelayError, '{ maxWait })'],
    ['a wrong uniqueFor', { uniqueFor: NaN }, InvalidDelayError, '{ uniqueFor })'],
    ['no attempts', { attempts: 0 }, InvalidOptionError, '{ attempts }): 0 is not a whole number from 1 to 1000'],
    ['too many attempts', { attempts: 1001 }, InvalidOptionError, '1001'],
    ['attempts as text', { attempts: '5' }, InvalidOptionError, '"5"'],
    ['a function as backoff', { backoff: () => 5 }, InvalidOptionError, 'Put it on the handler'],
    ['a wrong backoff', { backoff: { type: 'fixed' } }, InvalidDelayError, '{ backoff }).delay: undefined'],
    ['no timeout at all', { timeout: 0 }, InvalidDelayError, '{ timeout })'],
    ['an expiry of 0', { expiresIn: 0 }, InvalidDelayError, '{ expiresIn })'],
    ['a wrong keepExpired', { keepExpired: 1 }, InvalidOptionError, '{ keepExpired })'],
    ['a wrong context', { context: 'eu' }, InvalidOptionError, '{ context }): "eu" is not a map of texts'],
  ])('%s', (_, options, type, message) => {
    expect(() => resolve(options)).toThrow(type);
    expect(() => resolve(options)).toThrow(message);
    expect(() => resolve(options)).toThrow(/payment\.check/);
  });

  it('in the words of the caller', () => {
    const naming = (option: string) => `enqueueMany("q", [7: { ${option} }])`;
    expect(() => resolveEnqueueOptions({ delay: -1 }, 'q', naming)).toThrow('enqueueMany("q", [7: { delay }]): -1');
  });
});

describe('a context', () => {
  const entries = (count: number, text = '') =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, text]));

  it('is copied and frozen', () => {
    const given = { tenant: 'eu' };
    const context = assertContext(given, 'context');
    given.tenant = 'us';
    expect(context).toEqual({ tenant: 'eu' });
    expect(Object.isFrozen(context)).toBe(true);
  });

  it('has at most 32 entries', () => {
    expect(Object.keys(assertContext(entries(32), 'context'))).toHaveLength(32);
    expect(() => assertContext(entries(33), 'context')).toThrow('context: has 33 entries; at most 32.');
  });

  it('has at most 4 KiB of UTF-8, keys included', () => {
    assertContext({ k: 'x'.repeat(4095) }, 'context');
    assertContext({ é: 'é'.repeat(2047) }, 'context');
    expect(() => assertContext({ k: 'x'.repeat(4096) }, 'context')).toThrow('has 4097 bytes; at most 4096');
    expect(() => assertContext({ é: 'é'.repeat(2048) }, 'context')).toThrow(InvalidOptionError);
    expect(() => assertContext({ ['k'.repeat(4097)]: '' }, 'context')).toThrow(InvalidOptionError);
  });

  it.each([
    ['a number', { a: 5 }],
    ['undefined', { a: undefined }],
    ['null', { a: null }],
    ['an object', { a: {} }],
  ])('does not hold %s', (_, context) => {
    expect(() => assertContext(context, 'context')).toThrow(/context: "a" is .*, not text\./);
  });

  it.each([[[]], [new Map()], [5], [undefined]])('is no %p', (context) => {
    expect(() => assertContext(context, 'context')).toThrow(InvalidOptionError);
  });

  it('keeps an own __proto__ as data', () => {
    const context = assertContext(JSON.parse('{"__proto__":"x"}'), 'context');
    expect(JSON.stringify(context)).toBe('{"__proto__":"x"}');
  });
});

describe('what a getter or proxy among the options threw was thrown as it was', () => {
  it.each(Object.entries(THROWN))('%s', (_, what) => {
    const resolving = (options: unknown) => () => resolve(options);
    expect(resolving(getterThrowing('delay', what))).toThrow(InvalidOptionError);
    expect(resolving({ context: getterThrowing('user', what) })).toThrow(InvalidOptionError);
    expect(resolving(new Proxy({}, { ownKeys: throwing(what) }))).toThrow(InvalidOptionError);
  });

  it('a proxy that was revoked, as a value, as options or as a queue', () => {
    expect(() => resolve({ delay: revoked() })).toThrow('delay }): a Proxy');
    expect(() => resolve(revoked())).toThrow(InvalidOptionError);
    expect(() => queueNameOf(revoked() as never)).toThrow('a Proxy is neither a name');
  });
});
