import type { StartedRedis } from './find-redis.mjs';
import type { Tether } from './tether.mjs';

/** Full path of the first server program on the PATH, or undefined. */
export function serverOnPath(env?: NodeJS.ProcessEnv): string | undefined;

export function startLocalRedis(tether: Tether, program: string, flags?: string[]): Promise<StartedRedis>;
