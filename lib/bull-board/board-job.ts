import type { DelayQueueInspector } from '../inspection/delay-queue.inspector.js';
import type { DelayQueueProducer } from '../producer/delay-queue.producer.js';
import type { JobSnapshot } from '../redis/job-snapshot.js';
import type { JobState } from '../redis/letters.js';

/** What each state is called on the board. */
export const STATUSES = {
  delayed: 'delayed',
  due: 'waiting',
  running: 'active',
  dead: 'failed',
  completed: 'completed',
} as const;
export type BoardStatus = (typeof STATUSES)[JobState];

/** A job in the words of the board. Its acts are those of the library, and what these refuse is an error here. */
export class BoardJob {
  /** The board takes a delay that is not that of `opts` for one that was changed to a time that nobody knows. */
  readonly opts: { readonly delay: number; readonly attempts: number | undefined };

  constructor(
    private readonly job: JobSnapshot,
    private readonly inspector: DelayQueueInspector,
    private readonly producer: DelayQueueProducer,
  ) {
    const delay = Math.max(0, job.dueAt.getTime() - job.enqueuedAt.getTime()) || 0;
    this.opts = { delay, attempts: job.maxAttempts };
  }

  toJSON() {
    const { id, queue, attempts, enqueuedAt, completedAt, state, lastError, payload } = this.job;
    const error = state === 'dead' ? lastError : undefined;
    return {
      id,
      name: queue,
      progress: 0,
      attemptsMade: attempts,
      timestamp: enqueuedAt.getTime() || 0,
      delay: this.opts.delay,
      ...((completedAt ?? error) && { finishedOn: (completedAt ?? error!.at).getTime() }),
      failedReason: error ? `${error.name}: ${error.message}` : '',
      stacktrace: error?.stack ? [error.stack] : [],
      data: payload,
      returnvalue: null,
      opts: this.opts,
    };
  }

  async getState(): Promise<BoardStatus | 'unknown'> {
    const found = await this.producer.get(this.job.queue, this.job.id);
    return found ? STATUSES[found.state] : 'unknown';
  }

  async promote(): Promise<void> {
    const { outcome } = await this.producer.runNow(this.job.queue, this.job.id);
    if (outcome !== 'rescheduled') throw this.#refused('run now', outcome);
  }

  async retry(): Promise<void> {
    const { requeued } = await this.inspector.requeueDead(this.job.queue, [this.job.id]);
    if (requeued === 0) throw this.#refused('retried', 'no dead letter any more');
  }

  async remove(): Promise<void> {
    const { queue, id } = this.job;
    const { outcome } = await this.producer.cancel(queue, id);
    if (outcome === 'dead') await this.inspector.removeDead(queue, [id]);
    else if (outcome !== 'cancelled') throw this.#refused('removed', outcome);
  }

  #refused(act: string, why: string): Error {
    return new Error(`Job "${this.job.id}" of queue "${this.job.queue}" was not ${act}: ${why}.`);
  }
}
