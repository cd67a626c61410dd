import { expect, it } from '@jest/globals';
import { examine } from '../../lib/redis/connection-trouble.js';
import type { RedisClient } from '../../lib/redis/redis.client.js';

/** As much of the driver as the look at a server reads. */
const clientOf = (options: object): RedisClient => ({ options }) as RedisClient;
const clusterOf = (node: unknown): RedisClient =>
  ({ options: {}, nodes: () => [], startupNodes: [node] }) as unknown as RedisClient;

it.each<[string, RedisClient]>([
  ['NaN', clientOf({ port: NaN })],
  ['above 65535', clientOf({ port: 74_111 })],
  ['of a Sentinel', clientOf({ sentinels: [{ port: -1 }] })],
  ['of a node of a Cluster', clusterOf({ port: NaN })],
  ['in the text of a node', clusterOf('redis:74111')],
])('a port that no socket takes, %s, ends no process: the look at the server finds nothing', async (_, client) => {
  await expect(examine(client, 'redis:6379')).resolves.toBeUndefined();
});
