import type { MemoryStore } from '../../lib/memory/memory.store.js';
import type { Disk } from './disk.js';
import type { Replicas } from './replicas.js';

/** What INFO of a simulated server is made of. */
interface Informed {
  readonly store: MemoryStore;
  readonly disk: Disk;
  readonly replicas: Replicas | undefined;
  /** What it says in place of the usual, or beside it. */
  readonly oddInfo: Readonly<Record<string, string>>;
}

export function infoOf({ store, disk, replicas, oddInfo }: Informed, isLoading: boolean): string {
  const own: Readonly<Record<string, string | number>> = {
    redis_version: '7.4.0',
    server_name: 'simulated',
    aof_enabled: disk.persistence === 'none' ? 0 : 1,
    connected_slaves: replicas?.count ?? 0,
    ...oddInfo,
  };
  const text = store.command('INFO', []) as string;
  const known = new Set<string>();
  const lines = text.replace(/^(\w+):.*$/gm, (line, field: string) => {
    known.add(field);
    return field in own ? `${field}:${own[field]}` : line;
  });
  const more = Object.entries(oddInfo).filter(([field]) => !known.has(field));
  return `${lines}${more.map(([field, value]) => `${field}:${value}\r\n`).join('')}loading:${isLoading ? 1 : 0}\r\n`;
}
