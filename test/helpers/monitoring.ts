import type { Redis } from 'ioredis';

/**
 * A connection that hears what Redis is told. `monitor()` of the driver fails on a busy server, and leaves its connection: where what others
 * tell Redis comes in one piece with the answer to MONITOR, the driver takes it for answers to calls that nobody made. It listens all the same.
 */
export async function monitoring(redis: Redis): Promise<Redis> {
  const connection = redis.duplicate({ monitor: true, lazyConnect: false });
  // One for each line that it takes for an answer.
  connection.on('error', () => {});
  await new Promise<void>((resolve) => connection.once('monitoring', resolve));
  return connection;
}
