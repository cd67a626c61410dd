import type { JobResponse } from '../../api.js';
import { duration, precise, relative } from '../format.js';
import { iso } from '../parts/basic.js';
import { now } from '../live.js';
import { zone } from '../settings.js';

interface Step {
  readonly name: string;
  readonly at: number | undefined;
  readonly past: boolean;
  readonly isFailed?: boolean;
  /** Between the step before and this one. */
  readonly between?: string | undefined;
  readonly isLate?: boolean;
}

/** A job that waits longer than this after its due time is worth a colour. */
const LATE_MS = 1_000;

function stepsOf(job: JobResponse, present: number): Step[] {
  const { enqueuedAt, dueAt, endedAt, lastError, attempts, state, leaseUntil } = job;
  const isOver = state === 'dead' || state === 'completed';
  const isPast = isOver || state === 'running' || (dueAt !== undefined && dueAt <= present);
  const failed: Step | undefined =
    lastError?.at !== undefined && attempts > 0
      ? {
          name: attempts === 1 ? 'Failed once' : `Failed ${attempts} times`,
          at: lastError.at,
          past: true,
          isFailed: true,
        }
      : undefined;
  const due: Step = {
    name: failed && !isPast ? 'Due again' : 'Due',
    at: dueAt,
    past: isPast,
    between:
      enqueuedAt !== undefined && dueAt !== undefined ? `${duration(dueAt - enqueuedAt)} after its enqueue` : undefined,
  };
  const steps: Step[] = [{ name: 'Enqueued', at: enqueuedAt, past: true }, due];
  if (failed) steps.splice(lastError!.at! < (dueAt ?? 0) ? 1 : 2, 0, failed);
  if (state === 'due' && dueAt !== undefined) {
    const waits = present - dueAt;
    steps.push({
      name: 'Waits',
      at: undefined,
      past: false,
      between: `for ${duration(waits)}`,
      isLate: waits > LATE_MS,
    });
  }
  if (state === 'running') {
    const held =
      leaseUntil === undefined
        ? undefined
        : `its process holds it for ${duration(Math.max(0, leaseUntil - present))} more`;
    steps.push({ name: 'Runs', at: undefined, past: false, between: held });
  }
  if (isOver) steps.push(endOf(job, dueAt, endedAt));
  return steps;
}

function endOf({ state }: JobResponse, dueAt: number | undefined, endedAt: number | undefined): Step {
  const isKnown = dueAt !== undefined && endedAt !== undefined && endedAt >= dueAt;
  return {
    name: state === 'dead' ? 'Dead letter' : 'Completed',
    at: endedAt,
    past: true,
    isFailed: state === 'dead',
    between: isKnown ? `${duration(endedAt - dueAt)} after its due time` : undefined,
  };
}

/** When it was enqueued, was due, failed and ended. */
export function JobLife({ job }: { job: JobResponse }) {
  const present = now();
  return (
    <ol class="life">
      {stepsOf(job, present).map(({ name, at, past, isFailed, between, isLate }) => (
        <li key={name} class={`${past ? 'past' : ''} ${isFailed ? 'failed' : ''}`}>
          <strong>{name}</strong>
          {at !== undefined && (
            <span>
              <time dateTime={iso(at)}>{precise(at, zone.value)}</time>
            </span>
          )}
          {at !== undefined && <span>{relative(at, present)}</span>}
          {between && <span class={`between ${isLate ? 'warn' : ''}`}>{between}</span>}
        </li>
      ))}
    </ol>
  );
}
