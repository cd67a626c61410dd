/** Takes seconds, one measurement at a time. This runs for every job. */
export interface Distribution {
  observe(seconds: number): void;
}

/** Counts seconds by their size. */
export class Buckets implements Distribution {
  /** One more than there are bounds: the last one counts what is above all of them. */
  readonly counts: number[];
  sum = 0;

  /** @param bounds upper ones, rising */
  constructor(readonly bounds: readonly number[]) {
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  observe(seconds: number): void {
    let at = 0;
    while (at < this.bounds.length && seconds > this.bounds[at]!) at++;
    this.counts[at]!++;
    this.sum += seconds;
  }
}
