import { resolveModuleOptions } from '../../delay-queue.options.js';
import { RedisConnection } from '../../redis/redis.connection.js';
import { inWordsOfTheCommand } from './in-words-of-the-command.js';
import type { Session } from './session.js';

/** The connection of the session, or with a URL one to another server, which the caller closes. */
export async function connectionTo({ context }: Session, url: string | undefined): Promise<RedisConnection> {
  if (url === undefined) return context.connection;
  const { connectTimeoutMs, commandTimeoutMs } = context.options;
  const timeouts = { connectTimeout: connectTimeoutMs, commandTimeout: commandTimeoutMs };
  try {
    const connection = new RedisConnection(resolveModuleOptions({ connection: url, ...timeouts }, 'bullmq'));
    await connection.open(true);
    return connection;
  } catch (error) {
    throw inWordsOfTheCommand(error, '--from-redis');
  }
}
