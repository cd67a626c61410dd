import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { freePort } from '../../../tools/free-port.mjs';
import { createApp } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { RedisServer } from '../../helpers/redis-server.js';
import { World } from '../../helpers/world.js';
import { slotOf } from '../../../lib/redis/keys.js';

/** Nodes of a cluster in containers would tell each other addresses that nobody else can reach. */
function canHaveCluster(): boolean {
  if (process.env['TEST_REDIS'] === 'container') return false;
  try {
    return Number(/v=(\d+)/.exec(execFileSync('redis-server', ['--version'], { encoding: 'utf8' }))?.[1]) >= 7;
  } catch {
    return false;
  }
}

/** Somebody may take the second port before the server does. */
async function startNode(tries = 3): Promise<{ server: RedisServer; busPort: number }> {
  const busPort = await freePort();
  const cluster = { 'cluster-enabled': 'yes', 'cluster-port': String(busPort) };
  try {
    return { server: await RedisServer.start({ config: { ...cluster, 'repl-diskless-sync-delay': '0' } }), busPort };
  } catch (error) {
    if (tries === 1) throw error;
    return startNode(tries - 1);
  }
}

(canHaveCluster() ? describe : describe.skip)('on a Cluster', () => {
  const servers: RedisServer[] = [];
  const clients: Redis[] = [];
  let world: World;

  /** Two masters with half of the slots each; only the first one has a replica. */
  beforeAll(async () => {
    const busPorts: number[] = [];
    for (let i = 0; i < 3; i++) {
      const { server, busPort } = await startNode();
      servers.push(server);
      busPorts.push(busPort);
      clients.push(new Redis(server.url));
    }
    const [first, second, replica] = clients as [Redis, Redis, Redis];
    await first.call('CLUSTER', 'ADDSLOTSRANGE', '0', '8191');
    await second.call('CLUSTER', 'ADDSLOTSRANGE', '8192', '16383');
    for (const i of [1, 2]) await first.call('CLUSTER', 'MEET', '127.0.0.1', String(servers[i]!.port), String(busPorts[i])); // prettier-ignore
    const id = (await first.call('CLUSTER', 'MYID')) as string;
    await eventually(() => replica.call('CLUSTER', 'REPLICATE', id), 20_000);
    await eventually(async () => {
      const states = await Promise.all(clients.map((client) => client.call('CLUSTER', 'INFO') as Promise<string>));
      const known = states.every((state) => /cluster_state:ok[^]*cluster_known_nodes:3/.test(state));
      const linked = (await replica.info('replication')).includes('master_link_status:up');
      if (!known || !linked) throw new Error(`The Cluster is not complete: ${states.join('\n')}`);
    }, 20_000);
    world = await World.open(servers[0]!.url);
  });
  afterAll(async () => {
    for (const client of [world?.redis, ...clients]) client?.disconnect();
    await Promise.all(servers.map((server) => server.stop()));
  });

  it('the wait goes to the node that holds the queue', async () => {
    const names = Array.from({ length: 100 }, (_, n) => `queue-${n}`);
    const [first] = clients as [Redis];
    for (const name of names.slice(0, 20)) {
      expect(slotOf(world.key(name, 'due'))).toBe(await first.call('CLUSTER', 'KEYSLOT', world.key(name, 'due')));
    }
    const inSlots = (from: number) => names.find((name) => Math.floor(slotOf(world.key(name, 'due')) / 8192) === from)!;
    const connection = { cluster: [{ host: '127.0.0.1', port: servers[0]!.port }] };
    const { producer, close } = await createApp(world, { options: { connection, consume: false } });
    const durability = { replicas: 1, timeout: '5s' };
    expect(await producer.enqueue(inSlots(0), 1, { durability })).toMatchObject({ durability: { replicas: 1 } });
    const alone = producer.enqueue(inSlots(1), 1, { durability: { replicas: 1, timeout: 50 }, delay: '1h' });
    await expect(alone).rejects.toMatchObject({ code: 'ERR_DQ_NOT_DURABLE', reached: { replicas: 0 } });
    await close();
  });

  it('a master that was replaced while nobody asked is found', async () => {
    const names = Array.from({ length: 100 }, (_, n) => `replaced-${n}`);
    const queue = names.find((name) => slotOf(world.key(name, 'due')) < 8192)!;
    const connection = { cluster: servers.map(({ port }) => ({ host: '127.0.0.1', port })) };
    const { producer, close } = await createApp(world, { options: { connection, consume: false } });
    const durability = { replicas: 1, timeout: '5s' };
    expect(await producer.enqueue(queue, 1, { durability })).toMatchObject({ durability: { replicas: 1 } });
    const [first, , replica] = clients as [Redis, Redis, Redis];
    first.disconnect();
    await servers[0]!.kill();
    await replica.call('CLUSTER', 'FAILOVER', 'TAKEOVER');
    await eventually(async () => expect(await replica.info('replication')).toContain('role:master'));
    // It takes the job, and has no replica itself.
    const taken = producer.enqueue(queue, 2, { delay: '1h', durability: { replicas: 1, timeout: 50 } });
    await expect(taken).rejects.toMatchObject({ code: 'ERR_DQ_NOT_DURABLE', reached: { replicas: 0 } });
    await close();
  });
});
