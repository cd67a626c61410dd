import { MiddlewareError, ShutdownError } from '../delay-queue.errors.js';
import { UNBEGUN } from './handler-outcome.js';
import type { HandlerOutcome } from './handler-outcome.js';
import { decisionOf } from './outcomes.js';
import type { DelayedJob } from '../job/delayed-job.js';

/**
 * Runs around handlers, outside guards and interceptors: also around those registered as functions.
 *
 * `next()` runs what is inside and rejects with its error when that failed. A middleware that catches the error has
 * handled the failure; one that does not call `next()` has done the job itself, which is logged once per queue; SnoozeJob
 * and DiscardJob may be thrown here too. `next()` runs nothing a second time: a middleware that calls it again fails
 * the attempt. If the run was over before the handler could begin (`job.signal` says so), `next()` rejects with the reason
 * and does not call the handler; the job then goes back without an attempt, whatever the middleware does.
 */
export type DelayQueueMiddleware = (job: DelayedJob, next: () => Promise<void>) => unknown;

/** Gets a warning about a middleware that may be a mistake; `what` begins with its name. */
export interface MiddlewareTrouble {
  /** It did the job itself, or forgot to call next(). */
  withoutNext(what: string): void;
  /** Its job is settled, and nothing was started. */
  tooLate(what: string, error: MiddlewareError): void;
}

const COMPLETED: HandlerOutcome = Object.freeze({ kind: 'completed' });

/** As `invoke` of a handler. */
type Invoke = (job: DelayedJob) => Promise<HandlerOutcome>;

/** The handler's `invoke` with the middleware around it, the first one outermost. A run that is over begins none of them. */
export function withMiddleware(
  invoke: Invoke,
  middleware: readonly DelayQueueMiddleware[],
  trouble: MiddlewareTrouble,
): Invoke {
  const unlessOver: Invoke = (job) => (job.isAborted ? Promise.resolve(UNBEGUN) : invoke(job));
  if (middleware.length === 0) return unlessOver;
  const names = middleware.map((around, index) => nameOf(around, `${index + 1} of ${middleware.length}`));
  return async (job) => {
    if (job.isAborted) return UNBEGUN;
    let outcome = COMPLETED;
    /** It is the bug to mend: nothing that a middleware catches or throws hides it. */
    let misuse: MiddlewareError | undefined;
    const innermost = async () => {
      outcome = await unlessOver(job);
      if (outcome.kind === 'failed' || outcome.kind === 'invalid') throw outcome.error;
      // A middleware that notes what was done must not note this job: its next run would be taken for a second one.
      if (isUnbegun(outcome)) throw job.isAborted ? job.signal.reason : new ShutdownError(job.queue, job.id);
    };
    const called = (name: string, ended: boolean) => {
      const cause = !ended && 'error' in outcome ? outcome.error : undefined;
      const error = new MiddlewareError(job.queue, job.id, name, ended, cause);
      if (ended) trouble.tooLate(`Middleware ${name}`, error);
      else misuse ??= error;
      return error;
    };
    const chain = middleware.reduceRight<() => Promise<void>>((inside, around, index) => {
      const name = names[index]!;
      return async () => {
        const link = new Link(inside, (ended) => called(name, ended));
        await link.run(around, job);
        if (!link.wasCalled) trouble.withoutNext(`Middleware ${name}`);
      };
    }, innermost);
    try {
      await chain();
    } catch (error) {
      if (!misuse && !isUnbegun(outcome)) {
        const own = 'error' in outcome && outcome.error === error;
        return own ? outcome : (decisionOf(error) ?? { kind: 'failed', error });
      }
    }
    // A job that was handed back did not run, so no attempt is charged.
    if (misuse && outcome.kind !== 'released') return { kind: 'failed', error: misuse };
    return 'error' in outcome ? { kind: 'completed', handled: outcome.error } : outcome;
  };
}

function isUnbegun(outcome: HandlerOutcome): boolean {
  return outcome.kind === 'released' && outcome.unbegun === true;
}

/** One middleware around one run: its inner part starts once, and has ended when the middleware ends. */
class Link {
  #inside: Promise<void> | undefined;
  #insideIsOver = false;
  #ended = false;

  constructor(
    private readonly inside: () => Promise<void>,
    private readonly called: (ended: boolean) => MiddlewareError,
  ) {}

  get wasCalled(): boolean {
    return this.#inside !== undefined;
  }

  /** No turn passes between the last look at this and the mark that it has ended: what began in it would be forgotten. */
  get #isInside(): boolean {
    return this.#inside !== undefined && !this.#insideIsOver;
  }

  async run(around: DelayQueueMiddleware, job: DelayedJob): Promise<void> {
    try {
      await around(job, () => this.#next());
      // The middleware did not await `next()`. To complete now would lose the job if the process died, and its failure.
      if (!this.#insideIsOver) await this.#inside;
      // That takes a turn also where there was nothing to wait for, in which it may have begun.
      if (this.#isInside) await this.#inside;
    } finally {
      // It threw, and the attempt that follows a failure must not overlap with this one.
      if (this.#isInside) await this.#inside!.catch(ignored);
      this.#ended = true;
    }
  }

  #next(): Promise<void> {
    if (this.#inside || this.#ended) {
      const refused = Promise.reject(this.called(this.#ended));
      refused.catch(ignored); // A middleware that drops it must not end the process.
      return refused;
    }
    this.#inside = this.inside().finally(() => (this.#insideIsOver = true));
    this.#inside.catch(ignored);
    return this.#inside;
  }
}

/** Such as `"logged" (1 of 2)`. */
function nameOf({ name }: DelayQueueMiddleware, place: string): string {
  return typeof name === 'string' && name !== '' ? `"${name}" (${place})` : place;
}

function ignored(): void {}
