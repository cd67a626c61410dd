import { types } from 'node:util';
import { DelayQueueLogger } from '../delay-queue.logger.js';
import { summarizeRefusal } from '../job/error-record.js';

const failed = new WeakSet<object>();

/**
 * Of what a filter threw in place of the error that it was given: that one stays with it as its cause, if the filter has named none.
 *
 * @returns whether the filter seems to have failed, and not to have made another error of the one that it was given
 */
export function hides(thrown: unknown, error: unknown): boolean {
  if (!types.isNativeError(thrown) || Object.hasOwn(thrown, 'cause')) return false;
  Reflect.defineProperty(thrown, 'cause', { value: error, configurable: true, writable: true });
  return thrown instanceof TypeError || thrown instanceof ReferenceError;
}

/**
 * Once for each filter. Nest keeps no name of it; the stack of the job's error has it.
 *
 * @param catches what its class was decorated with: the same list for all handlers, and all jobs for which it is made anew
 * @param payload its values are left out
 */
export function filterFailed(
  catches: readonly object[],
  error: unknown,
  queue: string,
  payload: unknown,
  inInstance: string,
): void {
  if (failed.has(catches)) return;
  failed.add(catches);
  const why = summarizeRefusal(error, payload);
  DelayQueueLogger.of(inInstance).warn(
    `An exception filter failed behind a handler of queue "${queue}": ${why}. A job is no request: let the filter throw what it ` +
      "was given if isDelayQueueContext(host), or, if it is global, leave it out of jobs by globalEnhancers: 'pipes'. Said once.",
  );
}
