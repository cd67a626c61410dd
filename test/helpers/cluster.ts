import { Redis } from 'ioredis';
import assert from 'node:assert/strict';
import type { StartedRedis } from '../../tools/find-redis.mjs';
import { joinMasters, startClusterNodes, untilWhole } from '../../tools/redis-cluster.mjs';
import { Tether } from '../../tools/tether.mjs';
import { eventually } from './eventually.js';

const HOST = '127.0.0.1';

export interface ClusterNode {
  readonly id: string;
  readonly port: number;
  /** A client of this node alone: it follows no redirection. */
  readonly redis: Redis;
  readonly server: StartedRedis;
}

/** A real Redis Cluster, that ends with this process, however that ends. */
export class RedisCluster {
  private constructor(
    private readonly tether: Tether,
    /** Masters at the start. */
    readonly nodes: readonly ClusterNode[],
    /** One of each master in turn, which take over from masters that die. */
    readonly replicas: readonly ClusterNode[],
  ) {}

  static async start(masters = 3, replicas = 0): Promise<RedisCluster> {
    const tether = await Tether.open();
    try {
      // A full copy would else wait five seconds for more replicas to come.
      const flags = ['--repl-diskless-sync-delay', '0'];
      const servers = await startClusterNodes(tether, masters + replicas, { flags });
      const nodes = await Promise.all(servers.map(nodeOf));
      const cluster = new RedisCluster(tether, nodes.slice(0, masters), nodes.slice(masters));
      await cluster.#join();
      return cluster;
    } catch (error) {
      await tether.close();
      throw error;
    }
  }

  /** What `forRoot({ connection })` takes. */
  get connection(): { cluster: { host: string; port: number }[] } {
    return { cluster: this.nodes.map(({ port }) => ({ host: HOST, port })) };
  }

  slotOf(key: string): Promise<number> {
    return this.#anyNode().redis.cluster('KEYSLOT', key);
  }

  /** The node that serves the slot of this key. */
  async ownerOf(key: string): Promise<ClusterNode> {
    return this.#ownerOfSlot(await this.slotOf(key));
  }

  /** All keys of all nodes that begin like this. */
  async keys(start: string): Promise<Map<ClusterNode, string[]>> {
    const found = new Map<ClusterNode, string[]>();
    for (const node of this.nodes) {
      const keys: string[] = [];
      for (let cursor = '0'; ;) {
        const [next, page] = await node.redis.scan(cursor, 'COUNT', 1_000);
        keys.push(...page.filter((key) => key.startsWith(start)));
        cursor = next;
        if (cursor === '0') break;
      }
      found.set(node, keys.sort());
    }
    return found;
  }

  /** Moves a slot with its keys to another node while everybody goes on; resolves when all nodes know. */
  async moveSlot(slot: number, to: ClusterNode): Promise<void> {
    const from = await this.#ownerOfSlot(slot);
    if (from === to) return;
    await to.redis.cluster('SETSLOT', slot, 'IMPORTING', from.id);
    await from.redis.cluster('SETSLOT', slot, 'MIGRATING', to.id);
    for (;;) {
      const keys = (await from.redis.cluster('GETKEYSINSLOT', slot, 10)) as string[];
      if (keys.length === 0) break;
      await from.redis.migrate(HOST, to.port, '', 0, 5_000, 'KEYS', ...keys);
    }
    await eventually(async () => {
      // The new owner first: should anything be written in between, it is asked already.
      for (const node of [to, from, ...this.nodes]) await node.redis.cluster('SETSLOT', slot, 'NODE', to.id);
      // A word of the old owner that was on its way gives the slot back at whoever hears it now, if that owner took another
      // slot just before. Nobody would mend that: each of the two sends clients to the other.
      for (const node of this.nodes) assert.deepEqual(await this.#seenBy(node, slot), await this.#seenBy(to, slot));
      assert.equal((await this.#seenBy(to, slot)).owner, to.port);
    });
  }

  /** Ends a node like a crash, or sends it another signal. */
  kill(node: ClusterNode, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    return node.server.kill(signal);
  }

  /** Starts it again on its port, over its folder; resolves when the Cluster is whole. */
  async restart(node: ClusterNode): Promise<void> {
    await node.server.restart();
    await this.whole();
  }

  /** All nodes see all slots served. */
  whole(): Promise<void> {
    return untilWhole(this.#all);
  }

  async stop(): Promise<void> {
    for (const { redis } of this.#all) redis.disconnect();
    await this.tether.close();
  }

  get #all(): ClusterNode[] {
    return [...this.nodes, ...this.replicas];
  }

  async #join(): Promise<void> {
    await joinMasters(this.nodes);
    for (const { redis } of this.replicas) await redis.cluster('MEET', HOST, this.nodes[0]!.port);
    await this.whole();
    for (const [n, { redis }] of this.replicas.entries()) {
      await redis.cluster('REPLICATE', this.nodes[n % this.nodes.length]!.id);
      await eventually(async () => {
        if (!/master_link_status:up/.test(await redis.info('replication'))) throw new Error('a replica is not linked');
      }, 20_000);
    }
  }

  async #ownerOfSlot(slot: number): Promise<ClusterNode> {
    const port = await ownerSeenBy(this.#anyNode(), slot);
    if (port === undefined) throw new Error(`nobody serves slot ${slot}`);
    return this.#all.find((node) => node.port === port)!;
  }

  /** Who has the slot, and how new the word of each node is: where these differ, the newer word wins later. */
  async #seenBy(node: ClusterNode, slot: number): Promise<{ owner: number | undefined; epochs: string[] }> {
    const lines = ((await node.redis.cluster('NODES')) as string).trim().split('\n');
    const epochs = lines.map((line) => line.split(' ')).map((words) => `${words[0]} ${words[6]}`);
    return { owner: await ownerSeenBy(node, slot), epochs: epochs.sort() };
  }

  #anyNode(): ClusterNode {
    return this.#all.find(({ redis }) => redis.status === 'ready') ?? this.nodes[0]!;
  }
}

/** The port of the node that serves the slot, as this node sees it. */
async function ownerSeenBy({ redis }: ClusterNode, slot: number): Promise<number | undefined> {
  for (const [from, to, [, port]] of (await redis.cluster('SLOTS')) as [number, number, any][]) {
    if (slot >= from && slot <= to) return port;
  }
}

async function nodeOf(server: StartedRedis): Promise<ClusterNode> {
  // A node that hangs must not hold up whoever asks it.
  const redis = new Redis(server.url, { lazyConnect: true, maxRetriesPerRequest: 1, commandTimeout: 15_000 });
  redis.on('error', () => {}); // tests kill nodes; what is asked of a dead one rejects all the same
  await redis.connect();
  return { id: (await redis.cluster('MYID')) as string, port: server.port, redis, server };
}
