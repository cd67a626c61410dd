import { afterEach, describe, expect, it } from '@jest/globals';
import { DelayQueueInspector, fixed } from '../../../lib/index.js';
import type { DelayQueueRootOptions, UnavailableError } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import type { Proxy } from '../../helpers/proxy.js';
import { withoutCommand } from '../../helpers/renamed-command.js';
import { waiting } from '../../helpers/waiting.js';

const here = inAWorld({});
let queues = 0;

async function worker(options: DelayQueueRootOptions) {
  const queue = `r${queues++}`;
  const log: string[] = [];
  const ran: string[] = [];
  const handler = handlerClass(queue, (_, job) => void ran.push(job.id), { lease: '1s', backoff: fixed(0) });
  const app = await here.start({ providers: [handler], options: { startupChecks: 'off', ...options }, log });
  const ranAll = (count: number) => eventually(() => expect(ran).toHaveLength(count), 10_000);
  return { ...app, queue, ran, ranAll, warnings: () => log.filter((line) => /^(warn|error)/.test(line)) };
}

it('a user without permission for channels could not enqueue, and no job ran', async () => {
  await here.world.redis.call('ACL', 'SETUSER', 'app', 'reset', 'on', '>secret', '~*', '+@all');
  const url = new URL(here.world.url);
  [url.username, url.password] = ['app', 'secret'];
  const { producer, queue, ran, ranAll, warnings } = await worker({ connection: url.toString() });
  for (const [n, id] of ['one', 'two', 'three'].entries()) {
    expect(await producer.enqueue(queue, {}, { id })).toMatchObject({ outcome: 'created' });
    await ranAll(n + 1);
  }
  expect(ran).toEqual(['one', 'two', 'three']);
  expect(warnings()).toHaveLength(1);
  expect(warnings()[0]).toMatch(/may not subscribe/);
});

describe('wake-ups that the server refuses made jobs late without a word', () => {
  const may = /The user at .* may not (subscribe|publish) to .*: jobs start up to 5 s late\..*"A user of its own"/;
  const knows = /Redis at .* does not know (SUBSCRIBE|PUBLISH): jobs start up to 5 s late\..*"A user of its own"/;
  let proxy: Proxy | undefined;
  afterEach(() => proxy?.close());

  async function urlWithout(permission: string): Promise<string> {
    await here.world.redis.call('ACL', 'SETUSER', 'app', 'reset', 'on', '>secret', '~*', '&*', '+@all', permission);
    const url = new URL(here.world.url);
    [url.username, url.password] = ['app', 'secret'];
    return url.toString();
  }
  async function urlRenaming(command: string): Promise<string> {
    proxy = await withoutCommand(here.world.url, command);
    return proxy.url;
  }

  it.each<[string, RegExp, () => Promise<string>]>([
    ['SUBSCRIBE is not permitted', may, () => urlWithout('-subscribe')],
    ['PUBLISH is not permitted', may, () => urlWithout('-publish')],
    ['SUBSCRIBE is renamed', knows, () => urlRenaming('subscribe')],
    ['PUBLISH is renamed', knows, () => urlRenaming('publish')],
  ])('%s', async (_, warning, urlOf) => {
    const { producer, queue, ranAll, warnings } = await worker({ connection: await urlOf() });
    await eventually(() => expect(warnings()).toHaveLength(1), 5_000);
    expect(warnings()[0]).toMatch(warning);
    await producer.enqueue(queue, {});
    await ranAll(1);
    expect(warnings()).toHaveLength(1);
  });
});

describe('options of the driver in `connection` changed what our calls mean', () => {
  const { hostname, port } = { hostname: '127.0.0.1', port: () => here.server.port };
  it.each<[string, () => DelayQueueRootOptions['connection']]>([
    ['as an object', () => ({ host: hostname, port: port(), commandTimeout: 300, stringNumbers: true })],
    ['in the query of a URL', () => `redis://${hostname}:${port()}?commandTimeout=300&stringNumbers=true`],
  ])('%s', async (_, connection) => {
    const { producer, app, queue, ranAll, warnings } = await worker({ connection: connection() });
    const inspector = app.get(DelayQueueInspector);
    await producer.enqueue(queue, {}, { id: 'later', delay: '1h' });
    expect(await inspector.counts(queue)).toMatchObject({ delayed: 1, due: 0, running: 0, paused: false, lagMs: 0 });
    await inspector.pause(queue);
    expect((await inspector.counts(queue)).paused).toBe(true);
    await inspector.resume(queue);

    await here.world.redis.client('PAUSE', 1_000, 'ALL');
    const since = performance.now();
    expect(await producer.enqueue(queue, {}, { id: 'slow' })).toMatchObject({ outcome: 'created' });
    expect(performance.now() - since).toBeGreaterThan(500); // the answer was that slow
    await ranAll(1);
    expect(warnings()).toEqual([]);
  });
});

describe('a master that refuses writes for want of replicas', () => {
  afterEach(() => here.world.redis.config('SET', 'min-replicas-to-write', '0'));

  it('was named neither in a line of the log nor in the error of an enqueue', async () => {
    const { producer, queue, ranAll, warnings } = await worker({ commandTimeout: '1s' });
    await producer.enqueue(queue, {}, { id: 'before' });
    await ranAll(1);
    await here.world.redis.config('SET', 'min-replicas-to-write', '1');
    const error = await producer.enqueue(queue, {}).then(
      () => undefined,
      (reason: UnavailableError) => reason,
    );
    expect(error).toMatchObject({ code: 'ERR_DQ_UNAVAILABLE' });
    expect(error!.message).toMatch(/NOREPLICAS/);
    expect(warnings()).toHaveLength(1);
    expect(warnings()[0]).toMatch(/NOREPLICAS/);
    await here.world.redis.config('SET', 'min-replicas-to-write', '0');
    await producer.enqueue(queue, {});
    await ranAll(2);
    expect(warnings()).toHaveLength(1);
  });
});

describe('while the server was gone', () => {
  afterEach(() => here.server.restart());

  it('an idle worker took all of commandTimeout to close', async () => {
    const { producer, queue, ranAll, warnings, close } = await worker({ commandTimeout: '10s' });
    await producer.enqueue(queue, {});
    await ranAll(1);
    await eventually(async () => expect((await here.world.read(queue)).running).toEqual({})); // it is idle now
    await here.server.kill();
    await eventually(() => expect(warnings().join()).toMatch(/not reachable/));
    const waited = waiting();
    await close();
    expect(waited()).toBeLessThan(4_000);
  });
});
