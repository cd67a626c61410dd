import { knownAcrossCopies } from '../copies.js';
import { DelayQueueError } from './delay-queue.error.js';
import type { DelayQueueErrorDetails } from './delay-queue.error.js';

// A call was not done, or nobody knows whether it was.

/** `onDuplicate: 'reject'` met a job that is waiting, running or dead under the same id. Nothing was changed. */
export class DuplicateJobError extends DelayQueueError {
  constructor(
    readonly queue: string,
    readonly id: string,
    readonly state: string,
  ) {
    super('ERR_DQ_DUPLICATE_JOB', `Queue "${queue}" already holds job "${id}" (${state}) and onDuplicate is 'reject'.`);
  }
}

/**
 * Redis did not answer in time. With `maybeAccepted` the request had been sent and may have taken effect: repeat it with the
 * ids in `ids`. Repeated in the same process within a minute, with the same payload, an enqueue gets the answer of the first call,
 * however its job has ended meanwhile. Elsewhere or later it finds the job while that is there, and makes a second one when it has
 * ended, unless both say `uniqueFor`. Without `maybeAccepted` nothing was sent.
 */
export class UnavailableError extends DelayQueueError {
  readonly maybeAccepted: boolean;
  readonly ids: readonly string[];

  constructor(
    message: string,
    {
      cause,
      maybeAccepted = false,
      ids = [],
    }: { cause?: unknown; maybeAccepted?: boolean; ids?: readonly string[] } = {},
  ) {
    super('ERR_DQ_UNAVAILABLE', message, { cause, retryable: true });
    this.maybeAccepted = maybeAccepted;
    this.ids = ids;
  }

  /** The id to resend with, when the call concerned one job. */
  get id(): string | undefined {
    return this.ids[0];
  }
}

/**
 * The application was closed, or is closing, and this call came too late for it: nothing was sent. Whoever calls after `app.close()`
 * should await what it does before, or do it in `onModuleDestroy`, when the connection is still open.
 */
export class ClosedError extends DelayQueueError {
  constructor(message: string) {
    super('ERR_DQ_CLOSED', message);
  }
}

/** More bytes wait to be sent than the producer may hold. Nothing of this call was sent. Slow down, then retry. */
export class BackPressureError extends DelayQueueError {
  constructor(message: string) {
    super('ERR_DQ_BACK_PRESSURE', message, { retryable: true });
  }
}

/**
 * The queue holds as many waiting and running jobs as its `maxSize` allows, so no further one was made. Retry once some
 * have ended. What concerns jobs that are there already (keep, replace, reschedule) is not refused.
 */
export class QueueFullError extends DelayQueueError {
  constructor(
    readonly queue: string,
    readonly maxSize: number,
  ) {
    super(
      'ERR_DQ_QUEUE_FULL',
      `Queue "${queue}" is full: it holds ${maxSize} waiting and running jobs, which is its maxSize. ` +
        'Nothing was stored. Retry later, or raise maxSize.',
      { retryable: true },
    );
  }
}

/** `remove()` of the inspector met jobs: waiting, running or dead ones. Purge the queue first, or remove it with `{ force: true }`. */
export class QueueNotEmptyError extends DelayQueueError {
  constructor(
    readonly queue: string,
    /** Those that were found. */
    readonly jobs: number,
  ) {
    super(
      'ERR_DQ_QUEUE_NOT_EMPTY',
      `remove("${queue}"): it holds ${jobs} waiting, running or dead jobs. Purge it first, or give { force: true }, which ` +
        'deletes them with it.',
    );
  }
}

/** `pausePublishing()` was called for the queue: every enqueue to it is refused until `resumePublishing()`. */
export class PublishingPausedError extends DelayQueueError {
  constructor(readonly queue: string) {
    super(
      'ERR_DQ_PUBLISHING_PAUSED',
      `Publishing to queue "${queue}" is paused. Nothing was stored. Retry after resumePublishing("${queue}").`,
      { retryable: true },
    );
  }
}

/**
 * Some jobs of an `enqueueMany()` were not accepted. `results` holds, in the order of the items, what became of each: a
 * result, or the id with its error. Resending the failed ones under these ids is safe.
 */
export class BulkEnqueueError<Result = unknown> extends DelayQueueError {
  constructor(
    queue: string,
    readonly results: readonly (Result | { readonly id: string; readonly error: DelayQueueError })[],
    cause: DelayQueueError,
  ) {
    const failed = results.filter(
      (result) => typeof result === 'object' && result !== null && 'error' in result,
    ).length;
    super(
      'ERR_DQ_BULK',
      `${failed} of ${results.length} jobs for queue "${queue}" were not accepted for sure: ${cause.message} ` +
        'Resend them with the ids in `results`.',
      { cause, retryable: cause.retryable },
    );
  }
}

/**
 * A job was stored, and will run, but what `durability` asked for was not reached in time. Resend it with its id: that
 * makes no second job while this one waits, and waits again.
 */
export class NotDurableError extends DelayQueueError {
  readonly maybeAccepted = true;

  constructor(
    readonly queue: string,
    readonly id: string,
    /** What was reached: replicas that have the job, or whether it is in the append-only file on disk. */
    readonly reached: { readonly replicas: number } | { readonly fsync: boolean },
    what: string,
    cause?: unknown,
  ) {
    super('ERR_DQ_NOT_DURABLE', `Job "${id}" of queue "${queue}" is stored, but ${what} Resend it with its id.`, {
      cause,
      retryable: true,
    });
  }

  /** The id to resend with, as `UnavailableError` has it. */
  get ids(): readonly string[] {
    return [this.id];
  }
}

/** Redis reached `maxmemory` and refused the job. Nothing was stored; claiming and settling go on. */
export class RedisFullError extends DelayQueueError {
  constructor(message: string, details?: DelayQueueErrorDetails) {
    super('ERR_DQ_REDIS_FULL', message, { ...details, retryable: true });
  }
}

knownAcrossCopies({
  DuplicateJobError,
  UnavailableError,
  ClosedError,
  BackPressureError,
  QueueFullError,
  QueueNotEmptyError,
  PublishingPausedError,
  BulkEnqueueError,
  NotDurableError,
  RedisFullError,
});
