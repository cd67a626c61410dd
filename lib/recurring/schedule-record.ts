import type { MissedPolicy, OverlapPolicy } from '../job/occurrence-header.js';
import type { StoredSchedule } from '../redis/schedule.protocol.js';
import type { Rhythm } from './occurrence-times.js';

/** What a schedule is, as its owner said it. Every field is always there in this order: equal schedules are equal texts. */
export interface ScheduleDefinition {
  readonly cron: string | null;
  readonly timeZone: string | null;
  readonly everyMs: number | null;
  readonly from: number | null;
  readonly until: number | null;
  /** Most occurrences. */
  readonly limit: number | null;
  readonly jitterMs: number;
  readonly missed: MissedPolicy;
  readonly graceMs: number;
  /** With `missed: 'all'`: most occurrences that are made up for. */
  readonly most: number;
  readonly overlap: OverlapPolicy;
  readonly expiresInMs: number | null;
  /** Where occurrences with a group or a priority stand in the index of their queue (lib/job/place.ts). */
  readonly place: string | null;
}

/** How far it is. */
export interface ScheduleState {
  /** Rises with each change, so that no record is ever written twice. */
  readonly revision: number;
  /** A time of the grid of `every`. */
  readonly anchor: number;
  /** Nominal time of the last occurrence that was made, or counted as missed. */
  readonly last: number;
  /** How many were made, or counted as missed: those until `last`, and those of `over`. */
  readonly made: number;
  /** Nominal times of occurrences that may still be there, the oldest first: at most 100. */
  readonly recent: readonly number[];
  /** Version of the zone data with which they were computed. */
  readonly zoneData: string;
  readonly owner: 'code' | 'call';
  readonly paused: boolean;
  /** Of one that is paused: when that was, ms, where occurrences that were triggered at one moment have made `last` later. */
  readonly pausedAt?: number | undefined;
  /** Only of one that is about to be removed: nobody has paused it, but it counts as paused. */
  readonly removing?: true | undefined;
  /** Only of one that its group brings to another shard: it counts as paused here. */
  readonly leaving?: Leaving | undefined;
  /** What it counted in other shards, before its group was changed. */
  readonly elsewhere?: OccurrenceCounts | undefined;
  /** Nominal time of the last occurrence that `trigger()` made. */
  readonly triggered?: number | undefined;
  /** Nominal times to come that are not made again, and count once: their occurrences were cancelled, or had begun, before the schedule changed. */
  readonly over?: readonly number[] | undefined;
  /**
   * Of `recent`, times that are none of the rhythm as it is now, and were of one before: theirs are no triggered occurrences. Undefined where
   * an older library changed it.
   */
  readonly former?: readonly number[] | undefined;
  /** Backfills that are not complete: the latest ones. */
  readonly backfills?: readonly Backfill[] | undefined;
}

/** How far a schedule is on its way to another shard (schedule-move.ts). */
export interface Leaving {
  readonly wasPaused: boolean;
  /** Until when whoever moves it may write it in the other shard, ms: nobody else goes on with it before. Undefined until it is about to. */
  readonly until?: number | undefined;
  /** What it had counted here by then. */
  readonly counted?: Pick<OccurrenceCounts, 'missed' | 'overlapped'> | undefined;
}

export interface OccurrenceCounts {
  readonly missed: number;
  readonly overlapped: number;
  /** Id of the occurrence that began last. */
  readonly lastJob?: string | undefined;
}

/** How far a backfill is. */
export interface Backfill {
  readonly from: number;
  readonly to: number;
  /** Nominal time of the last occurrence that was made. */
  readonly reached: number;
  readonly made: number;
  /** Times of it that were overdue, and were made as the schedule wants it: they may have run by now. */
  readonly caughtUp?: readonly number[] | undefined;
}

export interface ScheduleRecord {
  readonly definition: ScheduleDefinition;
  readonly state: ScheduleState;
  /** Header and payload of every occurrence, as lib/job/envelope.ts writes them. */
  readonly content: string;
}

