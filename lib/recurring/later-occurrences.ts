import type { OverlapPolicy } from '../job/occurrence-header.js';
import { occurrenceId, parseOccurrenceId } from '../job/job-id.js';
import { parseSchedules } from '../redis/schedule.protocol.js';
import type { ShardStore } from '../redis/shard-store.js';
import { timesOf } from './occurrence-times.js';
import type { OccurrenceTimes } from './occurrence-times.js';
import { decodeRecord, rhythmOf } from './schedule-record.js';
import type { ScheduleRecord } from './schedule-record.js';
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
  const former = new Set(record.state.former);
  const isTime = (time: number) => !times || isTimeOf(record, times, time) || former.has(time);
  const isOwn = (time: number) => time > at && time <= now && isTime(time);
  const begun = stored.floor === undefined ? undefined : parseOccurrenceId(stored.floor)?.at;
  if (begun !== undefined && isOwn(begun)) return undefined;
  const planned = times && record.state.last < now ? await planTick(schedule, record, times, now) : undefined;
  if (planned?.occurrences.some((one) => isOwn(one.at))) return undefined;
  const later = record.state.recent.filter(isOwn).map((time) => occurrenceId(schedule, time));
  // Where several may run at once Redis does not know which have begun: one that is gone may have run.
  return overlap === 'allow' && later.length > 0 ? undefined : later;
}

/**
 * What is due belongs to the schedule also when it gets other times, of which these are none. So they are remembered, as far as the record names
 * them: up to 100, a kilobyte and a half, and 0.1 ms for each of a cron expression.
 *
 * @param record as it was
 * @param follows with other times, or the same ones
 * @returns `former` of its state
 */
export async function formerTimes(
  record: ScheduleRecord,
  follows: ScheduleRecord,
  now: number,
): Promise<number[] | undefined> {
  const known = new Set(record.state.former);
  const before = rhythmOf(record);
  const isSame = JSON.stringify(before) === JSON.stringify(rhythmOf(follows));
  const times = isSame ? undefined : await timesOf(before, 'schedule').catch(() => undefined);
  const isOwn = (at: number) => known.has(at) || (!isSame && (!times || isTimeOf(record, times, at)));
  const former = record.state.recent.filter((at) => at <= now && isOwn(at));
  return former.length > 0 ? former : undefined;
}

/** The call from which a grid counts is no time of it: what was triggered in the millisecond of that call is none of the schedule's own. */
function isTimeOf({ definition, state }: ScheduleRecord, times: OccurrenceTimes, at: number): boolean {
  const isCall = definition.everyMs !== null && definition.from === null && at === state.anchor;
  return !isCall && times.next(at - 1) === at;
}
