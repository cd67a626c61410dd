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
