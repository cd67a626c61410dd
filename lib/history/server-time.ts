import { nodeOf } from '../redis/redis.client.js';
import type { RedisConnection } from '../redis/redis.connection.js';

/** On a Cluster all processes ask the node that would have this key: clocks of nodes differ, and one that keeps silent is replaced. */
const WHOSE = 'time';

/** By the clock of Redis, epoch ms. */
export async function serverTime(connection: RedisConnection): Promise<number> {
  const server =
    nodeOf(connection.commands, WHOSE) ?? (connection.commands as { time(): Promise<(string | number)[]> });
  const [seconds, micros] = await connection.send(() => server.time(), WHOSE);
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}
