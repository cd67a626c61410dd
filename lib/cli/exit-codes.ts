import { DelayQueueError } from '../delay-queue.errors.js';

/** What the program answers to whoever started it. `health` has codes of its own, as monitors expect them. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  refused: 4,
  redis: 5,
  partly: 6,
  interrupted: 130,
} as const;

export const HEALTH_EXIT = { up: 0, degraded: 1, down: 2 } as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends a command with a sentence for the user. */
export class CommandError extends Error {
  constructor(
    readonly exitCode: ExitCode,
    message: string,
  ) {
    super(message);
  }
}

export const usage = (message: string) => new CommandError(EXIT.usage, message);
export const notFound = (message: string) => new CommandError(EXIT.notFound, message);

const BY_CODE: Readonly<Record<string, ExitCode>> = {
  ERR_DQ_INVALID_DELAY: EXIT.usage,
  ERR_DQ_INVALID_QUEUE: EXIT.usage,
  ERR_DQ_INVALID_ID: EXIT.usage,
  ERR_DQ_INVALID_OPTION: EXIT.usage,
  ERR_DQ_PAYLOAD: EXIT.usage,
  ERR_DQ_PAYLOAD_TOO_LARGE: EXIT.usage,
  ERR_DQ_SCHEMA: EXIT.usage,
  ERR_DQ_DUPLICATE_JOB: EXIT.refused,
  ERR_DQ_QUEUE_FULL: EXIT.refused,
  ERR_DQ_QUEUE_NOT_EMPTY: EXIT.refused,
  ERR_DQ_PUBLISHING_PAUSED: EXIT.refused,
  ERR_DQ_SHARD_COUNT: EXIT.refused,
  ERR_DQ_UNAVAILABLE: EXIT.redis,
  ERR_DQ_CLOSED: EXIT.redis,
  ERR_DQ_CONNECTION: EXIT.redis,
  ERR_DQ_UNSAFE_SERVER: EXIT.redis,
  ERR_DQ_REDIS_FULL: EXIT.redis,
  ERR_DQ_BULK: EXIT.partly,
};

export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof CommandError) return error.exitCode;
  return error instanceof DelayQueueError ? (BY_CODE[error.code] ?? EXIT.failed) : EXIT.failed;
}

/** Of an act on several jobs, from what became of them. */
export function exitCodeOfOutcomes(done: number, missing: number, refused: number): ExitCode {
  if (missing + refused === 0) return done > 0 ? EXIT.done : EXIT.notFound;
  if (done > 0) return EXIT.partly;
  return refused > 0 ? EXIT.refused : EXIT.notFound;
}
