// Which redis-server a row means: the machine's own where it is of that version, else one that test/servers/get.mjs has fetched.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fetchedFolder } from '../../test/servers/get.mjs';
import { serverOnPath } from '../../tools/local-redis.mjs';

export const SERVERS = { 'redis-7.0': 'Redis 7.0', 'redis-8.0': 'Redis 8.0', 'valkey-8.0': 'Valkey 8.0' };

/** @returns the program of such a server; undefined where there is none on this machine */
export function programOf(server) {
  const own = serverOnPath();
  if (own && isOf(server, execFileSync(own, ['--version'], { encoding: 'utf8' }))) return own;
  const folder = fetchedFolder(server);
  return folder && join(folder, 'redis-server');
}

/** @param {string} said by `--version`: "Redis server v=7.0.15 sha=..." */
export function isOf(server, said) {
  const [kind, version] = server.split('-');
  return said.toLowerCase().startsWith(`${kind} server v=${version}.`);
}
