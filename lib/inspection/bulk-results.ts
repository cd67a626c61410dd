import type { MoveOutcome } from './job-mover.js';
import type { JobState } from '../redis/letters.js';

/**
 * What became of a job, in the words of the single calls; and `'changed'`: it was given another due time while the call
 * ran, so it is no longer the job that was chosen, and was left alone.
 */
export interface BulkActResult<Outcome extends string> {
  id: string;
  outcome: Outcome;
  /** State of the job that was found; undefined without one, and for `move`. */
  state?: JobState | undefined;
  /** The new due time, when it was rescheduled. */
  dueAt?: Date;
}

export interface BulkActPage<Outcome extends string> {
  /** Of ids in their order; of a range in the order of the due times of each shard, of `reschedule` the latest first. */
  results: BulkActResult<Outcome>[];
  /** Call again with it: there are more jobs, or the call was interrupted after these. */
  cursor?: string;
}

export type BulkCancelOutcome = 'cancelled' | 'running' | 'dead' | 'notFound' | 'changed';
/** `'occurrence'`: its schedule stays in its queue, so it was left alone. */
export type BulkMoveOutcome = MoveOutcome | 'occurrence';
/** `'unknown'`: it may have been moved by `by`, for Redis did not answer in time. It is not met again; look at its due time. */
export type BulkRescheduleOutcome = 'rescheduled' | 'running' | 'dead' | 'notFound' | 'changed' | 'unknown';
