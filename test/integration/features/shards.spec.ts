import { describe, expect, it } from '@jest/globals';
import {
  DelayQueueConsumer,
  DelayQueueHealth,
  DelayQueueRegistry,
  fixed,
  InvalidOptionError,
  InvalidQueueError,
  LayoutError,
  ShardCountError,
} from '../../../lib/index.js';
import type { DelayedJob, DelayQueueRootOptions, HandlerOptions } from '../../../lib/index.js';
import { shardOf } from '../../../lib/shards/shard-hash.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { killedAfter } from '../../helpers/killed-after.js';

const here = inAWorld();
const HOUR = 3_600_000;

let queues = 0;
const fresh = () => `split-${queues++}`;

/** An application that only enqueues and looks, with this number of shards; undefined says nothing about it. */
const looker = (queue: string, shards?: number, options: DelayQueueRootOptions = {}) =>
  here.start({
    options: { ...(shards !== undefined && { queues: { [queue]: { shards } } }), consume: false, ...options },
  });

const drainer = (
  queue: string,
  shards: number | undefined,
  handle: (payload: any, job: DelayedJob) => unknown,
  handler: HandlerOptions = {},
  options: DelayQueueRootOptions = {},
) =>
  here.start({
    providers: [handlerClass(queue, handle, handler)],
    options: { ...(shards !== undefined && { queues: { [queue]: { shards } } }), drainTimeout: 0, ...options },
  });

const tag = (queue: string, shard: number, count: number) => (count === 1 ? queue : `${queue}:${shard}`);

/** Ids in the jobs of each shard. */
const spread = async (queue: string, count: number) =>
  Promise.all(
    Array.from({ length: count }, (_, n) => here.world.redis.hkeys(here.world.key(tag(queue, n, count), 'jobs'))),
  );

/** An id of our own for one shard. */
function idIn(shard: number, count: number, start = 'id'): string {
  for (let n = 0; ; n++) if (shardOf(`${start}${n}`, count) === shard) return `${start}${n}`;
}

const rejection = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error as Error & { stored?: number; configured?: number; retryable?: boolean },
  );

describe('the shard of a job', () => {
  it('is what other programs compute too', () => {
    const vectors = ['a', 'order-17', '0VnG4kTq0003mY2cX81b', 'größe', '注文'].map((id) => [
      shardOf(id, 8),
      shardOf(id, 256),
    ]);
    expect(vectors).toEqual(VECTORS);
  });

  it.each([3, 8, 16, 100])('spreads generated and counted ids evenly over %i', async (count) => {
    const { createIdGenerator } = await import('../../../lib/job/job-id.js');
    const make = createIdGenerator();
    for (const next of [make, (n: number) => `order-${n}`, (n: number) => String(n)]) {
      const held = Array.from({ length: count }, () => 0);
      for (let n = 0; n < count * 1_000; n++) held[shardOf(next(n), count)]!++;
      expect(Math.min(...held)).toBeGreaterThan(850);
      expect(Math.max(...held)).toBeLessThan(1_150);
    }
  });
});

describe('a queue with shards', () => {
  it('holds each job in the shard of its id, in keys that say so', async () => {
    const queue = fresh();
    const { producer } = await looker(queue, 4);
    const ids = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    await producer.enqueueMany(
      queue,
      ids.map((id) => ({ payload: 1, id, delay: '1h' })),
    );
    const held = await spread(queue, 4);
    expect(held.map((jobs) => jobs.sort())).toEqual([0, 1, 2, 3].map((n) => ids.filter((id) => shardOf(id, 4) === n)));
    expect(await here.world.keys(queue)).toEqual(['meta']);
  });

  it('has the keys of an unsplit queue when it has one', async () => {
    const queue = fresh();
    const { producer } = await looker(queue, 1);
    await producer.enqueue(queue, 1, { id: 'a', delay: '1h' });
    expect((await here.world.read(queue)).jobs).toHaveProperty('a');
    expect((await here.world.read(queue)).meta).not.toHaveProperty('needs');
  });

  it('is found by every call with an id', async () => {
    const queue = fresh();
    const runs: string[] = [];
    const { producer } = await drainer(queue, 4, (_, { id }) => runs.push(id));
    for (let shard = 0; shard < 4; shard++) {
      const id = idIn(shard, 4);
      await producer.enqueue(queue, 'old', { id, delay: '1h' });
      expect(await producer.enqueue(queue, 'new', { id, onDuplicate: 'replace', delay: '2h' })).toMatchObject({
        outcome: 'replaced',
      });
      expect(await producer.get(queue, id)).toMatchObject({ state: 'delayed', payload: 'new' });
      expect(await producer.reschedule(queue, id, { delay: '3h' })).toMatchObject({ outcome: 'rescheduled' });
      expect(await producer.cancel(queue, id)).toMatchObject({ outcome: 'cancelled' });
      expect(await producer.get(queue, id)).toBeUndefined();
      await producer.enqueue(queue, 'again', { id, delay: '1h' });
      expect(await producer.runNow(queue, id)).toMatchObject({ outcome: 'rescheduled' });
    }
    await eventually(() => expect(runs).toHaveLength(4));
  });

  it('answers enqueueMany in the order of the items', async () => {
    const queue = fresh();
    const { producer } = await looker(queue, 8);
    await producer.enqueue(queue, 0, { id: 'n3', delay: '1h' });
    const items = Array.from({ length: 500 }, (_, n) => ({ payload: n, id: `n${n}`, delay: '1h' }));
    const results = await producer.enqueueMany(queue, items);
    expect(results.map(({ id }) => id)).toEqual(items.map(({ id }) => id));
    expect(results.filter(({ outcome }) => outcome === 'kept').map(({ id }) => id)).toEqual(['n3']);
  });

  it('refuses a number that is none', async () => {
    for (const shards of [0, -1, 1.5, 257, '4', NaN]) {
      await expect(looker('any', shards as number)).rejects.toThrow(/queues: \{ "any": \{ shards \} \}/);
    }
  });
});

