import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { expect, it } from '@jest/globals';
import { driverMessage, examine } from '../../lib/redis/connection-trouble.js';
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

/** Of a server that is no more. */
async function refusedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

it('a name with several addresses that all refuse is told with the error of each, and not with an empty text', async () => {
  const port = await refusedPort();
  const addresses = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }));
  const socket = connect({ port, host: 'localhost', lookup: (_, __, found) => found(null, addresses) });
  const [error] = (await once(socket, 'error').catch((thrown: Error) => [thrown])) as [Error];
  expect(error.message).toBe('');
  expect(driverMessage(error)).toBe(`connect ECONNREFUSED 127.0.0.1:${port}; connect ECONNREFUSED 127.0.0.2:${port}`);
});

it('an error of the driver is told in its words, and one that several addresses have in common once', () => {
  expect(driverMessage(new Error('read ECONNRESET'))).toBe('read ECONNRESET');
  const same = [new Error('connect ETIMEDOUT'), new Error('connect ETIMEDOUT')];
  expect(driverMessage(new AggregateError(same, ''))).toBe('connect ETIMEDOUT');
});
