import { types } from 'node:util';

/**
 * Calls code of the application that runs around a job: a logger, a hook, a rule for retries. If it throws or its
 * promise rejects, that is reported and has no other effect; Node would end the process for such a rejection.
 *
 * @returns its result, or `instead`
 */
export function guarded<Result>(call: () => Result, instead: Result, tell: (thrown: unknown) => void): Result {
  try {
    const result = call();
    if (types.isPromise(result)) result.then(undefined, tell);
    return result;
  } catch (thrown) {
    tell(thrown);
    return instead;
  }
}

const said = new Set<string>();

/**
 * Where a log line is of no use, because the logger is what failed: a warning of the process, once.
 *
 * @param about the text that is reported once
 */
export function warnOnce(about: string, message: string): void {
  if (said.has(about)) return;
  said.add(about);
  try {
    process.emitWarning(message, 'DelayQueueWarning');
  } catch {
    // There is no other place to report it.
  }
}
