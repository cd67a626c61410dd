import { InvalidOptionError, LeaseLostError } from '../delay-queue.errors.js';
import type { HandlerOutcome } from '../handlers/handler.js';
import { DiscardJob } from '../handlers/outcomes.js';
import type { DelayedJob } from '../job/delayed-job.js';
import { parseDuration } from '../job/duration.js';
import type { Duration } from '../job/duration.js';

/**
 * A job that code fetched itself, and must settle itself: exactly one of complete, fail, retry, snooze, discard and
 * release. Each resolves when Redis knows, and rejects with `LeaseLostError` when the lease was lost before.
 */
export class ClaimedJob<T = unknown> {
  readonly #settled: Promise<boolean>;
  #settle: ((outcome: HandlerOutcome) => void) | undefined;

  /** @internal */
  constructor(
    /** Id, payload, attempt, signal and the rest. */
    readonly job: DelayedJob<T>,
    settle: (outcome: HandlerOutcome) => void,
    /**
     * Called when Redis knows how the job ended, when it was ended from outside (by timeout or shutdown), and when its lease is
     * over and was not to be renewed.
     */
    over: () => void,
  ) {
    this.#settle = settle;
    job.onLapsed = over;
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

  /** What the schema of the queue made of the payload, else the payload. */
  get payload(): T {
    return this.job.accepted as T;
  }

  async complete(): Promise<void> {
    await this.#end({ kind: 'completed' });
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

  /** Back to where it was; no attempt is used. */
  async release(): Promise<void> {
    await this.#end({ kind: 'released' });
  }

  /** See `DelayedJob.extend`. */
  async extend(lease: Duration): Promise<void> {
    await this.job.extend(lease);
  }

  async #end(outcome: HandlerOutcome): Promise<void> {
    const settle = this.#settle;
    if (!settle) throw new InvalidOptionError(`Job "${this.id}" of queue "${this.queue}" was settled already.`);
    this.#settle = undefined;
    settle(outcome);
    if (await this.#settled) throw new LeaseLostError(this.queue, this.id);
  }
}
