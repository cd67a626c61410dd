import { describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DelayedJob } from '../../../lib/index.js';
import { createApp, handlerClass } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { RedisServer } from '../../helpers/redis-server.js';
import { World } from '../../helpers/world.js';

const end = endingWithEachTest();

/** A server whose slow moments can be called up, and a worker in the middle of a hundred jobs. */
async function working() {
  // So that it answers now and then while it loads.
  const config = { 'loading-process-events-interval-bytes': '1024' };
  const server = end(
    // Before 7.0 nothing has to be permitted.
    await RedisServer.start({ config: { ...config, 'enable-debug-command': 'yes' } }).catch(() =>
      RedisServer.start({ config }),
    ),
  );
  const world = end(await World.open(server.url));
  const starts = new Map<string, number>();
  const log: string[] = [];
  const handle = async (_: unknown, { id }: DelayedJob) => {
    starts.set(id, (starts.get(id) ?? 0) + 1);
    await sleep(20);
  };
  const handlers = handlerClass('work', handle, { concurrency: 5, lease: '1s' });
  const { producer, inspector } = end(await createApp(world, { providers: [handlers], log }));
  const items = Array.from({ length: 100 }, (_, n) => ({ payload: 'x'.repeat(100) + n }));
  await producer.enqueueMany('work', items);
  await eventually(() => expect(starts.size).toBeGreaterThan(10));

  const everyJobRanOnce = async (jobs: number) => {
    await eventually(
      async () => expect(await inspector.totals('work')).toMatchObject({ completed: jobs, failed: 0 }),
      15_000,
    );
    expect(starts.size).toBe(jobs);
    expect(new Set(starts.values())).toEqual(new Set([1]));
    expect(await world.violations('work')).toEqual([]);
    expect(log.filter((line) => line.startsWith('error'))).toEqual([]);
  };
  const other = new Redis(server.url, { retryStrategy: () => null });
  end({ close: async () => other.disconnect() });
  return { world, other, producer, everyJobRanOnce };
}

const refusal = (redis: Redis) => redis.exists('anything').then(String, (error: Error) => error.message.split(' ')[0]);

describe('A Redis that is busy with itself', () => {
  it('because of a script of somebody else (BUSY) is waited for', async () => {
    const { world, other, producer, everyJobRanOnce } = await working();
    await world.redis.config('SET', 'lua-time-limit', 50);
    const endless = other.eval('while true do end', 0).catch((error: Error) => error.message);
    await eventually(async () => expect(await refusal(world.redis)).toBe('BUSY'));
    const enqueued = producer.enqueue('work', {});
    await sleep(1_500);
    await world.redis.script('KILL');

    expect(await endless).toMatch(/kill/i);
    expect(await enqueued).toMatchObject({ outcome: 'created' });
    await everyJobRanOnce(101);
  });

  it.each([0, 2])('because of a script of somebody else is waited for at boot, in database %d', async (database) => {
    const server = end(await RedisServer.start({ config: { 'lua-time-limit': '1' } }));
    const world = end(await World.open(server.url));
    const other = new Redis(server.url, { retryStrategy: () => null });
    end({ close: async () => other.disconnect() });
    const endless = other.eval('while true do end', 0).catch((error: Error) => error.message);
    await eventually(async () => expect(await refusal(world.redis)).toBe('BUSY'));
    const log: string[] = [];
    const connection = `${server.url}/${database}`;
    const boot = createApp(world, { options: { connection, connectTimeout: '60s' }, log }).then(end);
    const refused = boot.then(
      () => undefined,
      (error: Error) => error,
    );
    // It tells what it waits for, or ends.
    await Promise.race([refused, eventually(() => expect(log.join()).toMatch(/BUSY|not reachable/), 20_000)]);
    await world.redis.script('KILL');

    expect(await endless).toMatch(/kill/i);
    const { producer } = await boot;
    expect(await producer.enqueue('work', {})).toMatchObject({ outcome: 'created' });
  });

  it('because it loads its data (LOADING) is waited for', async () => {
    const { world, other, producer, everyJobRanOnce } = await working();
    await world.redis.config('SET', 'key-load-delay', 150_000);
    const reloaded = other.call('DEBUG', 'RELOAD');
    await eventually(async () => expect(await refusal(world.redis)).toBe('LOADING'));
    const enqueued = producer.enqueue('work', {});

    expect(await reloaded).toBe('OK');
    expect(await enqueued).toMatchObject({ outcome: 'created' });
    await everyJobRanOnce(101);
  });
});
