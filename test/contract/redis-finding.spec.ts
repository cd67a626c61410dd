import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { findRedis, type RedisWay, START_ORDER, type StartedRedis, testOrder } from '../../tools/find-redis.mjs';
import { Tether } from '../../tools/tether.mjs';
import { isServing } from '../helpers/is-serving.js';

const TOOLS = fileURLToPath(new URL('../../tools', import.meta.url));
/** An image that no engine has and no registry can give: with it, the container way fails on every machine. */
const NO_IMAGE = 'registry.invalid/redis:0';
const DURABLE = ['--appendonly', 'yes', '--appendfsync', 'always'];
const CONTAINER_TIMEOUT_MS = 60_000;

const noServer = await refusalOf('local');
const noContainer = await refusalOf('container');

let tether: Tether;

beforeEach(async () => {
  tether = await Tether.open();
});

afterEach(() => tether.close());

describe('REDIS_URL', () => {
  it('comes before all else, and nothing is started', async () => {
    const env = { REDIS_URL: 'rediss://redis.example:6380/2', PATH: process.env['PATH'] };
    const redis = await findRedis({ tether, order: START_ORDER, env });
    expect(redis).toMatchObject({ kind: 'url', url: env.REDIS_URL });
    expect(readdirSync(tether.directory)).toEqual([]);
  });

  it('is shown without its password', async () => {
    const env = { REDIS_URL: 'redis://me:secret@redis.example:6380/2' };
    const { description } = await findRedis({ tether, order: ['url'], env });
    expect(description).toBe('REDIS_URL, redis://me:***@redis.example:6380/2');
  });
});

unless(noServer)('a server on the PATH', () => {
  it.each(['redis-server', 'valkey-server'])('%s is started on a free port, over a folder of its own', async (name) => {
    const env = { PATH: folderWithServer(name) };
    const redis = (await findRedis({ tether, order: START_ORDER, env })) as StartedRedis;
    expect(redis).toMatchObject({ kind: 'local', description: expect.stringContaining(name) });
    expect(redis.port).not.toBe(6379);
    expect(await setting(redis, 'dir')).toContain(tether.directory);
  });

  it('ends with its folder when the tether is closed', async () => {
    const owner = await Tether.open();
    const redis = await findRedis({ tether: owner, order: ['local'] });
    await owner.close();
    expect(await isServing(redis.url)).toBe(false);
    expect(existsSync(owner.directory)).toBe(false);
  });

  it('ends with its folder when its owner is killed with SIGKILL', async () => {
    const { owner, redis } = await startedByAnotherProcess('local');
    const directory = await setting(redis, 'dir');
    owner.kill('SIGKILL');
    await eventually(() => expect(existsSync(directory)).toBe(false));
    expect(await isServing(redis.url)).toBe(false);
  });

  it('keeps its port and its data through SIGKILL and a restart', async () => {
    expect(await readAfterSigkill(await findRedis({ tether, order: ['local'], flags: DURABLE }))).toBe('kept');
  });

  it('is refused when it is older than 6.2', async () => {
    const env = { PATH: folderWith('redis-server', 'echo "Redis server v=5.0.14 sha=0"') };
    await expect(findRedis({ tether, order: ['local'], env })).rejects.toThrow(
      'redis-server is version 5.0, and 6.2 is the oldest that will do',
    );
  });

  it('is passed over with its own words when it does not start', async () => {
    await expect(findRedis({ tether, order: ['local'], flags: ['--maxmemory', 'plenty'] })).rejects.toThrow(
      /redis-server did not start: .* argument must be a memory value/,
    );
  });
});

unless(noContainer)('a container', () => {
  it(
    'is started through testcontainers, and ends when the tether is closed',
    async () => {
      const owner = await Tether.open();
      const redis = await findRedis({ tether: owner, order: ['container'] });
      expect(redis).toMatchObject({ kind: 'container', description: expect.stringContaining('testcontainers') });
      expect(await setting(redis, 'save')).toBe('');
      await owner.close();
      expect(await isServing(redis.url)).toBe(false);
    },
    CONTAINER_TIMEOUT_MS,
  );

  it(
    'ends when its owner is killed with SIGKILL',
    async () => {
      const { owner, redis } = await startedByAnotherProcess('container');
      expect(await setting(redis, 'save')).toBe('');
      owner.kill('SIGKILL');
      await eventually(async () => expect(await isServing(redis.url)).toBe(false));
    },
    CONTAINER_TIMEOUT_MS,
  );

  it(
    'keeps its port and its data through SIGKILL and a restart',
    async () => {
      expect(await readAfterSigkill(await findRedis({ tether, order: ['container'], flags: DURABLE }))).toBe('kept');
    },
    CONTAINER_TIMEOUT_MS,
  );
});

unless(noServer)("the system's packages", () => {
  it('are installed by root on Debian, without starting a service', async () => {
    const { env, machine, calls } = freshDebian({ isRoot: true });
    const redis = await findRedis({ tether, order: ['url', 'local', 'system'], env, machine });
    expect(redis.kind).toBe('local');
    expect(calls()).toEqual([
      expect.stringMatching(/^update .* services forbidden$/),
      expect.stringMatching(/^install .* redis-server services forbidden$/),
    ]);
    expect(existsSync(machine.servicePolicy)).toBe(false);
  });

  it('are left alone without root', async () => {
    const { env, machine, calls } = freshDebian({ isRoot: false });
    await expect(findRedis({ tether, order: ['local', 'system'], env, machine })).rejects.toThrow(
      'only root may install redis-server',
    );
    expect(calls()).toEqual([]);
  });
});

