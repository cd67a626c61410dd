import type { Attributes } from '@opentelemetry/api';
import type { MetricDefinition } from '../tally/metric-definitions.js';
import type { Observation } from '../tally/metric-source.js';

/** The same names as spans have, so that both are found by one query. */
export function attributesOf({ label }: MetricDefinition, { instance, queue, word }: Omit<Observation, 'value'>) {
  const attributes: Attributes = { 'delay_queue.instance': instance };
  if (queue !== undefined) attributes['messaging.destination.name'] = queue;
  if (label && word !== undefined) attributes[`delay_queue.${label}`] = word;
  return attributes;
}
