import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import type { Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { ConnectionError, DelayQueueHealth, DelayQueueModule } from '../../../lib/index.js';
import type { ConnectionOption, DelayQueueRootOptions } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { withoutCommand } from '../../helpers/renamed-command.js';
import { RedisServer } from '../../helpers/redis-server.js';

const PASSWORD = 'correct-horse';
const WRONG = 'battery-staple';
const here = inAWorld({});
const end = endingWithEachTest();
let locked: RedisServer;
let encrypted: { port: number; ca: string };
let folder: string;
const own: RedisServer[] = [];

beforeAll(async () => {
  jest.spyOn(console, 'warn').mockImplementation(() => undefined); // ioredis has its own say.
  own.push((locked = await RedisServer.start({ config: { requirepass: PASSWORD } })));
  folder = mkdtempSync(join(tmpdir(), 'refused-'));
  const file = (name: string) => join(folder, name);
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-keyout', file('key.pem'), '-out', file('cert.pem'), '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'], { stdio: 'ignore' }); // prettier-ignore
  // Its plain port is only for those who start and stop it.
  const server = await RedisServer.start({ config: { 'tls-cert-file': file('cert.pem'), 'tls-key-file': file('key.pem'), 'tls-ca-cert-file': file('cert.pem'), 'tls-auth-clients': 'no', 'tls-port': '0' } }); // prettier-ignore
  own.push(server);
  encrypted = { port: await tlsPortOf(server), ca: readFileSync(file('cert.pem'), 'utf8') };
});

afterAll(async () => {
  await Promise.all(own.map((server) => server.stop()));
  rmSync(folder, { recursive: true });
});

/** Asked for when it runs, so that nobody takes the port meanwhile. */
async function tlsPortOf(server: RedisServer): Promise<number> {
  const { Redis } = await import('ioredis');
  const client = new Redis(server.url, { lazyConnect: true });
  await client.connect();
  const { freePort } = await import('../../../tools/free-port.mjs');
  const port = await freePort();
  await client.config('SET', 'tls-port', String(port));
  client.disconnect();
  return port;
}

/** Waiting for the whole of `connectTimeout` would take longer than a test may. */
function boot(connection: ConnectionOption, options: DelayQueueRootOptions = {}) {
  const root = DelayQueueModule.forRoot({ connection, prefix: here.world.prefix, connectTimeout: '10m', ...options });
  const providers = [handlerClass('mail', () => undefined)];
  return here.boot({ imports: [root], providers }).then(
    () => Promise.reject(new Error('It booted.')),
    (error: unknown) => error as ConnectionError,
  );
}

const withUser = (server: RedisServer, user: string) => server.url.replace('://', `://${user}@`);

describe('at boot, without waiting for connectTimeout, it is said of', () => {
  it.each<[string, () => ConnectionOption, ConnectionError['reason'], RegExp]>([
    ['a wrong password', () => withUser(locked, `:${WRONG}`), 'credentials', /does not accept the user or the password.*WRONGPASS/], // prettier-ignore
    ['a user that there is not', () => withUser(locked, `nobody:${PASSWORD}`), 'credentials', /WRONGPASS/],
    ['a password that is missing', () => locked.url, 'credentials', /wants a password, and `connection` gives none/],
    ['a client that speaks TLS to a plain port', () => here.world.url.replace('redis:', 'rediss:'), 'tls', /speaks no TLS/], // prettier-ignore
    ['a Cluster that is none', () => ({ cluster: [{ host: '127.0.0.1', port: Number(new URL(here.world.url).port) }] }), 'cluster', /is a single server and no Redis Cluster. Give its URL/], // prettier-ignore
    ['the same with a password', () => withUser(locked, `:${PASSWORD}`).replace('redis:', 'rediss:'), 'tls', /speaks no TLS/], // prettier-ignore
    ['a plain client at a TLS port', () => `redis://localhost:${encrypted.port}`, 'tls', /speaks TLS only/],
    ['a certificate that nobody vouches for', () => `rediss://localhost:${encrypted.port}`, 'tls', /tls: \{ ca \}/],
    ['a certificate of another name', () => ({ port: encrypted.port, host: 'localhost', tls: { ca: encrypted.ca, servername: 'redis.example' } }), 'tls', /ERR_TLS_CERT_ALTNAME_INVALID/], // prettier-ignore
    ['a node of a Cluster with a wrong password', () => ({ cluster: [{ port: locked.port, host: '127.0.0.1' }], redisOptions: { password: WRONG } }), 'credentials', /WRONGPASS/], // prettier-ignore
    ['a Cluster that speaks TLS only', () => ({ cluster: [{ port: encrypted.port, host: 'localhost' }] }), 'tls', /speaks TLS only/], // prettier-ignore
    ['a Sentinel with a wrong password', () => ({ sentinels: [{ port: locked.port, host: '127.0.0.1' }], name: 'jobs', sentinelPassword: WRONG }), 'credentials', /WRONGPASS/], // prettier-ignore
  ])('%s', async (_, connection, reason, message) => {
    const error = await boot(connection());
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error).toMatchObject({ code: 'ERR_DQ_CONNECTION', reason, retryable: false, message: expect.stringMatching(message) }); // prettier-ignore
    // With everything that hangs on it: the errors of the driver carry the call, and so its password.
    expect(inspect(error, { depth: Infinity })).not.toMatch(new RegExp(`${PASSWORD}|${WRONG}`));
  });

  it.each([
    ['the commands', ['-evalsha', '-eval'], /does not permit .*eval/],
    ['the keys', ['resetkeys', '~other:*'], /does not permit .*queue "mail".* keys?\b/],
  ])('a user who may not use %s', async (_, rights, message) => {
    await here.world.redis.call('ACL', 'SETUSER', 'app', 'reset', 'on', '>app', '~*', '&*', '+@all', ...rights);
    const error = await boot(withUser(here.server, 'app:app'));
    expect(error).toMatchObject({ code: 'ERR_DQ_CONNECTION', reason: 'permission', message: expect.stringMatching(message) }); // prettier-ignore
    expect(error.message).toContain('A user of its own');
  });

  it.each(['evalsha', 'eval'])('a server that does not know %s', async (name) => {
    const server = end(await withoutCommand(here.world.url, name));
    const error = await boot(server.url);
    expect(error).toMatchObject({ code: 'ERR_DQ_CONNECTION', reason: 'command', retryable: false });
    expect(error.message).toMatch(new RegExp(`the command ${name.toUpperCase()}.*rename-command`));
    // A Sentinel, whose port stands where that of a server should, has none of these either.
    expect(error.message.includes('connect by { sentinels: [{ host, port }], name }')).toBe(name.startsWith('eval'));
  });

  it('once: what is thrown is not logged as well', async () => {
    const log: string[] = [];
    const root = DelayQueueModule.forRoot({ connection: locked.url, prefix: here.world.prefix, connectTimeout: '10m' });
    await expect(here.boot({ imports: [root] }, log)).rejects.toMatchObject({ reason: 'credentials' });
    expect(log.filter((line) => /wants a password.*Retrying/.test(line))).toEqual([]);
  });

  it('a server in protected mode', async () => {
    const server = end(
      await listening((socket) => socket.end('-DENIED Redis is running in protected mode because protected mode is enabled\r\n')), // prettier-ignore
    );
    expect(await boot(server.url)).toMatchObject({
      reason: 'protectedMode',
      message: expect.stringContaining('DENIED'),
    });
  });
});