describe('without any Redis', () => {
  it('npm start names the ways to get one and exits with 1', async () => {
    // With an empty PATH there is no server, and no apt-get that would install one.
    const env = { PATH: '', REDIS_IMAGE: NO_IMAGE };
    const start = spawn(process.execPath, [join(TOOLS, 'start.mjs')], { env, stdio: ['ignore', 'ignore', 'pipe'] });
    const [said, [exitCode]] = await Promise.all([start.stderr.setEncoding('utf8').toArray(), once(start, 'exit')]);
    expect(said.join('')).toMatch(/No Redis was found:[^]*REDIS_URL=[^]*apt-get install redis-server[^]*Docker engine/);
    expect(exitCode).toBe(1);
  });
});

describe('TEST_REDIS', () => {
  it('unset: a container is preferred, a local server comes next', () => {
    expect(testOrder({})).toEqual(['url', 'container', 'local', 'system']);
  });

  it.each(['container', 'local', 'url'])(
    '%s is never replaced by another way',
    async (kind) => {
      const order = testOrder({ TEST_REDIS: kind });
      const machine = { isRoot: false, isDebian: false, servicePolicy: '' };
      const env = { PATH: '', REDIS_IMAGE: NO_IMAGE };
      await expect(findRedis({ tether, order, env, machine })).rejects.toThrow('No Redis was found');
    },
    60_000,
  );

  it('refuses another word', () => {
    expect(() => testOrder({ TEST_REDIS: 'docker' })).toThrow(
      'TEST_REDIS is "docker"; it can be url, container, local',
    );
  });
});

/** Why a way is closed on this machine, or undefined. */
async function refusalOf(way: 'local' | 'container'): Promise<string | undefined> {
  const probe = await Tether.open();
  try {
    await findRedis({ tether: probe, order: [way] });
    return undefined;
  } catch (error) {
    return (error as { refusals: string[] }).refusals.join(', ');
  } finally {
    await probe.close();
  }
}

/** A way that is closed on this machine is skipped, aloud. */
function unless(reason: string | undefined) {
  if (reason) process.stderr.write(`redis-finding.spec.ts: SKIPPED IN PART, because ${reason}\n`);
  return reason ? describe.skip : describe;
}

async function startedByAnotherProcess(way: RedisWay) {
  const script = `
    import { findRedis } from '${TOOLS}/find-redis.mjs';
    import { Tether } from '${TOOLS}/tether.mjs';
    const redis = await findRedis({ tether: await Tether.open(), order: ['${way}'] });
    console.log(redis.url);`;
  const owner = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [url] = (await once(createInterface(owner.stdout), 'line')) as [string];
  return { owner, redis: { url } };
}

async function readAfterSigkill(redis: StartedRedis): Promise<string | null> {
  await withClient(redis, (client) => client.set('key', 'kept'));
  await redis.kill('SIGKILL');
  expect(await isServing(redis.url)).toBe(false);
  await redis.restart();
  return withClient(redis, (client) => client.get('key'));
}

async function setting(redis: { url: string }, name: string): Promise<string> {
  const [, value] = (await withClient(redis, (client) => client.config('GET', name))) as [string, string];
  return value;
}

async function withClient<T>({ url }: { url: string }, use: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  client.on('error', () => {}); // connect() rejects with it
  try {
    await client.connect();
    return await use(client);
  } finally {
    client.disconnect();
  }
}

async function eventually(assertion: () => void | Promise<void>): Promise<void> {
  const deadline = Date.now() + 10_000;
  for (;;) {
    try {
      return await assertion();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await sleep(20);
    }
  }
}

/** A folder with one shell script in it, to be a PATH. */
function folderWith(name: string, script: string): string {
  const folder = join(tether.directory, `path-with-${name}`);
  mkdirSync(folder);
  writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return folder;
}

function folderWithServer(name: string): string {
  const folder = join(tether.directory, `path-with-${name}`);
  mkdirSync(folder);
  symlinkSync(serverProgram(), join(folder, name));
  return folder;
}

function serverProgram(): string {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  const candidates = folders.flatMap((folder) => ['redis-server', 'valkey-server'].map((name) => join(folder, name)));
  return candidates.find((file) => existsSync(file)) ?? 'nowhere';
}

/** A machine without a server whose apt-get writes down what it is asked, and installs the server of this one. */
function freshDebian({ isRoot }: { isRoot: boolean }) {
  const log = join(tether.directory, 'apt.log');
  const servicePolicy = join(tether.directory, 'policy-rc.d');
  const PATH = folderWith(
    'apt-get',
    `if [ "$(${servicePolicy}; echo $?)" = 101 ]; then services='services forbidden'; fi
echo "$* $services" >> ${log}
[ "$1" = install ] && /bin/ln -s ${serverProgram()} "$(/usr/bin/dirname "$0")/redis-server"
exit 0`,
  );
  return {
    env: { PATH },
    machine: { isRoot, isDebian: true, servicePolicy },
    calls: () => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []),
  };
}
