import type { DelayedJob } from '../job/delayed-job.js';
import type { JobHeader } from '../job/envelope.js';
import type { Claim } from './lease-renewal.js';
import type { Timeout } from './timeout.js';

/** One started job. */
export interface Run {
  readonly id: string;
  readonly job: DelayedJob;
  /** This and the next two as they were claimed: the handler holds the job and may write to it. */
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly snoozes: number;
  /** Not the whole envelope: that hangs on the text of its whole batch. */
  readonly header: JobHeader;
  /** Server time; Infinity for a job that does not expire. */
  readonly expiresAt: number;
  /** Changes when the job gets a lease of its own, or when this process claims it again after losing it. */
  claim: Claim;
  /** It was claimed from the quarantine. */
  readonly quarantined: boolean;
  /** An occurrence whose schedule has not said yet that it may run: nothing of it has begun. */
  asks?: true | undefined;
  /** Its outcome is decided. A handler that runs on changes nothing any more. */
  ended: boolean;
  /** The lease is known to be lost: there is nothing to settle. */
  lost: boolean;
  /**
   * The id came back under another claim while this run went on, due at this server time: it was replaced, moved or run
   * after this run had lost its lease. `claim` is then that of the job which waits for the end of this run.
   */
  cameBackDue?: number;
  /** Monotonic ms; 0 if no subscriber wants to know how long runs take. */
  startedAt: number;
  durationMs: number | undefined;
  /** The span of this run, for the next one to point to. */
  trace: string | undefined;
  /** The value that the handler threw. */
  error: unknown;
  /** The payloads of all jobs of its batch, one list for all of them, once the batch has failed: it may have quoted any. */
  quotable?: readonly unknown[];
  /** Of the job, or of its handler. */
  timeout?: Timeout;
  /** Its lease ended and nothing renews it: it holds no slot any more, and still its end may count. */
  lapsed?: boolean;
  /** A change of its lease is on its way. Only its answer says under which claim the run ends. Never rejects. */
  extending?: Promise<unknown>;
}
