import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import { commandLine, program } from '../../helpers/command-line.js';
import { ask, FROM_THE_PAGE } from '../../helpers/dashboard.js';
import type { Asked } from '../../helpers/dashboard.js';
import { dashboardCommand } from '../../helpers/dashboard-command.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const end = endingWithEachTest();
const TOKEN = 'a-token-of-ones-own';
const withToken = { authorization: `Bearer ${TOKEN}` };
let queues = 0;

/** The command on the world's Redis, and what it is asked over HTTP. */
async function serve(args: string[] = [], env: NodeJS.ProcessEnv = { DELAY_QUEUE_DASHBOARD_TOKEN: TOKEN }) {
  const command = await dashboardCommand(here.world, end, args, env);
  const port = Number(command.url.port);
  return {
    ...command,
    ask: (path: string, asked?: Asked) => ask(port, path, asked),
    act: (name: string, body: object, headers: Asked['headers'] = { ...FROM_THE_PAGE, ...withToken }) =>
      ask(port, `/api/${name}`, { method: 'POST', headers, body: JSON.stringify(body) }),
  };
}

/** A queue with one delayed job. */
async function withJob() {
  const { producer } = await here.start({ options: { consume: false } });
  const queue = `shown-${queues++}`;
  await producer.enqueue(queue, { secret: 'tiger' }, { id: 'A', delay: '1h' });
  const isThere = async () => (await producer.get(queue, 'A')) !== undefined;
  return { queue, isThere };
}

const EVERYTHING = ['/', '/api/me', '/api/state', '/api/server', '/nothing', '/?token=', '/?token=wrong'];

