import type { Handler, HandlerOutcome } from '../handlers/handler.js';
import { decisionOf } from '../handlers/outcomes.js';
import type { DelayedJob } from '../job/delayed-job.js';

/**
 * Runs around handlers, outside guards and interceptors: also around those registered as functions.
 *
 * `next()` runs what is inside and rejects with its error when that failed. A middleware that catches the error has handled
 * the failure; one that does not call `next()` has done the job itself; SnoozeJob and DiscardJob may be thrown here too.
 */
export type DelayQueueMiddleware = (job: DelayedJob, next: () => Promise<void>) => unknown;

const COMPLETED: HandlerOutcome = Object.freeze({ kind: 'completed' });

/** The handler's `invoke` with the middleware around it, the first one outermost. */
export function withMiddleware(
  invoke: Handler['invoke'],
  middleware: readonly DelayQueueMiddleware[],
): Handler['invoke'] {
  if (middleware.length === 0) return invoke;
  return async (job) => {
    let outcome = COMPLETED;
    const innermost = async () => {
      outcome = await invoke(job);
      if (outcome.kind === 'failed' || outcome.kind === 'invalid') throw outcome.error;
    };
    const chain = middleware.reduceRight<() => Promise<void>>(
      (next, around) => async () => void (await around(job, next)),
      innermost,
    );
    try {
      await chain();
    } catch (error) {
      const own = 'error' in outcome && outcome.error === error;
      return own ? outcome : (decisionOf(error) ?? { kind: 'failed', error });
    }
    return 'error' in outcome ? { kind: 'completed', handled: outcome.error } : outcome;
  };
}
