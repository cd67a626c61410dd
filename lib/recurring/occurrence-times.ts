import { InvalidOptionError } from '../delay-queue.errors.js';
import { shown } from '../job/duration.js';
import { summarizeError } from '../job/error-record.js';
import { assertTimeZone } from '../job/wall-clock.js';
import { CronStretches } from './cron-stretches.js';
import type { Counted } from './cron-stretches.js';

/** When a schedule occurs: at the times of a cron expression, or on a grid. Epoch ms throughout. */
export type Rhythm =
  | { readonly cron: string; readonly timeZone: string }
  | { readonly everyMs: number; /** A time of the grid. */ readonly anchor: number };

/** The times of a rhythm. Pure: equal rhythms and equal zone data give equal times in every process. */
export interface OccurrenceTimes {
  /** The first time later than this one; undefined when there is none within ten years. */
  next(after: number): number | undefined;
  /** The latest time in (after, until]; undefined when there is none. */
  latest(after: number, until: number): number | undefined;
  /** How many times there are in (after, until], at most `most`: some milliseconds of work, however many they are. */
  count(after: number, until: number, most: number): Counted;
}

const TEN_YEARS_MS = 3_653 * 86_400_000;
const MOST_KEPT = 500;
const MOST_VISITED = 100;
const kept = new Map<string, OccurrenceTimes>();
let loading: Promise<typeof import('croner')> | undefined;

/**
 * @param field begins error messages
 * @throws InvalidOptionError for an expression, or a zone, that is none
 */
export async function timesOf(rhythm: Rhythm, field: string): Promise<OccurrenceTimes> {
  if (!('cron' in rhythm)) return gridTimes(rhythm.everyMs, rhythm.anchor);
  const name = `${rhythm.timeZone} ${rhythm.cron}`;
  let times = kept.get(name);
  if (!times) {
    times = await cronTimes(rhythm.cron, rhythm.timeZone, field);
    if (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value!);
    kept.set(name, times);
  }
  return times;
}

/** @throws InvalidOptionError when it does not occur within ten years */
export function assertOccurs(times: OccurrenceTimes, after: number, field: string): void {
  if (times.next(after) !== undefined) return;
  throw new InvalidOptionError(`${field}: it does not occur within ten years. Give times that exist.`);
}

/** The first times in (after, end], at most `most`. */
export function timesBetween(times: OccurrenceTimes, after: number, end: number, most: number): number[] {
  const found: number[] = [];
  for (let at = times.next(after); at !== undefined && at <= end && found.length < most; at = times.next(at))
    found.push(at);
  return found;
}

function gridTimes(everyMs: number, anchor: number): OccurrenceTimes {
  const floor = (ms: number) => anchor + Math.floor((ms - anchor) / everyMs) * everyMs;
  const next = (after: number) => (after < anchor ? anchor : floor(after) + everyMs);
  return {
    next,
    latest: (after, until) => (next(after) > until ? undefined : floor(until)),
    count: (after, until, most) => {
      const first = next(after);
      const count = Math.max(0, Math.min(most, (floor(until) - first) / everyMs + 1));
      return { count, until: count < most ? until : first + (count - 1) * everyMs, isOver: true };
    },
  };
}

/** Loaded with the first expression: who has none never loads it. */
async function cronTimes(expression: string, timeZone: string, field: string): Promise<OccurrenceTimes> {
  const { Cron } = await (loading ??= import('croner'));
  assertTimeZone(timeZone, field);
  try {
    const cron = new Cron(expression, {
      timezone: timeZone,
      paused: true,
      mode: '5-or-6-parts',
      // A fixed time that the spring change leaves out runs at the first moment after it, and one that comes twice in autumn runs once.
      fixedTimeRule: 'no-wildcard',
    });
    const next = (after: number) => {
      const time = cron.nextRun(new Date(after))?.getTime();
      return time === undefined || time > after + TEN_YEARS_MS ? undefined : time;
    };
    // Most schedules never miss enough for it.
    let stretches: CronStretches | undefined | false = false;
    return {
      next,
      latest: (after, until) => latestOf(next, after, until),
      count: (after, until, most) => {
        if (stretches === false) stretches = CronStretches.of(Cron, expression, timeZone, next);
        return stretches ? stretches.count(after, until, most) : visit(next, after, until, most);
      },
    };
  } catch (cause) {
    throw new InvalidOptionError(
      `${field}: ${shown(expression)} is not a cron expression of five or six parts: ${summarizeError(cause).replace(/\.$/, '')}.`,
      { cause },
    );
  }
}

/** By halves: a stretch of years takes some fifty steps. */
function latestOf(next: OccurrenceTimes['next'], after: number, until: number): number | undefined {
  let found: number | undefined;
  let end = until;
  for (;;) {
    const following = next(found ?? after);
    if (following === undefined || following > end) return found;
    found = following;
    const middle = Math.floor((found + end) / 2);
    const later = next(middle);
    if (later !== undefined && later <= end) found = later;
    else end = middle;
  }
}

function visit(next: OccurrenceTimes['next'], after: number, until: number, most: number): Counted {
  const end = Math.max(0, Math.min(most, MOST_VISITED));
  let reached = after;
  for (let count = 0; count < end; count++) {
    const at = next(reached);
    if (at === undefined || at > until) return { count, until, isOver: true };
    reached = at;
  }
  return { count: end, until: reached, isOver: most <= MOST_VISITED };
}

/** A part of `jitterMs`, always the same one for one occurrence: processes that compute it agree. */
export function jitterOf(schedule: string, at: number, jitterMs: number): number {
  if (jitterMs === 0) return 0;
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(`${schedule} ${at}`)) hash = Math.imul(hash ^ byte, 0x01000193);
  let bits = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return Math.floor((((bits ^ (bits >>> 16)) >>> 0) / 2 ** 32) * jitterMs);
}
