import { AsyncLocalStorage } from 'node:async_hooks';
import type { DelayedJob } from './delayed-job.js';

const storage = new AsyncLocalStorage<DelayedJob | undefined>();

/** The job whose handler called this, directly or through whatever it awaits; undefined outside handlers and in batches. */
export function currentJob<T = unknown>(): DelayedJob<T> | undefined {
  return storage.getStore() as DelayedJob<T> | undefined;
}

/** Costs about 0.3 us per job, which is why it can always be on. */
export function runAsCurrent<R, A extends unknown[]>(
  job: DelayedJob | undefined,
  run: (...args: A) => R,
  ...args: A
): R {
  return storage.run(job, run, ...args);
}

/**
 * Carries what an application keeps in its own async context (request id, tenant, user) from the code that enqueues to
 * the handler that runs later: for nestjs-cls, loggers and the like.
 */
export interface ContextProvider {
  /** Called at each enqueue; what it returns becomes part of the job's `context`. */
  capture(): Readonly<Record<string, string>> | undefined;
  /** Called around each run; must call `next` once and return what it returns. */
  run<R>(context: Readonly<Record<string, string>>, next: () => R): R;
}
