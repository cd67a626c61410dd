import { knownAcrossCopies } from '../copies.js';

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
  | 'ERR_DQ_RELAY'
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

knownAcrossCopies({ DelayQueueError });
