import { InvalidOptionError } from '../delay-queue.errors.js';
import { resolveEnqueueDefaults } from '../delay-queue.options.js';
import type { ResolvedEnqueueDefaults, ResolvedModuleOptions } from '../delay-queue.options.js';
import type { TraceCarrier } from '../delay-queue.tracer.js';
import { heldBack } from '../job/at-once.js';
import { isLikeOptions, resolveEnqueueOptions } from '../job/enqueue-options.js';
import type { EnqueueOptions, ResolvedEnqueueOptions } from '../job/enqueue-options.js';
import type { OptionNaming } from '../job/option-rules.js';
import { encodeContent } from '../job/envelope.js';
import { createIdGenerator } from '../job/job-id.js';
import { placeOf } from '../job/place.js';
import type { EncodedPayload } from '../job/payloads.js';
import { waitTimeout } from '../job/durability.js';
import type { Durability, ResolvedDurability } from '../job/durability.js';
import { isQueueDefinition, queueNameOf } from '../job/queue-definition.js';
import type { QueueDefinition, QueueRef } from '../job/queue-definition.js';
import { applySchema } from '../job/schema.js';
import type { DurabilityRequirement } from '../redis/replication-barrier.js';
import type { InstanceContext } from '../instance/instance-context.js';
import type { EnqueueItem } from '../redis/enqueue.protocol.js';
import { readItem, withDurability } from './bulk-item.js';
import { groupByDefinition, idByDefinition, withRules } from './definition-rules.js';
import { refuseExpired } from './expiry-rule.js';
import { MOST_REMEMBERED } from './forget-idle.js';
import { IdleOptions } from './idle-options.js';
import { contextOf } from './job-context.js';
import { expiresInMsOf, specOf } from './job-spec.js';

/** A checked job, ready to be sent: its id is fixed, so sending it twice is harmless. */
export interface PlannedJob extends EnqueueItem {
  readonly queue: string;
  /** What must be met before the call is answered. */
  readonly demand: DurabilityRequirement | undefined;
  readonly maxSize: number | undefined;
  /** When it is due, of a job at a local time. */
  readonly zonedAt?: number | undefined;
  readonly expiresInMs?: number | undefined;
}

/** Checks everything about a job before anything is sent. */
export class JobPlanner {
  readonly #newId = createIdGenerator();
  readonly #defaults = new Map<string, ResolvedEnqueueDefaults>();
  readonly #definitionDefaults = new WeakMap<object, ResolvedEnqueueDefaults>();

  readonly #idle: IdleOptions;

  constructor(
    private readonly module: ResolvedModuleOptions,
    private readonly queues: Pick<InstanceContext, 'nameOf' | 'definitionOf' | 'payloads'>,
  ) {
    this.#idle = new IdleOptions(module);
  }

