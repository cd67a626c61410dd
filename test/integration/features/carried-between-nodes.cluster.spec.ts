import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import type { Cluster } from 'ioredis';
import { UnavailableError } from '../../../lib/index.js';
import type { DelayQueueRootOptions } from '../../../lib/index.js';
import { EnqueueBatcher } from '../../../lib/producer/enqueue-batcher.js';
import { Handover } from '../../../lib/producer/handover.js';
import type { RedisConnection } from '../../../lib/redis/redis.connection.js';
import { NotSentError } from '../../../lib/redis/redis.errors.js';
import { createApp } from '../../helpers/app.js';
import { RedisCluster } from '../../helpers/cluster.js';
import type { ClusterNode } from '../../helpers/cluster.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import type { World } from '../../helpers/world.js';

// What goes to another node must be on a replica there before the node that had it lets go of it.

const HOUR = 3_600_000;
const ends = endingWithEachTest();
const prefix = `t${randomBytes(6).toString('hex')}`;
let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await RedisCluster.start(3, 3);
});
afterAll(() => cluster?.stop());

const IDS = Array.from({ length: 40 }, (_, n) => `j${n}`);
const start = async (options: DelayQueueRootOptions = {}) =>
  ends(
    await createApp({ prefix } as World, {
      options: { connection: cluster.connection, consume: false, startupChecks: 'off', ...options },
    }),
  );
const ownerOf = (queue: string) => cluster.ownerOf(`${prefix}:{${queue}}:due`);
const replicaOf = async ({ id }: ClusterNode) => {
  for (const node of cluster.replicas) {
    const lines = ((await node.redis.cluster('NODES')) as string).split('\n');
    if (lines.some((line) => line.startsWith(node.id) && line.includes(` ${id} `))) return node;
  }
  throw new Error('a master has no replica');
};
/** Two queues on two nodes. */
let names = 0;
async function apart(): Promise<{ from: string; to: string; target: ClusterNode; replica: ClusterNode }> {
  const from = `from-${names++}`;
  const source = await ownerOf(from);
  for (;;) {
    const to = `to-${names++}`;
    const target = await ownerOf(to);
    const replica = target !== source && (await replicaOf(target).catch(() => undefined));
    if (replica) return { from, to, target, replica };
  }
}
/**
 * The epoch of a takeover is the next one after those that the replica has heard of. Another node may have that already; then the takeover
 * counts for nothing, and is repeated.
 */
const takeOver = (replica: ClusterNode, hasTakenOver: () => Promise<void>) =>
  eventually(async () => {
    // Refused by one that is a master.
    await replica.redis.cluster('FAILOVER', 'TAKEOVER').catch(() => undefined);
    await hasTakenOver();
  }, 40_000);
const items = (at: number) => IDS.map((id) => ({ id, payload: { of: id }, at }));
const stopped = async (node: ClusterNode) => {
  await cluster.kill(node, 'SIGSTOP');
  ends({ close: () => cluster.kill(node, 'SIGCONT') });
};

it('a move stays undone while no replica of the other node follows, and is done when one does', async () => {
  const { producer, inspector } = await start({ commandTimeout: 1_000 });
  const { from, to, replica } = await apart();
  const at = Date.now() + HOUR;
  await producer.enqueueMany(from, items(at));
  await stopped(replica);
  const moved = inspector.move(from, IDS, to);
  await expect(moved).rejects.toThrow(UnavailableError);
  await expect(moved).rejects.toThrow(
    /^move\("from-\d+", ids, "to-\d+"\): at the node that takes over 0 of 1 replicas had it within 1000 ms\. So it stays in its queue\./,
  );
  expect(await inspector.counts(from)).toMatchObject({ delayed: IDS.length, running: 0 });
  expect(await inspector.counts(to)).toMatchObject({ delayed: 0, due: 0, running: 0 });
  await cluster.kill(replica, 'SIGCONT');
  const { results } = await inspector.move(from, IDS, to);
  expect(results).toEqual(IDS.map((id) => ({ id, outcome: 'moved' })));
  expect(await inspector.counts(to)).toMatchObject({ delayed: IDS.length });
  expect(await producer.get(to, IDS[0]!)).toMatchObject({ payload: { of: IDS[0] }, dueAt: new Date(at) });
});

it('durability of the module is kept by a move as well', async () => {
  const { producer } = await start();
  const { inspector } = await start({ durability: { replicas: 2, timeout: '200ms' } });
  const { from, to } = await apart();
  await producer.enqueue(from, 1, { id: 'one', delay: '1h' });
  await expect(inspector.move(from, ['one'], to)).rejects.toThrow(/1 of 2 replicas had it within 200 ms/);
  expect(await producer.get(from, 'one')).toMatchObject({ state: 'delayed' });
  expect(await producer.get(to, 'one')).toBeUndefined();
});

