import { Redis } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';

/** The server notices a closed connection a little later than the process that closed it. */
const GRACE_MS = 2_000;

/** Fails the run for what the tests left behind, and says which Redis they ran on. */
export default async function globalTeardown(): Promise<void> {
  const shared = globalThis.sharedRedis;
  if (!shared) return;
  try {
    await refuseLeftovers(shared);
  } finally {
    await shared.tether.close();
    const { kind, description, passedOver } = shared.redis;
    const why = kind === 'local' && passedOver.length > 0 ? ` (because ${passedOver.join(', ')})` : '';
    process.stderr.write(`Redis of this run: ${description}${why}\n`);
  }
}

async function refuseLeftovers({ redis, wasEmpty }: NonNullable<typeof sharedRedis>): Promise<void> {
  const client = new Redis(process.env['REDIS_ADMIN_URL'] ?? redis.url);
  try {
    if (wasEmpty && (await client.dbsize()) > 0) {
      const [, keys] = await client.scan('0', 'COUNT', 1_000);
      throw new Error(`the tests left ${await client.dbsize()} keys in Redis: ${keys.slice(0, 10).join(', ')}`);
    }
    if (redis.kind === 'url') return; // its other clients are none of our business
    const left = await connectionsLeft(client);
    if (left.length > 0) throw new Error(`the tests left connections to Redis open:\n${left.join('\n')}`);
  } finally {
    client.disconnect();
  }
}

async function connectionsLeft(client: Redis): Promise<string[]> {
  const own = `id=${await client.client('ID')} `;
  const deadline = Date.now() + GRACE_MS;
  for (;;) {
    const list = (await client.client('LIST')) as string;
    const left = list.split('\n').filter((line) => line && !line.startsWith(own));
    if (left.length === 0 || Date.now() > deadline) return left;
    await sleep(50);
  }
}
