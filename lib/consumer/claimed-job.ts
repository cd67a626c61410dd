import { InvalidOptionError, LeaseLostError, UnavailableError } from '../delay-queue.errors.js';
import type { HandlerOutcome } from '../handlers/handler-outcome.js';
import { DiscardJob } from '../handlers/outcomes.js';
import type { DelayedJob } from '../job/delayed-job.js';
import { parseDuration } from '../job/duration.js';
import type { Duration } from '../job/duration.js';
import { within } from '../time-and-randomness.js';

/**
 * A job from `pull()`. The caller must settle it by exactly one of complete, fail, retry, snooze, discard and release.
 * Each resolves when Redis has confirmed it, and rejects with `LeaseLostError` if the lease was lost before. Without an
 * answer within `commandTimeout` it rejects with `UnavailableError`. The settlement is sent all the same as soon as
 * Redis answers; call the same method again to wait for that.
 */
export class ClaimedJob<T = unknown> {
  readonly #settled: Promise<boolean>;
  #settle: ((outcome: HandlerOutcome) => void) | undefined;
  /** The way in which it was settled, while Redis has not answered. */
  #unanswered: HandlerOutcome['kind'] | undefined;

  /** @internal */
  constructor(
    /** Id, payload, attempt, signal and all else that a handler gets. */
    readonly job: DelayedJob<T>,
    settle: (outcome: HandlerOutcome) => void,
    /**
     * Called when Redis knows how the job ended, when it was ended from outside (by timeout or shutdown), and when its
     * lease is over and was not to be renewed.
     */
    over: () => void,
    /** Called when its lease was extended after that. */
    resumed: () => void,
    private readonly answerMs: number,
  ) {
    this.#settle = settle;
    job.onLapsed = over;
    job.onResumed = resumed;
    this.#settled = new Promise((resolve) => {
      job.onSettled = (lost) => {
        resolve(lost);
        over();
      };
    });
  }

  get id(): string {
    return this.job.id;
  }

  get queue(): string {
    return this.job.queue;
  }

  /** The output of the queue's schema; the payload if there is no schema. */
  get payload(): T {
    return this.job.accepted as T;
  }

  async complete(): Promise<void> {
    await this.#end({ kind: 'completed' });
  }

  /**
   * Completes it and waits for as long as it takes to know whether that counted.
   *
   * @internal
   */
  async completeForSure(): Promise<void> {
    await this.#end({ kind: 'completed' }, Infinity);
  }

  /** A failed attempt: again after the backoff of the queue, or a dead letter when it was the last one. */
  async fail(error: unknown): Promise<void> {
    await this.#end({ kind: 'failed', error });
  }

  /** A failed attempt, again after `delay` instead of the backoff. */
  async retry({ delay }: { delay?: Duration } = {}): Promise<void> {
    const delayMs = delay === undefined ? undefined : parseDuration(delay, 'retry({ delay })');
    await this.#end({ kind: 'failed', error: new Error('retry() was asked for'), delayMs });
  }

  /** Due again later; no attempt is used. */
  async snooze(delay: Duration): Promise<void> {
    await this.#end({ kind: 'snoozed', delayMs: parseDuration(delay, 'snooze(delay)') });
  }

  /** A dead letter at once. */
  async discard(reason: string): Promise<void> {
    if (typeof reason !== 'string') throw new InvalidOptionError('discard(reason): the reason must be text.');
    await this.#end({ kind: 'discarded', reason, thrown: new DiscardJob(reason) });
  }

  /** Hands the job back to its place in the queue; no attempt is used. */
  async release(): Promise<void> {
    await this.#end({ kind: 'released' });
  }

  /** See `DelayedJob.extend`. */
  async extend(lease: Duration): Promise<void> {
    await this.job.extend(lease);
  }

  async #end(outcome: HandlerOutcome, answerMs = this.answerMs): Promise<void> {
    const settle = this.#settle;
    if (!settle && this.#unanswered !== outcome.kind) {
      throw new InvalidOptionError(`Job "${this.id}" of queue "${this.queue}" was settled already.`);
    }
    this.#settle = undefined;
    this.#unanswered = outcome.kind;
    settle?.(outcome);
    const isLost = await within(answerMs, this.#settled, () => {
      const what = `Redis did not answer for ${answerMs} ms: how job "${this.id}" of queue "${this.queue}" ended`;
      const then = 'is told as soon as it does, unless the lease ends and another run begins before.';
      return new UnavailableError(`${what} ${then}`, { maybeAccepted: true, ids: [this.id] });
    });
    this.#unanswered = undefined;
    if (isLost) throw new LeaseLostError(this.queue, this.id);
  }
}
