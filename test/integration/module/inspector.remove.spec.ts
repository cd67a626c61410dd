import { describe, expect, it, jest } from '@jest/globals';
import { DelayQueueRegistry } from '../../../lib/index.js';
import { eventually } from '../../helpers/eventually.js';
import { holding } from '../../helpers/holding.js';
import { connectionToken } from '../../../lib/delay-queue.tokens.js';
import { DEFAULT_INSTANCE } from '../../../lib/handlers/on-delayed.decorator.js';
import type { RedisConnection } from '../../../lib/redis/redis.connection.js';
import { NoAnswerError } from '../../../lib/redis/redis.errors.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const HOUR = 3_600_000;
let queues = 0;
const fresh = () => `gone-${queues++}`;

/** Keys that are no session of a producer or a worker: those go by themselves. */
const keys = async (queue: string) => (await here.world.keys(queue)).filter((name) => !name.startsWith('session:'));

it('a producer remembered every queue that it ever used; it forgets idle ones, and uses them as before', async () => {
  const { producer } = await here.start({ options: { consume: false } });
  const sessions = async () => (await here.world.keys('once')).filter((name) => name.startsWith('session:')).length;
  await producer.enqueue('once', 1, { id: 'A', delay: HOUR });
  await producer.enqueue('once', 1, { id: 'B', delay: HOUR });
  expect(await sessions()).toBe(1);
  for (let at = 0; at < 1_100; at += 100) {
    const names = Array.from({ length: 100 }, (_, n) => `customer-${at + n}`);
    await Promise.all(names.map((queue) => producer.enqueue(queue, 1, { delay: HOUR })));
  }
  expect(await producer.enqueue('once', 2, { id: 'A', delay: HOUR })).toMatchObject({ outcome: 'kept' });
  expect(await producer.enqueue('once', 2, { id: 'C', delay: HOUR })).toMatchObject({ outcome: 'created' });
  expect(await sessions()).toBe(2); // the first one was forgotten, and expires
});

