// A private Redis Cluster of masters on this machine, for one scenario.
import { setTimeout as sleep } from 'node:timers/promises';
import { Tether } from '../tools/tether.mjs';
import { connect } from './measure/redis.mjs';

const HOST = '127.0.0.1';
const SLOTS = 16_384;
const HELPER = '../tools/redis-cluster.mjs';

/** @returns undefined while the project has no helper that starts such nodes */
export async function startCluster(masters) {
  const { startClusterNodes } = await import(HELPER).catch((error) => {
    if (error.code === 'ERR_MODULE_NOT_FOUND') return {};
    throw error;
  });
  if (!startClusterNodes) return undefined;
  const tether = await Tether.open();
  const servers = await startClusterNodes(tether, masters);
  const nodes = servers.map(({ url }) => connect(url));
  await join(nodes, servers);
  return {
    connection: { cluster: servers.map(({ port }) => ({ host: HOST, port })) },
    /** A client of each node alone. */
    nodes,
    async close() {
      for (const node of nodes) node.disconnect();
      await tether.close();
    },
  };
}

async function join(nodes, servers) {
  const from = (n) => Math.floor((n * SLOTS) / nodes.length);
  for (const [n, node] of nodes.entries()) {
    await node.cluster('ADDSLOTS', ...Array.from({ length: from(n + 1) - from(n) }, (_, i) => from(n) + i));
    await node.cluster('SET-CONFIG-EPOCH', n + 1);
    if (n > 0) await node.cluster('MEET', HOST, servers[0].port);
  }
  for (const node of nodes) {
    while (!(await isWhole(node, nodes.length))) await sleep(50);
  }
}

async function isWhole(node, size) {
  const text = await node.cluster('INFO');
  return text.includes('cluster_state:ok') && text.includes(`cluster_size:${size}\r`);
}

/** How many shards with jobs a node holds, and how many jobs. */
export async function jobsOn(node, space) {
  let shards = 0;
  let jobs = 0;
  for await (const keys of node.scanStream({ match: `${space}:*:jobs`, count: 1000 })) {
    for (const key of keys) {
      shards++;
      jobs += await node.hlen(key);
    }
  }
  return { shards, jobs };
}
