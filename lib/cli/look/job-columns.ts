import { inspect } from 'node:util';
import type { JobSnapshot } from '../../redis/job-snapshot.js';
import type { Column } from '../terminal/output.js';
import { iso } from '../terminal/times.js';
import type { Times } from '../terminal/times.js';
import type { State } from './listed-jobs.js';

export type ShownJob = Omit<JobSnapshot, 'payload'> & { payload?: unknown };

/** Payloads are private, and long: they are shown when somebody asks. */
export function withoutPayload(job: JobSnapshot): ShownJob {
  const shown: ShownJob = { ...job };
  delete shown.payload;
  return shown;
}

export function jobColumns(state: State, times: Times, now: number, payload: boolean): Column<ShownJob>[] {
  const time = (title: string, of: (job: ShownJob) => Date | undefined): Column<ShownJob>[] => [
    { title, of: (job) => times.shown(of(job)), exact: (job) => iso(of(job)) },
  ];
  const relative: Column<ShownJob> = {
    title: 'when',
    of: ({ dueAt }) => times.relative(dueAt, now),
    forPeople: true,
    right: true,
  };
  return [
    { title: 'id', of: ({ id }) => id },
    ...(state === 'completed'
      ? time('completed', ({ completedAt }) => completedAt)
      : time('due', ({ dueAt }) => dueAt)),
    ...(state === 'delayed' || state === 'due' ? [relative] : []),
    { title: 'attempts', of: attemptsOf, right: true },
    ...(state === 'dead' ? [{ title: 'reason', of: ({ deadReason }: ShownJob) => deadReason ?? '-' }] : []),
    ...(payload ? [{ title: 'payload', of: (job: ShownJob) => payloadText(job.payload) }] : []),
    ...(state === 'completed' ? [] : [{ title: 'last error', of: errorText }]),
  ];
}

export function attemptsOf({ attempts, maxAttempts }: ShownJob): string {
  return maxAttempts === undefined ? String(attempts) : `${attempts}/${maxAttempts}`;
}

export function errorText({ lastError }: ShownJob): string {
  return lastError === undefined ? '' : `${lastError.name}: ${lastError.message}`;
}

export function payloadText(payload: unknown): string {
  if (payload === undefined) return '(cannot be decoded here: give the `codec` of the application by --config)';
  try {
    return JSON.stringify(payload);
  } catch {
    // What JSON cannot write, a codec may have kept.
  }
  return inspect(payload, { depth: 10, breakLength: Infinity });
}
