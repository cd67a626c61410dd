import { occurrenceId } from '../job/job-id.js';
import { parseSchedules } from '../redis/schedule.protocol.js';
import type { ShardStore } from '../redis/shard-store.js';
import { aheadOf, decodeRecord } from './schedule-record.js';

/** Schedules of one call, and ids of one call. */
const PAGE = 200;
/** What select.lua says of one job: id, state, due time. */
const FIELDS = 3;

/**
 * How many occurrences wait in a shard that its schedules have made ahead: a purge leaves them. One call for 200 schedules, and one for 200
 * occurrences; the jobs of the queue are not looked through, which may be a million.
 *
 * @throws errors of the connection
 */
export async function countMadeAhead(store: ShardStore): Promise<number> {
  let count = 0;
  let cursor: readonly (string | number)[] | undefined = ['', ''];
  while (cursor) {
    const { now, schedules } = parseSchedules((await store.call('schedules', ['', PAGE, ...cursor])) as string[]);
    const ids = schedules.flatMap(({ id, text }) => {
      const record = decodeRecord(text);
      return record ? aheadOf(record.state, now + store.connection.movedMs).map((at) => occurrenceId(id, at)) : [];
    });
    for (let at = 0; at < ids.length; at += PAGE) count += await countWaiting(store, ids.slice(at, at + PAGE));
    const last = schedules.at(-1);
    cursor = last && schedules.length === PAGE ? [last.tick, last.id] : undefined;
  }
  return count;
}

async function countWaiting(store: ShardStore, ids: readonly string[]): Promise<number> {
  const [, , , ...jobs] = (await store.call('select', ['i', '-', '-', '-', '', PAGE, ...ids])) as string[];
  return jobs.filter((word, n) => n % FIELDS === 1 && (word === 'l' || word === 'd')).length;
}
