import { setTimeout } from '../time-and-randomness.js';
import type { RedisClient } from './redis.client.js';

const AGAIN_MS = 50;

/**
 * Connects a client again that the driver has given up. It does so where a Sentinel tells of a new master while the client asks
 * another one who the master is: it ends the call of `connect()` as if somebody had closed the client, and never makes another one. A
 * Sentinel that is gone together with the master is asked for seconds, so this is likely just when the master fails.
 *
 * @param isWanted false when the client was told to disconnect
 */
export function keepConnecting(client: RedisClient, isWanted: () => boolean): void {
  client.on('end', () => {
    setTimeout(() => {
      if (isWanted() && client.status === 'end') client.connect().catch(() => undefined);
    }, AGAIN_MS);
  });
}
