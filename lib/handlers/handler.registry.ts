import { DuplicateHandlerError } from '../delay-queue.errors.js';
import type { Handler } from './handler.js';

export interface RegistryChange {
  readonly kind: 'added' | 'removed';
  readonly handler: Handler;
}

/** The handlers of one instance in this process, by queue. They may come and go while jobs run. */
export class HandlerRegistry {
  readonly #handlers = new Map<string, Handler>();
  readonly #listeners = new Set<(change: RegistryChange) => void>();

  /** @throws DuplicateHandlerError when the queue has a handler; nothing is changed */
  add(handler: Handler): void {
    const other = this.#handlers.get(handler.queue);
    if (other) {
      throw new DuplicateHandlerError(
        `Queue "${handler.queue}" is handled by ${other.name}, so ${handler.name} cannot have it too. Remove the other first.`,
      );
    }
    this.#handlers.set(handler.queue, handler);
    this.#tell({ kind: 'added', handler });
  }

  get(queue: string): Handler | undefined {
    return this.#handlers.get(queue);
  }

  /** The handler that is gone now, or undefined when there was none. Runs that have begun go on. */
  remove(queue: string): Handler | undefined {
    const handler = this.#handlers.get(queue);
    if (handler) {
      this.#handlers.delete(queue);
      this.#tell({ kind: 'removed', handler });
    }
    return handler;
  }

  all(): Handler[] {
    return [...this.#handlers.values()];
  }

  /**
   * Hears of each change after it was made; not of the handlers that are there already.
   *
   * @returns ends it
   */
  onChange(listener: (change: RegistryChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #tell(change: RegistryChange): void {
    for (const listener of this.#listeners) listener(change);
  }
}
