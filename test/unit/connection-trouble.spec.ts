import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { expect, it } from '@jest/globals';
import { driverMessage, examine } from '../../lib/redis/connection-trouble.js';
import { createClient, databaseOf, locationOf } from '../../lib/redis/redis.client.js';
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

const ENDLESS = 'x'.repeat(200_000);
/** As long as the name of a host may be. */
const LONGEST = `${'x'.repeat(249)}.com`;

it.each([
  ['a host', { host: LONGEST }, `${LONGEST}:6379, database 0`],
  ['a URL', `redis://${ENDLESS}:1/2`, `${'x'.repeat(253)}…:1, database 2`],
  ['a path', { path: `/${ENDLESS}` }, `/${'x'.repeat(252)}…, database 0`],
  [
    'the name of a master',
    { sentinels: [{ host: ENDLESS }], name: `\n${ENDLESS}` },
    `master "\\n${'x'.repeat(252)}…" of the Sentinels at ${'x'.repeat(253)}…:26379, database 0`,
  ],
])('where Redis is has an end, which leaves what can be a host as it is: %s', (_, connection, location) => {
  expect(locationOf(createClient(connection, 'default', 'test'))).toBe(location);
});

it('what the driver says has an end, behind a whole host', () => {
  expect(driverMessage(new Error(`getaddrinfo ENOTFOUND ${LONGEST}`))).toBe(`getaddrinfo ENOTFOUND ${LONGEST}`);
  expect(driverMessage(new Error(ENDLESS))).toHaveLength(301);
});

it.each([
  `redis://h/${ENDLESS}`,
  `redis://h/${'9'.repeat(200_000)}`,
  { db: 'secret' },
  { db: new URL('redis://:secret@h') },
])('text that is no number of a database is not shown, and no number without end', (connection) => {
  expect(() => locationOf(createClient(connection as never, 'default', 'test'))).toThrow(/^(?!.*secret).{50,200}$/);
});

it('a Cluster tells no text that is asked for as its database', () => {
  const client = createClient({ cluster: ['redis://h:1/secret'] }, 'default', 'test');
  expect(() => databaseOf(client)).toThrow('a Cluster has database 0 only, and text is asked for.');
});
