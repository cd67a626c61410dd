import type { HandlerOutcome } from '../handlers/handler.js';
import { backoffDelay } from '../job/backoff.js';
import type { Backoff } from '../job/backoff.js';
import type { DelayedJob } from '../job/delayed-job.js';
import { parseDuration } from '../job/duration.js';
import type { Duration } from '../job/duration.js';
import { encodeError } from '../job/error-record.js';
import { COMPLETE } from './settlement.js';
import type { Settlement } from './settlement.js';

export interface RetryRules {
  backoff: Backoff | ((attempt: number, error: unknown) => Duration);
  retryIf?: (error: unknown, job: DelayedJob) => boolean;
  /** Kept with the error of a failed attempt. */
  trace?: string | undefined;
  /** Header and payload of a snoozed job that gets a new payload. */
  encodeRest(payload: unknown): string;
}

/** What becomes of a job, from how its run ended: pure but for the user's own functions, whose errors count as "retry". */
export function settle(
  outcome: HandlerOutcome,
  job: DelayedJob,
  rules: RetryRules,
  random: () => number = Math.random,
): Settlement {
  switch (outcome.kind) {
    case 'completed':
      return COMPLETE;
    case 'discarded':
      return { verb: 'dead', reason: 'discarded', error: encodeError(new Discarded(outcome.reason)), charge: true };
    case 'invalid':
      return { verb: 'dead', reason: 'invalid', error: encodeError(outcome.error), charge: true };
    case 'snoozed':
      return snooze(outcome, job, rules, random);
    case 'released':
      return { verb: 'release', dueAt: job.dueAt.getTime() };
    case 'failed':
      return fail(outcome.error, job, rules, random, outcome.delayMs);
  }
}

function fail(error: unknown, job: DelayedJob, rules: RetryRules, random: () => number, asked?: number): Settlement {
  if (job.attempt >= job.maxAttempts)
    return { verb: 'dead', reason: 'exhausted', error: encodeError(error, rules.trace), charge: true };
  if (!worthRetrying(error, job, rules))
    return { verb: 'dead', reason: 'discarded', error: encodeError(error, rules.trace), charge: true };
  return {
    verb: 'retry',
    delayMs: asked ?? delayAfter(job.attempt, error, rules, random),
    error: encodeError(error, rules.trace),
  };
}

function snooze(
  outcome: Extract<HandlerOutcome, { kind: 'snoozed' }>,
  job: DelayedJob,
  rules: RetryRules,
  random: () => number,
): Settlement {
  if (outcome.max !== undefined && job.snoozes >= outcome.max) {
    const error = new Discarded(`It was snoozed ${job.snoozes} times, which is the most that SnoozeJob allowed.`);
    return { verb: 'dead', reason: 'exhausted', error: encodeError(error), charge: false };
  }
  if (!outcome.payload) return { verb: 'snooze', delayMs: outcome.delayMs };
  try {
    return { verb: 'snooze', delayMs: outcome.delayMs, rest: rules.encodeRest(outcome.payload.value) };
  } catch (error) {
    return fail(error, job, rules, random); // A payload that cannot be stored is a bug of the handler.
  }
}

function worthRetrying(error: unknown, job: DelayedJob, rules: RetryRules): boolean {
  try {
    return rules.retryIf?.(error, job) ?? true;
  } catch {
    return true; // Losing a job to a bug in retryIf would be worse than one attempt more.
  }
}

function delayAfter(attempt: number, error: unknown, { backoff }: RetryRules, random: () => number): number {
  if (typeof backoff !== 'function') return backoffDelay(backoff, attempt, random);
  try {
    return parseDuration(backoff(attempt, error), 'backoff()');
  } catch {
    return FALLBACK_DELAY_MS;
  }
}

/** When a user's backoff function throws or returns nonsense: neither hot-loop nor lose the job. */
const FALLBACK_DELAY_MS = 60_000;

class Discarded extends Error {
  override name = 'DiscardJob';
}