it('a disk is not waited for where no server writes an append-only file', async () => {
  const { producer } = await start();
  const { inspector } = await start({ durability: 'fsync', commandTimeout: 1_000 });
  const { from, to } = await apart();
  await producer.enqueue(from, 1, { id: 'one', delay: '1h' });
  expect(await inspector.move(from, ['one'], to)).toEqual({ results: [{ id: 'one', outcome: 'moved' }] });
  const queue = `shrinks-${names++}`;
  await producer.enqueueMany(queue, items(Date.now() + HOUR));
  expect(await inspector.reshard(queue, { to: 4 })).toMatchObject({ from: 1, to: 4 });
});

it('another number of shards stays undone while no replica of the other node follows', async () => {
  const queue = `grows-${names++}`;
  const { producer, inspector } = await start({ commandTimeout: 1_000 });
  await producer.enqueueMany(queue, items(Date.now() + HOUR));
  const source = await ownerOf(queue);
  const replicas = await Promise.all(cluster.nodes.filter((node) => node !== source).map(replicaOf));
  for (const replica of replicas) await stopped(replica);
  const changed = inspector.reshard(queue, { to: 8 });
  await expect(changed).rejects.toThrow(UnavailableError);
  await expect(changed).rejects.toThrow(/0 of 1 replicas had it within 1000 ms/);
  for (const replica of replicas) await cluster.kill(replica, 'SIGCONT');
  expect(await inspector.reshard(queue, { to: 8 })).toMatchObject({ from: 1, to: 8 });
  const after = await start({ queues: { [queue]: { shards: 8 } } });
  expect(await after.inspector.counts(queue)).toMatchObject({ delayed: IDS.length });
});

/** All these keys go to the other node before the first call of this script, and no replica follows it. */
function goingElsewhere(
  connection: RedisConnection,
  script: string,
  keys: readonly string[],
  node: ClusterNode,
  answered = async () => {},
) {
  const run = connection.run.bind(connection);
  let gone: Promise<unknown> | undefined;
  return jest.spyOn(connection, 'run').mockImplementation(async (name, ...args) => {
    if (name === script) {
      gone ??= replicaOf(node).then(async (replica) => {
        await stopped(replica);
        for (const key of keys) await cluster.moveSlot(await cluster.slotOf(key), node);
      });
      await gone;
    }
    const answer = await run(name, ...args);
    if (name === script) await answered();
    return answer;
  });
}

/** Two queues of one node, and a node that the second one can go to. */
async function together(): Promise<{ from: string; to: string; source: ClusterNode; target: ClusterNode }> {
  const { from, target } = await apart();
  const source = await ownerOf(from);
  let to = from;
  while (to === from || (await ownerOf(to)) !== source) to = `to-${names++}`;
  return { from, to, source, target };
}

it('a move to a queue whose slot goes to another node meanwhile waits for a replica there', async () => {
  const { producer, inspector } = await start({ commandTimeout: 2_000 });
  const { from, to, target } = await together();
  await producer.enqueueMany(from, items(Date.now() + HOUR));
  const connection = (inspector as any).shards.connection as RedisConnection;
  const calls = goingElsewhere(connection, 'enqueue', [`${prefix}:{${to}}:due`], target);
  try {
    const moved = inspector.move(from, IDS, to);
    await expect(moved).rejects.toMatchObject({ code: 'ERR_DQ_UNAVAILABLE', maybeAccepted: true });
    await expect(moved).rejects.toThrow(/0 of 1 replicas had it within 2000 ms\. It may be in both queues\. Look when/);
  } finally {
    calls.mockRestore();
  }
  expect(await inspector.counts(from)).toMatchObject({ running: IDS.length });
  expect(await inspector.counts(to)).toMatchObject({ delayed: IDS.length });
});

it('a replica of the other node is waited for also where the driver is told by a node that has not heard of it yet that the slot is where it was', async () => {
  const { producer, inspector } = await start({ commandTimeout: 6_000 });
  const { from, to, source, target } = await together();
  await producer.enqueueMany(from, items(Date.now() + HOUR));
  const connection = (inspector as any).shards.connection as RedisConnection;
  const driver = connection.commands as Cluster;
  const key = `${prefix}:{${to}}:due`;
  const refreshes = jest.spyOn(driver, 'refreshSlotsCache').mockImplementation(() => undefined);
  const calls = goingElsewhere(connection, 'enqueue', [key], target, async () => {
    for (const one of [`${prefix}:{${from}}:due`, key])
      driver.slots[await cluster.slotOf(one)] = [`127.0.0.1:${source.port}`];
  });
  try {
    await expect(inspector.move(from, IDS, to)).rejects.toThrow(/0 of 1 replicas had it within 6000 ms/);
  } finally {
    refreshes.mockRestore();
    calls.mockRestore();
  }
  expect(await inspector.counts(from)).toMatchObject({ running: IDS.length });
  expect(await inspector.counts(to)).toMatchObject({ delayed: IDS.length });
});