describe('the slots of a queue with shards', () => {
  it('are shared: together its shards never run more than the concurrency', async () => {
    const queue = fresh();
    const [now, most, ids] = [new Set<string>(), [0], new Set<string>()];
    const handle = async (_: unknown, { id }: DelayedJob) => {
      now.add(id);
      most.push(now.size);
      await new Promise((resolve) => setTimeout(resolve, 2));
      now.delete(id);
      ids.add(id);
    };
    const { producer } = await drainer(queue, 4, handle, { concurrency: 3 });
    await producer.enqueueMany(
      queue,
      Array.from({ length: 200 }, (_, n) => ({ payload: n })),
    );
    await eventually(() => expect(ids.size).toBe(200), 15_000);
    expect(Math.max(...most)).toBe(3);
  });

  it('go round: with one slot a shard that always has work does not keep the others waiting', async () => {
    const queue = fresh();
    const order: number[] = [];
    const { producer, inspector } = await drainer(queue, 3, (shard: number) => order.push(shard), { concurrency: 1 });
    await inspector.pause(queue);
    const jobs = [0, 1, 2].flatMap((shard) =>
      Array.from({ length: shard === 0 ? 60 : 10 }, (_, n) => ({
        payload: shard,
        id: idIn(shard, 3, `${shard}.${n}.`),
      })),
    );
    await producer.enqueueMany(queue, jobs);
    await inspector.resume(queue);
    await eventually(() => expect(order).toHaveLength(80), 15_000);
    // In the first half of the runs each of the two small shards had its turn nearly as often as the large one.
    for (const shard of [1, 2]) expect(order.slice(0, 40).filter((one) => one === shard).length).toBeGreaterThan(7);
  });

  it('are not kept by a shard whose jobs are still running', async () => {
    const queue = fresh();
    const runs: string[] = [];
    let end!: () => void;
    const held = new Promise<void>((resolve) => (end = resolve));
    const handle = (payload: string) => {
      runs.push(payload);
      return payload === 'long' ? held : undefined;
    };
    const { producer } = await drainer(queue, 4, handle, { concurrency: 2 });
    await producer.enqueue(queue, 'long', { id: idIn(0, 4) });
    await eventually(() => expect(runs).toEqual(['long']));
    await producer.enqueueMany(
      queue,
      [1, 2, 3].map((shard) => ({ payload: `short`, id: idIn(shard, 4) })),
    );
    await eventually(() => expect(runs).toHaveLength(4));
    end();
  });

  it('follow setConcurrency(), and unregister() ends all shards', async () => {
    const queue = fresh();
    const held: (() => void)[] = [];
    const { app, producer } = await here.start({ options: { queues: { [queue]: { shards: 3 } }, drainTimeout: 0 } });
    const registry = app.get(DelayQueueRegistry);
    registry.register(queue, () => new Promise<void>((resolve) => held.push(resolve)), { concurrency: 1 });
    await producer.enqueueMany(
      queue,
      [0, 0, 1, 1, 2, 2].map((shard, n) => ({ payload: n, id: idIn(shard, 3, `${n}-`) })),
    );
    await eventually(() => expect(held).toHaveLength(1));
    registry.setConcurrency(queue, 4);
    await eventually(() => expect(held).toHaveLength(4));
    const gone = registry.unregister(queue);
    for (const end of held) end();
    expect(await gone).toBe(true);
    expect(held).toHaveLength(4);
    expect(await app.get(DelayQueueHealth).check()).toMatchObject({ queues: {} });
  });

  it('are pulled from in every shard', async () => {
    const queue = fresh();
    const { app, producer } = await looker(queue, 4);
    const consumer = app.get(DelayQueueConsumer);
    expect(await consumer.pull(queue, { max: 5 })).toEqual([]);
    const ids = [0, 1, 2, 3].flatMap((shard) => [idIn(shard, 4, 'x'), idIn(shard, 4, 'y')]);
    await producer.enqueueMany(
      queue,
      ids.map((id) => ({ payload: id, id })),
    );
    const jobs = await consumer.pull(queue, { max: 8 });
    expect(jobs.map(({ id }) => id).sort()).toEqual([...ids].sort());
    await Promise.all(jobs.map((job) => job.complete()));
    expect(await consumer.pull(queue, { max: 3 })).toEqual([]);
    const waiting = consumer.pull(queue, { wait: '20s' });
    await producer.enqueue(queue, 'late', { id: idIn(3, 4, 'z') });
    const [late] = await waiting;
    expect(late).toMatchObject({ payload: 'late' });
    await late!.complete();
  });
});

