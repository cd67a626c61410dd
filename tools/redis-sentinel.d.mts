import type { Tether } from './tether.mjs';

/** Resolves with its port, when it serves. It wants one more of its kind before it replaces a master. */
export function startSentinel(
  tether: Tether,
  settings: { name: string; masterPort: number; downAfterMs: number; failoverTimeoutMs: number },
  env?: NodeJS.ProcessEnv,
): Promise<number>;
