import { occurrenceId } from '../job/job-id.js';
import { parseSchedules } from '../redis/schedule.protocol.js';
import type { ShardStore } from '../redis/shard-store.js';
import { aheadOf, decodeRecord } from './schedule-record.js';
import { waitingOf } from './waiting-occurrences.js';

/** Schedules of one call. */
const PAGE = 200;

/**
 * How many occurrences wait in a shard that its schedules have made ahead: a purge leaves them. One call for 200 schedules, and one for 500
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
    count += (await waitingOf(store, ids)).size;
    const last = schedules.at(-1);
    cursor = last && schedules.length === PAGE ? [last.tick, last.id] : undefined;
  }
  return count;
}
