import type { HandlerOutcome } from '../handlers/handler-outcome.js';
import type { DelayedJob } from '../job/delayed-job.js';
import type { Settlement } from './settlement.js';

/** Where the test kit stands between workers and handlers. Nothing of it is set in an application that runs. */
export interface Probe {
  /** A run begins. If it returns an outcome, the handler is not called. */
  begins?(job: DelayedJob): HandlerOutcome | undefined;
  /** How long a drain waits at most, ms, once handlers were seen to hang. */
  drainMs?: number;
  /** The outcome of a run is decided; Redis does not know it yet. */
  decided?(job: DelayedJob, settlement: Settlement): void;
}
