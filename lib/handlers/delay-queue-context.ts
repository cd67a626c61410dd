import type { ArgumentsHost } from '@nestjs/common';
import { knownAcrossCopies } from '../copies.js';
import type { DelayedJob } from '../job/delayed-job.js';
import type { BatchJob } from './batch-job.js';

/**
 * What `getType()` of an `ExecutionContext` or `ArgumentsHost` answers around a handler. Its args are `[payload, job]`, around
 * a batch `[payloads, jobs]`.
 */
export const DELAY_QUEUE_CONTEXT = 'delay-queue';

/** For enhancers shared with HTTP: `if (!isDelayQueueContext(context)) ...`. */
export function isDelayQueueContext(host: ArgumentsHost): boolean {
  return host.getType<string>() === DELAY_QUEUE_CONTEXT;
}

/**
 * The running job as seen by a guard, interceptor, filter or parameter decorator; undefined outside of a handler and around a
 * batch, which has many.
 */
export function getDelayedJob<T = unknown>(host: ArgumentsHost): DelayedJob<T> | undefined {
  const subject = subjectOf<T>(host);
  return isList(subject) ? undefined : subject;
}

/** The jobs of a batch, around other handlers the one; none outside of a handler. */
export function getDelayedJobs<T = unknown>(host: ArgumentsHost): readonly DelayedJob<T>[] {
  const subject = subjectOf<T>(host);
  if (subject === undefined) return [];
  return isList(subject) ? subject : [subject];
}

type Subject<T> = DelayedJob<T> | readonly BatchJob<T>[] | undefined;

function subjectOf<T>(host: ArgumentsHost): Subject<T> {
  return isDelayQueueContext(host) ? host.getArgByIndex<Subject<T>>(1) : undefined;
}

function isList<T>(subject: Subject<T>): subject is readonly BatchJob<T>[] {
  return Array.isArray(subject);
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

/** The same while a batch runs: a class of its own, because there is no one job whose tenant or user it could stand for. */
export class DelayQueueBatchRequest<T = unknown> {
  readonly payloads: readonly T[];

  constructor(readonly jobs: readonly BatchJob<T>[]) {
    this.payloads = jobs.map(({ payload }) => payload);
  }
}

knownAcrossCopies({ DelayQueueRequest, DelayQueueBatchRequest });
