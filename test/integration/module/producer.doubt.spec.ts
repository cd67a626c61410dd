import { describe, expect, it } from '@jest/globals';
import { BulkEnqueueError, UnavailableError } from '../../../lib/index.js';
import type {
  DelayQueueInspector,
  DelayQueueProducer,
  DelayQueueRootOptions,
  EnqueueOptions,
  PayloadCodec,
} from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';

const here = inAWorld();
const end = endingWithEachTest();
// By its hash or, the first time on a connection, by its text: a producer calls no other script here.
const isEnqueue = (chunk: Buffer) => /\r\neval(?:sha)?\r\n/i.test(chunk.toString('latin1'));
const salted: PayloadCodec = {
  name: 'salted',
  encode: (payload) => `${Math.random()} ${JSON.stringify(payload)}`,
  decode: (data) => JSON.parse(String(data).slice(String(data).indexOf(' ') + 1)),
};
let queues = 0;

/** A producer behind a proxy, and a worker beside it that runs what arrives. */
async function farProducer({ runs = true, ...options }: DelayQueueRootOptions & { runs?: boolean } = {}) {
  const queue = `doubt-${queues++}`;
  const ran: unknown[] = [];
  const { codec } = options;
  const near = await here.start({
    providers: runs ? [handlerClass(queue, (payload) => void ran.push(payload))] : [],
    options: codec ? { codec } : {},
  });
  const proxy = end(await Proxy.before(here.world.url));
  const far = await here.start({
    options: { consume: false, connection: proxy.url, commandTimeout: '1s', ...options },
  });
  const { producer } = far;
  // From here on every script is known to the server.
  await producer.enqueue(queue, 'warm-up', { id: 'warm-up', delay: '1h' });
  await producer.cancel(queue, 'warm-up');
  /** What arrives, or does not, and is in doubt either way. */
  const inDoubt = async <T>(lost: 'answer' | 'request', call: () => Promise<T>): Promise<UnavailableError> => {
    let arrived = false;
    proxy.judge = (direction, chunk) => {
      if (direction === 'request' && isEnqueue(chunk)) {
        if (lost === 'request' || arrived) return 'swallow';
        arrived = true;
      }
      return arrived && direction === 'reply' ? 'swallow' : 'pass';
    };
    const error = await call().then(
      () => undefined,
      (thrown: unknown) => (thrown instanceof BulkEnqueueError ? thrown.cause : thrown),
    );
    expect(error).toMatchObject({ code: 'ERR_DQ_UNAVAILABLE', maybeAccepted: true });
    proxy.judge = () => 'pass';
    return error as UnavailableError;
  };
  const gone = (id: string) => eventually(async () => expect(await near.producer.get(queue, id)).toBeUndefined());
  return { queue, ran, near, far, producer, inDoubt, gone };
}

/** The connection is lost with the answer, and comes back. */
const repeated = <T>(call: () => Promise<T>) => eventually(call, 10_000);

describe('an enqueue in doubt', () => {
  it('left its session to Redis when the application closed: it is gone, or says that it is over', async () => {
    const { queue, far, producer, inDoubt } = await farProducer({ runs: false });
    await inDoubt('answer', () => producer.enqueue(queue, 1, { id: 'a', delay: '1h' }));
    const sessions = async () => {
      const keys = await here.world.redis.keys(`${here.world.key(queue, 'session')}:*`);
      return keys.length === 0 ? [] : here.world.redis.mget(keys);
    };
    // Another session takes the place of the one in doubt.
    await repeated(() => producer.enqueue(queue, 2, { id: 'b', delay: '1h' }));
    expect((await sessions()).length).toBeGreaterThan(1);
    await far.app.close();
    expect((await sessions()).filter((text) => text !== '9007199254740991 ')).toEqual([]);
  });
});