it.each(['evalsha', 'eval'])(
  'a server that does not know %s was told of as damaged data, with health up; at run time it is its own error',
  async (name) => {
    const server = end(await withoutCommand(here.world.url, name));
    const options: DelayQueueRootOptions = { connection: server.url, connect: 'lazy' };
    const { app, producer } = await here.start({ providers: [handlerClass('mail', () => undefined)], options });
    const refused = producer.enqueue('mail', { secret: PASSWORD });
    await expect(refused).rejects.toMatchObject({ code: 'ERR_DQ_CONNECTION', reason: 'command', retryable: false });
    const error: unknown = await refused.catch((thrown: unknown) => thrown);
    expect((error as Error).message).toContain(`the command ${name.toUpperCase()}`);
    expect(inspect(error, { depth: Infinity })).not.toContain(PASSWORD);
    await eventually(async () => {
      const { status, reasons } = await app.get(DelayQueueHealth).check();
      expect(status).not.toBe('up');
      expect(reasons.join()).toMatch(/claim loop of queue "mail" cannot begin/);
    });
  },
);

describe('a mistake about TLS was reported after 5 s, or behind a warning of what it led to; it is reported at once, and alone:', () => {
  const mistakes: [string, () => string, RegExp][] = [
    ['a client that speaks TLS to a plain port', () => here.world.url.replace('redis:', 'rediss:'), /speaks no TLS/],
    ['a plain client at a TLS port', () => `redis://localhost:${encrypted.port}`, /speaks TLS only/],
  ];
  const ofTrouble = (log: string[]) => log.filter((line) => /not reachable|speaks|Retrying/.test(line));

  it.each(mistakes)('%s, lazily', async (_, url, words) => {
    const log: string[] = [];
    const options: DelayQueueRootOptions = { connection: url(), connect: 'lazy', commandTimeout: '3s' };
    const { producer } = await here.start({ options, log });
    // The first call that fails knows why; the driver gives up connecting after 5 s.
    await expect(producer.enqueue('mail', 1)).rejects.toThrow(words);
    expect(ofTrouble(log)).toEqual([expect.stringMatching(words)]);
  });

  it.each(mistakes)('%s, at boot', async (_, url, words) => {
    const log: string[] = [];
    const root = DelayQueueModule.forRoot({ connection: url(), prefix: here.world.prefix, connectTimeout: '10m' });
    await expect(here.boot({ imports: [root] }, log)).rejects.toThrow(words);
    // Nest logs what the boot ended with, and that is all.
    expect(ofTrouble(log).filter((line) => !words.test(line))).toEqual([]);
  });

  it('what is none is still reported: a server that hangs up', async () => {
    const log: string[] = [];
    const server = end(await listening((socket) => socket.destroy()));
    await here.start({ options: { connection: server.url, connect: 'lazy' }, log });
    await eventually(() => expect(ofTrouble(log)).toEqual([expect.stringMatching(/is not reachable.*Retrying/)]));
  });
});

