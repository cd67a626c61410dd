// What the harness itself asks of Redis, over a connection of its own. Everything is a difference of two readings, so a
// server that others use as well is left as it was found.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';

export function connect(url) {
  return new Redis({ ...connectionOptions(url), connectionName: 'bench' });
}

/** For every client the same, as some take no URL. `?ca=` names the file of the authority that a server with TLS is to be trusted by. */
export function connectionOptions(url) {
  const { protocol, hostname, port, username, password, pathname, searchParams } = new URL(url);
  const ca = searchParams.get('ca');
  return {
    host: hostname,
    port: Number(port || 6379),
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
    ...(pathname.length > 1 && { db: Number(pathname.slice(1)) }),
    ...(protocol === 'rediss:' && { tls: ca ? { ca: readFileSync(ca) } : {} }),
  };
}

export async function info(redis, section) {
  const text = await redis.info(section);
  return Object.fromEntries([...text.matchAll(/^([^#:\r\n]+):(.*?)\r?$/gm)].map(([, name, value]) => [name, value]));
}

const LOCAL = /^(?:localhost|127\.0\.0\.1|\[::1\])$/;

/** @returns {Promise<number[]>} of the server at a URL, if it runs on this machine */
export async function processIdsOf(url) {
  if (!LOCAL.test(new URL(url).hostname)) return [];
  const redis = connect(url);
  try {
    return [Number((await info(redis, 'server')).process_id)];
  } finally {
    redis.disconnect();
  }
}

/** Bytes, once two readings in a row agree and nothing waits to be freed: millions of jobs take their time. */
export async function usedMemory(redis) {
  let last = NaN;
  for (let tries = 0; tries < 300; tries++) {
    const { used_memory: bytes, lazyfree_pending_objects: freeing } = await info(redis, 'memory');
    const used = Number(bytes);
    if (freeing === '0' && Math.abs(used - last) < 0.0005 * used) return used;
    last = used;
    await sleep(200);
  }
  return last;
}

/** CPU of the thread that runs commands and scripts, in us. */
export async function cpuMicroseconds(redis) {
  const cpu = await info(redis, 'cpu');
  const user = cpu.used_cpu_user_main_thread ?? cpu.used_cpu_user;
  const system = cpu.used_cpu_sys_main_thread ?? cpu.used_cpu_sys;
  return (Number(user) + Number(system)) * 1e6;
}

const HARNESS = /^(info|config|client|slowlog|ping|scan|command|hello|auth|select|script)(\||$)/;
const SCRIPTS = /^(eval|evalsha|fcall)(_ro)?$/;

/** Calls that the server has executed so far: those of clients and those made by scripts, without the harness's own. */
export async function commandCalls(redis) {
  const calls = { all: 0, scripts: 0 };
  for (const [name, value] of Object.entries(await info(redis, 'commandstats'))) {
    const command = name.replace('cmdstat_', '');
    if (HARNESS.test(command)) continue;
    const n = Number(/calls=(\d+)/.exec(value)[1]);
    calls.all += n;
    if (SCRIPTS.test(command)) calls.scripts += n;
  }
  return calls;
}

export async function connections(redis) {
  return (await redis.client('LIST')).trim().split('\n').length;
}

/** Removes all keys of a run. @returns how many there were */
export async function removeAll(redis, space) {
  let removed = 0;
  for await (const keys of redis.scanStream({ match: `${space}:*`, count: 1000 })) {
    if (keys.length > 0) removed += await redis.unlink(...keys);
  }
  return removed;
}
