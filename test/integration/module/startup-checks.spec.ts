import { setTimeout } from 'node:timers/promises';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { DelayQueueLogger } from '../../../lib/delay-queue.logger.js';
import { DelayQueueHealth, UnsafeServerError } from '../../../lib/index.js';
import type { DelayQueueRootOptions } from '../../../lib/index.js';
import { watchForShutdownHooks } from '../../../lib/worker/shutdown-hooks.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { withoutCommand } from '../../helpers/renamed-command.js';

const here = inAWorld({});
const setting = (name: string, value: string) => here.world.redis.config('SET', name, value);

afterEach(async () => {
  await setting('maxmemory-policy', 'noeviction');
  await setting('appendonly', 'no');
});

/** What an application warned of at boot. */
async function warnings(options: DelayQueueRootOptions = {}): Promise<string[]> {
  const log: string[] = [];
  const { producer, close } = await here.start({ options: { consume: false, ...options }, log });
  await producer.enqueue('checks', {}, { delay: '1h' });
  // Connected lazily, the check runs beside everything else.
  if (options.connect === 'lazy') {
    await eventually(() => {
      if (warned(log).length === 0) throw new Error('It has not warned yet.');
    });
  }
  await close();
  return warned(log);
}

const warned = (log: string[]) => log.filter((line) => /^(warn|error)/.test(line));

describe('a server that evicts jobs', () => {
  it.each(['allkeys-lru', 'allkeys-lfu', 'allkeys-random'])('is refused: %s', async (policy) => {
    await setting('maxmemory-policy', policy);
    const boot = here.start();
    await expect(boot).rejects.toBeInstanceOf(UnsafeServerError);
    await expect(boot).rejects.toMatchObject({ code: 'ERR_DQ_UNSAFE_SERVER', retryable: false });
    await expect(boot).rejects.toThrow(`127.0.0.1:${here.server.port} has maxmemory-policy ${policy}`);
    await eventually(async () => expect(await here.world.clientNames()).toEqual([]));
  });

  // What has a TTL is what the library remembers of its calls: a repeated enqueue made a second job without it.
  it.each(['volatile-lru', 'volatile-lfu', 'volatile-random', 'volatile-ttl'])(
    'is refused, with and without a limit of its memory: %s',
    async (policy) => {
      await setting('maxmemory-policy', policy);
      for (const limit of ['0', '1gb']) {
        await setting('maxmemory', limit);
        const boot = here.start();
        await expect(boot).rejects.toMatchObject({ code: 'ERR_DQ_UNSAFE_SERVER', retryable: false });
        await expect(boot).rejects.toThrow(`has maxmemory-policy ${policy}, which deletes keys with a TTL`);
        await expect(boot).rejects.toThrow('CONFIG SET maxmemory-policy noeviction');
      }
      await setting('maxmemory', '0');
    },
  );

  it.each([
    ['allkeys-lru', 'which deletes jobs'],
    ['volatile-lru', 'so that a repeated one makes a second job'],
  ])("is a warning with startupChecks: 'warn', and when it is connected to lazily: %s", async (policy, why) => {
    await setting('maxmemory-policy', policy);
    await setting('appendonly', 'yes');
    const expected = [expect.stringMatching(`has maxmemory-policy ${policy}.*${why}`)];
    expect(await warnings({ startupChecks: 'warn' })).toEqual(expected);
    expect(await warnings({ connect: 'lazy' })).toEqual(expected);
  });

  it("is nobody's business with startupChecks: 'off'", async () => {
    await setting('maxmemory-policy', 'allkeys-lru');
    expect(await warnings({ startupChecks: 'off' })).toEqual([]);
  });
});

it('a server that keeps nothing on disk is a warning', async () => {
  expect(await warnings()).toEqual([
    expect.stringContaining('has no append-only file, no snapshot since it started and no replica'),
  ]);
  await setting('appendonly', 'yes');
  expect(await warnings()).toEqual([]);
});