it('what was lost is written once more also where nobody can say whether a replica must have it', async () => {
  const { producer, inspector } = await start({ commandTimeout: 2_000 });
  const { from, to, source, target } = await together();
  await producer.enqueueMany(from, items(Date.now() + HOUR));
  const key = `${prefix}:{${to}}:due`;
  const connection = (inspector as any).shards.connection as RedisConnection;
  const run = connection.run.bind(connection);
  let isLost = false;
  const calls = jest.spyOn(connection, 'run').mockImplementation(async (script, ...args) => {
    const answer = await run(script, ...args);
    if (script !== 'unreserve') return answer;
    // The queue has let go of them; then the other queue goes to a node that has heard nothing of them.
    await source.redis.unlink(await source.redis.keys(`${prefix}:{${to}}:*`));
    await cluster.moveSlot(await cluster.slotOf(key), target);
    await eventually(async () => expect(await producer.get(to, IDS[0]!)).toBeUndefined());
    isLost = true;
    return answer;
  });
  const ask = Reflect.get(Handover.prototype, 'demand') as Handover['demand'];
  const asked = jest.spyOn(Handover.prototype, 'demand').mockImplementation(async function (this: Handover, ...args) {
    if (isLost) throw new NotSentError();
    return ask.apply(this, args);
  });
  try {
    await expect(inspector.move(from, IDS, to)).rejects.toMatchObject({ code: 'ERR_DQ_UNAVAILABLE' });
  } finally {
    calls.mockRestore();
    asked.mockRestore();
  }
  expect(await inspector.counts(from)).toMatchObject({ delayed: 0, running: 0 });
  expect(await inspector.counts(to)).toMatchObject({ delayed: IDS.length });
});

/** A queue that is on one node, and still is when it has two shards. */
async function onOneNode(): Promise<{ queue: string; source: ClusterNode }> {
  for (;;) {
    const queue = `goes-${names++}`;
    const [source, ...others] = await Promise.all([queue, `${queue}:0`, `${queue}:1`].map(ownerOf));
    if (source && others.every((other) => other === source)) return { queue, source };
  }
}

it('another number of shards whose slots go to another node meanwhile waits for a replica there', async () => {
  const { producer, inspector } = await start({ commandTimeout: 2_000 });
  const { queue, source } = await onOneNode();
  await producer.enqueueMany(queue, items(Date.now() + HOUR));
  const target = cluster.nodes.find((node) => node !== source)!;
  const connection = (inspector as any).shards.connection as RedisConnection;
  const keys = [0, 1].map((shard) => `${prefix}:{${queue}:${shard}}:due`);
  const calls = goingElsewhere(connection, 'moveIn', keys, target);
  try {
    await expect(inspector.reshard(queue, { to: 2 })).rejects.toThrow(/0 of 1 replicas had it within 2000 ms/);
  } finally {
    calls.mockRestore();
  }
});

// The last ones: they change which node is a master.

it('what a node let go of that took over without what the target was given is written once more', async () => {
  const { producer, inspector } = await start({ commandTimeout: 30_000 });
  const from = `from-${names++}`;
  const source = await ownerOf(from);
  const replica = await replicaOf(source);
  let to = from;
  while (to === from || (await ownerOf(to)) !== source) to = `to-${names++}`;
  await producer.enqueueMany(from, items(Date.now() + HOUR));
  const connection = (inspector as any).shards.connection as RedisConnection;
  const run = connection.run.bind(connection);
  let isOver = false;
  const calls = jest.spyOn(connection, 'run').mockImplementation(async (script, ...args) => {
    const answer = await run(script, ...args);
    if (script !== 'enqueue' || isOver) return answer;
    isOver = true;
    await source.redis.unlink(await source.redis.keys(`${prefix}:{${to}}:*`));
    await source.redis.wait(1, 5_000);
    await takeOver(replica, async () => expect(await source.redis.role()).toContain('slave'));
    return answer;
  });
  try {
    const { results } = await inspector.move(from, IDS, to);
    expect(results).toEqual(IDS.map((id) => ({ id, outcome: 'moved' })));
  } finally {
    calls.mockRestore();
  }
  expect(await inspector.counts(from)).toMatchObject({ delayed: 0, running: 0 });
  expect(await inspector.counts(to)).toMatchObject({ delayed: IDS.length });
});

