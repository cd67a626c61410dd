import { decodeEnvelope } from '../job/envelope.js';
import type { Envelope } from '../job/envelope.js';
import { decodeError } from '../job/error-record.js';
import type { DeadReason, ErrorDescription, ErrorRecord } from '../job/error-record.js';
import type { Payloads } from '../job/payloads.js';
import { stateOf } from './letters.js';
import type { JobState } from './letters.js';
import { parseAttempts } from './step.protocol.js';

/** An error as it is kept with a job: texts, cut where they are long. */
export interface JobError extends ErrorDescription {
  /** By the clock of the worker. */
  at: Date;
}

/** A job as it stands in Redis. Times are the server's. */
export interface JobSnapshot<T = unknown> {
  id: string;
  queue: string;
  state: JobState;
  /** Undefined if the stored payload cannot be decoded, or not by this process. */
  payload: T;
  dueAt: Date;
  enqueuedAt: Date;
  /** Failures and lost leases so far. */
  attempts: number;
  /**
   * Attempts after which it is a dead letter, as far as this process knows: from the job, else from the handler here,
   * else `queues`, the definition and `defaults` of the application (a handler elsewhere may say otherwise than these
   * two). Undefined when none of them says it: the process that has the handler knows.
   */
  maxAttempts: number | undefined;
  context: Readonly<Record<string, string>>;
  /** Only of a job that has one. */
  group?: string;
  /** 1 to 9; undefined for 0. */
  priority?: number;
  lastError?: JobError;
  /** Of the last five attempts that failed, in short, the newest last. Undefined before the first one. */
  errors?: readonly JobError[];
  /** Only of completed jobs, which are there as long as `keepCompleted` keeps them. */
  completedAt?: Date;
  /** Only of dead letters. */
  deadReason?: DeadReason;
}

/** @param raw state, score in its index, attempts record, error, envelope: as lib/lua/get.lua answers */
export function parseSnapshot<T>(
  id: string,
  queue: string,
  raw: readonly string[],
  maxAttempts: number | undefined,
  payloads: Payloads,
): JobSnapshot<T> {
  const [letter, score, record, errorText, text] = raw as [string, string, string, string, string];
  const state = stateOf(letter)!;
  let envelope: Envelope | undefined;
  let payload: unknown;
  try {
    envelope = decodeEnvelope(text);
    payload = payloads.decode(envelope.body, envelope.mark);
  } catch {
    // The other fields of a broken job are still worth showing.
  }
  // A running, dead, completed or quarantined job has no due time in its index; the one it was made for is in the envelope.
  const indexed = state === 'delayed' || state === 'due' ? Number(score) : NaN;
  const { reason, error, attempts } = decodeError(errorText);
  const { charged, limit } = parseAttempts(record);
  return {
    id,
    queue,
    state,
    payload: payload as T,
    dueAt: new Date(Number.isFinite(indexed) ? indexed : (envelope?.dueAt ?? NaN)),
    enqueuedAt: new Date(envelope?.enqueuedAt ?? NaN),
    attempts: charged,
    maxAttempts: limit ?? envelope?.header.attempts ?? maxAttempts,
    context: envelope?.header.context ?? {},
    ...(envelope?.header.group !== undefined && { group: envelope.header.group }),
    ...(envelope?.priority && { priority: envelope.priority }),
    ...(error && { lastError: toJobError(error) }),
    ...(attempts.length > 0 && { errors: attempts.map(toJobError) }),
    ...(state === 'completed' && { completedAt: new Date(Number(score)) }),
    ...(state === 'dead' && { deadReason: reason as DeadReason }),
  };
}

function toJobError(record: ErrorRecord): JobError {
  const error: JobError & { trace?: string } = { ...record, at: new Date(record.at) };
  delete error.trace;
  return error;
}
