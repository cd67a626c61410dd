import { decisionOf } from '../handlers/outcomes.js';
import type { HandlerOutcome } from '../handlers/handler-outcome.js';
import type { DelayedJob } from '../job/delayed-job.js';
import { decodeError, oneLine } from '../job/error-record.js';
import type { Probe } from '../worker/probe.js';
import type { Settlement } from '../worker/settlement.js';
import { copied } from './copied.js';

/** A job that a worker of the application ran. */
export interface SeenRun {
  readonly id: string;
  readonly queue: string;
  readonly payload: unknown;
  readonly attempt: number;
  /** From its enqueue until it was due, ms; of a first run only: a retry or a snooze has moved the due time. */
  readonly delayMs: number | undefined;
  /** Redis has confirmed it. */
  completed: boolean;
  /** How it ended otherwise, in words. */
  ended?: string;
}

/** Sees every run of one application, and fails those that a test wants to fail. */
export class Watch implements Probe {
  readonly runs: SeenRun[] = [];
  /** Since the harness began to count. */
  begun = 0;
  /** Without occurrences of schedules, which are as many as the time that passes. */
  counted = 0;
  ended = 0;
  readonly #failures = new Map<string, { error: unknown; times: number }[]>();
  readonly #open = new Map<DelayedJob, SeenRun>();

  fail(queue: string, error: unknown, times: number): void {
    this.#failures.set(queue, [...(this.#failures.get(queue) ?? []), { error, times }]);
  }

  begins(job: DelayedJob): HandlerOutcome | undefined {
    this.begun++;
    if (!job.schedule) this.counted++;
    const { id, queue, payload, attempt, dueAt, enqueuedAt, snoozes } = job;
    const first = attempt === 1 && snoozes === 0;
    const delayMs = first ? dueAt.getTime() - enqueuedAt.getTime() : undefined;
    const run: SeenRun = { id, queue, payload: copyOf(payload), attempt, delayMs, completed: false };
    this.runs.push(run);
    this.#open.set(job, run);
    const [next] = this.#failures.get(queue) ?? [];
    if (!next) return undefined;
    if (--next.times === 0) this.#failures.get(queue)!.shift();
    return decisionOf(next.error) ?? { kind: 'failed', error: next.error };
  }

  decided(job: DelayedJob, settlement: Settlement): void {
    this.ended++;
    const run = this.#open.get(job);
    this.#open.delete(job);
    if (!run) return;
    if (settlement.verb !== 'complete') {
      run.ended = endOf(settlement);
      return;
    }
    const before = job.onSettled;
    job.onSettled = (lost) => {
      run.completed = !lost;
      before?.(lost);
    };
  }
}

/** What is nested too deeply to be copied is seen as it is. */
function copyOf(payload: unknown): unknown {
  try {
    return copied(payload);
  } catch {
    return payload;
  }
}

function endOf(settlement: Exclude<Settlement, { verb: 'complete' }>): string {
  const { verb } = settlement;
  if (verb !== 'retry' && verb !== 'dead') return verb;
  const what = verb === 'dead' ? `dead letter (${settlement.reason})` : 'failed';
  // As it is stored, without the line for the reason.
  const { error } = decodeError(`\n${settlement.error}`);
  return error ? `${what}: ${oneLine(`${error.name}: ${error.message}`)}` : what;
}
