import { describe, expect, it } from '@jest/globals';
import type { RedisClient } from '../../lib/redis/redis.client.js';
import { ScriptLoader } from '../../lib/redis/script-loader.js';

const KEY = 'dq:{jobs}:session';

/** As much of the driver as is asked before the first call of a script. */
function loading() {
  const asked: unknown[][] = [];
  const sentFor: (string | undefined)[] = [];
  const client = {
    eval: async (_: string, ...keys: unknown[]) => void asked.push(keys),
    evalsha: async (_: string, ...keys: unknown[]) => {
      asked.push(keys);
      throw new Error('NOSCRIPT No matching script.');
    },
    defineCommand: () => undefined,
  };
  const loader = new ScriptLoader(client as unknown as RedisClient, (call, key) => {
    sentFor.push(key);
    return call();
  });
  return { loader, asked, sentFor };
}

describe('what a server is asked before the first call of a script', () => {
  it('goes to the node of a Cluster that the call is for, whose connection is replaced when no answer comes', async () => {
    const { loader, asked, sentFor } = loading();
    await loader.load(KEY);
    expect(loader.isLoaded).toBe(true);
    expect(asked).toEqual([
      [1, KEY],
      [1, KEY],
    ]);
    expect(sentFor).toEqual([KEY, KEY]);
  });

  it('goes to any node while the process boots', async () => {
    const { loader, asked } = loading();
    await loader.load();
    expect(asked).toEqual([[0], [0]]);
  });
});
