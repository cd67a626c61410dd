import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { DelayQueueConsumer, DelayQueueHealth, ShardCountError } from '../../../lib/index.js';
import type { DelayedJob, DelayQueueRootOptions, HandlerOptions } from '../../../lib/index.js';
import { shardOf } from '../../../lib/shards/shard-hash.js';
import { createApp, handlerClass } from '../../helpers/app.js';
import { RedisCluster } from '../../helpers/cluster.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { groupIn } from '../../helpers/sharded-groups.js';
import type { World } from '../../helpers/world.js';

const ends = endingWithEachTest();
const HOUR = 3_600_000;
const SHARDS = 8;

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await RedisCluster.start();
});
afterAll(() => cluster?.stop());

const prefix = `t${randomBytes(6).toString('hex')}`;
let queues = 0;
const fresh = () => `split-${queues++}`;

async function start(
  queue: string,
  shards: number,
  handle?: (payload: any, job: DelayedJob) => unknown,
  handler: HandlerOptions = {},
  options: DelayQueueRootOptions = {},
) {
  return ends(
    await createApp({ prefix } as World, {
      providers: handle ? [handlerClass(queue, handle, handler)] : [],
      options: {
        connection: cluster.connection,
        prefix,
        queues: { [queue]: { shards } },
        drainTimeout: 0,
        startupChecks: 'off',
        ...options,
      },
    }),
  );
}

const dueKey = (queue: string, shard: number) => `${prefix}:{${queue}:${shard}}:due`;

function idIn(shard: number, start = 'id'): string {
  for (let n = 0; ; n++) if (shardOf(`${start}${n}`, SHARDS) === shard) return `${start}${n}`;
}

/** One shard on each node. */
async function shardPerNode(queue: string): Promise<number[]> {
  const found = new Map<number, number>();
  for (let shard = 0; shard < SHARDS; shard++) found.set((await cluster.ownerOf(dueKey(queue, shard))).port, shard);
  return [...found.values()];
}

describe('start-up checks', () => {
  const boot = (options: DelayQueueRootOptions) => start('checked', 1, undefined, {}, { startupChecks: 'strict', queues: {}, ...options }); // prettier-ignore

  it('refuse a Cluster of which only one node was named, as to any single server', async () => {
    const { port } = cluster.nodes[0]!;
    await expect(boot({ connection: `redis://127.0.0.1:${port}` })).rejects.toThrow(
      `Redis at 127.0.0.1:${port} is one node of a Redis Cluster. Give \`connection: { cluster: [{ host, port }] }\`.`,
    );
  });

  it.each([0, 1, 2])('look at every master: %i evicts', async (n) => {
    const { port, redis } = cluster.nodes[n]!;
    await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    try {
      await expect(boot({})).rejects.toThrow(`Redis at 127.0.0.1:${port} has maxmemory-policy allkeys-lru`);
    } finally {
      await redis.config('SET', 'maxmemory-policy', 'noeviction');
    }
    await boot({});
  });
});

