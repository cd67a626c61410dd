import type { Sample } from './scraped-metric.js';

/** A histogram of seconds. */
export class Buckets {
  readonly #counts: number[];
  #sum = 0;

  /** @param bounds upper ones, rising */
  constructor(private readonly bounds: readonly number[]) {
    this.#counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  observe(seconds: number): void {
    let at = 0;
    while (at < this.bounds.length && seconds > this.bounds[at]!) at++;
    this.#counts[at]!++;
    this.#sum += seconds;
  }

  samples(name: string, labels: Record<string, string>): Sample[] {
    let total = 0;
    const buckets = this.#counts.map((count, at): Sample => {
      total += count;
      return { metricName: `${name}_bucket`, labels: { le: this.bounds[at] ?? '+Inf', ...labels }, value: total };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: this.#sum },
      { metricName: `${name}_count`, labels, value: total },
    ];
  }
}