it('jobs that were to be taken back from a node that has lost them meanwhile stay where they were', async () => {
  const { producer, inspector } = await start({ commandTimeout: 1_000 });
  const { from, to, target, replica } = await apart();
  await producer.enqueueMany(from, items(Date.now() + HOUR));
  await stopped(replica);
  let takenOver!: () => void;
  const takesOver = new Promise<void>((resolve) => (takenOver = resolve));
  const runOf = Reflect.get(EnqueueBatcher.prototype, 'run') as EnqueueBatcher['run'];
  const calls = jest.spyOn(EnqueueBatcher.prototype, 'run').mockImplementation(async function (
    this: EnqueueBatcher,
    ...args
  ) {
    if (args[0] === 'cancel') await takesOver;
    return runOf.apply(this, args);
  });
  try {
    const moved = inspector.move(from, IDS, to);
    moved.catch(() => undefined);
    const key = `${prefix}:{${to}}:due`;
    await eventually(() => expect(calls.mock.calls.some(([script]) => script === 'cancel')).toBe(true));
    await cluster.kill(target);
    await cluster.kill(replica, 'SIGCONT');
    await takeOver(replica, async () => expect(await cluster.ownerOf(key)).toBe(replica));
    // What the socket of a stopped process still held is lost as well where a whole machine dies.
    await replica.redis.unlink(await replica.redis.keys(`${prefix}:{${to}}:*`));
    await eventually(async () => expect(await producer.get(to, IDS[0]!)).toBeUndefined(), 20_000);
    takenOver();
    await expect(moved).rejects.toThrow(/So it stays in its queue/);
  } finally {
    calls.mockRestore();
  }
  expect(await inspector.counts(from)).toMatchObject({ delayed: IDS.length, running: 0 });
});

it('a node that dies while it takes over jobs takes none along', async () => {
  const { producer, inspector } = await start();
  const { from, to, target, replica } = await apart();
  await producer.enqueueMany(from, items(Date.now() + HOUR));
  await stopped(replica);
  const moved = inspector.move(from, IDS, to).then(
    () => 'moved',
    (error: unknown) => error,
  );
  const key = `${prefix}:{${to}}:due`;
  await eventually(async () => expect(await target.redis.zcard(key)).toBe(IDS.length));
  await cluster.kill(target);
  await cluster.kill(replica, 'SIGCONT');
  await takeOver(replica, async () => expect(await cluster.ownerOf(key)).toBe(replica));
  await moved;
  for (const id of IDS) {
    const found = await eventually(async () => [await producer.get(from, id), await producer.get(to, id)], 20_000);
    expect(found.filter((job) => job !== undefined)).not.toEqual([]);
  }
});

it('what a node let go of that took over without what another shard was given is given once more', async () => {
  // The tests before it have used up the masters that have a replica.
  await cluster.stop();
  cluster = await RedisCluster.start(3, 3);
  const { inspector, producer } = await start({ commandTimeout: 5_000 });
  const { queue, source } = await onOneNode();
  const replica = await replicaOf(source);
  await producer.enqueueMany(queue, items(Date.now() + HOUR));
  const connection = (inspector as any).shards.connection as RedisConnection;
  const run = connection.run.bind(connection);
  const keysOfShards = () => Promise.all([0, 1].map((n) => source.redis.keys(`${prefix}:{${queue}:${n}}:*`)));
  const before = new Map<string, Buffer>();
  let isOver = false;
  const calls = jest.spyOn(connection, 'run').mockImplementation(async (script, ...args) => {
    if (script === 'moveIn' && before.size === 0) {
      for (const key of (await keysOfShards()).flat()) before.set(key, (await source.redis.dumpBuffer(key))!);
    }
    if (script !== 'moveOff' || isOver) return run(script, ...args);
    isOver = true;
    for (const key of (await keysOfShards()).flat()) await source.redis.unlink(key);
    for (const [key, text] of before) await source.redis.restore(key, 0, text);
    await source.redis.wait(1, 5_000);
    await takeOver(replica, async () => expect(await source.redis.role()).toContain('slave'));
    return run(script, ...args);
  });
  try {
    expect(await inspector.reshard(queue, { to: 2 })).toMatchObject({ moved: IDS.length });
  } finally {
    calls.mockRestore();
  }
  expect(isOver).toBe(true);
  const after = await start({ queues: { [queue]: { shards: 2 } } });
  expect(await after.inspector.counts(queue)).toMatchObject({ delayed: IDS.length });
});
