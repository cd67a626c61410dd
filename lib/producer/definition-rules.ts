import { answerOf } from '../job/at-once.js';
import type { EnqueueOptions, ResolvedEnqueueOptions } from '../job/enqueue-options.js';
import { assertJobId } from '../job/job-id.js';
import type { QueueDefinition } from '../job/queue-definition.js';
import { assertGroup } from '../job/queue-limits.js';

export function idByDefinition(definition: QueueDefinition | undefined, payload: unknown): string | undefined {
  const makeId = definition?.rules.id;
  if (!makeId) return undefined;
  const field = `defineQueue("${definition.name}", { id })`;
  return assertJobId(
    answerOf(() => makeId(payload), field, payload),
    field,
  );
}

export function groupByDefinition(definition: QueueDefinition | undefined, payload: unknown): string | undefined {
  const makeGroup = definition?.rules.group;
  if (!makeGroup) return undefined;
  const field = `defineQueue("${definition.name}", { group })`;
  const group: unknown = answerOf(() => makeGroup(payload), field, payload);
  return group === undefined ? undefined : assertGroup(group, field);
}

/** Debounce and throttle of the definition, where the call does not say otherwise. */
export function withRules(
  resolved: ResolvedEnqueueOptions,
  given: EnqueueOptions | undefined,
  definition: QueueDefinition | undefined,
): ResolvedEnqueueOptions {
  const { debounce, throttleMs } = definition?.rules ?? {};
  if (debounce) {
    return {
      ...resolved,
      due: resolved.due ?? { kind: 'delay', ms: debounce.waitMs },
      onDuplicate: given?.onDuplicate ?? 'replace',
      maxWaitMs: resolved.maxWaitMs ?? debounce.maxWaitMs,
    };
  }
  if (throttleMs === undefined) return resolved;
  return { ...resolved, uniqueForMs: resolved.uniqueForMs ?? throttleMs };
}
