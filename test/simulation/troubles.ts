import type { Engine } from './engine.js';

/** Stands for the server and everybody's connection to it. */
export const ALL = '*';
/** Stands for the server's clock, which spoils what depends on time and breaks no connection. */
export const CLOCK = '#';

/** Until when something may be wrong, by process. The rules about time hold only where nothing is. */
export class Troubles {
  readonly #until = new Map<string, number>();
  /** Processes that nobody waits for any more. */
  readonly #forGood = new Set<string>();
  #worst = 0;

  constructor(private readonly engine: Engine) {}

  /** @param name of a process; `ALL` for all of them */
  mark(name: string, forMs: number): void {
    if (this.#forGood.has(name)) return;
    const until = this.engine.now + forMs;
    this.#until.set(name, Math.max(this.#until.get(name) ?? 0, until));
    this.#worst = Math.max(this.#worst, until);
  }

  /** What is wrong with it never ends, and the rules hold for the others. */
  markForGood(name: string): void {
    this.#forGood.add(name);
    this.#until.set(name, Infinity);
  }

  /** Simulated ms since when nothing has been wrong with a process, or with any; in the future while something is. */
  calmSince(name?: string): number {
    if (name === undefined) return this.#worst;
    return Math.max(this.wellSince(name), this.#until.get(CLOCK) ?? 0);
  }

  /** The same, whatever the server's clock did. */
  wellSince(name: string): number {
    return Math.max(this.#until.get(ALL) ?? 0, this.#until.get(name) ?? 0);
  }
}
