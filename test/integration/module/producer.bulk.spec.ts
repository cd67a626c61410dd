import { describe, expect, it } from '@jest/globals';
import { BulkEnqueueError, defineQueue, DuplicateJobError } from '../../../lib/index.js';
import type { EnqueueResult } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

// A private server, because script calls are counted.
const here = inAWorld({});
const producing = async () => (await here.start({ options: { consume: false } })).producer;
const items = (n: number, more = {}) => Array.from({ length: n }, (_, index) => ({ payload: index, ...more }));

describe('enqueueMany()', () => {
  it('answers item by item, in their order', async () => {
    const producer = await producing();
    await producer.enqueue('mixed', 'old', { id: 'there', delay: '1h' });
    const at = Date.now() - 60_000;
    const results = await producer.enqueueMany('mixed', [
      { payload: 1, id: 'a', delay: '2h' },
      { payload: 2, id: 'there' },
      { payload: 3, at },
      { payload: 4, id: 'there', onDuplicate: 'replace', delay: '3h' },
      { payload: 5, id: 'a' },
      { payload: 6, idFromPayload: true },
    ]);
    expect(results.map(({ queue, outcome, state }) => [queue, outcome, state])).toEqual([
      ['mixed', 'created', 'delayed'],
      ['mixed', 'kept', 'delayed'],
      ['mixed', 'created', 'due'],
      ['mixed', 'replaced', 'delayed'],
      ['mixed', 'kept', 'delayed'], // the first of this call was there already
      ['mixed', 'created', 'due'],
    ]);
    expect(results[2]!.dueAt.getTime()).toBe(at);
    expect(results[4]!.dueAt).toEqual(results[0]!.dueAt);
    for (const { id, dueAt } of results.slice(2)) expect((await producer.get('mixed', id))?.dueAt).toEqual(dueAt);
    expect((await producer.get('mixed', 'there'))?.payload).toBe(4);
  });

  it('answers each run of jobs that are asked for alike with its own due time, also to calls of one turn', async () => {
    const producer = await producing();
    const delays = ['1h', '1h', '1h', '2h', '2h', '3h', '1h', '1h'] as const;
    const many = await producer.enqueueMany(
      'runs',
      delays.map((delay) => ({ payload: 1, delay })),
    );
    const single = await Promise.all(delays.map((delay) => producer.enqueue('runs', 1, { delay })));
    for (const results of [many, single]) {
      const first = results[0]!.dueAt.getTime();
      const hours = results.map(({ dueAt }) => Math.round((dueAt.getTime() - first) / 3_600_000) + 1);
      expect(hours).toEqual(delays.map((delay) => Number(delay[0])));
      for (const { id, dueAt } of results) expect((await producer.get('runs', id))?.dueAt).toEqual(dueAt);
    }
  });

  it('of nothing does nothing', async () => {
    expect(await (await producing()).enqueueMany('nothing', [])).toEqual([]);
    expect(await here.world.keys('nothing')).toEqual([]);
  });

  it('takes 10,000 jobs in calls of 200, and all of them run', async () => {
    const producer = await producing(); // A worker would call scripts as well, its first one at any time.
    await producer.enqueue('many', 10_000, { delay: 1 }); // The first call of a script takes two: it is unknown there.
    const before = await scriptCalls();
    const results = await producer.enqueueMany('many', items(10_000, { delay: 1 }));
    expect((await scriptCalls()) - before).toBe(50);
    expect(new Set(results.map(({ id }) => id)).size).toBe(10_000);
    expect(await here.world.redis.hlen(here.world.key('many', 'jobs'))).toBe(10_001);
    const stored = await Promise.all([0, 199, 200, 9_999].map((n) => producer.get('many', results[n]!.id)));
    expect(stored.map((job) => job?.payload)).toEqual([0, 199, 200, 9_999]);

    const runs: number[] = [];
    await here.start({ providers: [handlerClass('many', (n) => void runs.push(n), { concurrency: 200 })] });
    await eventually(() => expect(runs).toHaveLength(10_001), 20_000);
    expect([...runs].sort((a, b) => a - b)).toEqual(items(10_001).map(({ payload }) => payload));
  });

  it('and single calls of one turn too', async () => {
    const producer = await producing();
    await producer.enqueue('turn', 0, { delay: 1 });
    const before = await scriptCalls();
    const results = await Promise.all(items(10_000).map(({ payload }) => producer.enqueue('turn', payload)));
    // The last ones go in parts when they find no other call on its way, or when each answer takes long.
    const calls = (await scriptCalls()) - before;
    expect(calls).toBeGreaterThanOrEqual(50);
    expect(calls).toBeLessThanOrEqual(54);
    expect(new Set(results.map(({ id }) => id)).size).toBe(10_000);
    expect(await here.world.redis.hlen(here.world.key('turn', 'jobs'))).toBe(10_001);
  });

  it('sends at most a mebibyte at once', async () => {
    const producer = await producing();
    await producer.enqueue('heavy', 0, { delay: '1h' });
    const before = await scriptCalls();
    const heavy = Array.from({ length: 12 }, () => ({ payload: 'x'.repeat(200 * 1_024), delay: '1h' as const }));
    await producer.enqueueMany('heavy', heavy);
    expect((await scriptCalls()) - before).toBe(3);
  });

  it('takes more bytes than may wait at a time', async () => {
    const producer = await producing();
    const large = 'x'.repeat(250_000);
    const results = await producer.enqueueMany(
      'large',
      items(280).map(() => ({ payload: large, delay: '1h' })),
    );
    expect(results).toHaveLength(280);
    expect(await here.world.redis.hlen(here.world.key('large', 'jobs'))).toBe(280);
  });

  it('lets single calls pass between its chunks', async () => {
    const producer = await producing();
    const bulk = producer.enqueueMany('beside', items(5_000));
    await producer.enqueue('beside', 'single');
    const stored = await here.world.redis.hlen(here.world.key('beside', 'jobs'));
    expect((await bulk).length).toBe(5_000);
    expect(stored).toBeLessThan(3_000);
  });

  it('sends nothing when one item is wrong, and says which', async () => {
    const producer = await producing();
    const call = producer.enqueueMany('wrong', [...items(500), { payload: 1, delay: 'soon' }]);
    await expect(call).rejects.toMatchObject({ code: 'ERR_DQ_INVALID_DELAY' });
    await expect(call).rejects.toThrow('enqueueMany("wrong", item 500: { delay })');
    // What had been sent would have been stored by the time of these two.
    const { id } = await producer.enqueue('wrong', 'right', { delay: '1h' });
    await producer.get('wrong', id);
    expect(Object.keys((await here.world.read('wrong')).jobs)).toEqual([id]);
  });

  it('stored what its caller had made of the array and of its items since the call, when a schema was waited for', async () => {
    const producer = await producing();
    let asking = 0;
    const most = { asked: 0 };
    const validate = async (value: unknown) => {
      most.asked = Math.max(most.asked, ++asking);
      await new Promise(setImmediate);
      asking--;
      return { value };
    };
    const queue = defineQueue<{ n: number }>('changed-since', {
      schema: { '~standard': { version: 1, vendor: 'test', validate } } as never,
      id: ({ n }) => `id-${n}`,
      group: ({ n }) => `group-${n}`,
    });
    const at = new Date(Date.now() + 3_600_000);
    const dueAt = new Date(at);
    const given = [1, 2, 3].map((n) => ({ payload: { n }, at, context: { n: String(n) } }));
    const call = producer.enqueueMany(queue, given);
    for (const item of given) {
      item.payload.n = 9;
      item.context.n = '9';
    }
    at.setUTCFullYear(2100);
    given.splice(0);
    expect((await call).map(({ id }) => id)).toEqual(['id-1', 'id-2', 'id-3']);
    for (const n of [1, 2, 3]) {
      const stored = await producer.get(queue, `id-${n}`, { group: `group-${n}` });
      expect(stored).toMatchObject({ payload: { n }, dueAt, context: { n: String(n) } });
    }
    expect(most.asked).toBe(1);
  });

  it('refuses what the schema refuses with its words, also where the id cannot be made of it', async () => {
    const producer = await producing();
    const validate = async (value: unknown) => (value === null ? { issues: [{ message: 'no order' }] } : { value });
    const queue = defineQueue<{ n: number }>('refused-later', {
      schema: { '~standard': { version: 1, vendor: 'test', validate } } as never,
      id: ({ n }) => `id-${n}`,
    });
    const call = producer.enqueueMany(queue, [
      { payload: { n: 1 } },
      { payload: null as never },
      { payload: { n: 3 } },
    ]);
    await expect(call).rejects.toThrow('no order');
    expect((await here.world.read(queue.name)).jobs).toEqual({});
  });

  it('says which item cannot be read', async () => {
    const broken = Object.defineProperty({}, 'payload', { get: () => { throw new Error('gone'); }, enumerable: true }); // prettier-ignore
    await expect((await producing()).enqueueMany('unread', [{ payload: 1 }, broken as never])).rejects.toMatchObject({
      code: 'ERR_DQ_INVALID_OPTION',
      message: 'enqueueMany(): item 1: could not be read: Error: gone',
    });
    expect(await here.world.keys('unread')).toEqual([]);
  });

  it('that is accepted in part fails with the result of every item', async () => {
    const producer = await producing();
    await producer.enqueue('partly', 'old', { id: '250', delay: '1h' });
    const wanted = items(500).map(({ payload }) => ({ payload, id: String(payload), onDuplicate: 'reject' as const }));
    const error = await producer.enqueueMany('partly', wanted).then(
      () => undefined,
      (thrown: BulkEnqueueError<EnqueueResult>) => thrown,
    );
    expect(error).toBeInstanceOf(BulkEnqueueError);
    expect(error).toMatchObject({ code: 'ERR_DQ_BULK', retryable: false });
    expect(error!.message).toMatch(/^1 of 500 jobs for queue "partly"/);
    const results = error!.results as readonly (EnqueueResult & { error?: unknown })[];
    expect(results.map(({ id }) => id)).toEqual(wanted.map(({ id }) => id));
    expect(results.filter(({ outcome }) => outcome === 'created')).toHaveLength(499);
    expect(results[250]!.error).toBeInstanceOf(DuplicateJobError);
    expect(await here.world.redis.hlen(here.world.key('partly', 'jobs'))).toBe(500);
  });
});

/** How many scripts the server has run. */
async function scriptCalls(): Promise<number> {
  const stats = await here.world.redis.info('commandstats');
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
}
