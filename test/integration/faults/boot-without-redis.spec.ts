import { describe, expect, it } from '@jest/globals';
import { DelayQueueHealth } from '../../../lib/index.js';
import { createApp, handlerClass } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { RedisServer } from '../../helpers/redis-server.js';
import { World } from '../../helpers/world.js';
import { waiting } from '../../helpers/waiting.js';

const end = endingWithEachTest();

/** A world whose Redis is down. */
async function darkWorld() {
  const server = end(await RedisServer.start({ appendfsync: 'always' }));
  const world = await World.open(server.url);
  end({ close: async () => world.redis.disconnect() });
  await server.kill();
  return { server, world };
}

describe('An application that boots while Redis is down', () => {
  it('eagerly fails after connectTimeout, naming host and port', async () => {
    const { server, world } = await darkWorld();
    const since = performance.now();
    const waited = waiting();
    const booting = createApp(world, { options: { connectTimeout: 600 } });
    await expect(booting).rejects.toMatchObject({
      code: 'ERR_DQ_UNAVAILABLE',
      message: expect.stringContaining(`127.0.0.1:${server.port}`),
    });
    expect(performance.now() - since).toBeGreaterThan(500);
    expect(waited()).toBeLessThan(3_000);
  });

  it('eagerly goes on when Redis comes up in time', async () => {
    const { server, world } = await darkWorld();
    const booting = createApp(world, { options: { connectTimeout: '10s' } });
    await server.restart();
    const { producer } = end(await booting);
    expect(await producer.enqueue('mail', {})).toMatchObject({ outcome: 'created' });
  });

  it('lazily boots, says down, and works once Redis is there', async () => {
    const { server, world } = await darkWorld();
    const runs: unknown[] = [];
    const { app, producer } = end(
      await createApp(world, {
        providers: [handlerClass('mail', (payload) => runs.push(payload))],
        options: { connect: 'lazy', commandTimeout: 1_500 },
      }),
    );
    const health = app.get(DelayQueueHealth);
    expect(await health.check()).toMatchObject({ status: 'down', redis: { status: 'down' } });
    await expect(producer.enqueue('mail', 'lost')).rejects.toMatchObject({ maybeAccepted: false });

    await server.restart();
    await eventually(async () => expect((await health.check()).status).toBe('up'), 10_000);
    await producer.enqueue('mail', 'kept');
    await eventually(() => expect(runs).toEqual(['kept']));
  });

  it('lazily can be stopped again before it ever saw Redis', async () => {
    const { world } = await darkWorld();
    const lazy = await createApp(world, {
      providers: [handlerClass('mail', () => undefined)],
      options: { connect: 'lazy', drainTimeout: 200, commandTimeout: 200 },
    });
    await expect(lazy.close()).resolves.toBeUndefined();
  });
});
