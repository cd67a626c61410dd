import { DelayQueueLogger } from '../delay-queue.logger.js';
import type { ResolvedModuleOptions } from '../delay-queue.options.js';
import { isLikeSecondsOfNow, readable } from '../job/duration.js';
import type { ResolvedEnqueueOptions } from '../job/enqueue-options.js';
import type { QueueDefinition } from '../job/queue-definition.js';

const MOST_QUEUES = 1_000;

/** Says once of each queue and option that it has no effect in a call, or stands where another is meant. */
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

  /** Where a length of time is given, the time of day in seconds is a delay of three weeks. */
  lookAtDelay(queue: string, ms: number): void {
    if (!isLikeSecondsOfNow(ms)) return;
    const at = new Date(ms * 1_000).toISOString();
    this.#once(
      `delay ${queue}`,
      `enqueue("${queue}", { delay }): ${ms} ms are ${readable(ms)}; in seconds since 1970 it is ${at}. If that is meant, give ` +
        `\`at: new Date(seconds * 1000)\`; if not, give the delay as text, and this is not said. Said once.`,
      queue,
    );
  }

  /** Nothing says that these are no payload, so it is none of the errors. */
  optionsAsPayload(queue: string): void {
    this.#once(
      `payload ${queue}`,
      `enqueue("${queue}"): the payload has nothing but names of options, and options come third: enqueue(queue, payload, options). If ` +
        'it is the payload, give {} behind it, and this is not said. Said once.',
      queue,
    );
  }

  /** Jobs with and without a group may well be meant, and nothing is to be done about it then: so it is no warning. */
  withoutGroup(queue: string): void {
    this.#once(
      `group ${queue}`,
      `enqueue("${queue}"): this job has no \`group\`, so the limits in \`groups\` of its queue do not hold for it, nor for others ` +
        'without one. Said once.',
      queue,
      'log',
    );
  }

  #say(queue: string, option: string, why: string): void {
    this.#once(`${option} ${queue}`, `enqueue("${queue}", { ${option} }) has no effect: ${why}. Said once.`, queue);
  }

  #once(key: string, text: string, queue: string, level: 'log' | 'warn' = 'warn'): void {
    if (this.#said.has(key)) return;
    if (this.#said.size >= MOST_QUEUES) this.#said.clear();
    this.#said.add(key);
    DelayQueueLogger.of(this.module.name)[level](text, { queue });
  }
}

/** One of those that say what becomes of a job that has the id. */
function optionOfIds({ maxWaitMs, uniqueForMs, onDuplicate, onDead }: ResolvedEnqueueOptions): string | undefined {
  if (uniqueForMs !== undefined) return 'uniqueFor';
  if (maxWaitMs !== undefined) return 'maxWait';
  if (onDead !== undefined) return 'onDead';
  return onDuplicate === 'keep' ? undefined : 'onDuplicate';
}
