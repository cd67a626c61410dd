import { expect } from '@jest/globals';
import type { DelayedJob, HandlerOptions } from '../../lib/index.js';
import { groupNumber } from '../../lib/job/place.js';
import { shardOf } from '../../lib/shards/shard-hash.js';
import { handlerClass } from './app.js';
import type { InAWorld } from './in-a-world.js';
import type { World } from './world.js';

/** A group of our own for one shard. */
export function groupIn(shard: number, count: number, start = 'group'): string {
  for (let n = 0; ; n++) if (groupNumber(`${start}${n}`) % count === shard) return `${start}${n}`;
}

/** An id of our own for one shard. */
export function idIn(shard: number, count: number, start = 'id'): string {
  for (let n = 0; ; n++) if (shardOf(`${start}${n}`, count) === shard) return `${start}${n}`;
}

export const nameOfShard = (queue: string, shard: number, count: number) => (count === 1 ? queue : `${queue}:${shard}`);

/** What is wrong in any of these shards. */
export async function problemsOf(world: World, queue: string, count: number): Promise<string[]> {
  const all = Array.from({ length: count }, async (_, shard) => {
    const name = nameOfShard(queue, shard, count);
    return (await world.problems(name)).map((problem) => `${name}: ${problem}`);
  });
  return (await Promise.all(all)).flat();
}

/** The ids of the jobs of each shard. */
export async function idsByShard(world: World, queue: string, count: number): Promise<string[][]> {
  const names = Array.from({ length: count }, (_, shard) => world.key(nameOfShard(queue, shard, count), 'jobs'));
  return Promise.all(names.map(async (key) => (await world.redis.hkeys(key)).sort()));
}

export interface HeldJob {
  readonly id: string;
  readonly group: string | undefined;
  readonly end: () => void;
}

/** Some applications as so many processes, whose handlers hold each job until it is told to end. */
export async function fleetOf(
  here: InAWorld,
  size: number,
  queue: string,
  shards: number | undefined,
  options: HandlerOptions,
) {
  const running = new Map<string, HeldJob>();
  const started: string[] = [];
  const handle = (_: unknown, { id, group }: DelayedJob) =>
    new Promise<void>((resolve) => {
      started.push(id);
      running.set(id, { id, group, end: () => (running.delete(id), resolve()) });
    });
  const apps = await Promise.all(
    Array.from({ length: size }, () =>
      here.start({
        providers: [handlerClass(queue, handle, options)],
        options: { drainTimeout: 0, ...(shards !== undefined && { queues: { [queue]: { shards } } }) },
      }),
    ),
  );
  const endAll = () => [...running.values()].forEach(({ end }) => end());
  return { ...apps[0]!, apps, running, started, endAll };
}

/** How many jobs each shard runs. */
export async function runningIn(world: World, queue: string, count: number): Promise<number[]> {
  const keys = Array.from({ length: count }, (_, shard) => world.key(nameOfShard(queue, shard, count), 'running'));
  return Promise.all(keys.map((key) => world.redis.zcard(key)));
}

export const isRejected = async (call: Promise<unknown>, message: string) => {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown as Error,
  );
  expect(error?.message).toContain(message);
  return error!;
};
