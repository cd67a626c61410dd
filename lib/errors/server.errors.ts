import { knownAcrossCopies } from '../copies.js';
import { DelayQueueError } from './delay-queue.error.js';
import type { DelayQueueErrorDetails } from './delay-queue.error.js';

// Redis cannot be used, or holds what this process cannot read.

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
  ConnectionError,
  StoredDataError,
  LayoutError,
  UnknownCodecError,
  UnsafeServerError,
  ShardCountError,
});
