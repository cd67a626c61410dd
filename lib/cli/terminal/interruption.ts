import { EXIT } from '../exit-codes.js';

/**
 * Ctrl C. What only reads ends at once. An act ends after the chunk that it is in, and tells what was done; a second Ctrl C
 * ends that as well.
 */
export class Interruption {
  /** Something is being changed: the program must not end before it can say what was done, also when nobody reads that any more. */
  static isActing = false;
  #happened = false;
  #end: (() => void) | undefined;
  readonly #undo: (() => void)[] = [];

  listen(): void {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => this.#signal());
  }

  get happened(): boolean {
    return this.#happened;
  }

  /** Before the program ends at once: a terminal that was changed is given back. */
  beforeExit(undo: () => void): void {
    this.#undo.push(undo);
  }

  /** From now on a signal is asked for instead of obeyed. */
  act(): void {
    Interruption.isActing = true;
  }

  /** For what goes on until somebody ends it: a signal is no interruption then. A second one ends it at once. */
  asked(): Promise<void> {
    return new Promise((resolve) => (this.#end = resolve));
  }

  #signal(): void {
    const end = this.#end;
    this.#end = undefined;
    if (end) return end();
    if (Interruption.isActing && !this.#happened) {
      this.#happened = true;
      return;
    }
    for (const undo of this.#undo) undo();
    process.exit(EXIT.interrupted);
  }
}
