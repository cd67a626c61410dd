import { InvalidOptionError } from '../delay-queue.errors.js';
import { resolveEnqueueDefaults } from '../delay-queue.options.js';
import type { ResolvedEnqueueDefaults, ResolvedModuleOptions } from '../delay-queue.options.js';
import { encodePayload } from '../job/codec.js';
import { currentJob } from '../job/current-job.js';
import { NO_CONTEXT } from '../job/delayed-job.js';
import { assertContext, isPlainObject, resolveEnqueueOptions } from '../job/enqueue-options.js';
import type { OptionNaming, ResolvedEnqueueOptions } from '../job/enqueue-options.js';
import { encodeRest } from '../job/envelope.js';
import { contentId, createIdGenerator } from '../job/job-id.js';
import { isQueueDefinition, queueNameOf } from '../job/queue-definition.js';
import type { QueueRef } from '../job/queue-definition.js';
import type { ProducerShards } from './producer-shards.js';
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
    private readonly queues: Pick<ProducerShards, 'nameOf' | 'definitionOf'>,
  ) {}

  plan(queue: QueueRef, payload: unknown, options: unknown, naming?: OptionNaming): PlannedJob {
    const name = this.queues.nameOf(queue, 'enqueue(queue)');
    const resolved = resolveEnqueueOptions(options, name, naming);
    const body = encodePayload(payload, { queue: name, maxBytes: this.module.maxPayloadBytes });
    const id = resolved.id ?? (resolved.idFromPayload ? contentId(body) : undefined);
    const { attempts, backoff, timeoutMs } = resolved;
    const defaults = this.#defaultsOf(queue, name);
    const keepExpired = resolved.keepExpired ?? defaults.keepExpired;
    const context = this.#contextOf(resolved.context, name);
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

  /** What the running job carries, then what the application's own context holds, then what the call says. */
  #contextOf(given: ResolvedEnqueueOptions['context'], queue: string): Readonly<Record<string, string>> | undefined {
    if (given === null) return undefined;
    const inherited = currentJob()?.context;
    const captured = this.module.contextProvider?.capture();
    if (!captured && (!inherited || inherited === NO_CONTEXT)) return given;
    return assertContext(
      { ...inherited, ...captured, ...given },
      `enqueue("${queue}"): context with what was inherited`,
    );
  }

  #defaultsOf(queue: QueueRef, name: string): ResolvedEnqueueDefaults {
    const definition = isQueueDefinition(queue) ? queue : this.queues.definitionOf(name);
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