describe('the dashboard of the command line', () => {
  it('prints an address with a token, which leads in once and stands in no address after that', async () => {
    const { queue } = await withJob();
    const { url, ask } = await serve([], {});
    expect(url.searchParams.get('token')).toMatch(/^[\w-]{32}$/);
    const entered = await ask(`/${url.search}`);
    expect([entered.status, entered.headers.location]).toEqual([303, '/']);
    const [cookie] = entered.headers['set-cookie']!;
    expect(cookie).toMatch(/^delay-queue-\d+=[\w-]+; Path=\/; HttpOnly; SameSite=Lax$/);
    const headers = { cookie: `other=1; ${cookie!.split(';')[0]}` };
    const page = await ask('/', { headers });
    expect([page.status, page.text]).toEqual([200, expect.stringContaining('<base href="./">')]);
    const [, script] = /src="\.\/([^"]+)"/.exec(page.text)!;
    expect((await ask(`/${script}`, { headers })).status).toBe(200);
    const { body } = await ask('/api/state', { headers });
    expect(body.queues).toContainEqual(expect.objectContaining({ queue, delayed: 1 }));
  });

  it('is shut without the token: the page, its files, reads and acts', async () => {
    const { queue, isThere } = await withJob();
    const { ask, act } = await serve();
    const wrong = { authorization: 'Bearer wrong', cookie: 'delay-queue=wrong' };
    for (const headers of [{}, wrong]) {
      for (const path of EVERYTHING) {
        const { status, text } = await ask(path, { headers });
        expect([path, status]).toEqual([path, 401]);
        expect(text).toContain('the address that the command has printed');
      }
      expect((await act('jobs/cancel', { queue, ids: ['A'] }, { ...FROM_THE_PAGE, ...headers })).status).toBe(401);
    }
    expect(await isThere()).toBe(true);
    expect((await ask('/api/me', { headers: withToken })).body).toMatchObject({ level: 'write' });
  });

  it('answers to no name that nobody has allowed, also with the token: a page of another site would read the answer', async () => {
    const { ask, url } = await serve(['--allow-host', 'jobs.example, Other.Example']);
    const asked = async (host: string) => (await ask('/api/me', { headers: { ...withToken, host } })).status;
    for (const host of [
      'evil.example',
      `evil.example:${url.port}`,
      'jobs.example.evil.org',
      '127.0.0.1.evil.org',
      '@',
    ]) {
      expect([host, await asked(host)]).toEqual([host, 421]);
    }
    for (const host of ['127.0.0.1', `localhost:${url.port}`, '[::1]:80', 'jobs.example', 'OTHER.example:443']) {
      expect([host, await asked(host)]).toEqual([host, 200]);
    }
  });

  it('takes acts by the rules of the dashboard of an application, and tells on stderr what was done', async () => {
    const { queue, isThere } = await withJob();
    const { act, said } = await serve();
    const crossing = { ...FROM_THE_PAGE, ...withToken, 'sec-fetch-site': 'cross-site' };
    expect((await act('jobs/cancel', { queue, ids: ['A'] }, crossing)).problem.code).toBe('DASHBOARD_CROSS_SITE');
    expect(await isThere()).toBe(true);
    expect((await act('jobs/cancel', { queue, ids: ['A'] })).body.results).toMatchObject([
      { id: 'A', outcome: 'cancelled' },
    ]);
    expect(await isThere()).toBe(false);
    await eventually(() => expect(said()).toContain(`Somebody: jobs/cancel of queue "${queue}": 1 cancelled.`));
  });

  it('with --read-only takes no acts, and with --hide-payloads shows neither payloads nor texts of errors', async () => {
    const { queue, isThere } = await withJob();
    const { act, ask } = await serve(['--read-only', '--hide-payloads']);
    expect((await act('jobs/cancel', { queue, ids: ['A'] })).problem.code).toBe('DASHBOARD_FORBIDDEN');
    expect(await isThere()).toBe(true);
    const { text, body } = await ask(`/api/job?queue=${queue}&id=A`, { headers: withToken });
    expect(body.payload).toEqual({ kind: 'hidden' });
    expect(text).not.toContain('tiger');
    expect((await ask('/api/me', { headers: withToken })).body).toMatchObject({ level: 'read', errors: 'hide' });
  });

  it('lets everybody in by --no-token only where nothing can be changed, on this machine', async () => {
    for (const args of [['--no-token'], ['--no-token', '--read-only', '--host', '0.0.0.0']]) {
      const { code, stderr } = await program(['dashboard', ...args]);
      expect([code, stderr]).toEqual([2, expect.stringContaining('--no-token')]);
    }
    const { url, ask } = await serve(['--no-token', '--read-only'], {});
    expect(url.search).toBe('');
    expect((await ask('/api/me')).body).toMatchObject({ level: 'read' });
    expect((await ask('/api/me', { headers: { host: 'evil.example' } })).status).toBe(421);
  });

  it('keeps a token of the environment out of what it prints, and refuses one that can be guessed', async () => {
    const { url, said } = await serve();
    expect([url.search, said()]).toEqual(['', expect.not.stringContaining(TOKEN)]);
    const { code, stderr } = await program(['dashboard'], { env: { DELAY_QUEUE_DASHBOARD_TOKEN: 'short' } });
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^error: DELAY_QUEUE_DASHBOARD_TOKEN: give 16/)]);
  });

  it('listens on 127.0.0.1 alone', async () => {
    const { url } = await serve();
    expect(url.hostname).toBe('127.0.0.1');
    const socket = connect(Number(url.port), '127.0.0.2');
    await expect(once(socket, 'connect')).rejects.toThrow('ECONNREFUSED');
    socket.destroy();
  });

  it('ends by Ctrl C with 0, though browsers hold connections, and some on which they have asked nothing', async () => {
    const { url, close } = await serve();
    const sockets = Array.from({ length: 2 }, () =>
      connect(Number(url.port), '127.0.0.1').on('error', () => undefined),
    );
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    sockets[0]!.write(`GET /api/me HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${TOKEN}\r\n\r\n`);
    await once(sockets[0]!, 'data');
    const { code, stdout } = await close();
    expect([code, stdout.split('\n').length]).toEqual([0, 2]);
    for (const socket of sockets) socket.destroy();
  });

  it('does what it was asked for before it ends', async () => {
    const { queue, isThere } = await withJob();
    const { url, close } = await serve();
    const body = JSON.stringify({ queue, ids: ['A'] });
    const headers = { host: '127.0.0.1', ...FROM_THE_PAGE, ...withToken, 'content-length': body.length };
    const lines = Object.entries({ ...headers, expect: '100-continue' }).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    );
    const socket = connect(Number(url.port), '127.0.0.1').setEncoding('utf8');
    socket.write(`POST /api/jobs/cancel HTTP/1.1\r\n${lines.join('')}\r\n`);
    expect(String(await once(socket, 'data'))).toContain('100 Continue');
    const ended = close();
    await eventually(() => expect(ask(Number(url.port), '/')).rejects.toThrow('ECONNREFUSED'));
    socket.write(body);
    expect(String(await once(socket, 'data'))).toContain('200 OK');
    expect((await ended).code).toBe(0);
    expect(await isThere()).toBe(false);
    socket.destroy();
  });

  it('says so when its port is taken', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const { code, stderr } = await commandLine(here.world, ['dashboard', '--port', String(port)]);
    other.close();
    expect([code, stderr]).toEqual([1, expect.stringContaining(`Port ${port} is taken.`)]);
    expect((await program(['dashboard', '--port', '70000'])).code).toBe(2);
  });

  it('shows a queue that gets shards while it runs, after one refusal', async () => {
    const { ask } = await serve();
    const { producer } = await here.start({ options: { consume: false, queues: { sharded: { shards: 4 } } } });
    await producer.enqueue('sharded', 1, { id: 'A', delay: '1h' });
    const jobs = () => ask('/api/jobs?queue=sharded&state=delayed', { headers: withToken });
    expect((await jobs()).problem.code).toBe('ERR_DQ_SHARD_COUNT');
    await eventually(async () => expect((await jobs()).body.jobs).toMatchObject([{ id: 'A' }]));
  });
});
