import { describe, expect, it, jest } from '@jest/globals';
import { DelayQueueRegistry, DiscardJob, fixed, SnoozeJob } from '../../../lib/index.js';
import type { DelayedJob, HandlerOptions, RequeueOptions } from '../../../lib/index.js';
import { connectionToken } from '../../../lib/delay-queue.tokens.js';
import { DEFAULT_INSTANCE } from '../../../lib/handlers/on-delayed.decorator.js';
import { EnqueueBatcher } from '../../../lib/producer/enqueue-batcher.js';
import type { RedisConnection } from '../../../lib/redis/redis.connection.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { oneHandler } from '../../helpers/one-handler.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const HOUR = 3_600_000;

/** An application with `count` dead letters in a queue, d0 the oldest, each an hour older than the next. */
async function withDead(queue: string, count: number) {
  const app = await here.start({
    providers: [
      handlerClass(
        queue,
        (payload) => {
          throw payload === 'discard' ? new DiscardJob('no use') : new Error('boom');
        },
        { attempts: 1 },
      ),
    ],
  });
  const ids = Array.from({ length: count }, (_, n) => `d${n}`);
  await app.producer.enqueueMany(
    queue,
    ids.map((id, n) => ({ payload: n % 2 ? 'discard' : 'fail', id })),
  );
  await eventually(async () => expect((await app.inspector.counts(queue)).dead).toBe(count));
  const now = await here.world.now();
  const deaths = ids.flatMap((id, n) => [now - (count - n) * HOUR, id]);
  await here.world.redis.zadd(here.world.key(queue, 'dead'), ...deaths);
  await app.inspector.pause(queue); // What is requeued stays where it can be looked at.
  return { ...app, ids, now, dead: async () => Object.keys((await here.world.read(queue)).dead) };
}

