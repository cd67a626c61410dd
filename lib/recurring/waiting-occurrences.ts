import type { ShardStore } from '../redis/shard-store.js';
import { readInTime } from './read-in-time.js';

/** Ids of one call. */
const PAGE = 500;

/**
 * Which of these occurrences wait and have not begun: a record tells which were made, not which of them were cancelled, or made to run
 * before their time.
 *
 * @param ids of jobs
 * @param read the call that wants to know, and the schedule that it is about: it rides out a short outage
 * @returns their ids, and when they are due (epoch ms of schedules)
 * @throws errors of the connection
 */
export async function waitingOf(
  store: ShardStore,
  ids: readonly string[],
  read?: { call: string; id: string },
): Promise<Map<string, number>> {
  const waiting = new Map<string, number>();
  for (let at = 0; at < ids.length; at += PAGE) {
    const page = ids.slice(at, at + PAGE);
    const dues = (await (read
      ? readInTime(store, 'waitingOccurrences', page, read)
      : store.call('waitingOccurrences', page))) as string[];
    for (const [n, id] of page.entries()) {
      if (dues[n] !== '') waiting.set(id, Number(dues[n]) + store.connection.movedMs);
    }
  }
  return waiting;
}
