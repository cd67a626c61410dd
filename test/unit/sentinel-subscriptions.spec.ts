import { describe, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { createClient } from '../../lib/redis/redis.client.js';
import type { ConnectionOption } from '../../lib/redis/connection-option.js';

const OPTION = { sentinels: [{ host: '127.0.0.1', port: 1 }], name: 'jobs', lazyConnect: true };

interface SentinelClient {
  connector: { connectToSentinel(endpoint: object, options: object): Redis };
}

describe.each<[string, () => ConnectionOption]>([
  ['of its own', () => OPTION],
  ['of the application', () => new Redis(OPTION) as unknown as ConnectionOption],
])('a client %s', (_, option) => {
  function watch(): Redis {
    const { connector } = createClient(option(), 'default', 'test') as unknown as SentinelClient;
    return connector.connectToSentinel({ host: '127.0.0.1', port: 1 }, { lazyConnect: true });
  }

  it('hears when a Sentinel does not answer a subscription', async () => {
    const sentinel = watch();
    const heard = jest.spyOn(Promise.prototype, 'catch');
    const answer = sentinel.subscribe('+switch-master');
    expect(heard.mock.contexts).toContain(answer);
    heard.mockRestore();
    sentinel.disconnect();
    await expect(answer).rejects.toThrow(/closed/);
  });

  it('hears of errors of a Sentinel, which the driver else throws or writes to the console', () => {
    const sentinel = watch();
    expect(() => sentinel.emit('error', new Error('Command queue state error'))).not.toThrow();
    sentinel.disconnect();
  });
});