describe('a queue that nobody uses any more stayed in Redis for ever; remove() deletes it whole', () => {
  it('with its counters, what is kept of it, and its name', async () => {
    const queue = fresh();
    const { producer, inspector } = await here.start();
    await producer.enqueue(queue, 1, { id: 'A', uniqueFor: '1h', delay: '1h' });
    await producer.enqueue(queue, 1, { id: 'B', delay: '1h' });
    await inspector.purge(queue);
    expect(await inspector.queues()).toContain(queue);
    expect(await inspector.remove(queue)).toEqual({ removed: 0 });
    expect(await keys(queue)).toEqual([]);
    expect(await inspector.queues()).not.toContain(queue);
    expect(await inspector.remove(queue)).toEqual({ removed: 0 });
  });

  it.each(['delayed', 'due', 'running', 'dead'] as const)(
    'not while a job of it is %s, unless it is forced',
    async (state) => {
      const { queue, inspector, bring, held, close } = await holding(here);
      await bring('A', state);
      const before = await here.world.read(queue);
      await expect(inspector.remove(queue)).rejects.toMatchObject({ code: 'ERR_DQ_QUEUE_NOT_EMPTY', queue, jobs: 1 });
      const after = await here.world.read(queue);
      expect([after.jobs, after.due, after.running, after.dead]).toEqual([
        before.jobs,
        before.due,
        before.running,
        before.dead,
      ]);
      expect(await inspector.remove(queue, { force: true })).toEqual({ removed: 1 });
      const { jobs, due, running, dead } = await here.world.read(queue);
      expect({ jobs, due, running, dead }).toEqual({ jobs: {}, due: {}, running: {}, dead: {} });
      for (const { end } of held) end();
      // Its worker goes on, and so does the queue.
      await close();
      const stranger = await here.start({ options: { consume: false } });
      await stranger.inspector.remove(queue);
      expect((await stranger.inspector.queues()).includes(queue)).toBe(false);
    },
  );

  it('and a producer and a worker that use it go on', async () => {
    const { queue, producer, inspector, run } = await holding(here);
    const other = await here.start();
    await other.producer.enqueue(queue, 1, { id: 'A' });
    (await run(1)).end();
    await eventually(async () => expect((await here.world.read(queue)).jobs).toEqual({}));
    await inspector.remove(queue, { force: true });
    // Both had sessions, and the worker waits: it is told.
    await producer.enqueue(queue, 2, { id: 'A' });
    const second = await run(2);
    expect(second.job.latenessMs).toBeLessThan(4_000);
    second.end();
    await other.producer.enqueue(queue, 3, { id: 'B' });
    (await run(3)).end();
    await eventually(async () => expect(await inspector.counts(queue)).toMatchObject({ due: 0, running: 0, dead: 0 }));
    expect(await inspector.queues()).toContain(queue); // the process that removed it, and announced it again
  });

  it('with all its shards', async () => {
    const queue = fresh();
    const options = { queues: { [queue]: { shards: 4 } } };
    const { producer, inspector, app } = await here.start({ options });
    const items = Array.from({ length: 20 }, (_, n) => ({ payload: n, id: `j${n}`, delay: HOUR }));
    await producer.enqueueMany(queue, items);
    await expect(inspector.remove(queue)).rejects.toMatchObject({ code: 'ERR_DQ_QUEUE_NOT_EMPTY', jobs: 20 });
    // A process that does not know of the shards removes it as well.
    const stranger = await here.start();
    expect(await stranger.inspector.remove(queue, { force: true })).toEqual({ removed: 20 });
    for (const name of [queue, ...[0, 1, 2, 3].map((n) => `${queue}:${n}`)]) expect(await keys(name)).toEqual([]);
    // It is made anew by who says that it has shards.
    expect((await producer.enqueueMany(queue, items)).map(({ outcome }) => outcome)).toEqual(
      items.map(() => 'created'),
    );
    expect(await inspector.counts(queue)).toMatchObject({ delayed: 20 });
    const runs: unknown[] = [];
    app.get(DelayQueueRegistry).register(queue, (payload) => void runs.push(payload));
    for (const { id } of items) await producer.runNow(queue, id);
    await eventually(() => expect(runs).toHaveLength(20));
  });

  it.each([
    ['the last shard', ':3', 0],
    ['what says how many there are', '', 1],
  ])('with its shards, but for those that somebody makes anew before %s goes', async (_, name, losesNumber) => {
    const queue = fresh();
    const { producer, inspector, app } = await here.start({ options: { queues: { [queue]: { shards: 4 } } } });
    const items = Array.from({ length: 20 }, (_, n) => ({ payload: n, id: `j${n}`, delay: HOUR }));
    await producer.enqueueMany(queue, items);
    const stranger = await here.start();
    const connection = stranger.app.get<RedisConnection>(connectionToken(DEFAULT_INSTANCE));
    const run = connection.run.bind(connection);
    const ends = (part: string) => (call: Parameters<typeof run>) =>
      call[0] === 'endShard' && call[1].includes(here.world.key(`${queue}${part}`, 'meta'));
    const calls = jest.spyOn(connection, 'run').mockImplementation(async (...call) => {
      if (ends(name)(call)) await producer.enqueueMany(queue, items);
      return run(...call);
    });
    await stranger.inspector.remove(queue, { force: true });
    // Killed in between, it leaves what says how many there are to those who use them.
    expect(calls.mock.calls.filter(ends(''))).toHaveLength(losesNumber);
    calls.mockRestore();
    const { delayed } = await inspector.counts(queue);
    expect(delayed).toBeGreaterThan(0);
    await app.close();
    // Who does not know of the shards finds these jobs all the same.
    expect(await stranger.inspector.queues()).toContain(queue);
    await expect(stranger.inspector.counts(queue)).rejects.toMatchObject({ code: 'ERR_DQ_SHARD_COUNT', stored: 4 });
    expect(await stranger.inspector.reshard(queue, { to: 1 })).toMatchObject({ from: 4, to: 1, moved: delayed });
  });

  it('also where another queue uses the name of one of its shards since a removal was killed', async () => {
    const queue = fresh();
    const { producer, close } = await here.start({ options: { consume: false, queues: { [queue]: { shards: 4 } } } });
    await producer.enqueue(queue, 1, { id: 'x' });
    await close();
    // It was killed when it had deleted all shards, and not yet the number of them.
    const { redis } = here.world;
    for (let n = 0; n < 4; n++) await redis.unlink(await redis.keys(here.world.key(`${queue}:${n}`, '*')));
    const other = await here.start({ options: { consume: false } });
    await other.producer.enqueue(`${queue}:3`, 1, { id: 'other', delay: HOUR });
    await other.inspector.remove(queue, { force: true });
    expect(await redis.keys(here.world.key(queue, '*'))).toEqual([]);
    expect(await other.inspector.queues()).not.toContain(queue);
    expect(await other.inspector.counts(`${queue}:3`)).toMatchObject({ delayed: 1 });
  });

  it.each([1, 2])(
    'and a copy of a call that arrives late leaves alone what was made since, with %i shards',
    async (shards) => {
      const queue = fresh();
      const { producer, inspector, app } = await here.start({
        options: { consume: false, queues: { [queue]: { shards } } },
      });
      const items = Array.from({ length: 8 }, (_, n) => ({ payload: n, id: `j${n}`, delay: HOUR }));
      await producer.enqueueMany(queue, items);
      const connection = app.get<RedisConnection>(connectionToken(DEFAULT_INSTANCE));
      const run = connection.run.bind(connection);
      let late: (() => Promise<unknown>) | undefined;
      const calls = jest.spyOn(connection, 'run').mockImplementation(async (...call) => {
        if (late || call[0] !== 'endShard') return run(...call);
        late = () => run(...call);
        throw new NoAnswerError('it is held up on its way');
      });
      await expect(inspector.remove(queue, { force: true })).rejects.toMatchObject({ code: 'ERR_DQ_UNAVAILABLE' });
      await inspector.remove(queue, { force: true });
      calls.mockRestore();
      await producer.enqueueMany(queue, items);
      await late!();
      expect(await inspector.counts(queue)).toMatchObject({ delayed: items.length });
    },
  );

  it('and refuses options that it does not know', async () => {
    const { inspector } = await here.start();
    await expect(inspector.remove('q', { forced: true } as never)).rejects.toMatchObject({
      code: 'ERR_DQ_INVALID_OPTION',
    });
  });
});

