// Servers that write to disk, for a comparison of libraries that keep their jobs there: a Redis with an append-only file, and PostgreSQL.
// Each run has one of its own, so that nothing of another run is in it.
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../tools/free-port.mjs';
import { serverOnPath, startLocalRedis } from '../../tools/local-redis.mjs';
import { Tether } from '../../tools/tether.mjs';

/** What must be on disk when a call has been answered: `second` what is older than about a second, `all` everything. */
const REDIS = { second: 'everysec', all: 'always' };
const POSTGRES = { second: 'off', all: 'on' };
const DEBIAN = '/usr/lib/postgresql';
const USER = 'postgres';
const INITIAL = ['-A', 'trust', '-U', USER, '-E', 'UTF8', '--no-sync'];

/** As the manuals of PostgreSQL and of both libraries advise for a machine of its own: memory, and checkpoints that are far apart. */
const TUNING = {
  shared_buffers: '1GB',
  effective_cache_size: '4GB',
  max_wal_size: '8GB',
  checkpoint_timeout: '15min',
  checkpoint_completion_target: '0.9',
  wal_buffers: '64MB',
  max_connections: '200',
  random_page_cost: '1.1',
};

/**
 * @param {'redis' | 'postgres'} kind
 * @param {'second' | 'all'} disk
 * @returns {Promise<{ url: string, close(): Promise<void> } | undefined>} undefined without such a program on this machine
 */
export async function openStore(kind, disk) {
  const tether = await Tether.open();
  try {
    const url = await (kind === 'redis' ? startRedis(tether, disk) : startPostgres(tether, disk));
    if (url) return { url, close: () => tether.close() };
  } catch (error) {
    await tether.close();
    throw error;
  }
  await tether.close();
  return undefined;
}

async function startRedis(tether, disk) {
  const program = serverOnPath();
  if (!program) return undefined;
  const { url } = await startLocalRedis(tether, program, ['--appendonly', 'yes', '--appendfsync', REDIS[disk]]);
  return url;
}

async function startPostgres(tether, disk) {
  const folder = postgresFolder();
  if (!folder) return undefined;
  const port = await freePort();
  const directory = join(tether.directory, `postgres-${port}`);
  const asUser = ownerOf(directory, tether.directory);
  const [init, ...initArgs] = [...asUser, join(folder, 'initdb'), '-D', directory, ...INITIAL];
  execFileSync(init, initArgs);
  const settings = { ...TUNING, synchronous_commit: POSTGRES[disk], port, unix_socket_directories: directory };
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const [server, ...serverArgs] = [...asUser, join(folder, 'postgres'), '-D', directory, ...args];
  await tether.spawn(server, serverArgs, {
    log: join(tether.directory, 'postgres.log'),
    stopSignal: 'SIGINT', // a fast shutdown
  });
  await untilReady(join(folder, 'pg_isready'), port);
  return `postgres://${USER}@127.0.0.1:${port}/postgres`;
}

/** Debian's newest. */
function postgresFolder() {
  if (!existsSync(DEBIAN)) return undefined;
  const [newest] = readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a));
  const folder = join(DEBIAN, newest ?? '', 'bin');
  return existsSync(join(folder, 'postgres')) ? folder : undefined;
}

/** PostgreSQL does not run as root. @returns the command that runs another one as its user, or nothing */
function ownerOf(directory, parent) {
  mkdirSync(directory, { mode: 0o700 });
  if (process.getuid?.() !== 0) return [];
  const id = (flag) => Number(execFileSync('id', [flag, USER], { encoding: 'utf8' }));
  const [uid, gid] = [id('-u'), id('-g')];
  chmodSync(parent, 0o755);
  chownSync(directory, uid, gid);
  return ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'];
}

async function untilReady(program, port) {
  for (let tries = 0; tries < 100; tries++) {
    try {
      execFileSync(program, ['-h', '127.0.0.1', '-p', String(port)], { stdio: 'ignore' });
      return;
    } catch {
      await sleep(100);
    }
  }
  throw new Error('PostgreSQL did not start within 10 s');
}

/** @returns the first row that a query gives */
export async function firstRow(url, query) {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(query)).rows[0];
  } finally {
    await client.end();
  }
}
