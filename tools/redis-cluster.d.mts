import type { StartedRedis } from './find-redis.mjs';
import type { Tether } from './tether.mjs';

export function startClusterNodes(
  tether: Tether,
  count: number,
  options?: { env?: NodeJS.ProcessEnv; flags?: string[] },
): Promise<StartedRedis[]>;
