import type { INestApplicationContext } from '@nestjs/common';
import type { RedisConnection } from '../redis/redis.connection.js';

/** Connections that a test gave to `DelayQueueTestingModule.override()`. */
const given = new WeakSet<RedisConnection>();

/** Provided where `forRedis()` is imported. */
export function permissionToken(instance: string): symbol {
  return Symbol.for(`nestjs-delay-queue:${instance}:may-move`);
}

export function permit(connection: RedisConnection): void {
  given.add(connection);
}

/** Time on a Redis is moved by changing its jobs. It is done only where a test has named that Redis. */
export function mayMove(app: INestApplicationContext, connection: RedisConnection, instance: string): boolean {
  if (given.has(connection)) return true;
  try {
    return app.get<boolean>(permissionToken(instance), { strict: false });
  } catch {
    return false;
  }
}