describe('on a Cluster', () => {
  it('a queue with shards lies on several nodes, each shard whole on one', async () => {
    const queue = fresh();
    const { producer } = await start(queue, SHARDS);
    await producer.enqueueMany(
      queue,
      Array.from({ length: 200 }, (_, n) => ({ payload: n, delay: '1h' })),
    );
    const keys = await cluster.keys(`${prefix}:{${queue}:`);
    const nodes = [...keys.values()].filter((held) => held.length > 0);
    expect(nodes.length).toBeGreaterThan(1);
    for (let shard = 0; shard < SHARDS; shard++) {
      const owner = await cluster.ownerOf(dueKey(queue, shard));
      const held = keys.get(owner)!.filter((key) => key.startsWith(`${prefix}:{${queue}:${shard}}:`));
      expect(held).toEqual(expect.arrayContaining([dueKey(queue, shard), `${prefix}:{${queue}:${shard}}:jobs`]));
    }
  });

  it.each([1, SHARDS])('every job of %i shards runs once, whichever way it came', async (shards) => {
    const queue = fresh();
    const runs: string[] = [];
    const handle = (_: unknown, { id }: DelayedJob) => void runs.push(id);
    const [first] = [await start(queue, shards, handle), await start(queue, shards, handle)];
    const ids = Array.from({ length: 1_000 }, (_, n) => `j${n}`);
    await Promise.all([
      ...ids.slice(0, 500).map((id) => first.producer.enqueue(queue, 1, { id })),
      first.producer.enqueueMany(
        queue,
        ids.slice(500).map((id) => ({ payload: 1, id })),
      ),
    ]);
    await eventually(
      async () => expect(await first.inspector.totals(queue)).toMatchObject({ enqueued: 1_000, completed: 1_000 }),
      20_000,
    );
    expect([...runs].sort()).toEqual([...ids].sort());
    expect(await first.inspector.counts(queue)).toMatchObject({ delayed: 0, due: 0, running: 0, dead: 0 });
  });

  it.each([1, SHARDS])(
    'a queue of %i shards that another process removed gets its name back with the next job',
    async (shards) => {
      const queue = fresh();
      const [user, other] = [await start(queue, shards), await start('other', 1)];
      for (const id of ['A', 'B']) {
        await user.producer.enqueue(queue, 1, { id, delay: HOUR });
        await eventually(async () => expect(await other.inspector.queues()).toContain(queue));
        expect(await other.inspector.remove(queue, { force: true })).toEqual({ removed: 1 });
        // The user writes the name before the job and after it, and waits for neither. A Cluster that is down for a moment may put the
        // second one off until the name is gone.
        await eventually(async () => {
          expect(await other.inspector.remove(queue)).toEqual({ removed: 0 });
          expect(await other.inspector.queues()).not.toContain(queue);
        });
      }
    },
  );

  it('a queue whose number of shards went down, and that was removed, can have as many again', async () => {
    const queue = fresh();
    const [user, other] = [await start(queue, SHARDS), await start('other', 1)];
    await user.producer.enqueue(queue, 1, { delay: HOUR });
    await other.inspector.reshard(queue, { to: 1 });
    expect(await other.inspector.remove(queue, { force: true })).toEqual({ removed: 1 });
    const names = [queue, ...Array.from({ length: SHARDS }, (_, n) => `${queue}:${n}`)];
    for (const name of names) {
      const meta = `${prefix}:{${name}}:meta`;
      expect(await (await cluster.ownerOf(meta)).redis.exists(meta)).toBe(0);
    }
    const again = await start(queue, SHARDS);
    const items = Array.from({ length: 50 }, (_, n) => ({ payload: n, delay: HOUR }));
    await again.producer.enqueueMany(queue, items);
    expect(await again.inspector.counts(queue)).toMatchObject({ delayed: items.length });
  });

  it('calls with an id reach its shard, and the inspector sees them all', async () => {
    const queue = fresh();
    const runs: string[] = [];
    const { producer, inspector } = await start(queue, SHARDS, (_, { id }) => void runs.push(id));
    const shards = await shardPerNode(queue);
    expect(shards.length).toBeGreaterThan(1);
    const base = Date.now() + HOUR;
    for (const [n, shard] of shards.entries())
      await producer.enqueue(queue, shard, { id: idIn(shard), at: base - n * 1_000 });
    expect(await inspector.counts(queue)).toMatchObject({
      delayed: shards.length,
      nextDueAt: new Date(base - (shards.length - 1) * 1_000),
    });
    const { jobs } = await inspector.list(queue, 'delayed');
    expect(jobs.map(({ payload }) => payload)).toEqual([...shards].reverse());
    await inspector.pause(queue);
    for (const shard of shards) {
      const id = idIn(shard);
      expect(await producer.get(queue, id)).toMatchObject({ state: 'delayed', payload: shard });
      expect(await producer.runNow(queue, id)).toMatchObject({ outcome: 'rescheduled' });
    }
    expect(await inspector.counts(queue)).toMatchObject({ due: shards.length, paused: true });
    await producer.cancel(queue, idIn(shards[0]!));
    await inspector.resume(queue);
    await eventually(() =>
      expect([...runs].sort()).toEqual(
        shards
          .slice(1)
          .map((shard) => idIn(shard))
          .sort(),
      ),
    );
  });

  it('jobs are pulled from every node', async () => {
    const queue = fresh();
    const { app, producer } = await start(queue, SHARDS);
    const shards = await shardPerNode(queue);
    await producer.enqueueMany(
      queue,
      shards.map((shard) => ({ payload: shard, id: idIn(shard) })),
    );
    const consumer = app.get(DelayQueueConsumer);
    const jobs = await consumer.pull(queue, { max: 20 });
    expect(new Set(jobs.map(({ payload }) => payload))).toEqual(new Set(shards));
    expect(jobs).toHaveLength(shards.length);
    await Promise.all(jobs.map((job) => job.complete()));
    expect(await consumer.take(queue, 5)).toEqual([]);
  });

  it('wake-ups come through, whichever node the shard and the listener are at', async () => {
    const queue = fresh();
    const late: number[] = [];
    const { producer } = await start(queue, SHARDS, (_, { latenessMs }) => void late.push(latenessMs), {
      lease: '10m', // the next poll without a wake-up comes after 5 s
    });
    const looked = await start(queue, SHARDS);
    for (let shard = 0; shard < SHARDS; shard++) {
      await eventually(async () => {
        const owner = await cluster.ownerOf(dueKey(queue, shard));
        expect(await owner.redis.zcard(`${prefix}:{${queue}:${shard}}:idle`)).toBe(1);
      });
      await producer.enqueue(queue, 1, { id: idIn(shard) });
      await eventually(() => expect(late).toHaveLength(shard + 1), 3_000);
    }
    await looked.close();
  });

  it('another number of shards is refused, and the queue can be changed to it', async () => {
    const queue = fresh();
    const { producer, inspector, close } = await start(queue, 3);
    const ids = Array.from({ length: 300 }, (_, n) => `m${n}`);
    await producer.enqueueMany(
      queue,
      ids.map((id) => ({ payload: id, id, delay: '1h' })),
    );
    await expect(start(queue, SHARDS)).rejects.toThrow(ShardCountError);
    expect(await inspector.reshard(queue, { from: 3, to: SHARDS })).toMatchObject({ from: 3, to: SHARDS });
    await close();
    const runs: string[] = [];
    const next = await start(queue, SHARDS, (id: string) => void runs.push(id));
    await Promise.all(ids.map((id) => next.producer.runNow(queue, id)));
    await eventually(() => expect(runs).toHaveLength(300), 20_000);
    expect([...runs].sort()).toEqual([...ids].sort());
  });

  it('slots may move to other nodes while jobs come and run', async () => {
    const queue = fresh();
    const runs: string[] = [];
    const { producer, inspector } = await start(queue, SHARDS, (_, { id }) => void runs.push(id));
    const ids: string[] = [];
    let moving = true;
    const feeding = (async () => {
      while (moving) {
        const results = await producer.enqueueMany(
          queue,
          Array.from({ length: 50 }, () => ({ payload: 1, delay: 5 })),
        );
        ids.push(...results.map(({ id }) => id));
      }
    })();
    for (let shard = 0; shard < SHARDS; shard++) {
      const owner = await cluster.ownerOf(dueKey(queue, shard));
      const other = cluster.nodes.find((node) => node !== owner)!;
      await cluster.moveSlot(await cluster.slotOf(dueKey(queue, shard)), other);
    }
    moving = false;
    await feeding;
    await eventually(
      async () => expect(await inspector.totals(queue)).toMatchObject({ completed: ids.length }),
      20_000,
    );
    expect([...runs].sort()).toEqual([...ids].sort());
    await cluster.whole();
  });

  it('a node that hangs keeps only its own shards waiting, and takes nobody else’s slot or connection', async () => {
    const queue = fresh();
    const runs: string[] = [];
    let running = 0;
    let most = 0;
    const handle = async (_: unknown, { id }: DelayedJob) => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 1));
      running--;
      runs.push(id);
    };
    const { app, producer } = await start(
      queue,
      SHARDS,
      handle,
      { concurrency: 1, lease: '900ms' }, // so that each shard looks every 300 ms
      { commandTimeout: 1_500 },
    );
    const [hung] = await shardPerNode(queue);
    const node = await cluster.ownerOf(dueKey(queue, hung!));
    const others: number[] = [];
    for (let shard = 0; shard < SHARDS; shard++)
      if ((await cluster.ownerOf(dueKey(queue, shard))) !== node) others.push(shard);
    const connected = async () => {
      const list = await Promise.all(
        cluster.nodes.filter((one) => one !== node).map(({ redis }) => redis.client('LIST') as Promise<string>),
      );
      return list
        .flatMap((text) => [...text.matchAll(/^id=(\d+) addr=(\S+).* name=dq:default:commands/gm)].map(([, , a]) => a))
        .sort();
    };
    await producer.enqueue(queue, 1, { id: idIn(others[0]!, 'before') });
    await eventually(() => expect(runs).toHaveLength(1));
    const before = await connected();
    await cluster.kill(node, 'SIGSTOP');
    try {
      // Long enough for the shards of the silent node to ask for jobs, with the one slot that there is.
      const until = performance.now() + 2_000;
      let ran = 1;
      for (let round = 0; performance.now() < until; round++) {
        await producer.enqueue(queue, 1, { id: idIn(others[round % others.length]!, `during${round}-`) });
        await eventually(() => expect(runs).toHaveLength(ran + 1), 15_000);
        ran++;
      }
      await expect(producer.enqueue(queue, 1, { id: idIn(hung!, 'hung') })).rejects.toMatchObject({
        code: 'ERR_DQ_UNAVAILABLE',
      });
      expect(await connected()).toEqual(before);
    } finally {
      await cluster.kill(node, 'SIGCONT');
    }
    await cluster.whole();
    await producer.enqueue(queue, 1, { id: idIn(hung!, 'after') });
    await eventually(() => expect(runs).toContain(idIn(hung!, 'after')), 15_000);
    expect(most).toBe(1);
    expect(await app.get(DelayQueueHealth).check()).toMatchObject({ redis: { status: 'up' } });
  });

  it('a node that crashed and came back goes on with its shards', async () => {
    const queue = fresh();
    const runs: string[] = [];
    const { producer } = await start(queue, SHARDS, (_, { id }) => void runs.push(id), {}, { commandTimeout: 2_000 });
    const [shard] = await shardPerNode(queue);
    const node = await cluster.ownerOf(dueKey(queue, shard!));
    await cluster.kill(node);
    await cluster.restart(node); // Without persistence its shards are empty, and opened again at first use.
    await eventually(async () => {
      await producer.enqueue(queue, 1, { id: idIn(shard!, 'again') });
    }, 15_000);
    await eventually(() => expect(runs).toEqual([idIn(shard!, 'again')]), 15_000);
  });
});

