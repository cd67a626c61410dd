import type { ScheduleRecord } from './schedule-record.js';
import { remembered } from './tick-plan.js';

/**
 * The record names which occurrences are over of those that it has made ahead: no later change makes them again before their time is past.
 * Nobody reads them for that. Whoever takes them back takes them for waiting, and lib/lua/recurring/tick.lua, which writes nothing when some
 * are not, tells which: so it is right at the very moment of the write.
 *
 * @param over nominal times
 */
export function withOver(record: ScheduleRecord, over: readonly number[]): ScheduleRecord {
  if (over.length === 0) return record;
  return { ...record, state: { ...record.state, over: remembered(record.state.over ?? [], over) } };
}
