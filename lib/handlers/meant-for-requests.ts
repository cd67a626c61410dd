import { type CanActivate, HttpException, type NestInterceptor } from '@nestjs/common';
import { DelayQueueLogger } from '../delay-queue.logger.js';
import { summarizeRefusal } from '../job/error-record.js';
import { decisionOf } from './outcomes.js';

// What was written for requests fails for every job, and the job's own error tells neither where nor why. So each is told of once.

const seen = new WeakSet<object>();

/** What failed, and before what. */
export interface BeforeHandler {
  readonly queue: string;
  /** Its values are left out of the message. */
  readonly payload: unknown;
  /** The name of the `forRoot()` of the handler. */
  readonly inInstance: string;
}

const IN_PIPES =
  "if isDelayQueueContext(context), or, if it is global, leave it out of jobs by globalEnhancers: 'pipes'";

export function guardFailed(guard: CanActivate, error: unknown, before: BeforeHandler): void {
  report(classOf(guard), `Guard ${nameOf(guard)}`, error, `let the guard return true ${IN_PIPES}`, before);
}

/** Nest runs them one within the other, so only a stack says which one it was. */
export function interceptorFailed(
  interceptors: readonly NestInterceptor[],
  error: unknown,
  before: BeforeHandler,
): void {
  const stack = asked(() => (error as Error).stack);
  const isIn = (one: NestInterceptor) => typeof stack === 'string' && stack.includes(`${nameOf(one)}.intercept`);
  const failed = interceptors.find(isIn);
  const name = failed ? nameOf(failed) : interceptors.map(nameOf).join(' or ');
  report(
    classOf(failed ?? interceptors[0]!),
    `Interceptor ${name}`,
    error,
    `let the interceptor return next.handle() ${IN_PIPES}`,
    before,
  );
}

/** @param handler its class and method; a provider that it needs is made anew for each job */
export function providerFailed(key: object, handler: string, error: unknown, before: BeforeHandler): void {
  const advice = 'REQUEST is a DelayQueueRequest there, with `payload` and `job`';
  report(key, `What is request-scoped for ${handler}`, error, advice, before);
}

function report(key: object, what: string, error: unknown, advice: string, before: BeforeHandler): void {
  if (asked(() => error instanceof HttpException) || decisionOf(error) || seen.has(key)) return;
  seen.add(key);
  const why = summarizeRefusal(error, before.payload);
  DelayQueueLogger.of(before.inInstance).warn(
    `${what} failed before a handler of queue "${before.queue}": ${why}. A job is no request: ${advice}. Said once.`,
  );
}

/** By which it is known again where it is made anew for each job. */
function classOf(enhancer: object): object {
  const { constructor } = enhancer;
  return typeof constructor === 'function' && constructor !== Object ? constructor : enhancer;
}

/** What was thrown may be nothing, or throw when it is asked. That must not escape: the caller is deciding the outcome of a job. */
function asked<Answer>(ask: () => Answer): Answer | undefined {
  try {
    return ask();
  } catch {
    return undefined;
  }
}

function nameOf(enhancer: object): string {
  return enhancer.constructor?.name || '(anonymous)';
}
