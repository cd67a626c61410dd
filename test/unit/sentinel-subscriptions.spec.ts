import { expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { createClient } from '../../lib/redis/redis.client.js';
import type { ConnectionOption } from '../../lib/redis/connection-option.js';

const OPTION = { sentinels: [{ host: '127.0.0.1', port: 1 }], name: 'jobs', lazyConnect: true };

interface SentinelClient {
  connector: { connectToSentinel(endpoint: object, options: object): Redis };
}

it.each<[string, () => ConnectionOption]>([
  ['of its own', () => OPTION],
  ['of the application', () => new Redis(OPTION) as unknown as ConnectionOption],
])('somebody hears when a Sentinel does not answer a subscription: the client is %s', async (_, option) => {
  const { connector } = createClient(option(), 'default', 'test') as unknown as SentinelClient;
  const sentinel = connector.connectToSentinel({ host: '127.0.0.1', port: 1 }, { lazyConnect: true });
  sentinel.on('error', () => undefined);
  const heard = jest.spyOn(Promise.prototype, 'catch');
  const answer = sentinel.subscribe('+switch-master');
  expect(heard.mock.contexts).toContain(answer);
  heard.mockRestore();
  sentinel.disconnect();
  await expect(answer).rejects.toThrow(/closed/);
});
