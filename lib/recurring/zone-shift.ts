import { timesBetween } from './occurrence-times.js';
import type { OccurrenceTimes } from './occurrence-times.js';
import { aheadOf, withoutAhead } from './schedule-record.js';
import type { ScheduleRecord } from './schedule-record.js';
import { planTick, remembered } from './tick-plan.js';
import type { TickPlan } from './tick-plan.js';

/** No place has ever changed its clocks by more: one that changed sides of the date line. */
const FARTHEST_MS = 26 * 3_600_000;
/** Rules for clocks change by an hour or so. Within these a shift must be that of several times, and not only of one. */
const USUAL_MS = 3 * 3_600_000;
/** Times with which a shift is compared, and times that are tried: each costs some 0.1 ms. */
const MOST_KNOWN = 8;
const MOST_TRIED = 24;

/**
 * What follows where newer zone data give a schedule other times. Each occurrence that older data have made has one time by the newer ones,
 * and happens once: what was ahead happens at its new time, at once where that is over by now, whatever `missed` says; what has happened
 * does not happen again at a new time that is yet to come. The older data are not there any more, so the nearest times belong together.
 *
 * @param times by the newer data
 */
export async function planByNewerZones(
  id: string,
  record: ScheduleRecord,
  times: OccurrenceTimes,
  now: number,
): Promise<TickPlan> {
  const { state, definition } = record;
  const ahead = aheadOf(state, now);
  if (ahead.length === 0) {
    // A time of a pause, or of a change, is none of the schedule.
    const isOwn = state.recent.includes(state.last);
    const last = (isOwn ? nearest(times, state.last) : undefined) ?? state.last;
    const follows = { ...state, revision: state.revision + 1, last };
    return { state: follows, occurrences: [], missed: undefined, tick: now };
  }
  const begun = withoutAhead(state, now);
  const shift = shiftOf(times, ahead, begun.recent);
  const first = ahead[0]! + (shift ?? 0);
  const isPast = shift !== undefined && first <= now;
  const last = isPast ? first - 1 : Math.max(now, ...begun.recent);
  const cancelled = (state.over ?? []).map((at) => shifted(times, at, shift));
  const happened = shift === undefined ? [] : timesBetween(times, last, first - 1, MOST_TRIED);
  const over = remembered(cancelled, happened);
  const anew: ScheduleRecord = {
    ...record,
    definition: definition.missed === 'skip' ? { ...definition, missed: 'once' } : definition,
    state: { ...begun, over, last },
  };
  const plan = await planTick(id, anew, times, now);
  return { ...plan, occurrences: plan.occurrences.map((one) => ({ ...one, due: Math.max(one.due, now) })) };
}

/** By how much the times have moved; undefined where none is near. */
function shiftOf(times: OccurrenceTimes, ahead: readonly number[], before: readonly number[]): number | undefined {
  const first = ahead[0]!;
  const known = [...before.slice(-1), ...ahead.slice(0, MOST_KNOWN)];
  const fits = (shift: number) => known.every((at) => isTime(times, at + shift));
  if (fits(0)) return 0;
  const tried: number[] = [];
  for (let at = times.next(first - USUAL_MS - 1); at !== undefined && at <= first + USUAL_MS; at = times.next(at)) {
    if (tried.push(at - first) === MOST_TRIED) break;
  }
  // Of two that are as near the later one: then nothing runs twice.
  tried.sort((a, b) => Math.abs(a) - Math.abs(b) || b - a);
  const found = tried.find(fits);
  if (found !== undefined) return found;
  const at = nearest(times, first);
  return at === undefined ? undefined : at - first;
}

function shifted(times: OccurrenceTimes, at: number, shift: number | undefined): number {
  if (shift !== undefined && isTime(times, at + shift)) return at + shift;
  return nearest(times, at) ?? at;
}

function nearest(times: OccurrenceTimes, at: number): number | undefined {
  if (isTime(times, at)) return at;
  const later = times.next(at) ?? Infinity;
  const earlier = times.latest(at - FARTHEST_MS - 1, at) ?? -Infinity;
  const found = later - at <= at - earlier ? later : earlier;
  return Math.abs(found - at) <= FARTHEST_MS ? found : undefined;
}

function isTime(times: OccurrenceTimes, at: number): boolean {
  return times.next(at - 1) === at;
}
