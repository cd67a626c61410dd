import { knownAcrossCopies } from '../copies.js';
import { DelayQueueError } from './delay-queue.error.js';
import type { DelayQueueErrorDetails } from './delay-queue.error.js';

// What the application gave is wrong: nothing was sent.

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

knownAcrossCopies({
  InvalidDelayError,
  InvalidQueueError,
  InvalidIdError,
  InvalidOptionError,
  InvalidHandlerError,
  PayloadError,
  PayloadTooLargeError,
  SchemaError,
  DuplicateHandlerError,
  DuplicateInstanceError,
  UnknownInstanceError,
});
