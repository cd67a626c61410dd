/** How often each command was executed and each answer given. */
export class Tally {
  sequences = 0;
  commands = 0;
  readonly #counts = new Map<string, number>();

  count(what: string): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1);
  }

  missing(wanted: readonly string[]): string[] {
    return wanted.filter((what) => !this.#counts.has(what));
  }

  get mean(): number {
    return this.commands / Math.max(1, this.sequences);
  }

  toString(): string {
    const lines = [...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([what, n]) => `  ${what} ${n}`);
    return [`${this.sequences} sequences, ${this.commands} commands (mean ${this.mean.toFixed(1)})`, ...lines].join(
      '\n',
    );
  }
}
