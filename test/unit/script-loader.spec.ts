import { describe, expect, it } from '@jest/globals';
import type { AnyScriptName } from '../../lib/lua/scripts.js';
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
  return { loader, client, asked, sentFor };
}

it('every shard with limits that was ever called was remembered: the one that was called longest ago is forgotten', async () => {
  const { loader } = loading();
  await loader.load();
  const due = (n: number) => `dq:{queue-${n}}:due`;
  const call = (n: number) => loader.call('place', [due(n)], 'session', []);
  await call(0);
  await call(1);
  for (let n = 2; n < 10_000; n++) await call(n);
  await call(0);
  await call(10_000);
  expect([0, 1, 2, 10_000].map((n) => loader.isLimited(due(n)))).toEqual([true, false, true, true]);
});

describe('which of the two builds of a script a shard is called with', () => {
  const DUE = 'dq:{jobs}:due';
  const PLAIN = 'DQPLAIN no limits are kept at dq:{jobs}:meta';
  const LIMITED = 'DQLAYOUT unknown features "limits" are needed at dq:{jobs}:meta';

  /** A server that answers when the test says so. */
  async function calling() {
    const { loader, client } = loading();
    const sent: { build: string; answer: (refusal?: string) => Promise<void> }[] = [];
    client.defineCommand = function (this: Record<string, unknown>, name: string) {
      this[name] = () =>
        new Promise((resolve, reject) => {
          const answer = async (refusal?: string) => {
            if (refusal === undefined) resolve('answered');
            else reject(new Error(refusal));
            // Whoever was refused has sent the repeat after that.
            await new Promise(setImmediate);
          };
          sent.push({ build: /^dq\d+l[A-Z]/.test(name) ? 'limited' : 'plain', answer });
        });
    };
    await loader.load();
    const call = (script: AnyScriptName) => loader.call(script, [DUE], 'session', []);
    const builds = () => sent.map(({ build }) => build);
    const answer = (n: number, refusal?: string) => sent[n]!.answer(refusal);
    return { loader, call, builds, answer };
  }

  it.each(['groups', 'limit', 'listGroup'] as const)(
    'is not changed by the answer of %s, which any shard gives',
    async (script) => {
      const { loader, call, builds, answer } = await calling();
      void call(script);
      await answer(0);
      expect(loader.isLimited(DUE)).toBe(false);
      void call('place');
      await answer(1);
      void call(script);
      await answer(2);
      expect(loader.isLimited(DUE)).toBe(true);
      expect(builds()).toEqual(['limited', 'limited', 'limited']);
    },
  );

  it('is what the last refusal says, also when the shard has changed since the one before', async () => {
    const { loader, call, builds, answer } = await calling();
    void call('place');
    await answer(0);
    const counts = call('counts');
    await answer(1, PLAIN);
    expect(loader.isLimited(DUE)).toBe(false);
    await answer(2, LIMITED);
    expect(loader.isLimited(DUE)).toBe(true);
    await answer(3);
    expect(await counts).toBe('answered');
    expect(builds()).toEqual(['limited', 'limited', 'plain', 'limited']);
  });

  it('is what a call has told that was sent later, also when a refusal of before comes after its answer', async () => {
    const { loader, call, builds, answer } = await calling();
    void call('place');
    await answer(0);
    const [counts] = [call('counts'), call('place')];
    await answer(2);
    await answer(1, PLAIN);
    expect(loader.isLimited(DUE)).toBe(true);
    await answer(3, LIMITED);
    await answer(4);
    expect(await counts).toBe('answered');
    expect(builds()).toEqual(['limited', 'limited', 'limited', 'plain', 'limited']);
  });

  it('is not the other one for any other error', async () => {
    const { call, builds, answer } = await calling();
    const counts = call('counts').catch((error: Error) => error.message);
    await answer(0, 'DQLAYOUT unknown features "rates" are needed at dq:{jobs}:meta');
    expect(await counts).toContain('rates');
    expect(builds()).toEqual(['plain']);
  });
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