const VERSION = 1;
/** Of many that are triggered at one moment, the last have times so much later. A later one was triggered while Redis' clock was ahead. */
const TRIGGERED_WITHIN_MS = 60_000;

/** Three parts: two lines of JSON, and the content. Scripts compare the whole text; schedules-in.lua alone looks for `leaving` in it. */
export function encodeRecord({ definition, state, content }: ScheduleRecord): string {
  return `${VERSION}${JSON.stringify(definition)}\n${JSON.stringify(state)}\n${content}`;
}

/** Undefined for a record that a newer library wrote, or that is damaged: it is left to processes that can read it. */
export function decodeRecord(text: string): ScheduleRecord | undefined {
  const [definition, state] = text.split('\n', 2);
  if (!definition || !state || definition[0] !== String(VERSION) || definition[1] !== '{') return undefined;
  try {
    return {
      definition: JSON.parse(definition.slice(1)),
      state: JSON.parse(state),
      content: text.slice(definition.length + state.length + 2),
    };
  } catch {
    return undefined;
  }
}

/** The same schedule with the same payload and options? */
export function isSameSchedule(one: ScheduleRecord, other: ScheduleRecord): boolean {
  return JSON.stringify(one.definition) === JSON.stringify(other.definition) && one.content === other.content;
}

/** What it counted in other shards before, and in this one. */
export function countsOf(
  { elsewhere }: ScheduleState,
  { missed, overlapped, floor }: Pick<StoredSchedule, 'missed' | 'overlapped' | 'floor'>,
): OccurrenceCounts {
  return {
    missed: missed + (elsewhere?.missed ?? 0),
    overlapped: overlapped + (elsewhere?.overlapped ?? 0),
    lastJob: floor ?? elsewhere?.lastJob,
  };
}

/** Of one that is on its way to another shard, what it was before; others are as they are. */
export function asItWas(record: ScheduleRecord): ScheduleRecord {
  const { leaving, ...state } = record.state;
  return leaving ? { ...record, state: { ...state, paused: leaving.wasPaused } } : record;
}

/** No occurrence that is not ahead has a later time. */
export function madeBy({ triggered = 0 }: ScheduleState, now: number): number {
  return Math.max(now, triggered);
}

/** The same, but for what was triggered while Redis' clock was ahead: that hides nothing that the schedule itself has made ahead. */
export function madeNear(state: ScheduleState, now: number): number {
  return Math.max(now, triggeredNear(state, now));
}

/** When it was triggered last; 0 where that was by a clock that was ahead, or never. */
export function triggeredNear({ triggered = 0 }: ScheduleState, now: number): number {
  return triggered <= now + TRIGGERED_WITHIN_MS ? triggered : 0;
}

/** The times that the schedule itself has made ahead. */
export function aheadOf(state: ScheduleState, now: number): number[] {
  return state.recent.filter((at) => at > madeNear(state, now) && at !== state.triggered);
}

/** Of these, those that are not known to be over: they wait and have not begun, as far as the record tells. */
export function waitingAhead(state: ScheduleState, now: number): number[] {
  const over = new Set(state.over);
  return aheadOf(state, now).filter((at) => !over.has(at));
}

/** As if the occurrences that wait ahead had not been made: they go, and do not count for `limit`. */
export function withoutAhead(state: ScheduleState, now: number): ScheduleState {
  const ahead = new Set(aheadOf(state, now));
  return {
    ...state,
    recent: state.recent.filter((at) => !ahead.has(at)),
    made: Math.max(0, state.made - waitingAhead(state, now).length),
  };
}

export function rhythmOf({ definition, state }: ScheduleRecord): Rhythm {
  const { cron, timeZone, everyMs } = definition;
  return cron === null ? { everyMs: everyMs!, anchor: state.anchor } : { cron, timeZone: timeZone! };
}
