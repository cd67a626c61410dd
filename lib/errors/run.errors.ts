import { knownAcrossCopies } from '../copies.js';
import { DelayQueueError } from './delay-queue.error.js';

// What ends the run of a job, or tells its handler to stop.

/** The lease of a job ended, and another process may own the job now. The late call changed nothing. */
export class LeaseLostError extends DelayQueueError {
  /** @param isOver the run had ended by itself before it asked for more of the lease */
  constructor(
    readonly queue: string,
    readonly id: string,
    isOver = false,
  ) {
    super(
      'ERR_DQ_LEASE_LOST',
      isOver
        ? `Job "${id}" of queue "${queue}" has no lease any more: its run had ended before. ` +
            'Await whatever needs the lease before the handler ends.'
        : `The lease of job "${id}" of queue "${queue}" was lost: it ran out and was taken back, or Redis lost it. ` +
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
 * A middleware called `next()` a second time, or after it had ended. That call ran nothing. A second call fails the
 * attempt, even if the middleware catches this error; `cause` is the error of the handler.
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

/**
 * A client of `@RelayDelayed` did not confirm a message: it refused the message, lost its connection, or the receiver
 * answered with an error. `cause` is what it said. The message may have been sent all the same. Counts as a failed
 * attempt.
 */
export class RelayError extends DelayQueueError {
  constructor(
    readonly queue: string,
    readonly id: string,
    /** The token of the client, in quotes if it is text. */
    readonly client: string,
    cause: unknown,
  ) {
    super('ERR_DQ_RELAY', `Client ${client} did not confirm the message for job "${id}" of queue "${queue}".`, {
      cause,
      retryable: true,
    });
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

/**
 * The reason of `job.signal` when the process stops and `drainTimeout` has passed. The job is handed back; no attempt
 * is used.
 */
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

knownAcrossCopies({
  LeaseLostError,
  HandlerTimeoutError,
  MiddlewareError,
  RelayError,
  JobCancelledError,
  ShutdownError,
});
