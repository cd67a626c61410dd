import { describe, expect, it } from '@jest/globals';
import {
  BackPressureError,
  BulkEnqueueError,
  DelayQueueError,
  DuplicateJobError,
  InvalidDelayError,
  InvalidIdError,
  InvalidOptionError,
  InvalidQueueError,
  LayoutError,
  PayloadError,
  PayloadTooLargeError,
  RedisFullError,
  StoredDataError,
  UnavailableError,
} from '../../../lib/index.js';
import type { DelayQueueProducer } from '../../../lib/index.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';

// A private server, because commands are counted and memory is limited.
const here = inAWorld({});
const end = endingWithEachTest();
const producing = async (options = {}) => (await here.start({ options: { consume: false, ...options } })).producer;

async function failure<E>(promise: Promise<unknown>): Promise<E> {
  return promise.then(
    (answer) => {
      throw new Error(`was accepted: ${JSON.stringify(answer)}`);
    },
    (error: unknown) => error as E,
  );
}

describe('bad input', () => {
  type Call = (producer: DelayQueueProducer) => Promise<unknown>;
  const CASES: [string, new (...args: any[]) => DelayQueueError, RegExp, Call][] = [
    [
      'ERR_DQ_INVALID_DELAY',
      InvalidDelayError,
      /enqueue\("mail", { delay }\).*"3 horses"/,
      (p) => p.enqueue('mail', {}, { delay: '3 horses' }),
    ],
    ['ERR_DQ_INVALID_DELAY', InvalidDelayError, /reschedule\({ at }\)/, (p) => p.reschedule('mail', 'a', { at: NaN })],
    ['ERR_DQ_INVALID_QUEUE', InvalidQueueError, /"a{b}"/, (p) => p.enqueue('a{b}', {})],
    ['ERR_DQ_INVALID_ID', InvalidIdError, /enqueue\("mail", { id }\)/, (p) => p.enqueue('mail', {}, { id: '' })],
    ['ERR_DQ_INVALID_ID', InvalidIdError, /is empty/, (p) => p.cancel('mail', '')],
    [
      'ERR_DQ_INVALID_OPTION',
      InvalidOptionError,
      /"dealy".*"delay"/,
      (p) => p.enqueue('mail', {}, { dealy: 5 } as never),
    ],
    ['ERR_DQ_INVALID_OPTION', InvalidOptionError, /cancel\(/, (p) => p.cancel('mail', 'a', { force: true } as never)],
    ['ERR_DQ_INVALID_OPTION', InvalidOptionError, /enqueueMany\(\): items/, (p) => p.enqueueMany('mail', {} as never)],
    [
      'ERR_DQ_PAYLOAD',
      PayloadError,
      /payload\.items\[1\]\.cents is a BigInt/,
      (p) => p.enqueue('mail', { items: [{}, { cents: 1n }] }),
    ],
    [
      'ERR_DQ_PAYLOAD_TOO_LARGE',
      PayloadTooLargeError,
      /has 1002 bytes.*maxPayloadBytes is 1000/,
      (p) => p.enqueue('mail', 'x'.repeat(1_000)),
    ],
  ];

  it.each(CASES)('%s tells where it stands (%#)', async (code, type, message, call) => {
    const producer = await producing({ maxPayloadBytes: 1_000 });
    const before = await commands();
    const error = await failure<DelayQueueError>(call(producer));
    expect(error).toBeInstanceOf(type);
    expect(error).toBeInstanceOf(DelayQueueError);
    expect(error).toMatchObject({ code, retryable: false, name: type.name });
    expect(error.message).toMatch(message);
    expect(await commands()).toEqual(before);
    expect(await here.world.keys('mail')).toEqual([]);
  });
});

describe('what Redis refuses', () => {
  it('ERR_DQ_DUPLICATE_JOB tells queue, id and state of the job that is there', async () => {
    const producer = await producing();
    await producer.enqueue('once', {}, { id: 'a', delay: '1h' });
    const error = await failure(producer.enqueue('once', {}, { id: 'a', onDuplicate: 'reject' }));
    expect(error).toBeInstanceOf(DuplicateJobError);
    const fields = { code: 'ERR_DQ_DUPLICATE_JOB', retryable: false, queue: 'once', id: 'a', state: 'delayed' };
    expect(error).toMatchObject(fields);
  });

  it('ERR_DQ_REDIS_FULL may be retried, and nothing was stored', async () => {
    const producer = await producing();
    await producer.enqueue('full', {}, { id: 'before', delay: '1h' });
    await here.world.redis.config('SET', 'maxmemory', '1');
    const error = await failure(producer.enqueue('full', {}));
    await here.world.redis.config('SET', 'maxmemory', '0');
    expect(error).toBeInstanceOf(RedisFullError);
    expect(error).toMatchObject({
      code: 'ERR_DQ_REDIS_FULL',
      retryable: true,
      message: expect.stringContaining('"full"'),
    });
    expect(Object.keys((await here.world.read('full')).jobs)).toEqual(['before']);
    await producer.enqueue('full', {});
  });

  it.each(['due', 'jobs', 'meta'])('ERR_DQ_STORED_DATA tells that the key "%s" is of a wrong type', async (name) => {
    const producer = await producing();
    const queue = `wrong ${name}`;
    await here.world.redis.set(here.world.key(queue, name), 'not ours');
    const error = await failure(producer.enqueue(queue, {}));
    expect(error).toBeInstanceOf(StoredDataError);
    expect(error).toMatchObject({ code: 'ERR_DQ_STORED_DATA', retryable: false });
    expect((await here.world.keys(queue)).filter((key) => !key.startsWith('session:'))).toEqual([name]);
  });

  it.each([
    ['a newer layout', { layout: '3' }],
    ['features that this library does not know', { layout: '1', needs: 'priority' }],
  ])('ERR_DQ_LAYOUT: %s', async (what, meta) => {
    const { producer, inspector } = await here.start({ options: { consume: false } });
    const queue = `newer ${what}`;
    await here.world.redis.hset(here.world.key(queue, 'meta'), meta);
    const calls = [
      producer.enqueue(queue, {}),
      producer.get(queue, 'a'),
      producer.cancel(queue, 'a'),
      inspector.pause(queue),
    ];
    for (const error of await Promise.all(calls.map((call) => failure(call as Promise<unknown>)))) {
      expect(error).toBeInstanceOf(LayoutError);
      expect(error).toMatchObject({ code: 'ERR_DQ_LAYOUT', retryable: false });
    }
    expect((await here.world.read(queue)).meta).toEqual(meta);
  });
});

describe('a Redis that does not answer', () => {
  it('ERR_DQ_UNAVAILABLE without maybeAccepted: nothing was sent', async () => {
    const producer = await producing({ connection: 'redis://127.0.0.1:1', connect: 'lazy', commandTimeout: 100 });
    const error = await failure<UnavailableError>(producer.enqueue('mail', {}, { id: 'a' }));
    expect(error).toBeInstanceOf(UnavailableError);
    expect(error).toMatchObject({
      code: 'ERR_DQ_UNAVAILABLE',
      retryable: true,
      maybeAccepted: false,
      ids: ['a'],
      id: 'a',
    });
    expect(error.message).toMatch(/127\.0\.0\.1:1 .*100 ms.*was not sent/);
    expect(await failure(producer.get('mail', 'a'))).toMatchObject({ code: 'ERR_DQ_UNAVAILABLE', retryable: true });
  });

  it('ERR_DQ_UNAVAILABLE with maybeAccepted: it was sent, and resending it by its id is safe', async () => {
    const proxy = end(await Proxy.before(here.world.url));
    const producer = await producing({ connection: proxy.url, commandTimeout: 1_500 });
    await producer.enqueue('lost', {}, { id: 'before', delay: '1h' });
    proxy.judge = (direction) => (direction === 'reply' ? 'swallow' : 'pass');
    const error = await failure<UnavailableError>(producer.enqueue('lost', {}));
    proxy.judge = () => 'pass';
    proxy.cut();
    expect(error).toMatchObject({ code: 'ERR_DQ_UNAVAILABLE', retryable: true, maybeAccepted: true });
    expect(error.message).toMatch(/may have taken effect/);
    const id = error.id!;
    expect(Object.keys((await here.world.read('lost')).jobs)).toContain(id);
    const resent = await (await producing()).enqueue('lost', {}, { id });
    expect(resent).toMatchObject({ id, outcome: 'kept' });
  });

  it('ERR_DQ_BACK_PRESSURE when too much waits to be sent; what was taken before is not harmed', async () => {
    const producer = await producing({ maxPayloadBytes: 30_000_000, commandTimeout: '30s' });
    const payload = 'x'.repeat(25_000_000);
    const sent = [1, 2, 3].map((n) => producer.enqueue('heavy', payload, { id: String(n) }));
    const error = await failure(sent[2]!);
    expect(error).toBeInstanceOf(BackPressureError);
    expect(error).toMatchObject({ code: 'ERR_DQ_BACK_PRESSURE', retryable: true });
    expect((await Promise.all(sent.slice(0, 2))).map(({ outcome }) => outcome)).toEqual(['created', 'created']);
    expect(await here.world.redis.hlen(here.world.key('heavy', 'jobs'))).toBe(2);
    expect(await producer.enqueue('heavy', 'light', { id: '3' })).toMatchObject({ outcome: 'created' });
  });

  it('ERR_DQ_BULK holds each item with its id, so that they can be resent', async () => {
    const options = { connection: 'redis://127.0.0.1:1', connect: 'lazy', commandTimeout: 100 };
    const producer = await producing(options);
    const error = await failure<BulkEnqueueError>(
      producer.enqueueMany('mail', [{ payload: 1, id: 'a' }, { payload: 2 }]),
    );
    expect(error).toBeInstanceOf(BulkEnqueueError);
    expect(error).toMatchObject({ code: 'ERR_DQ_BULK', retryable: true, cause: { code: 'ERR_DQ_UNAVAILABLE' } });
    expect(error.results).toEqual([
      { id: 'a', error: expect.any(UnavailableError) },
      { id: expect.stringMatching(/^\w{20}$/), error: expect.any(UnavailableError) },
    ]);
  });
});

/** Calls of every command that writes or runs scripts. */
async function commands(): Promise<Record<string, string>> {
  const stats = await here.world.redis.info('commandstats');
  const all = [...stats.matchAll(/^cmdstat_(\w+):calls=(\d+)/gm)].map(([, name, calls]) => [name!, calls!]);
  return Object.fromEntries(all.filter(([name]) => !/^(info|scan|hello|client|ping|config)/.test(name!)));
}
