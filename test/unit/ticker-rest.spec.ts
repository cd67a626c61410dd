import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { RedisConnection } from '../../lib/redis/redis.connection.js';
import type { ShardStore } from '../../lib/redis/shard-store.js';

// The library takes its timers when it is loaded.
const real = await import('../../lib/time-and-randomness.js');
jest.unstable_mockModule('../../lib/time-and-randomness.js', () => ({
  ...real,
  setTimeout: (call: () => void, ms: number) => globalThis.setTimeout(call, ms),
  clearTimeout: (timer: NodeJS.Timeout) => globalThis.clearTimeout(timer),
  performance: { now: () => globalThis.performance.now() },
}));
const { DelayQueueLogger } = await import('../../lib/delay-queue.logger.js');
const { RestWatch } = await import('../../lib/redis/rest-watch.js');
const { Ticker } = await import('../../lib/recurring/ticker.js');

const MINUTE = 60_000;
const START = 1_800_000_000_000;

/** One shard, in which nothing is stored but what the key of changes holds. */
function shard() {
  const server = { held: '1', next: '' as number | '', asked: 0, refuses: false };
  const now = () => START + performance.now();
  const commands = {
    time: async () => [String(Math.floor(now() / 1_000)), String(Math.floor((now() % 1_000) * 1_000))],
    unlink: async () => 0,
    mget: async () => {
      if (server.refuses) throw new Error("NOPERM this user has no permissions to run the 'mget' command");
      return [server.held];
    },
  };
  const send = <T>(call: () => Promise<T>) => call();
  const connection = { commands, send, isReady: true, isClosed: false, address: 'here', movedMs: 0, timeoutMs: 5_000 };
  const call = async (script: string) => {
    if (script === 'ticks') {
      server.asked++;
      return [now(), server.next, START, server.held];
    }
    // No jobs at a local time, no schedules.
    return script === 'zoned' ? [now(), '9999z', ''] : [now()];
  };
  const store = { connection, keys: { changed: 'changed' }, session: () => ({ isUsed: false }), call };
  return { server, store: store as unknown as ShardStore, connection: connection as unknown as RedisConnection };
}

describe('what makes the occurrences of a queue', () => {
  let server: ReturnType<typeof shard>['server'];
  let ticker: InstanceType<typeof Ticker>;
  beforeEach(async () => {
    jest.useFakeTimers();
    const one = shard();
    server = one.server;
    const logger = DelayQueueLogger.of('ticker-rest');
    ticker = new Ticker('q', [one.store], logger, new RestWatch(one.connection, logger), undefined, true);
    ticker.start();
    await jest.advanceTimersByTimeAsync(100);
  });
  afterEach(async () => {
    await ticker.stop();
    jest.useRealTimers();
  });

  it('asks no more while there is no schedule and nothing changes, but for once in a quarter of an hour', async () => {
    await jest.advanceTimersByTimeAsync(14 * MINUTE);
    expect(server.asked).toBe(1);
    await jest.advanceTimersByTimeAsync(2 * MINUTE);
    expect(server.asked).toBe(2);
    await ticker.stop();
    expect(jest.getTimerCount()).toBe(0);
  });

  it('asks within half a minute when the shard has changed', async () => {
    await jest.advanceTimersByTimeAsync(5 * MINUTE);
    server.held = '2';
    await jest.advanceTimersByTimeAsync(MINUTE / 2);
    expect(server.asked).toBe(2);
    await jest.advanceTimersByTimeAsync(5 * MINUTE);
    expect(server.asked).toBe(2);
  });

  it('asks as often as ever where there is a schedule', async () => {
    server.held = '2';
    server.next = START + 100 * MINUTE;
    await jest.advanceTimersByTimeAsync(MINUTE / 2);
    const { asked } = server;
    await jest.advanceTimersByTimeAsync(MINUTE);
    expect(server.asked - asked).toBeGreaterThanOrEqual(10);
  });

  it('asks every 20 s where nobody may read the key', async () => {
    server.refuses = true;
    await jest.advanceTimersByTimeAsync(2 * MINUTE);
    expect(server.asked).toBeGreaterThanOrEqual(5);
  });
});
