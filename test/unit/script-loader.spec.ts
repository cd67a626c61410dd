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
    defineCommand(this: Record<string, unknown>, name: string) {
      this[name] = async () => undefined;
    },
  };
  const loader = new ScriptLoader(client as unknown as RedisClient, (call, key) => {
    sentFor.push(key);
    return call();
  });
  return { loader, asked, sentFor };
}

it('every shard with limits that was ever called was remembered: the one that was called longest ago is forgotten', async () => {
  const { loader } = loading();
  await loader.load();
  const due = (n: number) => `dq:{queue-${n}}:due`;
  const call = (n: number) => loader.call('limit', [due(n)], 'session', []);
  await call(0);
  await call(1);
  for (let n = 2; n < 10_000; n++) await call(n);
  await call(0);
  await call(10_000);
  expect([0, 1, 2, 10_000].map((n) => loader.isLimited(due(n)))).toEqual([true, false, true, true]);
});

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
