import type { ZonedMoment } from './wall-clock.js';

export type MissedPolicy = 'once' | 'skip' | 'all';
export type OverlapPolicy = 'skip' | 'allow' | 'queue';

/** What a worker needs to judge an occurrence, however old the schedule's record is by then. */
export interface OccurrenceHeader {
  /** Nominal time of the occurrence behind it, ms; undefined for the last one. */
  readonly next: number | undefined;
  /** When that one is due, ms: its nominal time and its jitter. */
  readonly nextDue: number | undefined;
  readonly missed: MissedPolicy;
  /** With `missed: 'skip'`: how late it may begin, ms. */
  readonly graceMs: number;
  readonly overlap: OverlapPolicy;
  /**
   * When it was made due, ms after its own nominal time. What is due at another moment was put there by somebody. Undefined where an older
   * library made it.
   */
  readonly dueAfterMs: number | undefined;
}

/** As the header of a job has it. */
export function encodeOccurrence(occurrence: OccurrenceHeader): unknown[] {
  const { next = 0, nextDue = 0, missed, graceMs, overlap, dueAfterMs } = occurrence;
  return [next, nextDue, missed, graceMs, overlap, dueAfterMs];
}

/** Undefined for what a newer library wrote: then it runs as any job. */
export function decodeOccurrence(stored: unknown): OccurrenceHeader | undefined {
  if (!Array.isArray(stored)) return undefined;
  const [next, nextDue, missed, graceMs, overlap, dueAfterMs] = stored as unknown[];
  const areTimes = [next, nextDue, graceMs].every((ms) => Number.isSafeInteger(ms) && (ms as number) >= 0);
  const arePolicies =
    ['once', 'skip', 'all'].includes(missed as string) && ['skip', 'allow', 'queue'].includes(overlap as string);
  if (!areTimes || !arePolicies) return undefined;
  return {
    next: (next as number) || undefined,
    nextDue: (nextDue as number) || undefined,
    missed: missed as MissedPolicy,
    graceMs: graceMs as number,
    overlap: overlap as OverlapPolicy,
    dueAfterMs: Number.isSafeInteger(dueAfterMs) ? (dueAfterMs as number) : undefined,
  };
}

/** Undefined for what a newer library wrote: then it keeps the moment that it has. */
export function decodeZoned(stored: unknown): ZonedMoment | undefined {
  if (!Array.isArray(stored)) return undefined;
  const [local, timeZone, at, ambiguous] = stored as unknown[];
  const isKnown =
    ambiguous === undefined || ambiguous === null || ['earlier', 'later', 'reject'].includes(ambiguous as string);
  if (typeof local !== 'string' || typeof timeZone !== 'string' || !Number.isSafeInteger(at) || !isKnown)
    return undefined;
  const moment = { local, timeZone, at: at as number };
  return ambiguous ? { ...moment, ambiguous: ambiguous as NonNullable<ZonedMoment['ambiguous']> } : moment;
}
