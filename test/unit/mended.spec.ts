import { describe, expect, it } from '@jest/globals';
import {
  DelayQueueModule,
  defineQueue,
  getDelayQueueToken,
  getQueueToken,
  InvalidOptionError,
  PayloadError,
  StoredDataError,
} from '../../lib/index.js';
import { resolveModuleOptions } from '../../lib/delay-queue.options.js';
import { encodePayload } from '../../lib/job/codec.js';
import { resolveEnqueueOptions } from '../../lib/job/enqueue-options.js';
import { decodeEnvelope } from '../../lib/job/envelope.js';
import { summarizeError } from '../../lib/job/error-record.js';
import { Payloads } from '../../lib/job/payloads.js';
import { queueNameOf } from '../../lib/job/queue-definition.js';
import { parseSnapshot } from '../../lib/redis/job-snapshot.js';

/** What once went wrong with odd input, by the name of what went wrong. Most of it was found in test/fuzz. */

const THROWN = {
  'an object without a prototype': Object.create(null),
  'an object whose text throws': {
    toString() {
      throw new Error('no text');
    },
  },
  'a symbol': Symbol('thrown'),
};
const fight = (what: unknown) => () => {
  throw what;
};
const getter = (field: string, what: unknown) =>
  Object.defineProperty({}, field, { enumerable: true, get: fight(what) });
const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};

describe('a payload whose getter threw something that has no text made enqueue() throw a TypeError', () => {
  it.each(Object.entries(THROWN))('%s', (_, what) => {
    const encode = (payload: unknown) => () => encodePayload(payload, { queue: 'mail', maxBytes: 1_000 });
    expect(encode(getter('a', what))).toThrow(PayloadError);
    expect(encode({ toJSON: fight(what) })).toThrow(PayloadError);
  });
});

it('a field of a payload whose name holds a control character broke the line of its refusal', () => {
  const encode = () => encodePayload({ 'two\u0085lines': NaN }, { queue: 'mail', maxBytes: 1_000 });
  expect(encode).toThrow('payload["two\\u0085lines"] is NaN');
});

describe('what a getter or proxy among the options threw was thrown as it was', () => {
  it.each(Object.entries(THROWN))('%s', (_, what) => {
    const resolve = (options: unknown) => () => resolveEnqueueOptions(options, 'mail');
    expect(resolve(getter('delay', what))).toThrow(InvalidOptionError);
    expect(resolve({ context: getter('user', what) })).toThrow(InvalidOptionError);
    expect(resolve(new Proxy({}, { ownKeys: fight(what) }))).toThrow(InvalidOptionError);
  });

  it('a proxy that was revoked, as a value, as options or as a queue', () => {
    expect(() => resolveEnqueueOptions({ delay: revoked() }, 'mail')).toThrow('delay }): a Proxy');
    expect(() => resolveEnqueueOptions(revoked(), 'mail')).toThrow(InvalidOptionError);
    expect(() => queueNameOf(revoked() as never)).toThrow('a Proxy is neither a name');
  });
});

describe('forRoot() and forFeature()', () => {
  it.each([null, 5, 'redis://a', true, [], new Map(), new Date()])(
    'crashed on options that are none, or took them for the defaults: %p',
    (options) => {
      expect(() => DelayQueueModule.forRoot(options as never)).toThrow(InvalidOptionError);
      expect(() => DelayQueueModule.forRootAsync(options as never)).toThrow(InvalidOptionError);
    },
  );

  it('took anything for isGlobal', () => {
    expect(() => DelayQueueModule.forRoot({ isGlobal: 'no' as never })).toThrow('isGlobal');
  });

  it.each(['a\nb', '\x1b[2J', 'x'.repeat(65), ' eu'])(
    'took an instance name that breaks lines of the log: %j',
    (name) => {
      expect(() => DelayQueueModule.forRoot({ name })).toThrow(InvalidOptionError);
    },
  );

  it.each([null, 5, Symbol('eu'), ''])('crashed on an instance that is no name: %p', (instance) => {
    expect(() => DelayQueueModule.forFeature([defineQueue('mail')], instance as never)).toThrow(InvalidOptionError);
  });

  it('crashed on an instance of ioredis without options', () => {
    const connection = { duplicate: () => undefined, options: null };
    expect(() => resolveModuleOptions({ connection }, 'default')).toThrow(InvalidOptionError);
  });
});

it('two queues of two instances had one injection token, so one of them got the jobs of the other', () => {
  expect(getQueueToken('c', 'a:b')).not.toBe(getQueueToken('b:c', 'a'));
  expect(getQueueToken('DelayQueueProducer', 'a')).not.toBe(getDelayQueueToken('queue:a'));
});

describe('a stored header with fields of other types', () => {
  const sealed = (fields: object) => `1-${','.repeat(14)}${JSON.stringify(fields)}\n{}`;

  it.each([{ c: 5 }, { c: ['a'] }, { c: { user: 5 } }, { a: -5 }, { a: 0.5 }, { a: 'x' }, { t: -1 }, { t: '1s' }])(
    'reached handlers: %j',
    (fields) => expect(() => decodeEnvelope(sealed(fields))).toThrow(StoredDataError),
  );

  it.each([null, -1, 'text', { traceparent: 5 }])('kept no job from running when it was only the trace: %j', (w) => {
    expect(decodeEnvelope(sealed({ w })).header.trace).toBeUndefined();
  });
});

describe('get() and list() of a job', () => {
  const payloads = new Payloads({ codec: ['json'], compressAbove: undefined, maxPayloadBytes: 1_000 });
  const snapshot = (attempts: string, error: string) =>
    parseSnapshot('id', 'mail', ['x', '1', attempts, error, ''], 10, payloads);

  it('threw when its stored error was of other types', () => {
    const error = { name: 5, message: {}, stack: [], at: { toString: 1, valueOf: 1 } };
    const { lastError } = snapshot('', `exhausted\n${JSON.stringify(error)}`);
    expect(lastError).toEqual({ name: 'Error', message: '', at: expect.any(Date) });
    expect(lastError!.at.getTime()).toBeNaN();
  });

  it.each(['-1 -1 -1', '1e999', '0.5'])('told attempts that are no number of attempts: %s', (attempts) => {
    expect(snapshot(attempts, '').attempts).toBe(0);
  });
});

it('an error that was thrown could end a line of the log, or drive the terminal that shows it', () => {
  const error = Object.assign(new Error('first\nsecond \x1b[2J\0'), { name: 'Odd\nName' });
  expect(summarizeError(error)).toBe('Odd Name: first second [2J ');
});
