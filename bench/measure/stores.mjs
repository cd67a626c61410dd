// Servers that are not the one of the run: a Redis or a PostgreSQL that writes to disk, for a comparison of libraries that keep their
// jobs there, a Redis that speaks TLS, and one of another version. Each run has one of its own, so that nothing of another run is in it.
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeCertificate, tlsFlags } from '../../tools/certificate.mjs';
import { freePort } from '../../tools/free-port.mjs';
import { serverOnPath, startLocalRedis } from '../../tools/local-redis.mjs';
import { Tether } from '../../tools/tether.mjs';
import { programOf } from './servers.mjs';

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
 * @param {object} wanted
 * @param {'redis' | 'postgres'} wanted.kind
 * @param {'second' | 'all'} [wanted.disk]
 * @param {boolean} [wanted.tls]
 * @param {string} [wanted.server] of servers.mjs; the machine's own by default
 * @returns {Promise<{ url: string, plainUrl?: string, close(): Promise<void> } | { missing: string }>} `plainUrl`: of a Redis, without
 *   TLS; `missing`: what this machine lacks for it
 */
export async function openStore({ kind, ...wanted }) {
  const tether = await Tether.open();
  try {
    const store = await (kind === 'redis' ? startRedis(tether, wanted) : startPostgres(tether, wanted));
    if (!store.missing) return { ...store, close: () => tether.close() };
    await tether.close();
    return store;
  } catch (error) {
    await tether.close();
    throw error;
  }
}

async function startRedis(tether, { disk, tls, server }) {
  const program = server ? programOf(server) : serverOnPath();
  if (!program) return { missing: server ? `no ${server} (test/servers/get.mjs fetches it)` : 'no redis-server' };
  const certificate = tls && makeCertificate(join(tether.directory, 'tls'));
  if (tls && !certificate) return { missing: 'no openssl' };
  const tlsPort = tls && (await freePort());
  const { url: plainUrl } = await startLocalRedis(tether, program, [
    ...(disk ? ['--appendonly', 'yes', '--appendfsync', REDIS[disk]] : []),
    ...(tls ? tlsFlags(tlsPort, certificate) : []),
  ]);
  return { plainUrl, url: tls ? tlsUrl(tlsPort, certificate) : plainUrl };
}

/** The file of the authority goes along: connectionOptions() reads it. */
function tlsUrl(port, { certificate }) {
  const url = new URL(`rediss://127.0.0.1:${port}`);
  url.searchParams.set('ca', certificate);
  return url.href;
}

async function startPostgres(tether, { disk }) {
  const folder = postgresFolder();
  if (!folder) return { missing: 'no postgres' };
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
  return { url: `postgres://${USER}@127.0.0.1:${port}/postgres` };
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