describe('a queue that another process had removed was stored again without its name, for up to a minute or for ever;', () => {
  const isStored = async (queue: string) => (await keys(queue)).includes('meta');

  it('a worker that only waits writes both', async () => {
    const { queue, producer, run } = await holding(here);
    await producer.enqueue(queue, 1);
    (await run(1)).end();
    await eventually(async () => expect((await here.world.read(queue)).jobs).toEqual({}));
    const other = await here.start({ options: { consume: false } });
    await other.inspector.remove(queue);
    await eventually(async () => expect(await isStored(queue)).toBe(true));
    await eventually(async () => expect((await other.inspector.queues()).includes(queue)).toBe(true));
  });

  it('a worker that sleeps meanwhile writes both when it looks again', async () => {
    const { queue, inspector } = await holding(here, { lease: 600 });
    await eventually(async () => expect((await inspector.queues()).includes(queue)).toBe(true));
    // What remove() does, in one go.
    const { redis, prefix } = here.world;
    const stored = ['meta', 'idle', 'changed'].map((name) => here.world.key(queue, name));
    await redis
      .multi()
      .unlink(...stored)
      .srem(`${prefix}:queues`, queue)
      .exec();
    await eventually(async () => expect(await isStored(queue)).toBe(true));
    await eventually(async () => expect((await inspector.queues()).includes(queue)).toBe(true));
  });

  it('a producer writes both', async () => {
    const queue = fresh();
    const { producer } = await here.start({ options: { consume: false } });
    const other = await here.start({ options: { consume: false } });
    for (const id of ['A', 'B']) {
      await producer.enqueue(queue, 1, { id, delay: HOUR });
      await eventually(async () => expect((await other.inspector.queues()).includes(queue)).toBe(true));
      await other.inspector.remove(queue, { force: true });
      expect((await other.inspector.queues()).includes(queue)).toBe(false);
    }
  });

  it('and with shards', async () => {
    const queue = fresh();
    const options = { queues: { [queue]: { shards: 4 } }, consume: false };
    const { producer } = await here.start({ options });
    const other = await here.start({ options: { consume: false } });
    for (const id of ['A', 'B']) {
      await producer.enqueue(queue, 1, { id, delay: HOUR });
      await eventually(async () => expect((await other.inspector.queues()).includes(queue)).toBe(true));
      await other.inspector.remove(queue, { force: true });
    }
  });

  it('what comes in between the keys and the name keeps its name', async () => {
    const queue = fresh();
    const { producer } = await here.start({ options: { consume: false } });
    const other = await here.start({ options: { consume: false } });
    await producer.enqueue(queue, 1, { id: 'A', delay: HOUR });
    const { commands } = other.app.get<RedisConnection>(connectionToken(DEFAULT_INSTANCE));
    const srem = commands.srem.bind(commands) as (...args: unknown[]) => Promise<number>;
    commands.srem = (async (...args: unknown[]) => {
      await producer.enqueue(queue, 1, { id: 'B', delay: HOUR });
      return srem(...args);
    }) as typeof commands.srem;
    expect(await other.inspector.remove(queue, { force: true })).toEqual({ removed: 1 });
    expect(await other.inspector.counts(queue)).toMatchObject({ delayed: 1 });
    expect((await other.inspector.queues()).includes(queue)).toBe(true);
  });
});

