import { decodeEnvelope } from '../../job/envelope.js';
import type { Envelope } from '../../job/envelope.js';
import { decodeError } from '../../job/error-record.js';
import type { StoredErrors } from '../../job/error-record.js';
import { stateOf } from '../../redis/letters.js';
import { parseAttempts } from '../../redis/step.protocol.js';
import type { AttemptsRecord } from '../../redis/step.protocol.js';
import type { ApiDeadReason, JobRow, PayloadText } from '../api.js';
import type { InstanceView } from '../instance-view.js';
import { previewOf } from '../private-parts.js';

/** A job as the scripts tell it. */
export interface StoredJob {
  readonly row: JobRow;
  readonly payload: PayloadText;
  /** Undefined when it cannot be read. */
  readonly envelope: Envelope | undefined;
  readonly record: AttemptsRecord;
  readonly errors: StoredErrors;
  /** In its index: due time, claim number, time of its end. */
  readonly score: string;
}

/** @param raw state, score in its index, attempts record, error, envelope: as lib/lua/get.lua answers */
export async function storedJob(
  view: InstanceView,
  queue: string,
  id: string,
  raw: readonly string[],
): Promise<StoredJob> {
  const [letter, score, attempts, errorText, text] = raw as [string, string, string, string, string];
  const { envelope, payload } = await contentOf(view, queue, id, text);
  const errors = decodeError(errorText);
  const record = parseAttempts(attempts);
  const state = stateOf(letter)!;
  // Those in quarantine have no due time in their index: lib/lua/list.lua marks their score, lib/lua/get.lua has none.
  const quarantined = state === 'due' && (score.startsWith('s') || score === '-inf');
  const dueAt = (state === 'due' || state === 'delayed') && !quarantined ? Number(score) : envelope?.dueAt;
  const maxAttempts = record.limit ?? envelope?.header.attempts ?? view.context.attemptsOf(queue);
  const lastError = view.privateParts.error(errors.error, false);
  const preview = previewOf(payload);
  const row: JobRow = {
    id,
    queue,
    state,
    ...(dueAt !== undefined && { dueAt }),
    ...(envelope && { enqueuedAt: envelope.enqueuedAt }),
    attempts: record.charged,
    ...(maxAttempts !== undefined && { maxAttempts }),
    ...(state === 'completed' && { completedAt: Number(score) }),
    ...(state === 'dead' && { deadReason: errors.reason as ApiDeadReason }),
    ...(envelope?.header.group !== undefined && { group: envelope.header.group }),
    ...(envelope?.priority && { priority: envelope.priority }),
    quarantined,
    ...(lastError && { lastError }),
    ...(preview !== undefined && { preview }),
  };
  return { row, payload, envelope, record, errors, score };
}

async function contentOf(view: InstanceView, queue: string, id: string, text: string) {
  let envelope: Envelope | undefined;
  try {
    envelope = decodeEnvelope(text);
  } catch (error) {
    // The other fields of a broken job are still worth showing.
    const payload: PayloadText = { kind: 'undecodable', problem: (error as Error).message };
    return { envelope, payload };
  }
  const { privateParts, context, name } = view;
  return { envelope, payload: await privateParts.payload(envelope, context.payloads, { instance: name, queue, id }) };
}
