import type { FoundRedis } from '../tools/find-redis.mjs';
import type { Tether } from '../tools/tether.mjs';

/** What global setup leaves for global teardown, which runs in the same process but in a module graph of its own. */
export interface SharedRedis {
  readonly tether: Tether;
  readonly redis: FoundRedis;
  /** A server that held data before the tests is somebody's, and is not expected to end empty. */
  readonly wasEmpty: boolean;
}

const KEY = Symbol.for('nestjs-delay-queue.shared-redis');

export function keepSharedRedis(shared: SharedRedis): void {
  Reflect.set(globalThis, KEY, shared);
}

export function sharedRedis(): SharedRedis | undefined {
  return Reflect.get(globalThis, KEY) as SharedRedis | undefined;
}
