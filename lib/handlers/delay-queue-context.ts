import type { ArgumentsHost } from '@nestjs/common';
import type { DelayedJob } from '../job/delayed-job.js';

/** What `getType()` of an `ExecutionContext` or `ArgumentsHost` answers around a handler. Its args are `[payload, job]`. */
export const DELAY_QUEUE_CONTEXT = 'delay-queue';

/** For enhancers shared with HTTP: `if (!isDelayQueueContext(context)) ...`. */
export function isDelayQueueContext(host: ArgumentsHost): boolean {
  return host.getType<string>() === DELAY_QUEUE_CONTEXT;
}

/** The running job as seen by a guard, interceptor, filter or parameter decorator; undefined outside of a handler. */
export function getDelayedJob<T = unknown>(host: ArgumentsHost): DelayedJob<T> | undefined {
  return isDelayQueueContext(host) ? host.getArgByIndex<DelayedJob<T>>(1) : undefined;
}

/**
 * What `@Inject(REQUEST)` and a durable `ContextIdStrategy` get while a job runs. Providers shared with HTTP tell it
 * from a request by `instanceof`.
 */
export class DelayQueueRequest<T = unknown> {
  readonly payload: T;

  constructor(readonly job: DelayedJob<T>) {
    this.payload = job.payload;
  }
}