describe('the repeat of an enqueue in doubt', () => {
  it('made a second job when the first had been completed meanwhile: it gets the answer of the first', async () => {
    const { queue, ran, producer, inDoubt, gone } = await farProducer();
    const call = (payload: unknown = 1) => producer.enqueue(queue, payload, { id: 'a' });
    const error = await inDoubt('answer', call);
    expect(error.message).toMatch(/may have taken effect\. Repeat it with this id: .* 60 s; .*`uniqueFor`/);
    await eventually(() => expect(ran).toEqual([1]));
    await gone('a');
    // Other calls go on meanwhile, and do not take the place of the first one's answer.
    for (const id of ['b', 'c']) await repeated(() => producer.enqueue(queue, id, { id, delay: '1h' }));
    expect(await repeated(call)).toMatchObject({ id: 'a', outcome: 'created', state: 'due' });
    // Only the repeat: the next call is a new one, and runs.
    expect(await call(2)).toMatchObject({ outcome: 'created' });
    await eventually(() => expect(ran).toEqual([1, 2]));
  });

  it('with an id that the library made, and a delay that was counted again, is one all the same', async () => {
    const { queue, ran, near, producer, inDoubt, gone } = await farProducer();
    const { ids } = await inDoubt('answer', () => producer.enqueue(queue, { n: 1 }, { delay: 5, context: { a: '1' } }));
    await eventually(() => expect(ran).toEqual([{ n: 1 }]));
    await gone(ids[0]!);
    const again = () => producer.enqueue(queue, { n: 1 }, { id: ids[0]!, delay: 3, context: { a: '2' } });
    expect(await repeated(again)).toMatchObject({ id: ids[0], outcome: 'created' });
    expect(await near.inspector.counts(queue)).toMatchObject({ due: 0, delayed: 0, running: 0 });
    expect(ran).toHaveLength(1);
  });

  it('of a job that never arrived makes it, and nobody else’s', async () => {
    const { queue, near, producer, inDoubt } = await farProducer({ runs: false });
    const enqueue = (id: string) => producer.enqueue(queue, id, { id, delay: '1h' });
    await inDoubt('request', async () => {
      const settled = await Promise.allSettled([enqueue('a'), enqueue('b')]);
      throw (settled[0] as PromiseRejectedResult).reason;
    });
    expect(await repeated(() => enqueue('a'))).toMatchObject({ outcome: 'created', state: 'delayed' });
    expect(await near.producer.get(queue, 'b')).toBeUndefined();
    expect(await enqueue('b')).toMatchObject({ outcome: 'created' });
    expect(await near.inspector.counts(queue)).toMatchObject({ delayed: 2 });
    expect(await near.inspector.totals(queue)).toMatchObject({ enqueued: 3 });
  });

  it('of a job with a group that never arrived makes it, also where no other of its queue has one', async () => {
    const { queue, near, producer, inDoubt } = await farProducer({ runs: false });
    const call = () => producer.enqueue(queue, 1, { id: 'a', delay: '1h', group: 'g' });
    await inDoubt('request', call);
    expect(await repeated(call)).toMatchObject({ outcome: 'created', state: 'delayed' });
    expect(await near.producer.get(queue, 'a')).toMatchObject({ state: 'delayed', group: 'g' });
  });

  it('of many jobs gets the answers of those that arrived, together with jobs that are new', async () => {
    const { queue, ran, near, producer, inDoubt, gone } = await farProducer();
    const items = Array.from({ length: 300 }, (_, n) => ({ payload: n, id: `j${n}`, delay: n < 100 ? 0 : 3_600_000 }));
    await inDoubt('answer', () => producer.enqueueMany(queue, items));
    await eventually(() => expect(ran.length).toBeGreaterThanOrEqual(100), 10_000);
    for (const id of ['j0', 'j99']) await gone(id);
    const all = [...items, { payload: 'new', id: 'new', delay: 3_600_000 }];
    const results = await repeated(() => producer.enqueueMany(queue, all));
    expect(results.map(({ id }) => id)).toEqual(all.map(({ id }) => id));
    expect(new Set(results.map(({ outcome }) => outcome))).toEqual(new Set(['created']));
    expect(await near.inspector.totals(queue)).toMatchObject({ enqueued: 302 });
    expect(await near.inspector.counts(queue)).toMatchObject({ delayed: 201 });
    expect(ran).toHaveLength(100);
  });

  it('that is in doubt as well can be repeated', async () => {
    const { queue, ran, producer, inDoubt, gone } = await farProducer();
    const call = () => producer.enqueue(queue, 1, { id: 'a' });
    await inDoubt('answer', call);
    await gone('a');
    await inDoubt('request', call);
    expect(await repeated(call)).toMatchObject({ outcome: 'created' });
    expect(ran).toEqual([1]);
  });

  it('is known where a codec writes each payload differently', async () => {
    const { queue, ran, producer, inDoubt, gone } = await farProducer({ codec: [salted, 'json'] });
    const call = () => producer.enqueue(queue, 1, { id: 'a' });
    await inDoubt('answer', call);
    await gone('a');
    await repeated(call);
    await producer.enqueue(queue, 'last', { id: 'last' });
    await eventually(() => expect(ran).toEqual([1, 'last']));
  });
});

