import { Redis } from 'ioredis';
import { findRedis, testOrder, type FoundRedis } from '../tools/find-redis.mjs';
import { Tether } from '../tools/tether.mjs';

declare global {
  /** What this leaves for global teardown, which runs in the same process. Jest loads both without a module graph. */
  var sharedRedis: { tether: Tether; redis: FoundRedis; wasEmpty: boolean } | undefined;
}

export default async function globalSetup(): Promise<void> {
  const tether = await Tether.open();
  try {
    const redis = await findRedis({ tether, order: testOrder() });
    globalThis.sharedRedis = { tether, redis, wasEmpty: (await keyCount(redis.url)) === 0 };
    process.env['REDIS_URL'] = redis.url;
  } catch (error) {
    await tether.close();
    throw error;
  }
}

async function keyCount(url: string): Promise<number> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  client.on('error', () => {}); // connect() rejects with it
  try {
    await client.connect();
    return await client.dbsize();
  } finally {
    client.disconnect();
  }
}
