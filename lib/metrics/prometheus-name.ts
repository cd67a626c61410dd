import type { MetricDefinition } from '../tally/metric-definitions.js';

const UNITS: Readonly<Record<string, string>> = { s: '_seconds', By: '_bytes' };

/** The unit, and of counters what they are, are part of a name. */
export function prometheusName({ name, unit }: MetricDefinition, type: 'counter' | 'gauge' | 'histogram'): string {
  return `${name.replaceAll('.', '_')}${UNITS[unit] ?? ''}${type === 'counter' ? '_total' : ''}`;
}
