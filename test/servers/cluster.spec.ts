import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { DelayQueueRootOptions } from '../../lib/index.js';
import { createApp } from '../helpers/app.js';
import { RedisCluster } from '../helpers/cluster.js';
import { endingWithEachTest } from '../helpers/ending.js';
import { eventually } from '../helpers/eventually.js';
import { WorkerProcess } from '../helpers/worker-process.js';
import type { World } from '../helpers/world.js';
import { Load, notRun, report } from './load.js';

const ends = endingWithEachTest();
const SHARDS = 8;
const world = { prefix: `t${randomBytes(6).toString('hex')}` } as World;
let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await RedisCluster.start(3, 3);
});
afterAll(() => cluster?.stop());

const options = (queue: string): DelayQueueRootOptions => ({
  connection: cluster.connection,
  queues: { [queue]: { shards: SHARDS } },
  drainTimeout: 0,
});
const producing = async (queue: string) => ends(await createApp(world, { options: { ...options(queue), consume: false } })); // prettier-ignore
const worker = async (queue: string) =>
  ends(await WorkerProcess.start(world, { queue, handler: { lease: '2s' }, options: options(queue) }));
const dueKey = (queue: string, shard: number) => `${world.prefix}:{${queue}:${shard}}:due`;

it('slots that move under load lose no job and run none twice', async () => {
  const queue = 'moved';
  const { producer, inspector } = await producing(queue);
  const workers = [await worker(queue), await worker(queue)];
  const load = ends(new Load(producer, queue));
  let moves = 0;
  for (let round = 0; round < 3; round++) {
    for (let shard = 0; shard < SHARDS; shard++) {
      const slot = await cluster.slotOf(dueKey(queue, shard));
      const owner = await cluster.ownerOf(dueKey(queue, shard));
      await cluster.moveSlot(slot, cluster.nodes[(cluster.nodes.indexOf(owner) + 1) % 3]!);
      moves++;
    }
    await load.more(200);
  }
  await load.finish();
  expect(load.refused).toEqual([]);
  await eventually(() => expect(notRun(load, workers)).toEqual([]), 30_000);
  await eventually(async () => {
    const jobs = load.acknowledged.size;
    expect(await inspector.totals(queue)).toMatchObject({ enqueued: jobs, completed: jobs, failed: 0, dead: 0 });
  });
  const starts = workers.flatMap((process) => process.of('start'));
  expect(starts).toHaveLength(load.acknowledged.size);
  report(`Cluster, ${moves} slots moved: ${load.acknowledged.size} jobs, each run once; ${load.longestGapMs} ms without an acknowledgement`); // prettier-ignore
});

it('a master that is killed under load loses no job that its replica had acknowledged', async () => {
  const queue = 'promoted';
  const { producer, inspector } = await producing(queue);
  const workers = [await worker(queue), await worker(queue)];
  const load = ends(new Load(producer, queue, { replicas: 1, timeout: '1s' }));
  await load.more(500);
  const victim = await cluster.ownerOf(dueKey(queue, 0));
  await cluster.kill(victim);
  await eventually(async () => {
    if ((await cluster.ownerOf(dueKey(queue, 0))) === victim) throw new Error('nobody took over yet');
  });
  await cluster.restart(victim); // as a replica, so that its successor has somebody to vouch for it
  await load.more(500);
  await load.finish();
  expect(load.refused).toEqual([]);
  await eventually(() => expect(notRun(load, workers)).toEqual([]), 30_000);
  await eventually(async () => expect(await inspector.counts(queue)).toMatchObject({ due: 0, running: 0, dead: 0 }));
  report(`Cluster, master killed: ${load.acknowledged.size} jobs, none of them lost; ${load.longestGapMs} ms without an acknowledgement`); // prettier-ignore
});