it('a server that does not permit INFO is one warning, and everything works', async () => {
  const driver = jest.spyOn(console, 'warn').mockImplementation(() => undefined); // ioredis has its own say.
  await here.world.redis.call('ACL', 'SETUSER', 'app', 'on', '>secret', '~*', '&*', '+@all', '-info');
  const runs: unknown[] = [];
  const log: string[] = [];
  const { app, producer } = await here.start({
    providers: [handlerClass('no-info', (payload) => void runs.push(payload))],
    options: { connection: here.world.url.replace('://', '://app:secret@') },
    log,
  });
  await producer.enqueue('no-info', 1);
  await eventually(() => expect(runs).toEqual([1]));
  expect((await app.get(DelayQueueHealth).check()).status).toBe('up');
  expect(warned(log)).toEqual([expect.stringMatching(/INFO .* cannot be read.*NOPERM/)]);
  expect(warned(log)[0]).not.toContain('secret');
  driver.mockRestore();
});

it('a server without INFO (renamed) did not boot; it is one warning, and everything works', async () => {
  const server = await withoutCommand(here.world.url, 'info');
  try {
    const runs: unknown[] = [];
    const log: string[] = [];
    const { app, producer, close } = await here.start({
      providers: [handlerClass('no-info', (payload) => void runs.push(payload))],
      options: { connection: server.url, connectTimeout: '20s' },
      log,
    });
    await producer.enqueue('no-info', 1);
    await eventually(() => expect(runs).toEqual([1]));
    expect((await app.get(DelayQueueHealth).check()).status).toBe('up');
    expect(warned(log)).toEqual([expect.stringMatching(/INFO .* cannot be read.*unknown command/)]);
    await close();
  } finally {
    await server.close();
  }
});

describe('a queue that a newer library wrote', () => {
  it('is refused at boot', async () => {
    await here.world.redis.hset(here.world.key('refused', 'meta'), 'layout', '3');
    const boot = here.start({ providers: [handlerClass('refused', () => undefined)] });
    await expect(boot).rejects.toMatchObject({ code: 'ERR_DQ_LAYOUT' });
    await here.start({ providers: [handlerClass('other', () => undefined)] });
  });

  it('meanwhile, is left alone by a worker, which says so once', async () => {
    const meta = here.world.key('newer', 'meta');
    const runs: string[] = [];
    const log: string[] = [];
    const handler = handlerClass('newer', (_, { id }) => void runs.push(id));
    const { app, producer } = await here.start({ providers: [handler], log });
    await producer.enqueue('newer', {}, { id: 'a', delay: 500 });
    await here.world.redis.hset(meta, 'layout', '3');
    const logged = () => log.filter((line) => /^error.*layout 3 is newer than 2.*Upgrade/.test(line));
    await eventually(() => expect(logged()).toHaveLength(1));
    expect(await app.get(DelayQueueHealth).check()).toMatchObject({
      status: 'degraded',
      reasons: [expect.stringContaining('layout 3 is newer than 2')],
      redis: { status: 'up' },
    });
    expect(runs).toEqual([]);
    expect(Object.keys((await here.world.read('newer')).due)).toEqual(['a']);

    await here.world.redis.hset(meta, 'layout', '2');
    await eventually(() => expect(runs).toEqual(['a']));
    expect(logged()).toHaveLength(1);
  });
});

describe('shutdown hooks', () => {
  const SIGNALS = /Nobody listens for SIGTERM: call app\.enableShutdownHooks\(\)/;

  it('that are not enabled are a warning, 5 s after bootstrap', async () => {
    const log: string[] = [];
    const providers = [handlerClass('hooks', () => undefined)];
    await here.start({ providers, options: { shutdownHooksWarning: true }, log });
    expect(log).not.toContainEqual(expect.stringMatching(SIGNALS));
    await eventually(() => expect(log).toContainEqual(expect.stringMatching(SIGNALS)), 10_000);
  });

  it('that are enabled are none, nor is an application that ended before', async () => {
    Logger.overrideLogger(false); // that of the application before
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const onSignal = () => undefined;
    process.on('SIGTERM', onSignal);
    watchForShutdownHooks(new DelayQueueLogger('test'), 1);
    await setTimeout(20);
    process.off('SIGTERM', onSignal);
    watchForShutdownHooks(new DelayQueueLogger('test'), 1)();
    await setTimeout(20);
    expect(warn).not.toHaveBeenCalled();
    watchForShutdownHooks(new DelayQueueLogger('test'), 1);
    await eventually(() => expect(warn).toHaveBeenCalledWith(expect.stringMatching(SIGNALS)));
    warn.mockRestore();
  });
});
