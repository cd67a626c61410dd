import { types } from 'node:util';

/**
 * Calls something of the application's that stands around a job: a logger, a hook, a rule for retries. What it throws is
 * told, and costs nothing else; so is what its promise rejects with, which Node would take for a crash.
 *
 * @returns what it gave, or `instead`
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

const told = new Set<string>();

/**
 * Where a log line is of no use, because the logger is what failed: a warning of the process, once.
 *
 * @param about what is told once
 */
export function warnOnce(about: string, message: string): void {
  if (told.has(about)) return;
  told.add(about);
  try {
    process.emitWarning(message, 'DelayQueueWarning');
  } catch {
    // Nobody is left to be told.
  }
}
