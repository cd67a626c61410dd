import { DelayQueueLogger } from '../delay-queue.logger.js';
import { currentJob } from '../job/current-job.js';
import type { ChangeReply } from '../redis/change.protocol.js';
import { changed } from './change-results.js';

/** Names of queues may come from data, and this set lives as long as the process. */
const MOST_QUEUES = 1_000;

/**
 * Says once of each queue and call that a handler meant its own job, which such a call leaves as it is: a job that polls would end
 * after one run, without an error. Of batches nothing is said, because no job of one is the current one.
 */
export class OwnJob {
  readonly #said = new Set<string>();

  constructor(private readonly instance: string) {}

  /** The answer to a call that was to change a job. */
  changed<Outcome extends string>(call: string, queue: string, id: string, reply: ChangeReply<Outcome>) {
    if (reply.outcome === 'running') this.left(call, queue, id);
    return changed(queue, id, reply);
  }

  /** A call has found the job running, and changed nothing. */
  left(call: string, queue: string, id: string): void {
    const job = currentJob();
    if (job?.id !== id || job.queue !== queue) return;
    const key = `${call} ${queue}`;
    if (this.#said.has(key)) return;
    if (this.#said.size >= MOST_QUEUES) this.#said.clear();
    this.#said.add(key);
    const logger = DelayQueueLogger.of(this.instance);
    if (call === 'enqueue') {
      logger.warn(
        `enqueue("${queue}") under the id of the job whose handler called it made no job: that one still runs, and onDuplicate is ` +
          "'keep'. To run it again, throw new SnoozeJob('10m'), or give onDuplicate: 'replace' or 'reschedule'. Said once.",
        { queue },
      );
    } else {
      logger.warn(
        `${call}("${queue}") of the job whose handler called it changed nothing: a running job stays as it is. To run it again, throw ` +
          "new SnoozeJob('10m'), or SnoozeJob('10m', { payload }) with another payload. Said once.",
        { queue },
      );
    }
  }
}