describe('a queue with groups on a Cluster', () => {
  it('keeps the limits of groups over its nodes, finds their jobs, and takes them to other shards', async () => {
    const queue = fresh();
    const groups = Array.from({ length: SHARDS }, (_, shard) => groupIn(shard, SHARDS));
    const busy = new Map<string, number>();
    const ran: string[] = [];
    let most = 0;
    const handle = async (_: unknown, { id, group }: DelayedJob) => {
      busy.set(group!, (busy.get(group!) ?? 0) + 1);
      most = Math.max(most, busy.get(group!)!);
      await new Promise((resolve) => setTimeout(resolve, 2));
      busy.set(group!, busy.get(group!)! - 1);
      ran.push(id);
    };
    const limits = { concurrency: 20, groups: { concurrency: 1 }, globalConcurrency: 16 };
    const apps = await Promise.all([1, 2].map(() => start(queue, SHARDS, handle, limits)));
    const { producer } = apps[0]!;
    const jobs = groups.flatMap((group) =>
      Array.from({ length: 10 }, (_, n) => ({ payload: n, group, id: `${group}/${n}` })),
    );
    await producer.enqueueMany(queue, jobs);
    await eventually(() => expect(ran).toHaveLength(80));
    expect(most).toBe(1);

    const later = groups.map((group) => ({ payload: 1, group, id: `later-${group}`, delay: '1h' }));
    await producer.enqueueMany(queue, later);
    await Promise.all(apps.map(({ close }) => close()));
    const admin = await start(fresh(), 1);
    await admin.inspector.reshard(queue, { to: 3 });
    const after = await start(queue, 3);
    expect((await after.inspector.limits(queue)).limits).toEqual({ globalConcurrency: 16, groups: { concurrency: 1 } });
    for (const { id, group } of later) {
      expect(await after.producer.get(queue, id)).toMatchObject({ group, state: 'delayed' });
      expect(await after.producer.cancel(queue, id, { group })).toMatchObject({ outcome: 'cancelled' });
    }
    expect(await after.inspector.counts(queue)).toMatchObject({ delayed: 0, groups: { total: 0 } });
  });
});
