import type { Redis } from 'ioredis';
import { nodeOf } from './redis.client.js';
import { slotOf } from './keys.js';
import type { RedisConnection } from './redis.connection.js';

/** A reply must not hold up everybody else's. */
const KEYS_PER_CALL = 500;

/** What keys of changes hold, and the clock of the server that said so. */
export interface Changes {
  readonly keys: readonly string[];
  readonly held: readonly (string | null)[];
  /** Epoch ms. */
  readonly serverNow: number;
}

/** Keys that one call can read: on a Cluster those of one slot. */
export function partsOf({ commands }: RedisConnection, keys: Iterable<string>): string[][] {
  const parts: string[][] = [];
  const open = new Map<number, string[]>();
  for (const key of keys) {
    const slot = 'nodes' in commands ? slotOf(key) : 0;
    let part = open.get(slot);
    if (!part || part.length === KEYS_PER_CALL) {
      part = [];
      open.set(slot, part);
      parts.push(part);
    }
    part.push(key);
  }
  return parts;
}

/**
 * Reads the keys of one part; and asks each server once for all parts for its time, and whether it is still a master.
 *
 * @param times answers of servers in this round
 * @throws errors of the connection, and of a server that has become a replica
 */
export async function readChanges(
  connection: RedisConnection,
  keys: string[],
  times: Map<object, Promise<number>>,
): Promise<Changes> {
  const [first] = keys as [string];
  const { commands } = connection;
  const node = nodeOf(commands, first);
  if (!node) throw new Error('The node of this slot is not known.');
  let time = times.get(node);
  if (!time) {
    time = connection.send(() => timeOf(node, first), first);
    times.set(node, time);
  }
  const held = connection.send(() => commands.mget(...keys), first);
  // Both are waited for: a rejection of which nobody hears would end the process.
  const [all, serverNow] = await Promise.all([held, time]);
  return { keys, held: all, serverNow };
}

/** A replica answers what only reads, and may be cut off from its master: so a key that never exists is removed. */
async function timeOf(node: Redis, key: string): Promise<number> {
  const [[seconds, micros]] = await Promise.all([node.time(), node.unlink(`${key}:none`)]);
  return Number(seconds) * 1_000 + Number(micros) / 1_000;
}