it('a certificate is refused while another client still shakes hands, and no error of that ends the process', async () => {
  for (let n = 0; n < 60; n++) {
    expect(await boot(`rediss://localhost:${encrypted.port}`)).toMatchObject({ reason: 'tls' });
  }
});

it('what may pass is waited for, and then reported by its name', async () => {
  const options: DelayQueueRootOptions = { connectTimeout: 300 };
  expect(await boot('redis://127.0.0.1:1', options)).toMatchObject({
    code: 'ERR_DQ_UNAVAILABLE',
    retryable: true,
    message: expect.stringContaining('ECONNREFUSED'),
  });
  expect(await boot('redis://no.such.host.invalid:1', options)).toMatchObject({
    code: 'ERR_DQ_UNAVAILABLE',
    message: expect.stringMatching(/ENOTFOUND|EAI_AGAIN/),
  });
});

it('connected to lazily it is logged once, health says it, and jobs run once the password is right', async () => {
  const log: string[] = [];
  const runs: unknown[] = [];
  const { app, producer } = await here.start({
    providers: [handlerClass('mail', (payload) => void runs.push(payload))],
    options: { connection: withUser(locked, `app:${WRONG}`), connect: 'lazy', commandTimeout: '1s' },
    log,
  });
  const health = app.get(DelayQueueHealth);
  const refused = expect.stringMatching(/does not accept the user or the password/);
  await eventually(async () => expect(await health.check()).toMatchObject({ status: 'down', reasons: [refused] }));
  await expect(producer.enqueue('mail', 1)).rejects.toMatchObject({
    code: 'ERR_DQ_UNAVAILABLE',
    maybeAccepted: false,
    message: expect.stringContaining('WRONGPASS'),
  });
  expect(log.filter((line) => line.includes('WRONGPASS'))).toHaveLength(1);
  expect(log.join('\n')).not.toMatch(WRONG);

  const { Redis } = await import('ioredis');
  const admin = end(new (class extends Redis {
    close = async () => this.disconnect();
  })(withUser(locked, `:${PASSWORD}`))); // prettier-ignore
  await admin.call('ACL', 'SETUSER', 'app', 'on', `>${WRONG}`, '~*', '&*', '+@all');
  await eventually(async () => expect((await health.check()).status).not.toBe('down'), 10_000);
  await producer.enqueue('mail', 2);
  await eventually(() => expect(runs).toEqual([2]));
  expect(log.filter((line) => /is back after/.test(line))).toHaveLength(1);
});

async function listening(serve: (socket: import('node:net').Socket) => void) {
  const server: Server = createServer((socket) => {
    socket.on('error', () => undefined).resume();
    serve(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  return {
    url: `redis://127.0.0.1:${port}`,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}
