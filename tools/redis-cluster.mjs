// Servers for a Redis Cluster on this machine, as children of a tether: free ports, own folders, gone with the tether.
import { RedisNotFound } from './find-redis.mjs';
import { freePort } from './free-port.mjs';
import { serverOnPath, startLocalRedis } from './local-redis.mjs';
import { installRedisServer } from './system-packages.mjs';

/** The nodes of a Cluster talk to each other on a second port, this much above the first. */
const BUS_DISTANCE = 10_000;
const HIGHEST_PORT = 65_535 - BUS_DISTANCE;
const SETTINGS = {
  'cluster-enabled': 'yes',
  'cluster-config-file': 'nodes.conf',
  'cluster-node-timeout': '2000',
  // Tests stop one node at a time: the slots of the others are served all the same.
  'cluster-require-full-coverage': 'no',
};

/**
 * Starts nodes that do not know each other yet. Always local ones, whatever else TEST_REDIS says: nodes in containers would
 * tell clients addresses that only containers reach.
 *
 * @throws RedisNotFound when there is no server program and none may be installed
 */
export async function startClusterNodes(tether, count, { env = process.env, flags = [] } = {}) {
  const program = await serverProgram(env);
  const settings = Object.entries(SETTINGS).flatMap(([name, value]) => [`--${name}`, value]);
  const nodes = [];
  while (nodes.length < count) nodes.push(await startLocalRedis(tether, program, [...settings, ...flags], portWithBus));
  return nodes;
}

async function serverProgram(env) {
  if (!serverOnPath(env)) {
    try {
      if (env.TEST_REDIS === 'container') throw new Error('TEST_REDIS=container forbids to install one');
      await installRedisServer({ env });
    } catch (error) {
      const why = 'a Cluster needs redis-server or valkey-server on the PATH, also where other tests use containers';
      throw new RedisNotFound([`${why}: ${error.message}`]);
    }
  }
  return serverOnPath(env);
}

async function portWithBus() {
  for (;;) {
    const port = await freePort();
    if (port <= HIGHEST_PORT) return port;
  }
}
