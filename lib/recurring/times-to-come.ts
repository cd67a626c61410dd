import { occurrenceId } from '../job/job-id.js';
import { timesOf } from './occurrence-times.js';
import type { OccurrenceTimes } from './occurrence-times.js';
import { rhythmOf, waitingAhead } from './schedule-record.js';
import type { ScheduleRecord } from './schedule-record.js';
import { MOST_OCCURRENCES, planTick } from './tick-plan.js';

/** The jobs that a schedule has made ahead, of which only Redis knows whether they wait. */
export function jobsAhead(id: string, { state }: ScheduleRecord, now: number): string[] {
  return state.paused ? [] : waitingAhead(state, now).map((at) => occurrenceId(id, at));
}

/**
 * The next times of a schedule for which an occurrence will run, the earliest first: those of jobs that wait, and those for which jobs will
 * be made. Not that of one which was cancelled, or was made due before its time. Where this process cannot compute times, as in a zone that
 * it does not know, only those of jobs.
 *
 * @param waiting the jobs that wait and have not begun, and when they are due; undefined: all that the record names wait for their time
 * @param most how many
 */
export async function timesToCome(
  id: string,
  record: ScheduleRecord,
  now: number,
  most: number,
  waiting?: ReadonlyMap<string, number>,
): Promise<number[]> {
  if (record.state.paused) return [];
  const waits = (at: number) => !waiting || (waiting.get(occurrenceId(id, at)) ?? -Infinity) >= at;
  const found = waitingAhead(record.state, now).filter(waits);
  if (found.length >= most) return found.slice(0, most);
  const times = await timesOf(rhythmOf(record), 'schedule').catch(() => undefined);
  if (!times) return found;
  const { definition, state } = await caughtUp(id, record, times, now);
  if (state.last > record.state.last) found.push(...waitingAhead(state, now));
  const over = new Set(state.over);
  const { from, until, limit } = definition;
  let { made } = state;
  let at: number | undefined = Math.max(state.last, now, from === null ? -Infinity : from - 1);
  while (found.length < most && made < (limit ?? Infinity)) {
    at = times.next(at);
    if (at === undefined || at > (until ?? Infinity)) break;
    if (over.has(at)) continue;
    found.push(at);
    made++;
  }
  return found.slice(0, most);
}

/** As if what an outage has missed were counted by now: it counts for `limit`. */
async function caughtUp(
  id: string,
  record: ScheduleRecord,
  times: OccurrenceTimes,
  now: number,
): Promise<ScheduleRecord> {
  const { definition, state } = record;
  if (state.last >= now || definition.limit === null) return record;
  const counting: ScheduleRecord = {
    ...record,
    definition: { ...definition, missed: 'skip', graceMs: 0, jitterMs: 0 },
  };
  const plan = await planTick(id, counting, times, now, MOST_OCCURRENCES);
  return { ...record, state: plan.state };
}
