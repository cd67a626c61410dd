import { decodeRecord } from '../recurring/schedule-record.js';
import { parseSchedules } from '../redis/schedule.protocol.js';
import type { ShardStore } from '../redis/shard-store.js';

/** Of each shard so many are looked at, those first that need more occurrences first. */
const MOST_LOOKED_AT = 20;
const MOST_NAMED = 3;

/** Some ids of schedules that a newer library wrote. */
export async function unreadableSchedules(stores: readonly ShardStore[]): Promise<string[]> {
  const found: string[] = [];
  for (const store of stores) {
    const reply = parseSchedules((await store.call('schedules', ['', MOST_LOOKED_AT, '', ''])) as (string | number)[]);
    found.push(...reply.schedules.filter(({ text }) => !decodeRecord(text)).map(({ id }) => id));
    if (found.length >= MOST_NAMED) break;
  }
  return found.slice(0, MOST_NAMED);
}