describe('the inspector of a queue with shards', () => {
  it('adds up, and tells the worst', async () => {
    const queue = fresh();
    const { producer, inspector } = await looker(queue, 4);
    const [soon, later] = [new Date(Date.now() + HOUR), new Date(Date.now() + 2 * HOUR)];
    await producer.enqueueMany(queue, [
      { payload: 1, id: idIn(0, 4), at: later },
      { payload: 1, id: idIn(1, 4), at: soon },
      { payload: 1, id: idIn(2, 4), at: later },
    ]);
    expect(await inspector.counts(queue)).toMatchObject({ delayed: 3, due: 0, lagMs: 0, nextDueAt: soon });
    await producer.enqueue(queue, 1, { id: idIn(3, 4), at: Date.now() - HOUR });
    await producer.enqueue(queue, 1, { id: idIn(2, 4, 'late'), at: Date.now() - 60_000 });
    const counts = await inspector.counts(queue);
    expect(counts).toMatchObject({ delayed: 3, due: 2, paused: false });
    expect(counts.lagMs).toBeGreaterThanOrEqual(HOUR);
    expect(await inspector.totals(queue)).toMatchObject({ enqueued: 5, completed: 0 });
    expect(await inspector.queues()).toContain(queue);
    expect((await inspector.queues()).filter((name) => name.startsWith(`${queue}:`))).toEqual([]);
  });

  it('lists over all shards in due order, page by page', async () => {
    const queue = fresh();
    const { producer, inspector } = await looker(queue, 4);
    const start = Date.now() + HOUR;
    // Some at the same moment, in one shard and in several.
    const jobs = Array.from({ length: 60 }, (_, n) => ({
      payload: n,
      id: `j${n}`,
      at: start + Math.floor(n / 7) * 1000,
    }));
    await producer.enqueueMany(queue, [...jobs].reverse());
    const seen: { id: string; at: number }[] = [];
    let cursor: string | undefined;
    let pages = 0;
    do {
      const page = await inspector.list(queue, 'delayed', { limit: 7, ...(cursor !== undefined && { cursor }) });
      seen.push(...page.jobs.map(({ id, dueAt }) => ({ id, at: dueAt.getTime() })));
      cursor = page.cursor;
      pages++;
    } while (cursor !== undefined && pages < 50);
    expect(seen.map(({ at }) => at)).toEqual(jobs.map(({ at }) => at));
    expect(new Set(seen.map(({ id }) => id)).size).toBe(60);
    await expect(inspector.list(queue, 'delayed', { cursor: '1:2' })).rejects.toThrow(InvalidOptionError);
  });

  it('lists over all shards, each job that stays once, while those before go', async () => {
    const queue = fresh();
    const { producer, inspector } = await looker(queue, 4);
    const at = Date.now() + HOUR;
    const ids = Array.from({ length: 60 }, (_, n) => `j${String(n).padStart(2, '0')}`);
    // Four large ones, so that pages of single shards end before their limit.
    const payload = (n: number) => (n % 15 === 0 ? 'x'.repeat(200_000) : n);
    await producer.enqueueMany(
      queue,
      ids.map((id, n) => ({ payload: payload(n), id, at: at + Math.floor(n / 20) })),
    );
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const { jobs, ...page } = await inspector.list(queue, 'delayed', { limit: 7, cursor });
      expect(jobs.length).toBeGreaterThan(0);
      seen.push(...jobs.map(({ id }) => id));
      for (const { id } of jobs.slice(1)) await producer.cancel(queue, id);
      cursor = page.cursor;
    } while (cursor !== undefined && seen.length <= 60);
    expect(seen.toSorted()).toEqual(ids);
  });

  it('requeues and removes dead letters of all shards within the limit', async () => {
    const queue = fresh();
    const { producer, inspector } = await drainer(queue, 4, () => Promise.reject(new Error('no')), { attempts: 1 });
    const ids = Array.from({ length: 20 }, (_, n) => `d${n}`);
    await producer.enqueueMany(
      queue,
      ids.map((id) => ({ payload: 1, id })),
    );
    await eventually(async () => expect(await inspector.counts(queue)).toMatchObject({ dead: 20, running: 0 }));
    await inspector.pause(queue);
    expect(await inspector.requeueDead(queue, 'all', { limit: 7, delay: '1h' })).toEqual({
      requeued: 7,
      remaining: 13,
    });
    expect(await inspector.removeDead(queue, 'all', { limit: 6 })).toEqual({ removed: 6, remaining: 7 });
    const left = (await inspector.list(queue, 'dead')).jobs.map(({ id }) => id);
    expect(left).toHaveLength(7);
    expect(await inspector.requeueDead(queue, left.slice(0, 3), { delay: '1h' })).toEqual({
      requeued: 3,
      remaining: 4,
    });
    expect(await inspector.removeDead(queue, left)).toEqual({ removed: 4, remaining: 0 });
    expect(await inspector.counts(queue)).toMatchObject({ delayed: 10, dead: 0, paused: true });
    expect(await inspector.purge(queue)).toEqual({ removed: 10 });
  });

  it('pauses and resumes every shard', async () => {
    const queue = fresh();
    const runs: string[] = [];
    const { producer, inspector } = await drainer(queue, 4, (_, { id }) => runs.push(id));
    await inspector.pause(queue);
    const ids = [0, 1, 2, 3].map((shard) => idIn(shard, 4));
    await producer.enqueueMany(
      queue,
      ids.map((id) => ({ payload: 1, id })),
    );
    expect(await inspector.counts(queue)).toMatchObject({ due: 4, running: 0, paused: true });
    for (let shard = 0; shard < 4; shard++)
      expect((await here.world.read(tag(queue, shard, 4))).meta).toMatchObject({ paused: '1' });
    expect(runs).toEqual([]);
    await inspector.resume(queue);
    await eventually(() => expect(runs).toHaveLength(4));
  });

  it('is judged by health as one queue, also by a process that does not know its shards', async () => {
    const queue = fresh();
    const { producer } = await looker(queue, 4);
    await producer.enqueue(queue, 1, { id: idIn(2, 4), at: Date.now() - HOUR });
    const stranger = await here.start();
    const { orphans, reasons } = await stranger.app.get(DelayQueueHealth).check();
    expect(orphans).toContain(queue);
    expect(reasons.filter((reason) => reason.includes(queue) && reason.includes('cannot be read'))).toEqual([]);
    const { app } = await drainer(queue, 4, () => new Promise(() => {}), { concurrency: 1 });
    await producer.enqueue(queue, 1, { id: idIn(3, 4), at: Date.now() - HOUR });
    await eventually(async () => {
      const { queues: known } = await app.get(DelayQueueHealth).check({ lag: { degraded: '1m' } });
      expect(known[queue]).toMatchObject({ status: 'degraded', due: 1, running: 1 });
      expect(known[queue]!.lagMs).toBeGreaterThanOrEqual(HOUR);
    });
  });
});

