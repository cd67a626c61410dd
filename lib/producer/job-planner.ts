import { InvalidOptionError } from '../delay-queue.errors.js';
import { resolveEnqueueDefaults } from '../delay-queue.options.js';
import type { ResolvedEnqueueDefaults, ResolvedModuleOptions } from '../delay-queue.options.js';
import { encodePayload } from '../job/codec.js';
import { isPlainObject, resolveEnqueueOptions } from '../job/enqueue-options.js';
import type { OptionNaming, ResolvedEnqueueOptions } from '../job/enqueue-options.js';
import { encodeRest } from '../job/envelope.js';
import { contentId, createIdGenerator } from '../job/job-id.js';
import { isQueueDefinition, queueNameOf } from '../job/queue-definition.js';
import type { QueueRef } from '../job/queue-definition.js';
import type { EnqueueItem } from './producer-queue.js';

/** A checked job, ready to be sent: its id is fixed, so sending it twice is harmless. */
export interface PlannedJob extends EnqueueItem {
  readonly queue: string;
}

const MODES = { keep: 'k', replace: 'p', reschedule: 'r', reject: 'x' } as const;

/** Checks everything about a job before anything is sent. */
export class JobPlanner {
  readonly #newId = createIdGenerator();
  readonly #defaults = new Map<string, ResolvedEnqueueDefaults>();
  readonly #definitionDefaults = new WeakMap<object, ResolvedEnqueueDefaults>();

  constructor(
    private readonly module: ResolvedModuleOptions,
    private readonly nameOf: (queue: QueueRef, field: string) => string,
  ) {}

  plan(queue: QueueRef, payload: unknown, options: unknown, naming?: OptionNaming): PlannedJob {
    const name = this.nameOf(queue, 'enqueue(queue)');
    const resolved = resolveEnqueueOptions(options, name, naming);
    const body = encodePayload(payload, { queue: name, maxBytes: this.module.maxPayloadBytes });
    const id = resolved.id ?? (resolved.idFromPayload ? contentId(body) : undefined);
    const { attempts, backoff, timeoutMs } = resolved;
    const defaults = this.#defaultsOf(queue, name);
    const keepExpired = resolved.keepExpired ?? defaults.keepExpired;
    const context = resolved.context ?? undefined;
    return {
      queue: name,
      id: id ?? this.#newId(),
      spec: specOf(id === undefined ? 'n' : MODES[resolved.onDuplicate], resolved, defaults),
      rest: encodeRest({ attempts, backoff, timeoutMs, keepExpired, context }, body),
    };
  }

  planItem(queue: QueueRef, item: unknown, index: number): PlannedJob {
    if (!isPlainObject(item) || !('payload' in item)) {
      throw new InvalidOptionError(`enqueueMany(): item ${index} must be an object with a payload.`);
    }
    const { payload, ...options } = item;
    const naming: OptionNaming = (option) => `enqueueMany("${queueNameOf(queue)}", item ${index}: { ${option} })`;
    return this.plan(queue, payload, options, naming);
  }

  #defaultsOf(queue: QueueRef, name: string): ResolvedEnqueueDefaults {
    const definition = isQueueDefinition(queue) ? queue : undefined;
    const known = definition ? this.#definitionDefaults.get(definition) : this.#defaults.get(name);
    if (known) return known;
    const defaults = resolveEnqueueDefaults({ queue: name, definition, module: this.module });
    if (definition) this.#definitionDefaults.set(definition, defaults);
    else this.#defaults.set(name, defaults);
    return defaults;
  }
}

/** When and under which conditions, in the words of lib/lua/enqueue.lua. */
function specOf(mode: string, options: ResolvedEnqueueOptions, defaults: ResolvedEnqueueDefaults): string {
  const { due, maxWaitMs, expiresAtMs } = options;
  const at = due ? `${due.kind === 'at' ? 'a' : 'd'}${due.ms}` : `d${defaults.delayMs ?? 0}`;
  const expiresInMs = options.expiresInMs ?? (expiresAtMs === undefined ? defaults.expiresInMs : undefined);
  const uniqueForMs = options.uniqueForMs ?? defaults.uniqueForMs;
  if (expiresInMs === undefined && expiresAtMs === undefined && maxWaitMs === undefined && uniqueForMs === undefined) {
    return mode + at;
  }
  const expiry = expiresAtMs !== undefined ? `a${expiresAtMs}` : expiresInMs !== undefined ? `i${expiresInMs}` : '-';
  return `${mode}${at} ${expiry} ${maxWaitMs ?? '-'} ${uniqueForMs ?? '-'}`;
}
