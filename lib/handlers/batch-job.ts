import { InvalidOptionError } from '../delay-queue.errors.js';
import { DelayedJob } from '../job/delayed-job.js';
import { parseDuration, shown } from '../job/duration.js';
import type { Duration } from '../job/duration.js';
import type { HandlerOutcome } from './handler-outcome.js';
import { DiscardJob, readSnooze } from './outcomes.js';
import type { SnoozeOptions } from './outcomes.js';

/** Where a job of a batch is settled. */
export interface BatchPlace {
  /** Settled here, or ended from outside: by timeout, shutdown, or because its batch is over. */
  readonly over: boolean;
  end(outcome: HandlerOutcome): void;
}

/**
 * One job of a batch. Its methods settle it at once, independently of the other jobs. Only the first call counts, and
 * each call returns whether it was the first. A job that the handler does not settle is completed when the handler
 * returns, and fails when it throws.
 *
 * The methods return false instead of throwing when the job is settled already, because a timeout or a lost lease may
 * settle it at any moment: a loop over the other jobs must not end there.
 */
export class BatchJob<T = unknown> extends DelayedJob<T> {
  #place: BatchPlace | undefined;

  /** @internal */
  takePlace(place: BatchPlace): void {
    this.#place = place;
  }

  /** True once it was settled, by one of the methods below or from outside. */
  get settled(): boolean {
    return this.#place?.over ?? false;
  }

  complete(): boolean {
    return this.#end({ kind: 'completed' });
  }

  /**
   * A failed attempt: again after the backoff, or a dead letter when it was the last one or `retryIf` answers false.
   */
  fail(error: unknown): boolean {
    return this.#end({ kind: 'failed', error });
  }

  /**
   * A failed attempt, again after `delay` instead of the backoff.
   *
   * @throws InvalidDelayError
   */
  retry({ delay }: { delay?: Duration } = {}): boolean {
    const delayMs = delay === undefined ? undefined : parseDuration(delay, 'job.retry({ delay })');
    return this.#end({ kind: 'failed', error: new Error('retry() was asked for'), delayMs });
  }

  /**
   * Due again later; no attempt is used.
   *
   * @throws InvalidDelayError, InvalidOptionError
   */
  snooze(delay: Duration, options: SnoozeOptions = {}): boolean {
    return this.#end({ kind: 'snoozed', ...readSnooze(delay, options, 'job.snooze') });
  }

  /**
   * A dead letter at once.
   *
   * @throws InvalidOptionError when the reason is not text or empty
   */
  discard(reason: string): boolean {
    if (typeof reason !== 'string' || reason.trim() === '') {
      throw new InvalidOptionError(`job.discard(reason): ${shown(reason)} is not a reason. Say why, in a few words.`);
    }
    return this.#end({ kind: 'discarded', reason, thrown: new DiscardJob(reason) });
  }

  #end(outcome: HandlerOutcome): boolean {
    if (!this.#place || this.#place.over) return false;
    this.#place.end(outcome);
    return true;
  }
}

/** The jobs and payloads of one call of a batch handler. */
export class Batch {
  /** The payloads as they were stored. */
  readonly payload: readonly unknown[];
  /** The outputs of the queue's schema, which pipes and the handler receive. */
  readonly accepted: readonly unknown[];

  constructor(
    readonly queue: string,
    readonly jobs: readonly BatchJob[],
  ) {
    this.payload = jobs.map(({ payload }) => payload);
    this.accepted = jobs.map(({ accepted }) => accepted);
  }
}
