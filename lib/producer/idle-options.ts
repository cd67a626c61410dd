import { DelayQueueLogger } from '../delay-queue.logger.js';
import type { ResolvedEnqueueOptions } from '../job/enqueue-options.js';

const MOST_QUEUES = 1_000;

/** Says once of each queue and option that it has no effect in a call. */
export class IdleOptions {
  readonly #said = new Set<string>();

  constructor(private readonly instance: string) {}

  /**
   * @param id undefined: the job gets an id that nobody else can know
   */
  look(queue: string, options: ResolvedEnqueueOptions, id: string | undefined): void {
    const { maxWaitMs, onDuplicate } = options;
    if (id === undefined) {
      const option = optionOfIds(options);
      if (option) this.#say(queue, option, 'without an id each job is a new one. Give `id`, or idFromPayload: true');
    } else if (maxWaitMs !== undefined && onDuplicate !== 'replace' && onDuplicate !== 'reschedule') {
      this.#say(
        queue,
        'maxWait',
        `with onDuplicate '${onDuplicate}' no call puts the job off. Use 'replace' or 'reschedule'`,
      );
    }
  }

  /** What expired jobs become is asked for, of one that never expires. */
  lookAtExpiry(queue: string, byCall: boolean): void {
    this.#say(
      queue,
      'keepExpired',
      byCall
        ? 'the job never expires. Give `expiresIn` or `expiresAt`'
        : 'the queue has it, but neither the queue nor this job says when it expires. Give `expiresIn`',
    );
  }

  #say(queue: string, option: string, why: string): void {
    const key = `${option} ${queue}`;
    if (this.#said.has(key)) return;
    if (this.#said.size >= MOST_QUEUES) this.#said.clear();
    this.#said.add(key);
    DelayQueueLogger.of(this.instance).warn(`enqueue("${queue}", { ${option} }) has no effect: ${why}. Said once.`, {
      queue,
    });
  }
}

/** One of those that say what becomes of a job that has the id. */
function optionOfIds({ maxWaitMs, uniqueForMs, onDuplicate, onDead }: ResolvedEnqueueOptions): string | undefined {
  if (uniqueForMs !== undefined) return 'uniqueFor';
  if (maxWaitMs !== undefined) return 'maxWait';
  if (onDead !== undefined) return 'onDead';
  return onDuplicate === 'keep' ? undefined : 'onDuplicate';
}
