import { types } from 'node:util';
import type { HandlerOutcome, SnoozedPayload } from '../handlers/handler-outcome.js';
import { backoffDelay } from '../job/backoff.js';
import type { Backoff } from '../job/backoff.js';
import type { DelayedJob } from '../job/delayed-job.js';
import { parseDuration } from '../job/duration.js';
import type { Duration } from '../job/duration.js';
import { encodeError, encodeFailure } from '../job/error-record.js';
import type { DeadReason } from '../job/error-record.js';
import { random as systemRandom } from '../time-and-randomness.js';
import { guarded } from '../user-code.js';
import type { Run } from './run.js';
import { COMPLETE } from './settlement.js';
import type { Settlement } from './settlement.js';

export interface RetryRules {
  backoff: Backoff | ((attempt: number, error: unknown) => Duration);
  retryIf?: (error: unknown, job: DelayedJob) => boolean;
  /** Kept with the error of a failed attempt. */
  trace?: string | undefined;
  /** Called when a function of the application failed; `instead` says what was done. */
  readonly tell: (what: string, instead: string, error?: unknown) => void;
  /** Called when a function of the application returned an unusable value. */
  readonly warn: (what: string, does: string) => void;
  /** Header and payload of a snoozed job that gets a new payload. */
  encodeContent(payload: SnoozedPayload): string;
}

/** The payload as it is stored, and as the handler got it: of a batch those of all its jobs. A log line or a dead letter must not quote them. */
export function payloadsOf({ job, quotable }: Pick<Run, 'job' | 'quotable'>): readonly unknown[] {
  return quotable ?? [job.payload, job.accepted];
}

/**
 * The numbers that decide together with the outcome. They are the run's, because a handler may have written to the
 * job's.
 */
type Settled = Pick<Run, 'job' | 'attempt' | 'maxAttempts' | 'snoozes' | 'quotable'>;

/** What becomes of a job, from how its run ended: pure but for the application's functions. Never throws. */
export function settle(
  outcome: HandlerOutcome,
  run: Settled,
  rules: RetryRules,
  random: () => number = systemRandom,
): Settlement {
  const { job } = run;
  switch (outcome.kind) {
    case 'completed':
      return COMPLETE;
    case 'discarded':
      return deadLetter('discarded', encodeFailure(asDiscarded(outcome), undefined, payloadsOf(run)));
    case 'invalid':
      return deadLetter('invalid', encodeFailure(outcome.error, undefined, payloadsOf(run)));
    case 'snoozed':
      return snooze(outcome, run, rules, random);
    case 'released':
      return { verb: 'release', dueAt: job.dueAt.getTime(), restMs: outcome.restMs, unbegun: outcome.unbegun };
    case 'skipped':
      // Redis has noted what becomes of it (lib/lua/recurring/begin-occurrence.lua).
      return { verb: 'release', dueAt: job.dueAt.getTime(), unbegun: true };
    case 'failed':
      return fail(outcome.error, run, rules, random, outcome.delayMs);
  }
}

function fail(error: unknown, run: Settled, rules: RetryRules, random: () => number, asked?: number): Settlement {
  const { job, attempt, maxAttempts } = run;
  // After the functions of the application, which may add to the error.
  const failure = () => encodeFailure(error, rules.trace, payloadsOf(run));
  if (attempt >= maxAttempts) return deadLetter('exhausted', failure());
  if (!worthRetrying(error, job, rules)) return deadLetter('discarded', failure());
  return { verb: 'retry', delayMs: asked ?? delayAfter(attempt, error, rules, random), error: failure() };
}

function deadLetter(reason: DeadReason, error: string): Settlement {
  return { verb: 'dead', reason, error, charge: true };
}

function snooze(
  outcome: Extract<HandlerOutcome, { kind: 'snoozed' }>,
  run: Settled,
  rules: RetryRules,
  random: () => number,
): Settlement {
  if (outcome.max !== undefined && run.snoozes >= outcome.max) {
    const message = `It was snoozed ${run.snoozes} times, which is the most that SnoozeJob allowed.`;
    return {
      verb: 'dead',
      reason: 'exhausted',
      error: encodeError({ name: 'DiscardJob', message, stack: '' }),
      charge: false,
    };
  }
  if (!outcome.payload) return { verb: 'snooze', delayMs: outcome.delayMs };
  try {
    return { verb: 'snooze', delayMs: outcome.delayMs, content: rules.encodeContent(outcome.payload) };
  } catch (error) {
    return fail(error, run, rules, random); // A payload that cannot be stored is a bug of the handler.
  }
}

/** Losing a job to a bug in retryIf would be worse than one attempt more: only a boolean is an answer. */
function worthRetrying(error: unknown, job: DelayedJob, { retryIf, tell, warn }: RetryRules): boolean {
  if (!retryIf) return true;
  let didFail = false;
  const failed = (thrown: unknown) => {
    didFail = true;
    tell('retryIf', 'failed; such jobs are retried', thrown);
  };
  const answer = guarded<unknown>(() => retryIf(error, job), undefined, failed);
  if (typeof answer === 'boolean') return answer;
  if (!didFail) warn('retryIf', `gave ${kindOf(answer)} and no boolean; such jobs are retried`);
  return true;
}

/** Never the value itself: it may come from the payload. */
function kindOf(answer: unknown): string {
  if (types.isPromise(answer)) return 'a promise (it must answer at once)';
  return answer === null ? 'null' : answer === undefined ? 'undefined' : `a value of type ${typeof answer}`;
}

function delayAfter(attempt: number, error: unknown, { backoff, tell }: RetryRules, random: () => number): number {
  if (typeof backoff !== 'function') return backoffDelay(backoff, attempt, random);
  const failed = (thrown: unknown) => tell('backoff()', `failed; ${FALLBACK} is waited instead`, thrown);
  return guarded(
    () => {
      // Two steps: a promise is refused as a value, and its rejection is caught.
      const given = guarded(() => backoff(attempt, error), FALLBACK, failed);
      return parseDuration(given, 'backoff()');
    },
    FALLBACK_DELAY_MS,
    failed,
  );
}

/** When a user's backoff function throws or returns nonsense: neither hot-loop nor lose the job. */
const FALLBACK = '1m';
const FALLBACK_DELAY_MS = 60_000;

/** The log text of the error: its name, its reason, and the place where it was thrown. */
function asDiscarded({ reason, thrown }: Extract<HandlerOutcome, { kind: 'discarded' }>): Partial<Error> {
  return { name: 'DiscardJob', message: reason, stack: stackIn(thrown) };
}

function stackIn(thrown: unknown): string {
  try {
    return String((thrown as Partial<Error>).stack ?? '');
  } catch {
    return '';
  }
}
