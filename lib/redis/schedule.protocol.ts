/** What lib/lua/recurring/schedules.lua says of one schedule. */
export interface StoredSchedule {
  readonly id: string;
  /** When it needs more occurrences, ms. */
  readonly tick: number;
  /** Whether that is stored: otherwise nobody looks for it, because the key was lost. */
  readonly isIndexed: boolean;
  /** As lib/recurring/schedule-record.ts wrote it. */
  readonly text: string;
  /** Id of the occurrence that began last; undefined before the first one. */
  readonly floor: string | undefined;
  readonly missed: number;
  readonly overlapped: number;
}

export interface SchedulesReply {
  /** Server time, ms. */
  readonly now: number;
  readonly schedules: readonly StoredSchedule[];
}

const FIELDS = 6;

export function parseSchedules([now, ...flat]: readonly (string | number)[]): SchedulesReply {
  const schedules: StoredSchedule[] = [];
  for (let at = 0; at < flat.length; at += FIELDS) {
    const [id, tick, text, floor, missed, overlapped] = flat.slice(at, at + FIELDS).map(String);
    schedules.push({
      id: id!,
      tick: Number(tick),
      isIndexed: tick !== '',
      text: text!,
      floor: floor || undefined,
      missed: Number(missed),
      overlapped: Number(overlapped),
    });
  }
  return { now: Number(now), schedules };
}

/** What lib/lua/recurring/ticks.lua says. */
export interface TicksReply {
  readonly now: number;
  /** When the next schedule needs occurrences, ms; undefined without schedules. */
  readonly next: number | undefined;
  /** Since when the shard is there, ms; undefined before anything was stored. */
  readonly since: number | undefined;
  /** What the key of changes holds; undefined where it cannot be read. */
  readonly held: string | undefined;
  readonly due: readonly { readonly id: string; readonly text: string }[];
}

export function parseTicks([now, next, since, held, ...flat]: readonly (string | number)[]): TicksReply {
  const due: { id: string; text: string }[] = [];
  for (let at = 0; at < flat.length; at += 2) due.push({ id: String(flat[at]), text: String(flat[at + 1]) });
  return {
    now: Number(now),
    next: next === '' ? undefined : Number(next),
    since: Number(since) || undefined,
    held: held ? String(held) : undefined,
    due,
  };
}

/** An occurrence as lib/lua/recurring/tick.lua takes it. */
export interface OccurrenceItem {
  readonly id: string;
  readonly due: number;
  readonly expiresInMs: number | null;
  /** Of one with a group or a priority (lib/job/place.ts). */
  readonly place: string | null;
  readonly content: string;
}

export interface TickRequest {
  readonly id: string;
  /** The record as it was read; undefined for none. */
  readonly read: string | undefined;
  readonly follows: string;
  readonly tick: number;
  readonly missed: number;
  /** How many occurrences are stored ahead by then. */
  readonly ahead: number;
  /** Ids of occurrences that go. Those to come still wait and have not begun, or nothing is written. */
  readonly gone: readonly string[];
  /** How many of these, the first ones, were due: each of them goes, unless it has begun, and counts as missed. */
  readonly goneDue?: number | undefined;
  /** Of what was made due by then, ms, nothing begins that a worker holds: its schedule was paused. Undefined leaves that as it is. */
  readonly pausedAt?: number | undefined;
  /** It is paused by this: so nothing begins either that was made due until this is written. */
  readonly pauses?: boolean | undefined;
  /** When a schedule that was not there is made, ms. */
  readonly since?: number | undefined;
  /** From this moment on, ms, the record counts as changed: an occurrence that it takes for one to come may have begun. */
  readonly validBefore: number | undefined;
  readonly occurrences: readonly OccurrenceItem[];
}

/**
 * Without the sequence number, which stands before them.
 *
 * @param movedMs `movedMs` of the connection: by so much the server's clock is behind the times of schedules
 */
export function tickArgs(
  {
    id,
    read,
    follows,
    tick,
    missed,
    gone,
    goneDue = 0,
    pausedAt,
    pauses,
    since,
    ahead,
    validBefore,
    occurrences,
  }: TickRequest,
  movedMs = 0,
): (string | number)[] {
  const before = validBefore === undefined ? '' : validBefore - movedMs;
  const mark = (read === undefined ? since : pausedAt) ?? '';
  const ofGone = [gone.length, goneDue, pauses ? `${mark} ${movedMs}` : mark, ahead, ...gone];
  const args: (string | number)[] = [id, read ?? '', follows, tick - movedMs, missed, before, ...ofGone];
  for (const { id: occurrence, due, expiresInMs, place, content } of occurrences) {
    const expiry = expiresInMs === null ? '-' : `i${expiresInMs}`;
    args.push(occurrence, due - movedMs, place ? `${expiry} @${place}` : expiry, content);
  }
  return args;
}

/**
 * Which of those that were to go do not wait any more, or have begun, so that the script has written nothing; undefined for other answers.
 *
 * @param toCome of a request's `gone` those behind `goneDue`
 */
export function overOfTick<T>(toCome: readonly T[], answer: unknown): T[] | undefined {
  if (typeof answer !== 'string' || answer[0] !== 'o') return undefined;
  return toCome.filter((_, n) => answer[n + 1] === '1');
}

/** Which of those that count as missed when they go went, by what the script has answered; undefined when it has written nothing. */
export function goneOfTick({ gone }: Pick<TickRequest, 'gone'>, answer: unknown): string[] | undefined {
  if (typeof answer !== 'string' || answer[0] !== 'w') return undefined;
  return gone.filter((_, n) => answer[n + 1] === '1');
}

/** Occurrences with a group or a priority make theirs a queue with groups. */
export function tickScript({ occurrences }: TickRequest): 'tick' | 'placeOccurrences' {
  return occurrences.some(({ place }) => place) ? 'placeOccurrences' : 'tick';
}

export function bytesOfTick({ read = '', follows, occurrences }: TickRequest): number {
  return read.length + follows.length + occurrences.reduce((sum, { content }) => sum + content.length + 300, 0);
}
