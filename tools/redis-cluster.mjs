// Servers for a Redis Cluster on this machine, as children of a tether: free ports, own folders, gone with the tether.
import { setTimeout as sleep } from 'node:timers/promises';
import { RedisNotFound } from './find-redis.mjs';
import { freePort } from './free-port.mjs';
import { serverOnPath, startLocalRedis } from './local-redis.mjs';
import { installRedisServer } from './system-packages.mjs';

const SLOTS = 16_384;
const HOST = '127.0.0.1';
const WHOLE_WITHIN_MS = 20_000;
const RETRY_MS = 20;

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

/**
 * Shares the slots out between masters that do not know each other yet, and makes them meet; `untilWhole()` tells when they have.
 *
 * @param masters [{ port, redis }], each with a client of its own
 */
export async function joinMasters(masters) {
  const share = Math.ceil(SLOTS / masters.length);
  for (const [n, { redis }] of masters.entries()) {
    const slots = Array.from({ length: Math.min(share, SLOTS - n * share) }, (_, at) => n * share + at);
    await redis.cluster('ADDSLOTS', ...slots); // ADDSLOTSRANGE came with 7.0
    await redis.cluster('SET-CONFIG-EPOCH', n + 1);
  }
  for (const { redis } of masters.slice(1)) await redis.cluster('MEET', HOST, masters[0].port);
}

/** Resolves when all of these nodes, which are all there are, see all slots served. */
export async function untilWhole(nodes) {
  const deadline = Date.now() + WHOLE_WITHIN_MS;
  const wanted = ['cluster_state:ok', `cluster_slots_ok:${SLOTS}`, `cluster_known_nodes:${nodes.length}`];
  for (const { redis } of nodes) {
    for (;;) {
      const info = await redis.cluster('INFO').catch(String);
      if (wanted.every((line) => info.includes(line))) break;
      if (Date.now() > deadline) throw new Error(`the Cluster is not whole yet: ${info}`);
      await sleep(RETRY_MS);
    }
  }
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
