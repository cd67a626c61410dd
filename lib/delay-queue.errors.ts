import { knownAcrossCopies } from './copies.js';

/** Every code a `DelayQueueError` can carry. Codes are part of the public contract: they never change meaning. */
export type DelayQueueErrorCode =
  | 'ERR_DQ_INVALID_DELAY'
  | 'ERR_DQ_INVALID_QUEUE'
  | 'ERR_DQ_INVALID_ID'
  | 'ERR_DQ_INVALID_OPTION'
  | 'ERR_DQ_INVALID_HANDLER'
  | 'ERR_DQ_PAYLOAD'
  | 'ERR_DQ_PAYLOAD_TOO_LARGE'
  | 'ERR_DQ_SCHEMA'
  | 'ERR_DQ_DUPLICATE_JOB'
  | 'ERR_DQ_DUPLICATE_HANDLER'
  | 'ERR_DQ_DUPLICATE_INSTANCE'
  | 'ERR_DQ_UNKNOWN_INSTANCE'
  | 'ERR_DQ_UNAVAILABLE'
  | 'ERR_DQ_CONNECTION'
  | 'ERR_DQ_CLOSED'
  | 'ERR_DQ_BACK_PRESSURE'
  | 'ERR_DQ_QUEUE_FULL'
  | 'ERR_DQ_QUEUE_NOT_EMPTY'
  | 'ERR_DQ_PUBLISHING_PAUSED'
  | 'ERR_DQ_BULK'
  | 'ERR_DQ_NOT_DURABLE'
  | 'ERR_DQ_REDIS_FULL'
  | 'ERR_DQ_LEASE_LOST'
  | 'ERR_DQ_TIMEOUT'
  | 'ERR_DQ_MIDDLEWARE'
  | 'ERR_DQ_CANCELLED'
  | 'ERR_DQ_SHUTDOWN'
  | 'ERR_DQ_STORED_DATA'
  | 'ERR_DQ_LAYOUT'
  | 'ERR_DQ_UNKNOWN_CODEC'
  | 'ERR_DQ_UNSAFE_SERVER'
  | 'ERR_DQ_SHARD_COUNT'
  | 'ERR_DQ_HARNESS';

export interface DelayQueueErrorDetails {
  /** The error of the driver or of user code behind this one. */
  cause?: unknown;
  /** True when the same call may succeed later without any change by the caller. */
  retryable?: boolean;
}

/** Base of everything this library throws on purpose. Tell errors apart by `code`, not by message. */
export class DelayQueueError extends Error {
  readonly retryable: boolean;

  constructor(
    readonly code: DelayQueueErrorCode,
    message: string,
    { cause, retryable = false }: DelayQueueErrorDetails = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.retryable = retryable;
  }
}

/** A delay, due date, lease, timeout or other duration that cannot be understood or is out of range. */
export class InvalidDelayError extends DelayQueueError {
  constructor(message: string) {
    super('ERR_DQ_INVALID_DELAY', message);
  }
}

/** A queue name that is empty, longer than 128 characters, or holds braces, spaces at its ends or control characters. */
export class InvalidQueueError extends DelayQueueError {
  constructor(message: string) {
    super('ERR_DQ_INVALID_QUEUE', message);
  }
}

/** A job id that is empty, longer than 256 characters, or holds braces or control characters. */
export class InvalidIdError extends DelayQueueError {
  constructor(message: string) {
    super('ERR_DQ_INVALID_ID', message);
  }
}

/** An option that is unknown, has the wrong type or contradicts another one. The message names the field. */
export class InvalidOptionError extends DelayQueueError {
  constructor(message: string, details?: DelayQueueErrorDetails) {
    super('ERR_DQ_INVALID_OPTION', message, details);
  }
}

/** An `@OnDelayed` method that cannot be bound. The message names class and method. Thrown at bootstrap only. */
export class InvalidHandlerError extends DelayQueueError {
  constructor(message: string) {
    super('ERR_DQ_INVALID_HANDLER', message);
  }
}

