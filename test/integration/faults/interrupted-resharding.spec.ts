import { describe, expect, it } from '@jest/globals';
import { DelayQueueHealth } from '../../../lib/index.js';
import { resolveModuleOptions } from '../../../lib/delay-queue.options.js';
import { RedisConnection } from '../../../lib/redis/redis.connection.js';
import { Resharding } from '../../../lib/shards/resharding.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
let queues = 0;
const fresh = () => `split-${queues++}`;
const producing = (queue: string, shards: number) =>
  here.start({ options: { queues: { [queue]: { shards } }, consume: false } });
const ids = Array.from({ length: 12 }, (_, n) => `i${n}`);
const items = ids.map((id) => ({ payload: id, id, delay: '1h' }));

const connect = async () => {
  const { url, prefix } = here.world;
  const connection = new RedisConnection(resolveModuleOptions({ connection: url, prefix }, 'default'));
  await connection.open(true);
  return connection;
};

it('health named a queue whose shards are being changed in words of the store', async () => {
  const { app, producer } = await here.start({ options: { consume: false } });
  await producer.enqueue('moving', 1);
  await here.world.redis.hset(here.world.key('moving', 'meta'), 'needs', 'shards:1>2.x');
  const { status, reasons } = await app.get(DelayQueueHealth).check();
  expect(status).toBe('degraded');
  expect(reasons).toEqual([expect.stringContaining('the number of shards of the queue is being changed')]);
  expect(reasons.join()).not.toContain('DQMOVING');
});

it('a server that takes over while an index is read, and has another order, leaves no job in the shard where it was', async () => {
  const queue = fresh();
  const many = Array.from({ length: 1_000 }, (_, n) => ({ payload: n, id: `m${n}`, delay: '1h' }));
  const { producer, close } = await producing(queue, 2);
  await producer.enqueueMany(queue, many);
  await close();
  const connection = await connect();
  const { commands } = connection;
  const run = connection.run.bind(connection);
  let isOver = false;
  connection.run = async (script, ...args) => {
    const answer = await run(script, ...args);
    if (script !== 'moveOff' || isOver) return answer;
    isOver = true;
    const isGone = new Promise((resolve) => commands.once('close', resolve));
    commands.disconnect(true);
    await isGone;
    await connection.whenReady();
    return answer;
  };
  const zscan = commands.zscan.bind(commands) as (key: string, cursor: string, ...args: unknown[]) => Promise<unknown>;
  let isRead = false;
  Object.assign(commands, {
    zscan: async (key: string, cursor: string, ...args: unknown[]) => {
      // By its order all that is left stands before the place of the cursor.
      if (isOver && !isRead && cursor !== '0') return ((isRead = true), ['0', []]);
      return zscan(key, cursor, ...args);
    },
  });
  await new Resharding(connection, here.world.prefix, queue)
    .run({ to: 4, waitMs: 0 })
    .finally(() => connection.close());
  expect(isRead).toBe(true);
  const after = await producing(queue, 4);
  const found = await Promise.all(many.map(({ id }) => after.producer.get(queue, id)));
  expect(found.map((job) => job?.id)).toEqual(many.map(({ id }) => id));
});