describe('another number of shards is refused', () => {
  const filled = async (shards: number | undefined) => {
    const queue = fresh();
    const { producer } = await looker(queue, shards);
    await producer.enqueue(queue, 'waits', { id: 'a', delay: '1h' });
    return queue;
  };
  const stored = async (queue: string) => {
    const found: Record<string, string[]> = {};
    for (const name of [queue, ...Array.from({ length: 16 }, (_, n) => `${queue}:${n}`)]) {
      const ids = Object.keys((await here.world.read(name)).jobs);
      if (ids.length > 0) found[name] = ids;
    }
    return found;
  };

  it.each([
    [4, 8],
    [8, 4],
    [4, 1],
    [undefined, 4],
  ])('at boot: %s stored, %s configured', async (was, is) => {
    const queue = await filled(was);
    const error = await rejection(looker(queue, is));
    expect(error).toBeInstanceOf(ShardCountError);
    expect(error).toMatchObject({ code: 'ERR_DQ_SHARD_COUNT', queue, stored: was ?? 1, configured: is });
    expect(error!.message).toContain('reshard(');
    // The right number is not disturbed.
    const { producer } = await looker(queue, was);
    expect(await producer.get(queue, 'a')).toMatchObject({ payload: 'waits' });
  });

  it('at boot of a handler that says nothing of shards', async () => {
    const queue = await filled(4);
    const error = await rejection(drainer(queue, undefined, () => undefined));
    expect(error).toBeInstanceOf(ShardCountError);
  });

  it.each([
    [4, 8],
    [8, 4],
    [4, undefined],
    [undefined, 4],
  ])('with the first call of a producer that booted lazily: %s stored, %s configured', async (was, is) => {
    const queue = await filled(was);
    const before = await stored(queue);
    const { producer, inspector } = await looker(queue, is, { connect: 'lazy' });
    for (let n = 0; n < 20; n++) {
      expect(await rejection(producer.enqueue(queue, n, { id: `n${n}` }))).toBeInstanceOf(ShardCountError);
    }
    for (const call of [
      producer.enqueueMany(queue, [{ payload: 1 }]).catch((error: { cause: Error }) => Promise.reject(error.cause)),
      producer.cancel(queue, 'a'),
      producer.get(queue, 'a'),
      inspector.counts(queue),
      inspector.pause(queue),
    ]) {
      expect(await rejection(call)).toMatchObject({ stored: was ?? 1, configured: is ?? 1, retryable: false });
    }
    expect(await stored(queue)).toEqual(before);
  });

  it('by workers that booted lazily, which run nothing until the number is right', async () => {
    const queue = await filled(4);
    const runs: unknown[] = [];
    const log: string[] = [];
    await here.start({
      providers: [handlerClass(queue, (payload) => runs.push(payload))],
      options: { queues: { [queue]: { shards: 2 } }, connect: 'lazy' },
      log,
    });
    await eventually(() => expect(log.join('\n')).toContain('has 4 shards in Redis and 2 in this process'));
    const { inspector, producer } = await looker(queue, 4);
    await producer.runNow(queue, 'a');
    await inspector.reshard(queue, { to: 2 });
    await eventually(() => expect(runs).toEqual(['waits']));
  });

  it('but becomes the number of a queue that holds nothing', async () => {
    const queue = fresh();
    const four = await looker(queue, 4);
    await four.producer.enqueue(queue, 1, { id: 'a' });
    await four.producer.cancel(queue, 'a');
    const two = await looker(queue, 2);
    await two.producer.enqueue(queue, 1, { id: 'a', delay: '1h' });
    expect(await two.inspector.totals(queue)).toMatchObject({ enqueued: 2 });
    // Who has used the other number does not change it back, not even when the queue is empty again.
    await two.producer.cancel(queue, 'a');
    expect(await rejection(four.producer.enqueue(queue, 1))).toBeInstanceOf(ShardCountError);
    const one = await looker(queue, 1);
    await one.producer.enqueue(queue, 1, { id: 'b', delay: '1h' });
    expect(await stored(queue)).toEqual({ [queue]: ['b'] });
  });

  it('and is not changed back by a process that booted lazily, and whose first calls were answered', async () => {
    const queue = fresh();
    const before = await looker(queue, 4);
    await before.producer.enqueue(queue, 1, { id: 'a' });
    const lazy = await looker(queue, 4, { connect: 'lazy' });
    await lazy.producer.cancel(queue, 'a');
    await before.inspector.reshard(queue, { to: 2 });
    expect(await rejection(lazy.producer.enqueue(queue, 1))).toBeInstanceOf(ShardCountError);
    const after = await looker(queue, 2);
    expect(await after.producer.enqueue(queue, 1)).toMatchObject({ outcome: 'created' });
  });

  it('and a uniqueness window is something that it holds', async () => {
    const queue = fresh();
    const { producer } = await drainer(queue, 4, () => undefined);
    await producer.enqueue(queue, 1, { id: 'a', uniqueFor: '1h' });
    await eventually(async () => expect(await producer.get(queue, 'a')).toBeUndefined());
    expect(await rejection(looker(queue, 2))).toBeInstanceOf(ShardCountError);
  });

  it('is not changed by a process that says nothing of shards', async () => {
    const queue = fresh();
    await looker(queue, 4);
    const { producer } = await looker(queue, undefined);
    expect(await rejection(producer.enqueue(queue, 1))).toBeInstanceOf(ShardCountError);
  });

  it('and a library that knows no shards learns that it lacks a feature', async () => {
    const queue = await filled(4);
    const [base, shard] = await Promise.all([here.world.read(queue), here.world.read(`${queue}:0`)]);
    // What every version compares with what it knows.
    expect([base.meta['needs'], shard.meta['needs']]).toEqual(['shards:=/4', 'shards:0/4']);
    await here.world.redis.hset(here.world.key(queue, 'meta'), 'needs', 'shards:=/4 other');
    const { producer } = await looker(queue, undefined);
    expect(await rejection(producer.enqueue(queue, 1))).toBeInstanceOf(LayoutError);
  });
});