describe('requeueDead()', () => {
  it.each<[string, string[] | 'all', RequeueOptions, string[]]>([
    ['the given ones', ['d1', 'd3', 'nobody'], {}, ['d1', 'd3']],
    ['all', 'all', {}, ['d0', 'd1', 'd2', 'd3', 'd4']],
    ['the oldest ones up to a limit', 'all', { limit: 2 }, ['d0', 'd1']],
    ['those of one reason', 'all', { reason: 'discarded' }, ['d1', 'd3']],
    ['those of one reason up to a limit', 'all', { reason: 'exhausted', limit: 2 }, ['d0', 'd2']],
    ['those that died before', 'all', { before: Date.now() - 2.5 * HOUR }, ['d0', 'd1', 'd2']],
  ])('makes due: %s', async (what, ids, options, expected) => {
    const queue = `requeue ${what}`;
    const { inspector, ids: all, dead, producer } = await withDead(queue, 5);
    const remaining = all.filter((id) => !expected.includes(id));
    expect(await inspector.requeueDead(queue, ids, options)).toEqual({
      requeued: expected.length,
      remaining: remaining.length,
    });
    expect((await dead()).sort()).toEqual(remaining);
    expect(Object.keys((await here.world.read(queue)).due).sort()).toEqual(expected);
    for (const id of expected) expect(await producer.get(queue, id)).toMatchObject({ state: 'due', attempts: 0 });
    expect(await here.world.violations(queue)).toEqual([]);
  });

  it('passes over none of one reason, whatever of another one is removed between two chunks', async () => {
    const { app, inspector } = await withDead('requeue beside', 2);
    const { redis } = here.world;
    const key = (name: 'dead' | 'errors') => here.world.key('requeue beside', name);
    const others = Array.from({ length: 200 }, (_, n) => `o${n}`);
    const meant = Array.from({ length: 250 }, (_, n) => `m${n}`);
    await redis.zadd(key('dead'), ...[...others, ...meant].flatMap((id, n) => [n, id]));
    await redis.hset(key('errors'), ...others.flatMap((id) => [id, 'invalid\n{}']));
    await redis.hset(key('errors'), ...meant.flatMap((id) => [id, 'undecodable\n{}']));
    const connection = app.get<RedisConnection>(connectionToken(DEFAULT_INSTANCE));
    const run = connection.run.bind(connection);
    let chunks = 0;
    jest.spyOn(connection, 'run').mockImplementation(async (...call) => {
      const answer = await run(...call);
      if (call[0] === 'requeueDead' && chunks++ === 0) await redis.zrem(key('dead'), ...others);
      return answer;
    });
    expect(await inspector.requeueDead('requeue beside', 'all', { reason: 'undecodable' })).toEqual({
      requeued: meant.length,
      remaining: 2,
    });
    expect(chunks).toBeGreaterThan(1);
  });

  it('runs them again', async () => {
    const { inspector } = await withDead('requeue and run', 3);
    await inspector.requeueDead('requeue and run', 'all');
    await inspector.resume('requeue and run');
    await eventually(async () => expect((await inspector.totals('requeue and run')).dead).toBe(6));
    expect((await inspector.counts('requeue and run')).dead).toBe(3);
  });

  it('spreads them over a time, after a delay', async () => {
    const { inspector } = await withDead('requeue spread', 5);
    await inspector.requeueDead('requeue spread', 'all', { delay: '10h', spread: '5h' });
    const { due } = await here.world.read('requeue spread');
    const now = await here.world.now();
    const hours = Object.values(due).map((at) => Math.round((at - now) / HOUR));
    expect(hours.sort((a, b) => a - b)).toEqual([10, 11, 12, 13, 14]);
  });

  it('leaves them one run when their attempts are not to be forgotten', async () => {
    const { inspector, producer } = await withDead('requeue kept', 1);
    await inspector.requeueDead('requeue kept', ['d0'], { resetAttempts: false });
    expect(await producer.get('requeue kept', 'd0')).toMatchObject({ state: 'due', attempts: 1, maxAttempts: 2 });
    await inspector.resume('requeue kept');
    await eventually(async () => {
      expect(await producer.get('requeue kept', 'd0')).toMatchObject({ state: 'dead', attempts: 2, maxAttempts: 2 });
    });
    expect(await inspector.totals('requeue kept')).toMatchObject({ failed: 2, dead: 2 });
  });

  describe('gave a discarded job all its attempts back where one more run was asked for; it has exactly one:', () => {
    const oneMore = (first: 'discard' | 'fail', options: HandlerOptions) => {
      const ways: string[] = [first, 'snooze'];
      return oneHandler(
        here,
        () => {
          const way = ways.shift();
          if (way === 'discard') throw new DiscardJob('no use');
          throw way === 'snooze' ? new SnoozeJob(0) : new Error('boom');
        },
        { backoff: fixed(0), ...options },
      );
    };

    it.each([
      ['discarded', 'discard', { attempts: 5 }, {}, 1],
      ['discarded, with attempts of its own', 'discard', { attempts: 1 }, { attempts: 7 }, 1],
      ['exhausted', 'fail', { attempts: 1 }, {}, 1],
    ] as const)('%s, also when it is snoozed meanwhile', async (_, first, options, job, used) => {
      const { inspector, producer, queue, runs, becomes } = await oneMore(first, options);
      await producer.enqueue(queue, {}, { id: 'A', ...job });
      await becomes('A', { state: 'dead', attempts: used });
      runs.length = 0;
      await inspector.requeueDead(queue, ['A'], { resetAttempts: false });
      await becomes('A', { state: 'dead', deadReason: 'exhausted', attempts: used + 1, maxAttempts: used + 1 });
      // Snoozed and then failed: the same attempt, the last one.
      expect(runs.map(({ attempt, maxAttempts }) => [attempt, maxAttempts])).toEqual([
        [used + 1, used + 1],
        [used + 1, used + 1],
      ]);
    });

    it('and again, and all of them when it is asked for after that', async () => {
      const { inspector, producer, queue, runs, becomes } = await oneMore('discard', { attempts: 3 });
      await producer.enqueue(queue, {}, { id: 'A' });
      await becomes('A', { state: 'dead', attempts: 1 });
      for (const attempts of [2, 3, 4, 5]) {
        await inspector.requeueDead(queue, ['A'], { resetAttempts: false });
        await becomes('A', { state: 'dead', attempts, maxAttempts: attempts });
      }
      runs.length = 0;
      await inspector.requeueDead(queue, ['A']);
      await becomes('A', { state: 'dead', attempts: 3, maxAttempts: 3 });
      expect(runs.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    });

    it('whatever the handler says by then', async () => {
      const { app, inspector, producer, queue, runs, becomes } = await oneMore('fail', { attempts: 2 });
      await producer.enqueue(queue, {}, { id: 'A' });
      await becomes('A', { state: 'dead', attempts: 2 });
      const registry = app.get(DelayQueueRegistry);
      await registry.unregister(queue);
      runs.length = 0;
      await inspector.requeueDead(queue, ['A'], { resetAttempts: false });
      const later: number[] = [];
      const fail = (_: unknown, job: DelayedJob) => {
        later.push(job.maxAttempts);
        throw new Error('boom');
      };
      registry.register(queue, fail, { attempts: 9, backoff: fixed(0) });
      await becomes('A', { state: 'dead', attempts: 3 });
      expect(later).toEqual([3]);
    });
  });

  it('moves hundreds in bounded steps', async () => {
    const { inspector } = await withDead('requeue many', 450);
    expect(await inspector.requeueDead('requeue many', 'all')).toEqual({ requeued: 450, remaining: 0 });
    expect((await inspector.counts('requeue many')).due).toBe(450);
    expect(await inspector.purge('requeue many')).toEqual({ removed: 450 });
  });
});

describe('removeDead()', () => {
  it.each<[string, string[] | 'all', { limit?: number }, string[]]>([
    ['the given ones', ['d1', 'nobody'], {}, ['d1']],
    ['all', 'all', {}, ['d0', 'd1', 'd2']],
    ['the oldest ones up to a limit', 'all', { limit: 2 }, ['d0', 'd1']],
  ])('removes %s for good', async (what, ids, options, expected) => {
    const queue = `remove ${what}`;
    const { inspector, ids: all, dead } = await withDead(queue, 3);
    const remaining = all.filter((id) => !expected.includes(id));
    expect(await inspector.removeDead(queue, ids, options)).toEqual({
      removed: expected.length,
      remaining: remaining.length,
    });
    expect((await dead()).sort()).toEqual(remaining);
    const { jobs, errors, attempts } = await here.world.read(queue);
    for (const hash of [jobs, errors, attempts]) expect(Object.keys(hash).sort()).toEqual(remaining);
  });

  it('all removes no more than there were, however fast jobs go on dying', async () => {
    const queue = 'goes on dying';
    const { inspector } = await withDead(queue, 3);
    const run = Reflect.get(EnqueueBatcher.prototype, 'run') as EnqueueBatcher['run'];
    let more = 5;
    const calls = jest.spyOn(EnqueueBatcher.prototype, 'run').mockImplementation(async function (
      this: EnqueueBatcher,
      ...args
    ) {
      const answer = await run.apply(this, args);
      if (more-- > 0) await here.world.redis.zadd(here.world.key(queue, 'dead'), Date.now(), `later${more}`);
      return answer;
    });
    try {
      expect(await inspector.removeDead(queue, 'all')).toEqual({ removed: 3, remaining: 0 });
    } finally {
      calls.mockRestore();
    }
  });
});
