import { scheduleKeys } from '../../lib/redis/keys.js';
import type { Shard } from './shard.js';

/** Every stored byte of some keys, by key. */
export type Bytes = ReadonlyMap<string, Buffer>;

/** Copies a shard as it is stored, so that tests can compare it and put it back. */
export class StoredBytes {
  readonly #keys: readonly string[];

  /** @param sessions their keys, which come on top of the fixed ones */
  constructor(
    private readonly shard: Shard,
    sessions: readonly string[],
  ) {
    this.#keys = [...shard.keys.fixed, ...scheduleKeys(shard.keys.fixed), ...sessions];
  }

  async read(): Promise<Bytes> {
    const { redis } = this.shard.world;
    const dumps = await Promise.all(this.#keys.map((key) => redis.dumpBuffer(key)));
    return new Map(this.#keys.flatMap((key, n) => (dumps[n] ? [[key, dumps[n]] as const] : [])));
  }

  async restore(bytes: Bytes): Promise<void> {
    const pipeline = this.shard.world.redis.pipeline().unlink(...this.#keys);
    for (const [key, dump] of bytes) pipeline.restore(key, 0, dump);
    await pipeline.exec();
  }
}

/** Keys that differ. */
export function difference(before: Bytes, after: Bytes): string[] {
  const keys = new Set([...before.keys(), ...after.keys()]);
  return [...keys].filter((key) => {
    const [a, b] = [before.get(key), after.get(key)];
    return a === undefined || b === undefined || !a.equals(b);
  });
}