describe('no repeat is', () => {
  const wishes: [string, (producer: DelayQueueProducer, queue: string) => Promise<unknown>][] = [
    ['a call with another payload', (producer, queue) => producer.enqueue(queue, 'new', { id: 'a' })],
    ['a replacement, which is a wish of its own', replacing],
    [
      'what comes after a cancellation',
      async (producer, queue) => {
        await producer.cancel(queue, 'a');
        return producer.enqueue(queue, 'old', { id: 'a' });
      },
    ],
  ];
  const removals: [string, (inspector: DelayQueueInspector, queue: string) => Promise<unknown>][] = [
    ['is purged', (inspector, queue) => inspector.purge(queue)],
    ['goes with its queue', (inspector, queue) => inspector.remove(queue, { force: true })],
    ['is removed from dead letters', (inspector, queue) => inspector.removeDead(queue, ['a'])],
  ];
  function replacing(producer: DelayQueueProducer, queue: string) {
    return producer.enqueue(queue, 'old', { id: 'a', onDuplicate: 'replace' });
  }

  it.each(wishes)('%s: it runs', async (_, wish) => {
    const { queue, ran, producer, inDoubt, gone } = await farProducer();
    await inDoubt('answer', () => producer.enqueue(queue, 'old', { id: 'a' }));
    await gone('a');
    await repeated(() => wish(producer, queue));
    await eventually(() => expect(ran).toHaveLength(2));
  });

  it.each(removals)('what comes after the job %s: it is made', async (_, remove) => {
    const { queue, near, far, producer, inDoubt } = await farProducer({ runs: false });
    const call = () => producer.enqueue(queue, 1, { id: 'a', delay: '1h' });
    await inDoubt('answer', call);
    await near.producer.cancel(queue, 'a'); // so that there is nothing to be kept
    await repeated(() => remove(far.inspector, queue));
    await repeated(call);
    expect(await near.producer.get(queue, 'a')).toMatchObject({ state: 'delayed' });
  });

  it('a call with another payload that a codec of the application writes: it runs', async () => {
    const { queue, ran, producer, inDoubt, gone } = await farProducer({ codec: [salted, 'json'] });
    await inDoubt('answer', () => producer.enqueue(queue, { order: 1 }, { id: 'a' }));
    await gone('a');
    await repeated(() => producer.enqueue(queue, { order: 2 }, { id: 'a' }));
    await eventually(() => expect(ran).toEqual([{ order: 1 }, { order: 2 }]));
  });

  it('a call that wants to hear of a duplicate, where the one in doubt did not', async () => {
    const { queue, producer, inDoubt } = await farProducer({ runs: false });
    await inDoubt('answer', () => producer.enqueue(queue, 1, { id: 'a', delay: '1h' }));
    const rejecting = () => producer.enqueue(queue, 1, { id: 'a', delay: '1h', onDuplicate: 'reject' });
    await eventually(() => expect(rejecting()).rejects.toMatchObject({ code: 'ERR_DQ_DUPLICATE_JOB' }), 10_000);
  });

  it.each<[string, EnqueueOptions, RegExp]>([
    ['replace', { onDuplicate: 'replace' }, /one more run if the job has started/],
    ['reschedule', { onDuplicate: 'reschedule' }, /one more run if the job has started/],
  ])('a call with %s, and its error says so', async (_, options, message) => {
    const { queue, producer, inDoubt } = await farProducer();
    const error = await inDoubt('answer', () => producer.enqueue(queue, 1, { id: 'a', ...options }));
    expect(error.message).toMatch(message);
  });
});
