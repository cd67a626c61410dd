import { afterEach, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { DelayQueueHealth, DelayQueueModule } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { startSentinel } from '../../../tools/redis-sentinel.mjs';
import { Tether } from '../../../tools/tether.mjs';

const here = inAWorld({});
const end = endingWithEachTest();
const user = (...rights: string[]) =>
  here.world.redis.call('ACL', 'SETUSER', 'app', 'on', '>secret', '~*', '&*', '+@all', ...rights);
const at = (database: number | string, who = '') => here.world.url.replace('://', `://${who}`) + `/${database}`;
const APP = 'app:secret@';
/** In database 0, to which every connection belongs that could not select its own. */
const strays = () => here.world.redis.keys(`${here.world.prefix}:*`);
/** With another connection it is asked anew which database may be selected. */
const cutAll = () => here.world.redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');

afterEach(async () => {
  const found = await strays();
  if (found.length > 0) throw new Error(`Written to database 0: ${found.join(', ')}`);
  await here.world.redis.call('ACL', 'DELUSER', 'app');
  await here.world.redis.flushall();
});

it.each([
  ['the server does not have', () => at(99), /select(ed)? .*DB index is out of range.* no other one is used/],
  ['the user may not select', () => at(3, APP), /NOPERM.*\+select/],
])('a database that %s is refused at boot, and nothing is written to another one', async (_, url, message) => {
  await user('-select');
  const runs: unknown[] = [];
  const boot = here.start({
    providers: [handlerClass('mail', (payload) => void runs.push(payload))],
    options: { connection: url(), connectTimeout: '60s' },
  });
  await expect(boot).rejects.toMatchObject({ code: 'ERR_DQ_CONNECTION', reason: 'database', retryable: false });
  await expect(boot).rejects.toThrow(message);
  await expect(boot).rejects.not.toThrow('secret');
  expect(runs).toEqual([]);
  await eventually(async () => expect(await here.world.clientNames()).toEqual([]));
});

it('the log of the boot tells the database, which must be the same where jobs are made', async () => {
  await user();
  const log: string[] = [];
  const places = [['two', at(2, APP)] as const, ['memory', 'memory://'] as const];
  for (const [name, connection] of places) {
    await here.start({ providers: [handlerClass(name, () => undefined)], options: { connection }, log });
  }
  const waiting = log.filter((line) => line.includes('Waiting for jobs of'));
  const [host, prefix] = [new URL(here.world.url).host, here.world.prefix];
  expect(waiting.map((line) => line.replace(/^.*\) at /, '').replace(/ DelayQueue$/, ''))).toEqual([
    `${host}, database 2, prefix "${prefix}".`,
    `memory://, prefix "${prefix}".`,
  ]);
  expect(log.join()).not.toContain('secret');
});

it("a database of the application's own client is refused as well", async () => {
  const client = end(new RedisAtHome(here.world.url, { db: 99, lazyConnect: true }));
  const boot = here.start({ options: { connection: client } });
  await expect(boot).rejects.toMatchObject({ code: 'ERR_DQ_CONNECTION', reason: 'database' });
});

it('a database of the master that Sentinels name is refused as well', async () => {
  const tether = await Tether.open();
  end({ stop: () => tether.close() });
  const settings = { name: 'jobs', masterPort: here.server.port, downAfterMs: 10_000, failoverTimeoutMs: 30_000 };
  const sentinels = [{ host: '127.0.0.1', port: await startSentinel(tether, settings) }];
  const boot = here.start({ options: { connection: { sentinels, name: 'jobs', db: 99 }, connectTimeout: '60s' } });
  await expect(boot).rejects.toMatchObject({ code: 'ERR_DQ_CONNECTION', reason: 'database' });
});

it('connected to lazily, it is logged once, health is down by its name, and jobs run there once it can be selected', async () => {
  await user('-select');
  const runs: unknown[] = [];
  const log: string[] = [];
  const { app, producer } = await here.start({
    providers: [handlerClass('mail', (payload) => void runs.push(payload))],
    options: { connection: at(3, APP), connect: 'lazy', commandTimeout: 500 },
    log,
  });
  const health = app.get(DelayQueueHealth);
  await eventually(async () => {
    expect(await health.check()).toMatchObject({
      status: 'down',
      reasons: [expect.stringMatching(/database 3.*NOPERM/)],
    });
  });
  await expect(producer.enqueue('mail', 1)).rejects.toMatchObject({ code: 'ERR_DQ_UNAVAILABLE', maybeAccepted: false });
  await cutAll();
  await expect(producer.enqueue('mail', 2)).rejects.toMatchObject({ maybeAccepted: false });
  expect(log.filter((line) => line.includes('database 3 be selected'))).toHaveLength(1);
  expect(await strays()).toEqual([]);

  await user('+select');
  await eventually(async () => expect((await health.check()).status).toBe('up'), 10_000);
  await producer.enqueue('mail', 3);
  await eventually(() => expect(runs).toEqual([3]));
  expect(await strays()).toEqual([]);
});

it('with each new connection it is selected before anything is sent', async () => {
  await user();
  const runs: unknown[] = [];
  const log: string[] = [];
  const { producer } = await here.start({
    providers: [handlerClass('mail', (payload) => void runs.push(payload))],
    options: { connection: at(3, APP), commandTimeout: 500 },
    log,
  });
  await producer.enqueue('mail', 1);
  await eventually(() => expect(runs).toEqual([1]));

  await user('-select');
  await cutAll();
  await eventually(() => expect(log).toContainEqual(expect.stringMatching(/^error .*database 3/)));
  await expect(producer.enqueue('mail', 2)).rejects.toMatchObject({ maybeAccepted: false });
  // Jobs that must be durable go over a connection of their own, which is opened for the first of them.
  const durable = producer.enqueue('mail', 3, { durability: { replicas: 1, timeout: 10 } });
  await expect(durable).rejects.toMatchObject({ maybeAccepted: false });
  expect(await strays()).toEqual([]);

  await user('+select');
  // Some calls may reach Redis and be cut off before their answers.
  await eventually(async () => await producer.enqueue('mail', 4, { id: 'd', uniqueFor: '1h' }), 10_000);
  await eventually(() => expect(runs).toContain(4));
  expect(runs).toEqual([1, 4]);
});

it.each(['abc', '1x', '1.5', '-1'])('"%s" is no database', async (database) => {
  const boot = here.start({ options: { connection: at(database) } });
  await expect(boot).rejects.toMatchObject({ code: 'ERR_DQ_INVALID_OPTION' });
  await expect(boot).rejects.toThrow('is no database');
});

it.each([
  { cluster: [{ host: 'a' }], redisOptions: { db: 3 } },
  { cluster: ['redis://a:6379/3'] },
  { cluster: [{ host: 'a', db: 3 }] },
])('a Cluster has no other database than 0: %j', async (connection) => {
  const boot = here.boot({ imports: [DelayQueueModule.forRoot({ connection: connection as never })] });
  await expect(boot).rejects.toMatchObject({ code: 'ERR_DQ_INVALID_OPTION' });
  await expect(boot).rejects.toThrow('a Cluster has database 0 only');
});

/** As an application has one. */
class RedisAtHome extends Redis {
  async close(): Promise<void> {
    this.disconnect();
  }
}
