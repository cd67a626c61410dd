import { KEY_NAMES, scheduleKeys } from './keys.js';
import type { KeyName } from './keys.js';
import type { ShardStore } from './shard-store.js';

const HASHES: ReadonlySet<KeyName> = new Set<KeyName>([
  'jobs',
  'followups',
  'attempts',
  'errors',
  'debounce',
  'meta',
  'history',
]);

/**
 * The first key of a shard that is not of its type: the reply to a script does not say which. It is found by commands that the library
 * uses anyway, because a user of Redis may lack TYPE.
 *
 * @returns undefined when there is none, or none can be found
 */
export async function wrongKeyOf({ connection, keys }: ShardStore): Promise<{ key: string; type: string } | undefined> {
  const [schedules, ...zsets] = scheduleKeys(keys.fixed) as [string, ...string[]];
  const typed: { key: string; type: 'hash' | 'zset' }[] = [
    { key: schedules, type: 'hash' },
    ...zsets.map((key) => ({ key, type: 'zset' as const })),
    ...KEY_NAMES.filter((name) => name !== 'changed').map((name) => ({
      key: keys.key(name),
      type: HASHES.has(name) ? ('hash' as const) : ('zset' as const),
    })),
  ];
  const { commands } = connection;
  for (const { key, type } of typed) {
    try {
      await connection.send(() => (type === 'hash' ? commands.hlen(key) : commands.zcard(key)), key);
    } catch (error) {
      if (isWrongType(error)) return { key, type };
    }
  }
  return undefined;
}

export function isWrongType(error: unknown): boolean {
  return error instanceof Error && /\bWRONGTYPE\b/.test(error.message);
}
