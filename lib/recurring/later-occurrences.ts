import type { OverlapPolicy } from '../job/occurrence-header.js';
import { occurrenceId, parseOccurrenceId } from '../job/job-id.js';
import { parseSchedules } from '../redis/schedule.protocol.js';
import type { ShardStore } from '../redis/shard-store.js';
import { timesOf } from './occurrence-times.js';
import { decodeRecord, rhythmOf } from './schedule-record.js';
import { planTick } from './tick-plan.js';

/**
 * Which occurrences may take the place of one that is late: those of the schedule itself that are due by now.
 *
 * @param at its nominal time
 * @returns their ids; undefined where one has begun or will be made, and where nothing tells, because the schedule is gone
 */
export async function laterThan(
  store: ShardStore,
  schedule: string,
  at: number,
  overlap: OverlapPolicy,
): Promise<string[] | undefined> {
  const reply = parseSchedules((await store.call('schedules', [schedule, 1, '', ''])) as (string | number)[]);
  const [stored] = reply.schedules;
  const record = stored && decodeRecord(stored.text);
  if (!record) return undefined;
  const now = reply.now + store.connection.movedMs;
  const times = await timesOf(rhythmOf(record), 'schedule').catch(() => undefined);
  // What was triggered takes no place of another one.
  const isOwn = (time: number) => time > at && time <= now && (!times || times.next(time - 1) === time);
  const begun = stored.floor === undefined ? undefined : parseOccurrenceId(stored.floor)?.at;
  if (begun !== undefined && isOwn(begun)) return undefined;
  const planned = times && record.state.last < now ? await planTick(schedule, record, times, now) : undefined;
  if (planned?.occurrences.some((one) => isOwn(one.at))) return undefined;
  const later = record.state.recent.filter(isOwn).map((time) => occurrenceId(schedule, time));
  // Where several may run at once Redis does not know which have begun: one that is gone may have run.
  return overlap === 'allow' && later.length > 0 ? undefined : later;
}