describe('a queue that is called like a shard of another', () => {
  it('is refused when it comes second, and the shard holds nothing of it', async () => {
    const queue = fresh();
    const { producer } = await looker(queue, 4);
    await producer.enqueue(queue, 1, { id: 'a', delay: '1h' });
    const error = await rejection(producer.enqueue(`${queue}:3`, 1, { id: 'b' }));
    expect(error).toBeInstanceOf(InvalidQueueError);
    expect(error!.message).toMatch(new RegExp(`"${queue}:3".*belong to queue "${queue}".*4 shards`));
    expect(await rejection(drainer(`${queue}:3`, undefined, () => undefined))).toBeInstanceOf(InvalidQueueError);
    expect(await rejection(looker(`${queue}:3`, 2))).toBeInstanceOf(InvalidQueueError);
    expect(await spread(queue, 4)).toEqual([0, 1, 2, 3].map((n) => (shardOf('a', 4) === n ? ['a'] : [])));
    // One that is no shard is a name like any other.
    await producer.enqueue(`${queue}:4`, 1, { id: 'b', delay: '1h' });
  });

  it('keeps the other one from being split when it comes first', async () => {
    const queue = fresh();
    const { producer, inspector } = await looker(queue, undefined);
    await producer.enqueue(`${queue}:3`, 1, { id: 'b', delay: '1h' });
    await producer.enqueue(queue, 1, { id: 'a', delay: '1h' });
    expect(await rejection(looker(queue, 4))).toBeInstanceOf(Error);
    const error = await rejection(inspector.reshard(queue, { to: 4 }));
    expect(error).toBeInstanceOf(InvalidQueueError);
    expect(await producer.get(queue, 'a')).toMatchObject({ state: 'delayed' });
    expect(await producer.get(`${queue}:3`, 'b')).toMatchObject({ state: 'delayed' });
    expect(await inspector.reshard(queue, { to: 3 })).toEqual({ from: 1, to: 3, moved: 1 });
  });

  it('is refused by the options that name both', async () => {
    const options = { queues: { pay: { shards: 4 }, 'pay:3': {} }, consume: false };
    await expect(here.start({ options })).rejects.toThrow(/"pay:3" cannot be a queue next to "pay"/);
  });
});

