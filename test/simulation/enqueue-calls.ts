import type { BulkEnqueueError } from '../../lib/delay-queue.errors.js';
import type { EnqueueOptions } from '../../lib/job/enqueue-options.js';
import type { EnqueueResult } from '../../lib/job/enqueue-result.js';
import { momentOf } from './call-rules.js';
import type { EnqueueOperation } from './plan.js';

export function optionsOf(operation: EnqueueOperation): EnqueueOptions {
  const { id, delay, run, isInstant, isByContent, isByDefinition } = operation;
  const { onDuplicate, maxWait, uniqueFor, expiresIn, keepExpired, dueAt, onDead, durability } = operation;
  const stored = { onDuplicate, maxWait, uniqueFor, onDead, durability };
  const named = isByContent ? { idFromPayload: true } : { id };
  const timed = isInstant ? { at: momentOf(operation) } : { delay };
  const said = isByDefinition ? {} : { ...named, ...timed };
  const { timeout, group, priority } = run;
  return { ...said, dueAt, expiresIn, keepExpired, timeout, group, priority, ...stored };
}

/** @param error of `enqueue()` or `enqueueMany()` */
export function isStored(error: Error): boolean {
  if (error.name !== 'BulkEnqueueError') return error.name === 'NotDurableError';
  const { results } = error as BulkEnqueueError<EnqueueResult>;
  return results.every((result) => !('error' in result) || result.error.name === 'NotDurableError');
}
