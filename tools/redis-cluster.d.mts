import type { Redis } from 'ioredis';
import type { StartedRedis } from './find-redis.mjs';
import type { Tether } from './tether.mjs';

export function startClusterNodes(
  tether: Tether,
  count: number,
  options?: { env?: NodeJS.ProcessEnv; flags?: string[] },
): Promise<StartedRedis[]>;

interface Node {
  readonly port: number;
  readonly redis: Redis;
}

/** Shares the slots out between masters that do not know each other yet, and makes them meet. */
export function joinMasters(masters: readonly Node[]): Promise<void>;

/** Resolves when all of these nodes, which are all there are, see all slots served. */
export function untilWhole(nodes: readonly Node[]): Promise<void>;
