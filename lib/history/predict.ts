import type { StartWindow } from './limited-rate.js';
import { sum } from './minute-counts.js';

/** Jobs whose due times lie evenly in a span of time, ms. */
export interface Arrivals {
  readonly from: number;
  readonly to: number;
  readonly jobs: number;
}

/** A time in which more is due than can be started, so that jobs start late. */
export interface Backlog {
  /** Due time of its first job. */
  from: number;
  /** When its last job starts, and jobs start on time again. */
  until: number;
  jobs: number;
  /** Of the job that starts latest. */
  latestMs: number;
  latestDueAt: number;
}

/**
 * What becomes of jobs that are started in the order of their due times at a steady rate: a pure function.
 *
 * @param arrivals in the order of their times; what is due before `now` waits already
 * @param perMs how many jobs start in a millisecond when there is enough to do; above 0
 */
export function predict(arrivals: readonly Arrivals[], now: number, perMs: number): Backlog[] {
  const backlogs: Backlog[] = [];
  let open: Backlog | undefined;
  /** When all jobs so far have started. */
  let free = now;
  for (const { from, to, jobs } of arrivals) {
    if (jobs === 0) continue;
    if (open && free <= from) open = undefined;
    const first = Math.max(free, from);
    const last = first + jobs / perMs;
    const isLate = last > to || first > from;
    if (!isLate) continue;
    if (!open) backlogs.push((open = { from, until: first, jobs: 0, latestMs: 0, latestDueAt: from }));
    open.jobs += jobs;
    note(open, first - from, from);
    if (last >= to) {
      // Its last job is the latest, or its first one where it begins behind others and catches up.
      note(open, last - to, to);
      open.until = free = last;
    } else {
      // Half-way through it jobs start on time again.
      const done = (first - from) / ((to - from) / jobs - 1 / perMs);
      open.until = free = first + done / perMs;
      open.jobs -= Math.round(jobs - done);
      open = undefined;
    }
  }
  return backlogs;
}

/** Parts of a window that are looked at, and how many parts of windows at most: beyond that one window says little. */
const PARTS = 16;
const MOST_PARTS = 50_000;

/**
 * The same where at most so many jobs may start within any window, as a queue's `rateLimit` says: the n-th one not before the one that
 * is `max` before it has left the window.
 *
 * @param perMs as many as the processes start in a millisecond
 */
export function predictWindows(
  arrivals: readonly Arrivals[],
  now: number,
  perMs: number,
  { max, lengthMs, opensAt }: StartWindow,
): Backlog[] {
  const total = sum(arrivals.map(({ jobs }) => jobs));
  const parts = Math.floor(Math.min(PARTS, max, (MOST_PARTS * max) / total));
  if (parts < 1) return predict(arrivals, now, Math.min(perMs, max / lengthMs));
  const size = max / parts;
  const starts: number[] = [];
  const backlogs: Backlog[] = [];
  let [open, begun, part] = [undefined as Backlog | undefined, 0, 0];
  for (const { from, to, jobs } of arrivals) {
    for (; part * size < begun + jobs; part++) {
      const due = from + ((part * size - begun) * (to - from)) / jobs;
      const free = part === 0 ? now : starts[part - 1]! + size / perMs;
      const opens = part < parts ? (opensAt ?? now) : starts[part - parts]! + lengthMs;
      const start = Math.max(due, free, opens);
      starts.push(start);
      if (start <= due) open = undefined;
      else {
        if (!open) backlogs.push((open = { from: due, until: start, jobs: 0, latestMs: 0, latestDueAt: due }));
        const these = Math.min(size, total - part * size);
        open.until = start + these / perMs;
        open.jobs += these;
        note(open, start - due, due);
      }
    }
    begun += jobs;
  }
  return backlogs.map((backlog) => ({ ...backlog, jobs: Math.round(backlog.jobs) }));
}

function note(backlog: Backlog, latenessMs: number, dueAt: number): void {
  if (latenessMs <= backlog.latestMs) return;
  backlog.latestMs = latenessMs;
  backlog.latestDueAt = dueAt;
}

/**
 * The span of which it says least how late its jobs will be: all of them may be due at one moment of it. Of several the one whose
 * jobs take longest.
 */
export function coarsest(arrivals: readonly Arrivals[], perMs: number): Arrivals | undefined {
  let found: Arrivals | undefined;
  for (const span of arrivals) {
    const takes = span.jobs / perMs;
    const width = span.to - span.from;
    if (takes >= WORTH_A_LOOK_MS && width > Math.max(1, takes * FINE_ENOUGH) && span.jobs > (found?.jobs ?? 0))
      found = span;
  }
  return found;
}

/** Jobs that take less time cannot make each other late by more. */
const WORTH_A_LOOK_MS = 1_000;
/** Of the time that its jobs take: so much lateness the place of a job within its span may hide. */
const FINE_ENOUGH = 0.01;