describe('a shard that a change which is over had shut', () => {
  /** Two shards of a settled queue, of which one says that it is being left. */
  const shut = async (mark: string) => {
    const queue = fresh();
    const { producer, close } = await producing(queue, 2);
    await producer.enqueueMany(queue, items);
    await close();
    await here.world.redis.hset(here.world.key(`${queue}:1`, 'meta'), 'needs', `shards:${mark}`);
    return queue;
  };

  it.each(['2~3.dead', '2>3.dead'])('stayed shut for good (%s): a process that boots opens it', async (mark) => {
    const queue = await shut(mark);
    const { inspector } = await producing(queue, 2);
    expect(await inspector.counts(queue)).toMatchObject({ delayed: ids.length });
  });

  it.each([2, 3, 1])('stood in the way of every other change: reshard({ to: %i }) mends it', async (to) => {
    const queue = await shut('2~3.dead');
    const { inspector, close } = await here.start({ options: { consume: false } });
    await inspector.reshard(queue, { to });
    await close();
    const after = await producing(queue, to);
    expect(await after.inspector.counts(queue)).toMatchObject({ delayed: ids.length });
  });

  it('is left alone while that change goes on', async () => {
    const queue = await shut('2~3.live');
    await here.world.redis.hset(here.world.key(queue, 'meta'), 'needs', 'shards:2~3.live');
    const real = await connect();
    try {
      const reopened = new Resharding(real, here.world.prefix, queue).reopen(1, 2, '2~3.live');
      expect(await reopened).toBe(false);
    } finally {
      real.close();
    }
    expect((await here.world.read(`${queue}:1`)).meta['needs']).toBe('shards:2~3.live');
  });
});

it('a process that was frozen while it opened a shard that had ended leaves one that ended once more as it is', async () => {
  const queue = fresh();
  await (await producing(queue, 2)).close();
  const real = await connect();
  try {
    const { redis, prefix } = here.world;
    const [base, shard] = [here.world.key(queue, 'meta'), here.world.key(`${queue}:1`, 'meta')];
    await redis.hset(shard, 'needs', 'shards:-/1');
    const slow = Object.create(real) as RedisConnection;
    slow.whenReady = () => real.whenReady();
    let calls = 0;
    slow.run = async (...args) => {
      // Between its look at the queue and its mark the number changed: to one, in the same words.
      if (calls++ === 1) await redis.hdel(base, 'needs');
      return real.run(...args);
    };
    expect(await new Resharding(slow, prefix, queue).reopen(1, 2, '-/1')).toBe(false);
    expect((await here.world.read(`${queue}:1`)).meta['needs']).toBe('shards:-/1');
  } finally {
    real.close();
  }
});

describe('a process that was frozen in reshard() while others finished the change', () => {
  /** @returns a connection whose n-th call is only sent once `thaw` is called */
  const icy = (real: RedisConnection, n: number) => {
    let calls = 0;
    let thaw!: () => void;
    let froze!: () => void;
    const thawed = new Promise<void>((resolve) => (thaw = resolve));
    const frozen = new Promise<void>((resolve) => (froze = resolve));
    const slow = Object.create(real) as RedisConnection;
    slow.whenReady = () => real.whenReady();
    for (const name of ['run', 'send'] as const) {
      slow[name] = async (...args: unknown[]) => {
        if (calls++ === n) {
          froze();
          await thawed;
        }
        return (real[name] as (...all: unknown[]) => Promise<never>)(...args);
      };
    }
    return { slow, frozen, thaw };
  };

  // The calls before jobs move; those that move jobs carry the mark of their change.
  it.each([2, 3, 4, 5, 6, 7, 8, 9])('shut a shard of the settled queue when it went on (call %i)', async (n) => {
    const queue = fresh();
    const { producer, close } = await producing(queue, 2);
    await producer.enqueueMany(queue, items);
    await close();
    const { prefix } = here.world;
    const real = await connect();
    try {
      const { slow, frozen, thaw } = icy(real, n);
      const first = new Resharding(slow, prefix, queue).run({ to: 3, waitMs: 1_000 }).catch(() => undefined);
      await frozen;
      const other = new Resharding(real, prefix, queue);
      await other.run({ to: 3, waitMs: 1_000 });
      await other.run({ to: 2, waitMs: 1_000 });
      thaw();
      await first;
      const states = await Promise.all([0, 1].map((shard) => here.world.read(`${queue}:${shard}`)));
      expect(states.map(({ meta }) => meta['needs'])).toEqual(['shards:0/2', 'shards:1/2']);
      await other.run({ to: 3, waitMs: 1_000 });
    } finally {
      real.close();
    }
    const { inspector } = await producing(queue, 3);
    expect(await inspector.counts(queue)).toMatchObject({ delayed: ids.length });
  });
});