/** A payload that JSON would lose or change: BigInt, cycle, function, symbol, NaN, Infinity, Map, Set, `undefined`. */
export class PayloadError extends DelayQueueError {
  constructor(message: string, details?: DelayQueueErrorDetails) {
    super('ERR_DQ_PAYLOAD', message, details);
  }
}

/** A payload whose encoded form exceeds `maxPayloadBytes`. */
export class PayloadTooLargeError extends DelayQueueError {
  constructor(message: string) {
    super('ERR_DQ_PAYLOAD_TOO_LARGE', message);
  }
}

export interface SchemaIssue {
  readonly message: string;
  /** Such as `payload.items[3].price`. */
  readonly path: string;
}

/** A payload that the schema of its queue refuses. At enqueue nothing was sent; at the handler it is a dead letter. */
export class SchemaError extends DelayQueueError {
  constructor(
    readonly queue: string,
    readonly issues: readonly SchemaIssue[],
  ) {
    const [first] = issues;
    const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : '';
    super('ERR_DQ_SCHEMA', `Queue "${queue}": ${first?.path ?? 'payload'}: ${first?.message ?? 'refused'}${more}`);
  }
}

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

/** Two handlers for one queue of one instance. The message names both. */
export class DuplicateHandlerError extends DelayQueueError {
  constructor(message: string) {
    super('ERR_DQ_DUPLICATE_HANDLER', message);
  }
}

/** Two `forRoot()` with one instance name. */
export class DuplicateInstanceError extends DelayQueueError {
  constructor(message: string) {
    super('ERR_DQ_DUPLICATE_INSTANCE', message);
  }
}

