import { beforeEach, describe, expect, it } from '@jest/globals';
import { DelayQueueLogger } from '../../lib/delay-queue.logger.js';
import { partsOf } from '../../lib/redis/read-changes.js';
import type { RedisConnection } from '../../lib/redis/redis.connection.js';
import { RestWatch } from '../../lib/redis/rest-watch.js';
import type { Resting } from '../../lib/redis/rest-watch.js';

interface FakeServer {
  held: Record<string, string | null>;
  /** ms by which its clock is ahead of this process' monotonic one. */
  ahead: number;
  error?: Error;
  isReplica?: boolean;
  /** Answers to what is asked now never come. */
  hangs?: boolean;
  asked: string[][];
}

function connectionTo(server: FakeServer): RedisConnection {
  const commands = {
    time: async () => {
      const now = performance.now() + server.ahead;
      return [String(Math.floor(now / 1_000)), String(Math.floor((now % 1_000) * 1_000))];
    },
    unlink: async () => {
      if (server.isReplica) throw new Error("READONLY You can't write against a read only replica.");
    },
    mget: async (...keys: string[]) => {
      server.asked.push(keys);
      if (server.hangs) await new Promise(() => {});
      if (server.error) throw server.error;
      return keys.map((key) => server.held[key] ?? null);
    },
  };
  const send = <T>(call: () => Promise<T>) => call();
  return { commands, send, isReady: true, isClosed: true, address: 'here' } as unknown as RedisConnection;
}

describe('a look at shards that rest', () => {
  let server: FakeServer;
  let watch: RestWatch;
  let heard: string[];
  const resting = (key: string, held: string): Resting => ({
    key,
    held,
    ahead: server.ahead,
    stir: () => void heard.push(`${key} stirred`),
    unchanged: () => void heard.push(`${key} unchanged`),
  });
  beforeEach(() => {
    server = { held: { a: '1', b: '2' }, ahead: 1_800_000_000_000, asked: [] };
    watch = new RestWatch(connectionTo(server), DelayQueueLogger.of('rest-watch'));
    heard = [];
    watch.add(resting('a', '1'));
    watch.add(resting('b', '2'));
  });

  it('is one call for all of them, and stirs nobody while nothing changes', async () => {
    await watch.look();
    expect(server.asked).toEqual([['a', 'b']]);
    expect(heard).toEqual(['a unchanged', 'b unchanged']);
  });

  it.each([
    ['changed', '3'],
    ['is gone', null],
  ])('stirs whoever rests at a key that %s', async (_, value) => {
    server.held['b'] = value;
    await watch.look();
    expect(heard).toEqual(['a unchanged', 'b stirred']);
  });

  it.each([
    ['forth', 2_000],
    ['back', -2_000],
  ])('stirs all when the clock of the server went %s', async (_, ms) => {
    server.ahead += ms;
    await watch.look();
    expect(heard).toEqual(['a stirred', 'b stirred']);
  });

  it('stirs all when it fails', async () => {
    server.error = new Error('READONLY');
    await watch.look();
    expect(heard).toEqual(['a stirred', 'b stirred']);
    expect(watch.isUsable).toBe(true);
  });

  it('stirs all when the server has become a replica, which may be cut off from its master', async () => {
    server.isReplica = true;
    await watch.look();
    expect(heard).toEqual(['a stirred', 'b stirred']);
  });

  it('lets nobody rest for a while when it is refused', async () => {
    server.error = new Error("NOPERM this user has no permissions to run the 'mget' command");
    await watch.look();
    expect(heard).toEqual(['a stirred', 'b stirred']);
    expect(watch.isUsable).toBe(false);
  });

  it('goes on with others while one has no answer', async () => {
    server.hangs = true;
    void watch.look();
    server.hangs = false;
    watch.add(resting('c', '3'));
    await watch.look();
    expect(heard).toEqual(['c stirred']);
  });

  it('asks a Cluster slot by slot', () => {
    const cluster = { commands: { nodes: () => [] } } as unknown as RedisConnection;
    expect(partsOf(cluster, ['{x}:1', '{y}:1', '{x}:2'])).toEqual([['{x}:1', '{x}:2'], ['{y}:1']]);
  });
});
