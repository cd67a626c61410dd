import type { EventEmitter } from 'node:events';
import { expect, it, jest } from '@jest/globals';
import { Cluster } from 'ioredis';
import { createClient } from '../../lib/redis/redis.client.js';
import type { ConnectionOption } from '../../lib/redis/connection-option.js';

const OPTION: ConnectionOption = { cluster: [{ host: '127.0.0.1', port: 1 }] };

it.each<[string, () => ConnectionOption]>([
  ['of its own', () => OPTION],
  [
    'of the application',
    () => new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true }) as unknown as ConnectionOption,
  ],
])('somebody hears when an ASKING is not answered: the Cluster is %s', (_, option) => {
  const client = createClient(option(), 'default', 'test') as unknown as EventEmitter;
  const answer = { catch: jest.fn() };
  const node = { asking: () => answer, flushQueue: () => {} };
  client.emit('+node', node);
  expect(node.asking()).toBe(answer);
  expect(answer.catch).toHaveBeenCalledTimes(1);
});
