// What the page may have done: see api.ts.

import type { ApiDeadReason, ApiJobState, Ms } from './api-reads.js';

// POST: acts. All need level `write`, `content-type: application/json`, and to be
// asked by the page itself. A body has at most 100 kB in an application with Nest's own limit: give fewer ids where they are long.

/** What each act takes. */
export interface ActRequest {
  instance?: string;
  queue: string;
  /** Nothing is changed; the answer says what would be. */
  dryRun?: boolean;
}

/** Due times from `from` on and before `to`; one of them may be left out. */
export interface DueRange {
  from?: Ms;
  to?: Ms;
}

/** At most 1,000 ids, or all jobs that are due in a range, 1,000 in a call. */
export type JobChoiceRequest = ({ ids: string[]; range?: never } | { range: DueRange; ids?: never }) & {
  /** Of the answer before; all else must be the same as then. */
  cursor?: string;
};

/** POST jobs/run-now */
export type RunNowRequest = ActRequest & JobChoiceRequest;

/** POST jobs/reschedule. Durations are ms, or texts such as `1h 30m`. */
export type RescheduleRequest = ActRequest &
  JobChoiceRequest & {
    to: { at: Ms } | { delay: number | string } | { by: number | string };
    /** Not with `by`. */
    spread?: number | string;
  };

/** POST jobs/cancel */
export type CancelRequest = ActRequest &
  JobChoiceRequest & {
    /** Running jobs as well: their signals abort. */
    running?: boolean;
  };

/** POST jobs/move */
export type MoveRequest = ActRequest & JobChoiceRequest & { target: string };

export type ActOutcome =
  | 'rescheduled'
  | 'cancelled'
  | 'moved'
  | 'exists'
  | 'running'
  | 'dead'
  | 'notFound'
  | 'changed'
  | 'unknown'
  | 'leaseLost'
  | 'occurrence';

/** Of the four acts on jobs. */
export interface JobsActResponse {
  results: { id: string; outcome: ActOutcome; state?: ApiJobState; dueAt?: Ms }[];
  /** Call again with it: there are more jobs, or the act was interrupted after these. */
  cursor?: string;
}

/** At most 1,000 ids; or all, the oldest first: in a call at most `most`, which is 1,000 where it is left out. */
export type DeadChoiceRequest =
  { ids: string[]; all?: never; most?: never } | { all: true; ids?: never; most?: number };

/** POST dead/requeue */
export type RequeueRequest = ActRequest &
  DeadChoiceRequest & {
    delay?: number | string;
    spread?: number | string;
    /** Default true. False: exactly one more run. */
    resetAttempts?: boolean;
    /** With `all`: only of this reason. */
    reason?: ApiDeadReason;
    /** Of the answer before: without it jobs that die again meanwhile would be requeued again. */
    cursor?: string;
  };

export interface RequeueResponse {
  /** With `dryRun`: so many would be. */
  requeued: number;
  /** Dead letters that the queue has now. */
  remaining: number;
  /** Of `all`: there may be more; call again with it. */
  cursor?: string;
}

/** POST dead/remove */
export type RemoveDeadRequest = ActRequest & DeadChoiceRequest;

export interface RemoveDeadResponse {
  /** With `dryRun`: so many would be. */
  removed: number;
  /** Dead letters that the queue has now. With `all`, call again while there are some. */
  remaining: number;
}

/** POST queue/pause, queue/resume, queue/pause-publishing, queue/resume-publishing. `dryRun` only tells the state. */
export type PauseRequest = ActRequest;

export interface PauseResponse {
  queue: string;
  paused: boolean;
  publishingPaused: boolean;
}

/** POST queue/purge: in a call at most `most` jobs, which is 1,000 where it is left out. Running jobs stay. */
export interface PurgeRequest extends ActRequest {
  most?: number;
  /** Default: waiting and dead. */
  states?: ('waiting' | 'dead' | 'completed')[];
  /** The name of the queue, typed by the user. Not needed with `dryRun`. */
  confirm?: string;
}

export interface PurgeResponse {
  /** With `dryRun`: so many would be, all that there are. */
  removed: number;
  /** Of these states, as many as there were when the call began; call again while there are some. */
  remaining: number;
}

/** POST schedules/pause, schedules/resume, schedules/trigger. 404 without such a schedule */
export interface ScheduleActRequest extends ActRequest {
  id: string;
}

/** POST schedules/backfill: occurrences for the times of the past from `from` to `to`, at most 1,000. */
export interface BackfillRequest extends ScheduleActRequest {
  from: Ms;
  to: Ms;
}

export interface ScheduleActResponse {
  id: string;
  /** Of pause and resume. */
  paused?: boolean;
  /** The job that was made, of trigger. */
  job?: string;
  /** Occurrences that were made, of backfill; with `dryRun` at most so many. */
  made?: number;
}
