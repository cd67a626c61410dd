import { IntrinsicException } from '@nestjs/common';
import { knownAcrossCopies } from '../copies.js';
import { InvalidOptionError } from '../delay-queue.errors.js';
import { parseDuration, shown, type Duration } from '../job/duration.js';
import type { HandlerOutcome } from './handler-outcome.js';

/** A handler throws it when no further attempt can help: the job becomes a dead letter at once, with this reason. */
export class DiscardJob extends IntrinsicException {
  /** @throws InvalidOptionError when the reason is not text or empty */
  constructor(readonly reason: string) {
    if (typeof reason !== 'string' || reason.trim() === '') {
      throw new InvalidOptionError(
        `new DiscardJob(reason): ${shown(reason)} is not a reason. Say why, in a few words.`,
      );
    }
    super(reason);
    this.name = 'DiscardJob';
  }
}

export interface SnoozeOptions {
  /** Most snoozes of one job; one more makes it a dead letter. Default: no limit. */
  max?: number;
  /** Payload of the next run. Default: the present one. */
  payload?: unknown;
}

/** A handler throws it to run again later: the job is due again after the delay, and no attempt is used. */
export class SnoozeJob extends IntrinsicException {
  readonly delayMs: number;
  readonly max: number | undefined;
  readonly payload: { readonly value: unknown } | undefined;

  /**
   * @param delay ms or text such as `'10m'`
   * @throws InvalidDelayError, InvalidOptionError
   */
  constructor(delay: Duration, options: SnoozeOptions = {}) {
    const { delayMs, max, payload } = readSnooze(delay, options, 'new SnoozeJob');
    super(`Snoozed for ${delayMs} ms.`);
    this.name = 'SnoozeJob';
    this.delayMs = delayMs;
    this.max = max;
    this.payload = payload;
  }
}

knownAcrossCopies({ DiscardJob, SnoozeJob });

interface Snooze {
  readonly delayMs: number;
  readonly max: number | undefined;
  readonly payload: { readonly value: unknown } | undefined;
}

/**
 * @param where what was called; begins the error message
 * @throws InvalidDelayError, InvalidOptionError
 */
export function readSnooze(delay: Duration, options: SnoozeOptions, where: string): Snooze {
  const delayMs = parseDuration(delay, `${where}(delay)`, { moment: 'Give the time from now until it' });
  checkOptions(options, where);
  return { delayMs, max: options.max, payload: 'payload' in options ? { value: options.payload } : undefined };
}

function checkOptions(options: SnoozeOptions, where: string): void {
  if (typeof options !== 'object' || options === null) {
    throw new InvalidOptionError(`${where}(delay, options): ${shown(options)} is not an object.`);
  }
  for (const key of Object.keys(options)) {
    if (key !== 'max' && key !== 'payload') {
      throw new InvalidOptionError(`${where}(delay, options): unknown option "${key}". Known: max, payload.`);
    }
  }
  const { max } = options;
  if (max !== undefined && (!Number.isSafeInteger(max) || max < 1)) {
    throw new InvalidOptionError(`${where}(delay, { max }): ${shown(max)} is not a whole number from 1 on.`);
  }
  // Taken for "keep the present payload", it would hide the bug that made it undefined.
  if ('payload' in options && options.payload === undefined) {
    throw new InvalidOptionError(`${where}(delay, { payload }): undefined cannot be stored. Leave it out.`);
  }
}

/** The outcome that a thrown `SnoozeJob` or `DiscardJob` stands for; undefined for an error. */
export function decisionOf(thrown: unknown): HandlerOutcome | undefined {
  try {
    if (thrown instanceof SnoozeJob) return snoozeOf(thrown);
    if (thrown instanceof DiscardJob) return { kind: 'discarded', reason: `${thrown.reason}`, thrown };
  } catch {
    // A revoked proxy throws at `instanceof`. That must not escape: the caller is deciding the outcome of a job.
  }
  return undefined;
}

/** A subclass, a copy or a later change may have lost what the constructor had checked. */
function snoozeOf(thrown: SnoozeJob): HandlerOutcome {
  const { delayMs, max, payload } = thrown;
  const where = thrown.constructor.name || 'SnoozeJob';
  try {
    const delay = parseDuration(delayMs, `${where}.delayMs`);
    checkOptions(max === undefined ? {} : { max }, where);
    const isPayload = payload === undefined || (typeof payload === 'object' && payload !== null && 'value' in payload);
    if (!isPayload) throw new InvalidOptionError(`${where}.payload: ${shown(payload)} is not { value }.`);
    return { kind: 'snoozed', delayMs: delay, max, payload };
  } catch (cause) {
    const why = 'A field of the same name in a subclass hides the one of SnoozeJob: write `declare` before it.';
    return { kind: 'failed', error: new InvalidOptionError(`${(cause as Error).message} ${why}`) };
  }
}