describe('reshard()', () => {
  /** One of everything that a queue can hold. */
  async function furnish(queue: string, shards: number) {
    const app = await drainer(
      queue,
      shards,
      (payload: string) => {
        if (payload === 'fails') throw new Error('it failed');
      },
      { attempts: 2, backoff: fixed('1h'), keepCompleted: {} },
    );
    const { producer, inspector } = app;
    const waiting = Array.from({ length: 12 }, (_, n) => ({
      payload: { n },
      id: `w${n}`,
      delay: HOUR + n,
      context: { n: String(n) },
      expiresIn: '1d',
    }));
    await producer.enqueueMany(queue, waiting);
    await producer.enqueueMany(
      queue,
      Array.from({ length: 5 }, (_, n) => ({ payload: 'fails', id: `f${n}` })),
    );
    await producer.enqueueMany(
      queue,
      Array.from({ length: 5 }, (_, n) => ({ payload: 'fails', id: `x${n}`, attempts: 1 })),
    );
    await producer.enqueueMany(
      queue,
      Array.from({ length: 5 }, (_, n) => ({ payload: 'ok', id: `u${n}`, uniqueFor: '1h' })),
    );
    // Then windows without a kept job, and kept jobs without a window: neither moves because the other does.
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 5 }));
    expect(await inspector.purge(queue, { states: ['completed'] })).toEqual({ removed: 5 });
    await producer.enqueueMany(
      queue,
      Array.from({ length: 5 }, (_, n) => ({ payload: 'ok', id: `k${n}` })),
    );
    await producer.enqueueMany(
      queue,
      Array.from({ length: 5 }, (_, n) => ({
        payload: 'burst',
        id: `b${n}`,
        delay: '1h',
        maxWait: '2h',
        onDuplicate: 'replace' as const,
      })),
    );
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 10, failed: 10 }));
    await inspector.pause(queue);
    await inspector.pausePublishing(queue);
    await app.close();
  }

  /** All that is stored about jobs, whatever shard it is in. */
  async function everything(queue: string, shards: number) {
    const all: Record<string, Record<string, unknown>> = {};
    const counters: Record<string, number> = {};
    const wrong: string[] = [];
    let paused = 0;
    let publishingPaused = 0;
    for (let n = 0; n < shards; n++) {
      const name = tag(queue, n, shards);
      expect(await here.world.violations(name)).toEqual([]);
      const { meta, idle: _, leases, ...keys } = await here.world.read(name);
      expect(leases).toEqual({});
      for (const [key, map] of Object.entries(keys)) {
        for (const [id, value] of Object.entries(map)) {
          const found = (all[key] ??= {});
          if (id in found || shardOf(id, shards) !== n) wrong.push(`${key} of ${id} in shard ${n}`);
          found[id] = value;
        }
      }
      for (const field of ['enqueued', 'completed', 'failed', 'retried', 'dead', 'expired'])
        counters[field] = (counters[field] ?? 0) + Number(meta[field] ?? 0);
      paused += Number(meta['paused'] ?? 0);
      publishingPaused += Number(meta['publishingPaused'] ?? 0);
      expect(Object.keys(meta).filter((field) => field.startsWith('took:'))).toEqual([]);
    }
    expect(wrong).toEqual([]);
    expect([paused, publishingPaused]).toEqual([shards, shards]);
    return { all, counters };
  }

  const CHANGES = [
    [1, 4],
    [4, 8],
    [3, 5],
    [8, 3],
    [4, 1],
  ] as const;

  it.each(CHANGES)('from %i to %i keeps everything that is stored', async (from, to) => {
    const queue = fresh();
    await furnish(queue, from);
    const before = await everything(queue, from);
    expect(Object.keys(before.all).sort()).toEqual([
      'attempts',
      'completed',
      'dead',
      'debounce',
      'due',
      'errors',
      'history',
      'jobs',
      'unique',
    ]);
    const { inspector } = await looker(fresh());
    expect(await inspector.reshard(queue, { from, to })).toMatchObject({ from, to });
    expect(await everything(queue, to)).toEqual(before);
    // Nothing is left where shards were, except the marks that keep latecomers away.
    for (const name of [queue, ...Array.from({ length: 8 }, (_, n) => `${queue}:${n}`)]) {
      if (to === 1 ? name === queue : name !== queue && Number(name.split(':').at(-1)) < to) continue;
      expect((await here.world.keys(name)).filter((key) => !key.startsWith('session:') && key !== 'meta')).toEqual([]);
    }
    expect(await inspector.reshard(queue, { to })).toEqual({ from: to, to, moved: 0 });
  });

  it.each([
    [1, 3, false],
    [2, 3, true],
    [3, 2, false],
    [3, 1, true],
  ])(
    'from %i to %i, killed at any step, goes on when it is called again',
    async (from, to, runs) => {
      const original = fresh();
      await furnish(original, from);
      const before = await everything(original, from);
      const { inspector } = await looker(fresh());
      for (let calls = 0; ; calls++) {
        const queue = fresh();
        await copy(original, queue, from);
        const killed = killedAfter(inspector, calls, runs);
        const error = await rejection(inspector.reshard(queue, { to }));
        killed.restore();
        expect(error?.message ?? 'killed').toContain('killed');
        expect(await inspector.reshard(queue, { to })).toMatchObject({ to });
        expect(await everything(queue, to)).toEqual(before);
        if (error) continue;
        expect(calls).toBeGreaterThan(20);
        const worker = await drainer(queue, to, () => undefined);
        await worker.inspector.resume(queue);
        expect(await worker.inspector.requeueDead(queue, 'all')).toEqual({ requeued: 5, remaining: 0 });
        await eventually(async () => expect(await worker.inspector.totals(queue)).toMatchObject({ completed: 15 }));
        return;
      }
    },
    120_000,
  );

  it('lets what runs end and starts nothing, while producers get a retryable error', async () => {
    const queue = fresh();
    const runs: string[] = [];
    let end!: () => void;
    const held = new Promise<void>((resolve) => (end = resolve));
    const handle = async (payload: string) => {
      runs.push(payload);
      if (payload === 'first') await held;
    };
    const { producer, inspector } = await drainer(queue, 2, handle, {}, { commandTimeout: 1_500 });
    const [one, other] = [idIn(0, 2), idIn(0, 2, 'other')];
    await producer.enqueue(queue, 'first', { id: one });
    await eventually(() => expect(runs).toEqual(['first']));
    const admin = await looker(fresh());
    const changed = admin.inspector.reshard(queue, { to: 4 });
    await eventually(async () => {
      expect((await here.world.read(`${queue}:0`)).meta['needs']).toMatch(/^shards:2~4/);
    });
    expect(await rejection(producer.enqueue(queue, 'second', { id: other }))).toMatchObject({
      code: 'ERR_DQ_UNAVAILABLE',
      retryable: true,
      message: expect.stringContaining('number of shards'),
    });
    expect(await rejection(inspector.counts(queue))).toMatchObject({ code: 'ERR_DQ_UNAVAILABLE' });
    expect(runs).toEqual(['first']);
    end();
    expect(await changed).toMatchObject({ from: 2, to: 4 });
    const { producer: next } = await looker(queue, 4);
    expect(await next.get(queue, one)).toBeUndefined();
    expect(await rejection(producer.enqueue(queue, 'third'))).toBeInstanceOf(ShardCountError);
  });

  it('gives up, and changes nothing, when jobs still run after `wait`', async () => {
    const queue = fresh();
    const runs: string[] = [];
    const handle = (payload: string) => {
      runs.push(payload);
      return payload === 'long' ? new Promise(() => {}) : undefined;
    };
    const { producer, inspector } = await drainer(queue, 2, handle);
    await producer.enqueue(queue, 'long', { id: idIn(1, 2) });
    await eventually(() => expect(runs).toEqual(['long']));
    const error = await rejection(inspector.reshard(queue, { to: 4, wait: 100 }));
    expect(error).toBeInstanceOf(ShardCountError);
    expect(error).toMatchObject({ retryable: true, stored: 2 });
    await producer.enqueueMany(
      queue,
      [0, 1].map((shard) => ({ payload: 'short', id: idIn(shard, 2, 'short') })),
    );
    await eventually(() => expect(runs).toEqual(['long', 'short', 'short']));
  });

  it('takes back what a dead process ran, and moves it', async () => {
    const queue = fresh();
    const { app, producer } = await looker(queue, 2, { drainTimeout: 0, commandTimeout: 1_500 });
    const id = idIn(1, 2);
    await producer.enqueue(queue, 'orphan', { id });
    const [job] = await app.get(DelayQueueConsumer).pull(queue, { lease: 100, autoExtend: false });
    expect(job).toMatchObject({ id });
    const admin = await looker(fresh());
    await admin.inspector.reshard(queue, { to: 5 });
    const runs: unknown[] = [];
    await drainer(queue, 5, (payload) => runs.push(payload));
    await eventually(() => expect(runs).toEqual(['orphan']));
  });

  it('is refused from another number, into a senseless one, and during an unfinished one', async () => {
    const queue = fresh();
    const { inspector, producer } = await looker(queue, 2);
    await producer.enqueue(queue, 1, { id: 'a', delay: '1h' });
    expect(await rejection(inspector.reshard(queue, { from: 3, to: 4 }))).toBeInstanceOf(ShardCountError);
    for (const options of [{}, { to: 0 }, { to: 1000 }, { to: 4, wait: 'soon' }, { to: 4, form: 2 }])
      await expect(inspector.reshard(queue, options as { to: number })).rejects.toThrow(/reshard\(/);
    const killed = killedAfter(inspector, 8, true);
    await rejection(inspector.reshard(queue, { to: 4 }));
    killed.restore();
    expect(await rejection(inspector.reshard(queue, { to: 3 }))).toMatchObject({
      code: 'ERR_DQ_INVALID_OPTION',
      message: expect.stringContaining('from 2 to 4'),
    });
    await inspector.reshard(queue, { to: 4 });
    await inspector.reshard(queue, { to: 3 });
    expect(await (await looker(queue, 3)).producer.get(queue, 'a')).toMatchObject({ state: 'delayed' });
  });

  it('may be called by two processes at once', async () => {
    const queue = fresh();
    await furnish(queue, 2);
    const before = await everything(queue, 2);
    const admins = await Promise.all([1, 2, 3].map(() => looker(fresh())));
    const ended = await Promise.all(admins.map(({ inspector }) => rejection(inspector.reshard(queue, { to: 5 }))));
    // One that met another at work may have to be called again.
    expect(ended.filter((error) => error && error.retryable !== true)).toEqual([]);
    await admins[0]!.inspector.reshard(queue, { to: 5 });
    expect(await everything(queue, 5)).toEqual(before);
  });
});

/** The same under another name. */
async function copy(queue: string, to: string, shards: number): Promise<void> {
  const { redis } = here.world;
  const names = shards === 1 ? [''] : ['', ...Array.from({ length: shards }, (_, n) => `:${n}`)];
  const pipeline = redis.pipeline();
  for (const end of names) {
    const copies = here.world.shardKeys(to + end).fixed;
    for (const [n, key] of here.world.shardKeys(queue + end).fixed.entries()) pipeline.copy(key, copies[n]!);
  }
  await pipeline.exec();
}

/** By another implementation. */
const VECTORS = [
  [3, 179],
  [0, 40],
  [3, 11],
  [4, 60],
  [2, 226],
];
