import type { RedisConnection } from '../redis/redis.connection.js';

/** By the clock of Redis, epoch ms. */
export async function serverTime(connection: RedisConnection): Promise<number> {
  const { commands } = connection;
  const [seconds, micros] = await connection.send(() => (commands as { time(): Promise<(string | number)[]> }).time());
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}