/** A handler or an injection names an instance that no `forRoot()` declares. */
export class UnknownInstanceError extends DelayQueueError {
  constructor(message: string) {
    super('ERR_DQ_UNKNOWN_INSTANCE', message);
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
 * Redis is there, and cannot be used in the way that `connection` says. Waiting does not help: somebody has to change
 * `connection`, or the server. The message says what; it never holds a password.
 */
export class ConnectionError extends DelayQueueError {
  constructor(
    /**
     * `credentials`: a wrong user or password, or none where one is wanted. `permission`: the user may not do what is
     * needed. `database`: the one asked for cannot be selected. `tls`: spoken by one side only, or a certificate that is
     * not accepted. `protectedMode`: the server serves its own machine only. `command`: the server does not know one that is
     * needed, perhaps because it was renamed.
     */
    readonly reason: 'credentials' | 'permission' | 'database' | 'tls' | 'protectedMode' | 'command',
    message: string,
    details?: DelayQueueErrorDetails,
  ) {
    super('ERR_DQ_CONNECTION', message, details);
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

/** The lease of a job ended and somebody else may own it now. What the late owner asked for was not done. */
export class LeaseLostError extends DelayQueueError {
  constructor(
    readonly queue: string,
    readonly id: string,
  ) {
    super(
      'ERR_DQ_LEASE_LOST',
      `The lease of job "${id}" of queue "${queue}" was lost: it ran out and was taken back, or Redis lost it. ` +
        'Another worker may run the job. Use a longer lease, or do not block the event loop.',
    );
  }
}

/** A handler ran longer than its `timeout`. Counts as a failed attempt. */
export class HandlerTimeoutError extends DelayQueueError {
  constructor(
    readonly queue: string,
    readonly id: string,
    readonly timeoutMs: number,
  ) {
    super('ERR_DQ_TIMEOUT', `Job "${id}" of queue "${queue}" exceeded its timeout of ${timeoutMs} ms.`);
  }
}

/**
 * A middleware called `next()` more than once, or after it had ended. Nothing was run by that call. More than once counts as a
 * failed attempt, also when the middleware catches this error; `cause` is what the handler threw.
 */
export class MiddlewareError extends DelayQueueError {
  constructor(
    readonly queue: string,
    readonly id: string,
    /** Its name, and its place among those around the handler, the outermost first: `"logged" (1 of 2)`. */
    readonly middleware: string,
    late: boolean,
    cause?: unknown,
  ) {
    super(
      'ERR_DQ_MIDDLEWARE',
      `Middleware ${middleware} of queue "${queue}" called next() ${late ? 'after it had ended' : 'more than once'} ` +
        `for job "${id}". ` +
        (late
          ? 'Nothing was run by that. Let it wait for what it does before it calls next().'
          : 'The handler ran once. Call next() once, and leave retries to `attempts` and `backoff`.'),
      { cause },
    );
  }
}

/** The reason of `job.signal` after `cancel(queue, id, { running: true })`. */
export class JobCancelledError extends DelayQueueError {
  constructor(
    readonly queue: string,
    readonly id: string,
  ) {
    super('ERR_DQ_CANCELLED', `Job "${id}" of queue "${queue}" was cancelled while it ran.`);
  }
}

/** The reason of `job.signal` when the process stops and `drainTimeout` has passed; the job is handed back, uncharged. */
export class ShutdownError extends DelayQueueError {
  constructor(
    readonly queue: string,
    readonly id: string,
  ) {
    super(
      'ERR_DQ_SHUTDOWN',
      `Job "${id}" of queue "${queue}" still ran when the process had to stop; it was handed back.`,
    );
  }
}

/** Something stored under our keys has a wrong type or cannot be read. The message names the queue. */
export class StoredDataError extends DelayQueueError {
  constructor(message: string, details?: DelayQueueErrorDetails) {
    super('ERR_DQ_STORED_DATA', message, details);
  }
}

/** The stored layout is newer than this library, or needs a feature that it does not know. Upgrade the library. */
export class LayoutError extends DelayQueueError {
  constructor(message: string) {
    super('ERR_DQ_LAYOUT', message);
  }
}

/**
 * A stored payload cannot be read here, but perhaps elsewhere: its codec is not in `codec` of `forRoot()`. A codec throws
 * it for a key that it does not have. The job is handed back uncharged, for processes that can read it.
 */
export class UnknownCodecError extends DelayQueueError {
  constructor(message: string) {
    super('ERR_DQ_UNKNOWN_CODEC', message);
  }
}

/** The Redis server must not hold jobs: it evicts keys, or is too old. */
export class UnsafeServerError extends DelayQueueError {
  constructor(message: string) {
    super('ERR_DQ_UNSAFE_SERVER', message);
  }
}

/**
 * This process takes a queue for one of another number of shards than Redis holds it in, or the number cannot be changed
 * at the moment. Nothing was stored, read or changed.
 */
export class ShardCountError extends DelayQueueError {
  constructor(
    readonly queue: string,
    /** Shards that the queue has in Redis. */
    readonly stored: number,
    /** What `forRoot({ queues })` of this process says, 1 when it says nothing. */
    readonly configured: number,
    { message, retryable }: { message?: string; retryable?: boolean } = {},
  ) {
    super(
      'ERR_DQ_SHARD_COUNT',
      message ??
        `Queue "${queue}" has ${stored} shard${stored === 1 ? '' : 's'} in Redis and ${configured} in this process. ` +
          `Set forRoot({ queues: { "${queue}": { shards: ${stored} } } }), or change what is stored with ` +
          `DelayQueueInspector.reshard("${queue}", { to: ${configured} }) and then deploy this everywhere.`,
      { retryable },
    );
  }
}

knownAcrossCopies({
  DelayQueueError,
  InvalidDelayError,
  InvalidQueueError,
  InvalidIdError,
  InvalidOptionError,
  InvalidHandlerError,
  PayloadError,
  PayloadTooLargeError,
  SchemaError,
  DuplicateJobError,
  DuplicateHandlerError,
  DuplicateInstanceError,
  UnknownInstanceError,
  UnavailableError,
  ConnectionError,
  ClosedError,
  BackPressureError,
  QueueFullError,
  QueueNotEmptyError,
  PublishingPausedError,
  BulkEnqueueError,
  NotDurableError,
  RedisFullError,
  LeaseLostError,
  HandlerTimeoutError,
  MiddlewareError,
  JobCancelledError,
  ShutdownError,
  StoredDataError,
  LayoutError,
  UnknownCodecError,
  UnsafeServerError,
  ShardCountError,
});
