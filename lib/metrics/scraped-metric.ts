import type { Aggregator } from 'prom-client';

export interface Sample {
  readonly labels: Record<string, string | number>;
  readonly value: number;
  /** When it is not the metric's: of histograms. */
  readonly metricName?: string;
}

/**
 * A metric whose samples are made at a scrape. A registry needs no more of a metric than this; prom-client's own
 * classes look each label set up by a hash of text at every increment, which is too much for each of 100,000 jobs a
 * second.
 */
export class ScrapedMetric {
  constructor(
    /** Not readonly: for OpenMetrics the registry takes `_total` off. */
    public name: string,
    readonly help: string,
    readonly type: 'counter' | 'gauge' | 'histogram',
    /** How the processes of a Node cluster are put together. */
    readonly aggregator: Aggregator,
    private readonly read: () => readonly Sample[] | Promise<readonly Sample[]>,
    /** What `registry.resetMetrics()` asks for. */
    readonly reset: () => void = () => {},
  ) {}

  async get() {
    const { name, help, type, aggregator } = this;
    return { name, help, type, aggregator, values: await this.read() };
  }
}