describe('the marks of shards that had ended outlived the queue, and it could not be used again with more shards;', () => {
  const SHARDS = 8;
  const parts = (queue: string) => [queue, ...Array.from({ length: SHARDS }, (_, n) => `${queue}:${n}`)];
  const stored = async (queue: string) => (await Promise.all(parts(queue).map(keys))).flat();
  const items = Array.from({ length: 50 }, (_, n) => ({ payload: n, id: `j${n}`, delay: HOUR }));
  const producing = (queue: string, shards: number) =>
    here.start({ options: { queues: { [queue]: { shards } }, consume: false } });

  /** A queue that had eight shards, and jobs, and has `to` now. */
  const shrunk = async (to: number) => {
    const queue = fresh();
    const { producer, inspector, close } = await producing(queue, SHARDS);
    await producer.enqueueMany(queue, items);
    await inspector.reshard(queue, { to });
    await close();
    return queue;
  };

  /** @returns how many jobs it holds after it was filled */
  const filled = async (queue: string) => {
    const { producer, inspector, close } = await producing(queue, SHARDS);
    await producer.enqueueMany(queue, items);
    const { delayed } = await inspector.counts(queue);
    await close();
    return delayed;
  };

  it.each([1, 4])('remove() deletes them with the %i that are left', async (to) => {
    const queue = await shrunk(to);
    const { inspector } = await here.start({ options: { consume: false } });
    expect(await inspector.remove(queue, { force: true })).toEqual({ removed: items.length });
    expect(await stored(queue)).toEqual([]);
    expect(await filled(queue)).toBe(items.length);
  });

  it.each([1, 4])(
    'a removal that was cut after each of its steps is finished by the next one (%i are left)',
    async (to) => {
      for (let steps = 0; steps <= SHARDS; steps++) {
        const queue = await shrunk(to);
        const { inspector, app, close } = await here.start({ options: { consume: false } });
        const connection = app.get<RedisConnection>(connectionToken(DEFAULT_INSTANCE));
        const run = connection.run.bind(connection);
        let ends = 0;
        connection.run = async (script, ...rest) => {
          if (script === 'endShard' && ends++ === steps) throw new Error('DQMOVING for the sake of the test');
          return run(script, ...rest);
        };
        await expect(inspector.remove(queue, { force: true })).rejects.toMatchObject({ code: 'ERR_DQ_UNAVAILABLE' });
        expect(await inspector.queues()).toContain(queue);
        connection.run = run;
        await inspector.remove(queue, { force: true });
        expect(await stored(queue)).toEqual([]);
        await close();
      }
    },
  );

  /** What an older version left of a queue that it removed. */
  const withMarks = async () => {
    const queue = fresh();
    for (const name of parts(queue).slice(1))
      await here.world.redis.hset(here.world.key(name, 'meta'), { layout: '1', needs: 'shards:-/1' });
    return queue;
  };

  it('where they are, a process that boots opens them', async () => {
    expect(await filled(await withMarks())).toBe(items.length);
  });

  it('where they are, reshard() to the number that the queue has opens them', async () => {
    const queue = await withMarks();
    await here.world.redis.hset(here.world.key(queue, 'meta'), { layout: '1', needs: `shards:=/${SHARDS}` });
    const { inspector } = await here.start({ options: { consume: false } });
    await inspector.reshard(queue, { to: SHARDS });
    for (let n = 0; n < SHARDS; n++)
      expect((await here.world.read(`${queue}:${n}`)).meta['needs']).toBe(`shards:${n}/${SHARDS}`);
    expect(await filled(queue)).toBe(items.length);
  });
});
