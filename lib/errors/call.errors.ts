import { knownAcrossCopies } from '../copies.js';
import { DelayQueueError } from './delay-queue.error.js';
import type { DelayQueueErrorDetails } from './delay-queue.error.js';

// A call was not done, or nobody knows whether it was.

/** `onDuplicate: 'reject'` found a job under the same id that waits, runs or is dead. Nothing was changed. */
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
 * Redis did not answer in time. Without `maybeAccepted` nothing was sent. With it the request was sent and may have
 * taken effect: repeat it with the ids in `ids`. In the same process, within a minute and with the same payload, the
 * repeat of an enqueue gets the answer of the first call, however its job has ended. Elsewhere or later the repeat
 * finds the job if that still exists; if the job has ended, it makes a second one, unless both calls set `uniqueFor`.
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
 * The call came after `app.close()`, or was not sent before it: nothing was sent. Await pending calls before you close
 * the application, or make them in `onModuleDestroy`, when the connection is still open.
 */
export class ClosedError extends DelayQueueError {
  constructor(message: string) {
    super('ERR_DQ_CLOSED', message);
  }
}

/**
 * More bytes wait to be sent than the producer may hold. Nothing of this call was sent. Enqueue more slowly, then
 * retry.
 */
export class BackPressureError extends DelayQueueError {
  constructor(message: string) {
    super('ERR_DQ_BACK_PRESSURE', message, { retryable: true });
  }
}

/**
 * The queue holds as many waiting and running jobs as its `maxSize` allows, or more, so no further one was made. What
 * schedules have stored ahead does not count. Retry once some
 * have ended. Calls about jobs that exist already (keep, replace, reschedule) are not refused.
 */
export class QueueFullError extends DelayQueueError {
  constructor(
    readonly queue: string,
    readonly maxSize: number,
    /** How many jobs wait and run in the queue, or in the shard of this job, without what schedules have stored ahead. */
    readonly size = maxSize,
  ) {
    super(
      'ERR_DQ_QUEUE_FULL',
      `Queue "${queue}" is full: where this job belongs, ${size} wait or run, and its maxSize is ${maxSize}. ` +
        '(What schedules have stored ahead does not count.) Nothing was stored. Retry later, or raise maxSize.',
      { retryable: true },
    );
  }
}

/**
 * `remove()` of the inspector found waiting, running or dead jobs. Remove its schedules and purge the queue first, or pass
 * `{ force: true }`.
 */
export class QueueNotEmptyError extends DelayQueueError {
  constructor(
    readonly queue: string,
    /** How many jobs were found. */
    readonly jobs: number,
  ) {
    super(
      'ERR_DQ_QUEUE_NOT_EMPTY',
      `remove("${queue}"): it holds ${jobs} waiting, running or dead jobs. Remove its schedules, if it has any, and purge it ` +
        'first; or give { force: true }, which deletes all with it.',
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
 * Some jobs of an `enqueueMany()` were not accepted. `results` has one entry per item, in their order: a result, or the
 * id with its error. It is safe to enqueue the failed ones again under these ids.
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
 * The job is stored and will run, but it was not as durable in time as `durability` asks. Enqueue it again with its id:
 * while the job waits, that makes no second one, and waits for the durability again.
 */
export class NotDurableError extends DelayQueueError {
  readonly maybeAccepted = true;

  constructor(
    readonly queue: string,
    readonly id: string,
    /**
     * The durability that was reached: how many replicas have the job, or whether the append-only file on disk has it.
     */
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
