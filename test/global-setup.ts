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
    globalThis.sharedRedis = { tether, redis, wasEmpty: (await keyCount(redis)) === 0 };
    process.env['REDIS_URL'] = redis.url;
  } catch (error) {
    await tether.close();
    throw error;
  }
}

async function keyCount({ url, description }: FoundRedis): Promise<number> {
  const client = new Redis(process.env['REDIS_ADMIN_URL'] ?? url, { lazyConnect: true, retryStrategy: () => null });
  let cause: Error | undefined; // connect() rejects without it
  client.on('error', (error) => (cause ??= error));
  try {
    await client.connect();
    return await client.dbsize();
  } catch (error) {
    throw new Error(`${description} cannot be used: ${(cause ?? (error as Error)).message}`, { cause });
  } finally {
    client.disconnect();
  }
}
