import { DelayQueueLogger } from '../delay-queue.logger.js';
import { oneLetterOff } from '../job/near-names.js';

/** Names may come from data, and this set lives as long as the process. */
const MOST_REMEMBERED = 1_000;

/** Looks whether a name of a queue was misspelt, and says so once. Not an error: it may be the name of another process. */
export class QueueNames {
  readonly #seen = new Set<string>();
  readonly #elsewhere = new Set<string>();

  constructor(
    private readonly instance: string,
    /** Names that this process knows from elsewhere than calls. */
    private readonly known: () => Iterable<string>,
    private readonly handledElsewhere: (
      queue: string,
    ) => { readonly instance: string; readonly handler: string } | undefined = () => undefined,
  ) {}

  /** @param field begins the message, such as `enqueue(queue)` */
  look(queue: string, field: string): void {
    if (this.#seen.has(queue)) return;
    if (this.#seen.size >= MOST_REMEMBERED) this.#seen.clear();
    this.#seen.add(queue);
    const meant = this.near(queue);
    if (meant === undefined) return;
    DelayQueueLogger.of(this.instance).warn(
      `${field}: nothing here knows queue "${queue}", but there is "${meant}". If both exist, name this one in forRoot({ queues }) or by ` +
        'defineQueue(); then this is not said. strictQueues: true refuses unknown names.',
      { queue },
    );
  }

  /** Looks whether jobs go to one instance while their handler is on another one, and says so once. */
  lookElsewhere(queue: string, field: string): void {
    if (this.#elsewhere.has(queue)) return;
    const found = this.handledElsewhere(queue);
    if (!found) return;
    if (this.#elsewhere.size >= MOST_REMEMBERED) this.#elsewhere.clear();
    this.#elsewhere.add(queue);
    const { instance, handler } = found;
    const own = this.instance === 'default' ? 'the unnamed instance' : `instance "${this.instance}"`;
    const other = instance === 'default' ? 'the unnamed one' : `"${instance}"`;
    const remedy =
      this.instance === 'default'
        ? `Leave \`instance\` out there, or enqueue by @InjectDelayQueue("${instance}").`
        : `Give that handler \`instance: "${this.instance}"\`, or enqueue on ${other}.`;
    DelayQueueLogger.of(this.instance).warn(
      `${field}: queue "${queue}" of ${own} has no handler here, but on ${other} there is ${handler}, which gets none of these jobs. ` +
        `${remedy} If another process handles them, name the queue in \`queues\` of this forRoot(); then this is not said.`,
      { queue },
    );
  }

  near(queue: string): string | undefined {
    const known = new Set(this.known());
    return known.has(queue) ? undefined : oneLetterOff(queue, known);
  }
}
