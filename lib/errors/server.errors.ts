import { knownAcrossCopies } from '../copies.js';
import { DelayQueueError } from './delay-queue.error.js';
import type { DelayQueueErrorDetails } from './delay-queue.error.js';

// Redis cannot be used, or holds what this process cannot read.

/**
 * Redis is there, but cannot be used with the given `connection`. Waiting does not help: `connection` or the server
 * must be changed. The message says what to change; it never contains a password.
 */
export class ConnectionError extends DelayQueueError {
  constructor(
    /**
     * `credentials`: user or password is wrong or missing. `permission`: the user lacks a permission. `database`: the
     * database cannot be selected. `tls`: only one side speaks TLS, or the certificate is not accepted.
     * `protectedMode`: the server accepts only clients on its own machine. `command`: the server lacks a command,
     * perhaps because it was renamed. `cluster`: a Cluster was asked for, and the server is none.
     */
    readonly reason: 'credentials' | 'permission' | 'database' | 'tls' | 'protectedMode' | 'command' | 'cluster',
    message: string,
    details?: DelayQueueErrorDetails,
  ) {
    super('ERR_DQ_CONNECTION', message, details);
  }
}

/** A key of the queue has a wrong type, or its content cannot be read. The message names the queue. */
export class StoredDataError extends DelayQueueError {
  constructor(message: string, details?: DelayQueueErrorDetails) {
    super('ERR_DQ_STORED_DATA', message, details);
  }
}

/** The stored layout is newer than this library, or needs a feature that it does not know. Upgrade the library. */
export class LayoutError extends DelayQueueError {
  constructor(message: string, details?: DelayQueueErrorDetails) {
    super('ERR_DQ_LAYOUT', message, details);
  }
}

/**
 * This process cannot read a stored payload, but others may: its codec is not in `codec` of `forRoot()`. A codec throws
 * it for a key that it does not have. The job is handed back, without using an attempt, for processes that can read it.
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
 * This process gives another number of shards than the queue has in Redis, or the number cannot be changed at the
 * moment. Nothing was stored, read or changed.
 */
export class ShardCountError extends DelayQueueError {
  constructor(
    readonly queue: string,
    /** Shards that the queue has in Redis. */
    readonly stored: number,
    /** The number in `forRoot({ queues })` of this process; 1 without one. */
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
