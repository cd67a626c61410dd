import type { Buckets } from '../tally/buckets.js';
import type { Sample } from './scraped-metric.js';

/** As Prometheus wants them: each bucket also counts what the smaller ones count. */
export function histogramSamples(
  { bounds, counts, sum }: Buckets,
  name: string,
  labels: Record<string, string>,
): Sample[] {
  let total = 0;
  const buckets = counts.map((count, at): Sample => {
    total += count;
    return { metricName: `${name}_bucket`, labels: { le: bounds[at] ?? '+Inf', ...labels }, value: total };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: total },
  ];
}
