import type { Backoff } from '../job/backoff.js';
import type { DelayQueueMiddleware } from './middleware.js';
import type { DelayedJob } from '../job/delayed-job.js';
import type { Duration } from '../job/duration.js';
import type { Batch } from './batch-job.js';
import type { BatchOptions } from './batch-options.js';
import type { HandlerOutcome } from './handler-outcome.js';
import type { ScheduleOptions, ScheduleTimes } from '../recurring/schedule-options.js';
import type { KeepCompletedOptions } from '../job/queue-definition.js';
import type { QueueLimits } from '../job/queue-limits.js';

/**
 * Options of `@OnDelayed(queue, options)`. An option that is left out comes from the definition, the module or the
 * library.
 */
export interface HandlerOptions extends QueueLimits {
  /** Name of the `forRoot()` instance. Default: the unnamed one. */
  instance?: string;
  /** Jobs of this queue that one process runs at a time; with `batch`, batches. Default 10. */
  concurrency?: number;
  /** Claims jobs before a slot is free, where handlers are shorter than a round trip. Default true. */
  prefetch?: boolean;
  /** How long a claim is valid without a heartbeat. Default `'30s'`. */
  lease?: Duration;
  /** Runs that may fail before the job becomes a dead letter. Default 10. */
  attempts?: number;
  /** Delay before the next attempt. Default `exponential('1s', { max: '1h', jitter: 0.2 })`. */
  backoff?: Backoff | ((attempt: number, error: unknown) => Duration);
  /** Longest run; with `batch`, of the batch. Default none. */
  timeout?: Duration;
  /** Keeps completed jobs for people to look at: by default 1,000 for 7 days. Default false. */
  keepCompleted?: KeepCompletedOptions | false;
  /**
   * False: this failure is not worth another attempt, the job becomes a dead letter at once. What is no boolean counts
   * as true.
   */
  retryIf?: (error: unknown, job: DelayedJob) => boolean;
  /** The method receives many jobs at once, `(payloads, jobs)`. Default: one at a time. */
  batch?: BatchOptions;
  /** Runs around this handler, inside the middleware of the module. Default none. */
  middleware?: readonly DelayQueueMiddleware[];
  /** The queue has a schedule of its own, with the id `@code`: made, changed or removed when the application boots. */
  repeat?: RepeatOptions;
}

/** The times and options of `schedule()`, and the payload of each occurrence. */
export type RepeatOptions = ScheduleTimes & ScheduleOptions & { /** Default null. */ payload?: unknown };

/** A bound handler: what the worker calls, and what boot and error messages call it. */
export interface Handler {
  readonly queue: string;
  /** `ClassName.methodName`, or what `register()` was given. */
  readonly name: string;
  readonly options: HandlerOptions;
  /** Never rejects: every ending is an outcome. */
  invoke(job: DelayedJob): Promise<HandlerOutcome>;
  /** Like `invoke`, without a promise: on Node 20 a promise costs hooks and memory once AsyncLocalStorage is used. */
  begin?(job: DelayedJob, done: (outcome: HandlerOutcome) => void): void;
  /** For a handler with `batch`. Jobs that the handler settled by itself keep their own outcome. */
  invokeBatch?(batch: Batch): Promise<HandlerOutcome>;
}
