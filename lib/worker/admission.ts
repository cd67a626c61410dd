import { DelayQueueError, LayoutError, UnknownCodecError } from '../delay-queue.errors.js';
import { BatchJob } from '../handlers/batch-job.js';
import { DelayedJob, NO_CONTEXT } from '../job/delayed-job.js';
import type { JobSchedule } from '../job/delayed-job.js';
import { readable } from '../job/duration.js';
import type { Duration } from '../job/duration.js';
import { decodeEnvelope } from '../job/envelope.js';
import type { Envelope } from '../job/envelope.js';
import type { OccurrenceHeader } from '../job/occurrence-header.js';
import { encodeError } from '../job/error-record.js';
import { parseOccurrenceId } from '../job/job-id.js';
import type { Payloads } from '../job/payloads.js';
import type { ClaimedRecord } from '../redis/step.protocol.js';
import type { Claim } from './lease-renewal.js';
import type { Run } from './run.js';
import type { Settlement } from './settlement.js';

/** The settings of a handler that decide how its jobs run; other settings are stored with each job. */
export interface Terms {
  readonly queue: string;
  /** Of a job that brings no number of its own. */
  readonly attempts: number;
  /** The handler takes many jobs at once. */
  readonly isBatch: boolean;
  readonly payloads: Pick<Payloads, 'decode'>;
  readonly extend: (lease: Duration, job: DelayedJob) => Promise<void>;
}

/** A claimed job does not run. */
export interface Refusal {
  readonly settlement: Settlement;
  readonly level: 'warn' | 'error';
  /** The text of the log line, after the name of the job. */
  readonly line: string;
  /** Another process can run it: why this one cannot. The log says each such reason once. */
  readonly leftBecause?: string;
}

/** How long this process keeps its hands off a job that it cannot read. */
const LEFT_TO_OTHERS_MS = 30_000;

/**
 * Judges a claimed job: it can be decoded, has attempts left and has not expired. Nothing starts here and nothing is logged.
 *
 * @param now server time
 * @returns its run, or the settlement of a job that must not run
 */
export function admit(
  record: ClaimedRecord,
  claim: Claim,
  quarantined: boolean,
  now: number,
  terms: Terms,
): Run | Refusal {
  let envelope: Envelope;
  let payload: unknown;
  try {
    envelope = decodeEnvelope(record.envelope);
    payload = terms.payloads.decode(envelope.body, envelope.mark);
  } catch (error) {
    return undecodable(error, record.dueAt);
  }
  const { header } = envelope;
  const { charged, losses, snoozes, limit } = record.attempts;
  const maxAttempts = limit ?? header.attempts ?? terms.attempts;
  if (charged >= maxAttempts) return outOfAttempts(maxAttempts, losses);
  if (envelope.expiresAt !== undefined && now > envelope.expiresAt)
    return expired(now - envelope.expiresAt, header.keepExpired === true);
  const dueAt = Number.isFinite(record.dueAt) ? record.dueAt : envelope.dueAt;
  const init = {
    id: record.id,
    queue: terms.queue,
    payload,
    attempt: charged + 1,
    maxAttempts,
    snoozes,
    dueAt,
    enqueuedAt: envelope.enqueuedAt,
    latenessMs: Math.max(0, now - dueAt),
    context: header.context ? { ...header.context } : NO_CONTEXT, // Its own: what the handler writes into it is not stored.
    schedule: header.occurrence && scheduleOf(record.id, header.occurrence),
    group: header.group,
    priority: envelope.priority,
    extend: terms.extend,
  };
  return {
    id: record.id,
    job: terms.isBatch ? new BatchJob(init) : new DelayedJob(init),
    attempt: init.attempt,
    maxAttempts,
    snoozes,
    header,
    expiresAt: envelope.expiresAt ?? Infinity,
    claim,
    quarantined,
    ended: false,
    lost: false,
    startedAt: 0,
    durationMs: undefined,
    trace: undefined,
    error: undefined,
  };
}

function scheduleOf(id: string, { next }: OccurrenceHeader): JobSchedule | undefined {
  const made = parseOccurrenceId(id);
  if (!made) return undefined;
  return { id: made.schedule, at: new Date(made.at), next: next === undefined ? undefined : new Date(next) };
}

/** A job stored by a newer library, or by a codec unknown here, is not broken: another process will run it. */
function undecodable(error: unknown, dueAt: number): Refusal {
  if (error instanceof LayoutError || error instanceof UnknownCodecError) {
    return {
      settlement: { verb: 'release', dueAt, restMs: LEFT_TO_OTHERS_MS, unbegun: true },
      level: 'warn',
      line: `was left to others: ${error.message}`,
      leftBecause: error.message,
    };
  }
  return {
    settlement: { verb: 'dead', reason: 'undecodable', error: encodeError(error), charge: false },
    level: 'error',
    line: `cannot be decoded and is now a dead letter: ${reasonOf(error)}`,
  };
}

function outOfAttempts(maxAttempts: number, losses: number): Refusal {
  const reason = losses > 0 ? 'leaseLost' : 'exhausted';
  const error = new Error(`All ${maxAttempts} attempts were used${losses > 0 ? '; the last one lost its lease' : ''}.`);
  return {
    settlement: { verb: 'dead', reason, error: encodeError(error), charge: false },
    level: 'error',
    line: `is now a dead letter (${reason}): ${error.message}`,
  };
}

function expired(agoMs: number, isKept: boolean): Refusal {
  const error = 'It expired before it could start.';
  return {
    settlement: isKept
      ? { verb: 'dead', reason: 'expired', error: encodeError(new Error(error)), charge: false }
      : { verb: 'expired' },
    level: 'warn',
    line: `expired ${readable(agoMs)} before it could start.`,
  };
}

/** Why decoding failed, without any of the decoded text: parsers quote their input. */
function reasonOf(error: unknown): string {
  return error instanceof DelayQueueError ? error.message : 'its payload is not valid JSON';
}
