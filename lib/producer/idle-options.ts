import { DelayQueueLogger } from '../delay-queue.logger.js';
import type { ResolvedModuleOptions } from '../delay-queue.options.js';
import type { ResolvedEnqueueOptions } from '../job/enqueue-options.js';
import type { QueueDefinition } from '../job/queue-definition.js';

const MOST_QUEUES = 1_000;

/** Says once of each queue and option that it has no effect in a call. */
export class IdleOptions {
  readonly #said = new Set<string>();

  constructor(private readonly module: Pick<ResolvedModuleOptions, 'name' | 'queues'>) {}

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

  /** `keepExpired` holds for a job, which may never expire. Of all queues it may well be said where some have no expiry. */
  lookAtExpiry(
    queue: string,
    { keepExpired, expiresAtMs }: ResolvedEnqueueOptions,
    definition: QueueDefinition | undefined,
  ): void {
    const byQueue = this.module.queues[queue]?.keepExpired ?? definition?.defaults.keepExpired;
    if (expiresAtMs !== undefined || !(keepExpired || byQueue)) return;
    this.#say(
      queue,
      'keepExpired',
      keepExpired
        ? 'the job never expires. Give `expiresIn` or `expiresAt`'
        : 'the queue has it, but neither the queue nor this job says when it expires. Give `expiresIn`',
    );
  }

  #say(queue: string, option: string, why: string): void {
    const key = `${option} ${queue}`;
    if (this.#said.has(key)) return;
    if (this.#said.size >= MOST_QUEUES) this.#said.clear();
    this.#said.add(key);
    DelayQueueLogger.of(this.module.name).warn(`enqueue("${queue}", { ${option} }) has no effect: ${why}. Said once.`, {
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