  /** A promise only for queues whose schema answers with one. @param turn the schema is asked only then */
  plan(
    queue: QueueRef,
    payload: unknown,
    options: unknown,
    naming?: OptionNaming,
    laterMs = 0,
    trace?: TraceCarrier,
    turn?: Promise<unknown>,
  ): PlannedJob | Promise<PlannedJob> {
    const name = this.queues.nameOf(queue, 'enqueue(queue)');
    const definition = isQueueDefinition(queue) ? queue : this.queues.definitionOf(name);
    const resolved = withRules(
      resolveEnqueueOptions(options, name, naming, payload),
      options as EnqueueOptions,
      definition,
    );
    if (resolved.onDead !== undefined && resolved.onDuplicate !== 'keep') {
      const field = naming?.('onDead') ?? `enqueue("${name}", { onDead })`;
      throw new InvalidOptionError(`${field}: holds with onDuplicate 'keep', but it is '${resolved.onDuplicate}'.`);
    }
    if (resolved.dueAt === 'keep' && resolved.onDuplicate !== 'replace') {
      const field = naming?.('dueAt') ?? `enqueue("${name}", { dueAt })`;
      throw new InvalidOptionError(`${field}: holds with onDuplicate 'replace', but it is '${resolved.onDuplicate}'.`);
    }
    if (resolved.expiresAtMs !== undefined)
      refuseExpired(resolved, this.#defaultsOf(name, definition), name, naming, laterMs);
    const encoded = this.queues.payloads.encode(payload, name);
    const checked = turn
      ? turn.then(this.#check.bind(this, name, definition, encoded))
      : this.#check(name, definition, encoded);
    if (options === undefined) {
      if (!definition?.rules.schema && isLikeOptions(payload)) this.#idle.optionsAsPayload(name);
    } else if (resolved.due?.kind === 'delay') this.#idle.lookAtDelay(name, resolved.due.ms);
    if (!(checked instanceof Promise))
      return this.#assemble(name, definition, resolved, encoded, payload, laterMs, trace, naming);
    // In this turn, because the caller may change the payload in the next one; what fails is told of what the schema accepts.
    // Bound: for a function made here every job would pay, also without a schema.
    const assemble = this.#assemble.bind(this, name, definition, resolved, encoded, payload, laterMs, trace, naming);
    return checked.then(heldBack(assemble));
  }

  /** What `enqueue()` would store of a payload, for a job that exists. A promise only if the queue's schema answers with one. */
  planPayload(name: string, queue: QueueRef, payload: unknown): EncodedPayload | Promise<EncodedPayload> {
    const definition = isQueueDefinition(queue) ? queue : this.queues.definitionOf(name);
    const encoded = this.queues.payloads.encode(payload, name);
    const checked = this.#check(name, definition, encoded);
    return checked instanceof Promise ? checked.then(() => encoded) : encoded;
  }

  /** @throws SchemaError */
  #check(name: string, definition: QueueDefinition | undefined, encoded: EncodedPayload): unknown {
    if (!definition?.rules.schema) return undefined;
    // Encoded and decoded first, because the handler's schema will see that value: a Date is text by then.
    return applySchema(definition.rules.schema, this.queues.payloads.reread(encoded, name), name);
  }

  /**
   * @param laterMs put on top of the job's own delay
   * @param durability of items that do not say it themselves
   * @param trace the trace context that the job carries
   * @param turn as of `plan()`
   */
  planItem(
    queue: QueueRef,
    item: unknown,
    index: number,
    laterMs: number,
    durability?: Durability,
    trace?: TraceCarrier,
    turn?: Promise<unknown>,
  ): PlannedJob | Promise<PlannedJob> {
    const [payload, given] = readItem(item, index, queue);
    const options = durability === undefined ? given : withDurability(given, durability);
    if (options === undefined) return this.plan(queue, payload, undefined, undefined, laterMs, trace, turn);
    const naming: OptionNaming = (option) => `enqueueMany("${queueNameOf(queue)}", item ${index}: { ${option} })`;
    return this.plan(queue, payload, options, naming, laterMs, trace, turn);
  }

  #assemble(
    name: string,
    definition: QueueDefinition | undefined,
    resolved: ResolvedEnqueueOptions,
    encoded: EncodedPayload,
    payload: unknown,
    laterMs: number,
    trace: TraceCarrier | undefined,
    naming: OptionNaming | undefined,
  ): PlannedJob {
    const { attempts, backoff, timeoutMs } = resolved;
    const zoned = laterMs === 0 ? resolved.zoned : undefined;
    const id =
      resolved.id ??
      (resolved.idFromPayload
        ? this.queues.payloads.idOf(payload, encoded, `enqueue("${name}", { idFromPayload })`, name)
        : idByDefinition(definition, payload));
    const defaults = this.#defaultsOf(name, definition);
    const expiresInMs = expiresInMsOf(resolved, defaults);
    this.#idle.look(name, resolved, id);
    const keepExpired = resolved.keepExpired ?? defaults.keepExpired;
    if (keepExpired && expiresInMs === undefined) this.#idle.lookAtExpiry(name, resolved, definition);
    const context = contextOf(
      resolved.context,
      this.module.contextProvider,
      naming?.('context') ?? `enqueue("${name}")`,
    );
    const group = resolved.group ?? groupByDefinition(definition, payload);
    if (group === undefined && defaults.limitsGroups) this.#idle.withoutGroup(name);
    return {
      queue: name,
      demand: this.#demandOf(resolved.durability ?? this.module.durability, name),
      maxSize: defaults.maxSize,
      zonedAt: zoned?.at,
      expiresInMs,
      id: id ?? this.#newId(),
      spec: specOf(id !== undefined, resolved, defaults, laterMs),
      content: encodeContent(
        { attempts, backoff, timeoutMs, keepExpired, context, trace, zoned, group },
        encoded.body,
        encoded.mark,
      ),
      place: placeOf(group, resolved.priority ?? definition?.rules.priority),
    };
  }

  #demandOf(durability: 'async' | ResolvedDurability, queue: string): DurabilityRequirement | undefined {
    if (durability === 'async') return undefined;
    const field = `enqueue("${queue}", { durability })`;
    return {
      replicas: durability.replicas,
      timeoutMs: waitTimeout(durability, this.module.commandTimeoutMs, field),
    };
  }

  #defaultsOf(name: string, definition: QueueDefinition | undefined): ResolvedEnqueueDefaults {
    const known = definition ? this.#definitionDefaults.get(definition) : this.#defaults.get(name);
    if (known) return known;
    const defaults = resolveEnqueueDefaults({ queue: name, definition, module: this.module });
    if (definition) this.#definitionDefaults.set(definition, defaults);
    else {
      if (this.#defaults.size >= MOST_REMEMBERED) this.#defaults.clear();
      this.#defaults.set(name, defaults);
    }
    return defaults;
  }
}
