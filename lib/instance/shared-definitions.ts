import { DelayQueueLogger } from '../delay-queue.logger.js';
import type { QueueDefinition } from '../job/queue-definition.js';

/** Names may come from data, and these live as long as the process. */
const MOST_REMEMBERED = 1_000;

/** Says once of a queue that two definitions of it differ: each holds where it is given, and nowhere else. */
export class SharedDefinitions {
  readonly #first = new Map<string, { readonly definition: QueueDefinition; readonly place: string }>();
  readonly #looked = new WeakSet<QueueDefinition>();

  constructor(
    private readonly instance: string,
    /** Those of `forFeature()`. */
    private readonly definitionOf: (queue: string) => QueueDefinition | undefined,
  ) {}

  /** @param place where it was given, such as `enqueue(queue)` */
  look(definition: QueueDefinition, place: string): void {
    if (this.#looked.has(definition)) return;
    this.#looked.add(definition);
    const { name } = definition;
    const declared = this.definitionOf(name);
    const first = declared ? { definition: declared, place: 'forFeature()' } : this.#first.get(name);
    if (!first) {
      if (this.#first.size >= MOST_REMEMBERED) this.#first.clear();
      this.#first.set(name, { definition, place });
      return;
    }
    const options = differing(first.definition, definition);
    if (options.length === 0) return;
    DelayQueueLogger.of(this.instance).warn(
      `defineQueue("${name}") was called twice with other options: \`${options.join('`, `')}\`. ${first.place} has one, ${place} the ` +
        'other, and each holds where it is given. Export one and share it.',
      { queue: name },
    );
  }
}

/** Functions and schemas count as the same: two copies of one definition have their own. */
function differing(one: QueueDefinition, other: QueueDefinition): string[] {
  const [a, b] = [one, other].map(({ defaults, rules }): Record<string, unknown> => ({ ...defaults, ...rules }));
  const names = new Set([...Object.keys(a!), ...Object.keys(b!)]);
  return [...names].filter((name) => textOf(a![name]) !== textOf(b![name])).map((name) => name.replace(/Ms$/, ''));
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'function' || (typeof value === 'object' && value !== null && '~standard' in value)
    ? 'given'
    : JSON.stringify(value);
}
