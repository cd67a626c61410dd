import type { ModulesContainer } from '@nestjs/core';
import { DelayQueueError, DuplicateHandlerError, InvalidHandlerError } from '../delay-queue.errors.js';
import { shown } from '../job/duration.js';
import { isQueueDefinition } from '../job/queue-definition.js';
import type { QueueDefinition } from '../job/queue-definition.js';
import { assertQueueName } from '../job/queue-name.js';
import { bootWarnings } from './boot-warnings.js';
import { noteProvided, unprovidedHandlers, overriddenHandlers } from './decorated-classes.js';
import type { InstanceWrapper } from './handler.enhancers.js';
import type { HandlerInvoker, HandlerTarget } from './handler.invoker.js';
import type { Handler, HandlerOptions } from './handler.js';
import { DEFAULT_INSTANCE, type HandlerRegistration, registrationsOn } from './on-delayed.decorator.js';
import { unknownInstance } from '../instance/unknown-instance.js';

/** A handler found by its decorator. */
export interface DiscoveredHandler extends Handler {
  /** What `@OnDelayed` was given instead of a name. */
  readonly definition: QueueDefinition | undefined;
}

export interface Exploration {
  readonly handlers: DiscoveredHandler[];
  /** Whole sentences for the log. */
  readonly warnings: string[];
}

export interface ExplorerSettings {
  /** Name of the `forRoot()` whose handlers are wanted. */
  readonly instance: string;
  /** The names of all. */
  readonly instances: ReadonlySet<string>;
  /** False for queues whose handlers do not run in this process. */
  readonly consumes: (queue: string) => boolean;
  /** What `forFeature()` says of a queue of this instance. */
  readonly definition: (queue: string) => QueueDefinition | undefined;
  /** Refuses invalid handler options by throwing a `DelayQueueError`; class and method are added to its message. */
  readonly validate: (options: HandlerOptions, queue: string) => void;
}

const MOST_NAMED = 5;

interface Found extends HandlerTarget {
  readonly definition: QueueDefinition | undefined;
  readonly options: HandlerOptions;
}

/**
 * Finds every `@OnDelayed` method of one instance, in all modules.
 *
 * By a full scan: 15 ms for 1,000 providers with ten methods each. `DiscoveryService.createDecorator()` looks up in no time,
 * but misses handlers that a class inherits, holds one value per method, and breaks when the library is loaded twice.
 */
export class HandlerExplorer {
  readonly #modules: ModulesContainer;
  readonly #invoker: HandlerInvoker;
  readonly #settings: ExplorerSettings;
  readonly #overridden: string[] = [];

  constructor(modules: ModulesContainer, invoker: HandlerInvoker, settings: ExplorerSettings) {
    this.#modules = modules;
    this.#invoker = invoker;
    this.#settings = settings;
  }

  /**
   * Call it once all providers exist, in `onModuleInit`.
   *
   * @throws InvalidHandlerError, InvalidQueueError, DuplicateHandlerError, UnknownInstanceError naming class and method
   */
  async explore(): Promise<Exploration> {
    const targets = this.#targets();
    refuseDuplicates(targets);
    const handlers: DiscoveredHandler[] = [];
    const unvalidated: string[] = [];
    const unvalidatedBatches: string[] = [];
    const unguarded: string[] = [];
    for (const target of targets) {
      const { invoke, begin, validatesNothing, missesScopedGlobals } = await this.#invoker.bind(target);
      const { queue, name, options, definition } = target;
      handlers.push({ queue, name, options, definition, invoke, begin, invokeBatch: invoke });
      if (validatesNothing && !this.#hasSchema(target)) (target.batched ? unvalidatedBatches : unvalidated).push(name);
      if (missesScopedGlobals) unguarded.push(name);
    }
    const findings = { handlers, unvalidated, unvalidatedBatches, unguarded };
    const warnings = [...bootWarnings(this.#invoker.globals, findings), ...this.#overridden, ...this.#unprovided()];
    return { handlers, warnings };
  }

  /** Of the definition that the handler names, or that `forFeature()` declares under its name. */
  #hasSchema({ definition, queue }: Found): boolean {
    return (definition ?? this.#settings.definition(queue))?.rules.schema !== undefined;
  }

  /** A class that was forgotten in `providers` is not found, and its jobs would wait for ever. */
  #unprovided(): string[] {
    // A test boots applications that leave out classes on purpose, one after another.
    if (process.env['NODE_ENV'] === 'test') return [];
    const { instance, consumes } = this.#settings;
    const forgotten = unprovidedHandlers().filter(({ registration: { queue, options } }) => {
      const name = typeof queue === 'string' ? queue : queue?.name;
      return (options?.instance ?? DEFAULT_INSTANCE) === instance && consumes(name);
    });
    if (forgotten.length === 0) return [];
    const names = forgotten
      .slice(0, MOST_NAMED)
      .map(({ name, registration }) => `${registration.decorator} on ${name}`);
    const list = `${names.join(', ')}${forgotten.length > MOST_NAMED ? ', ...' : ''}`;
    return [
      `${list}: the class is in no module's providers, so nothing runs these jobs here. Add it to the providers of a module that is not ` +
        'loaded lazily, or leave these queues out of `consume` in forRoot().',
    ];
  }

  #targets(): Found[] {
    const targets: Found[] = [];
    const registrations = new Map<object, ReturnType<typeof registrationsOn>>();
    const instances = new Set<unknown>();
    for (const wrapper of wrappersOf(this.#modules)) {
      const prototype = prototypeOf(wrapper);
      if (!prototype) continue;
      let found = registrations.get(prototype);
      if (!found) {
        registrations.set(prototype, (found = registrationsOn(prototype)));
        this.#overridden.push(...overriddenHandlers(prototype, new Set(found.map(([key]) => key))));
      }
      if (found.length === 0 || instances.has(wrapper.instance)) continue;
      if (wrapper.instance) instances.add(wrapper.instance);
      for (const [key, registration] of found) {
        noteProvided(registration.declaredBy);
        const target = this.#checked({ wrapper, prototype, key }, registration);
        if (target) targets.push(target);
      }
    }
    return targets;
  }

  /** Undefined: it belongs to another instance. */
  #checked(
    place: Pick<HandlerTarget, 'wrapper' | 'prototype' | 'key'>,
    { queue: reference, options, declaredBy, decorator, delivering }: HandlerRegistration,
  ): Found | undefined {
    const { instance, instances, validate } = this.#settings;
    const name = `${place.prototype.constructor.name}.${String(place.key)}`;
    const where = `${decorator} on ${name}`;
    if (typeof options !== 'object' || options === null) {
      throw new InvalidHandlerError(`${where}: options: ${shown(options)} is not an object.`);
    }
    const wanted = options.instance ?? DEFAULT_INSTANCE;
    if (!instances.has(wanted)) throw unknownInstance(where, wanted, instances);
    if (wanted !== instance) return undefined;
    const queue = assertQueueName(queueNameOf(reference, where), where);
    try {
      validate(options, queue);
    } catch (error) {
      throw error instanceof DelayQueueError ? new InvalidHandlerError(`${where}: ${error.message}`) : error;
    }
    const definition = isQueueDefinition(reference) ? reference : undefined;
    const batched = options.batch !== undefined;
    return { ...place, inInstance: instance, declaredBy, name, where, delivering, batched, queue, definition, options };
  }
}

/** `queue (Class.method)` of the handlers of an instance; nothing of them is checked. */
export function handlersNamed(modules: ModulesContainer, instance: string): string[] {
  const names = new Set<string>();
  for (const wrapper of wrappersOf(modules)) {
    const prototype = prototypeOf(wrapper);
    for (const [key, { queue, options }] of prototype ? registrationsOn(prototype) : []) {
      if ((options?.instance ?? DEFAULT_INSTANCE) !== instance) continue;
      const name = typeof queue === 'string' ? queue : queue?.name;
      names.add(`${name} (${prototype!.constructor.name}.${String(key)})`);
    }
  }
  return [...names];
}

/** Classes first: where a factory or value provider hands out an instance of one of them, the class is the one that counts. */
function wrappersOf(modules: ModulesContainer): InstanceWrapper[] {
  const wrappers = [...modules.values()]
    .flatMap(({ providers, controllers }): InstanceWrapper[] => [...providers.values(), ...controllers.values()])
    .filter(({ isAlias }) => !isAlias);
  return [...wrappers.filter(isClass), ...wrappers.filter((wrapper) => !isClass(wrapper))];
}

function isClass({ isNotMetatype }: InstanceWrapper): boolean {
  return !isNotMetatype;
}

function prototypeOf(wrapper: InstanceWrapper): object | undefined {
  const { instance, metatype, token } = wrapper;
  if (isClass(wrapper)) return metatype?.prototype as object | undefined;
  if (typeof instance === 'object' && instance !== null) return Reflect.getPrototypeOf(instance) ?? undefined;
  // A request-scoped factory has made nothing yet; its token is the best guess at what it will make.
  return typeof token === 'function' ? (token.prototype as object | undefined) : undefined;
}

function queueNameOf(reference: unknown, where: string): unknown {
  if (typeof reference === 'string') return reference;
  if (isQueueDefinition(reference)) return reference.name;
  const hint =
    typeof reference === 'object' && reference !== null
      ? 'Options are the second argument, behind the name.'
      : 'If it is imported, look for a circular import.';
  throw new InvalidHandlerError(
    `${where}: ${shown(reference)} is neither a queue name nor made by defineQueue(). ${hint}`,
  );
}

function refuseDuplicates(targets: Found[]): void {
  const first = new Map<string, Found>();
  for (const target of targets) {
    const other = first.get(target.queue);
    if (other) {
      throw new DuplicateHandlerError(
        `Queue "${target.queue}" has two handlers: ${placeOf(other)} and ${placeOf(target)}. A queue has one. ${remedyOf(other, target)}`,
      );
    }
    first.set(target.queue, target);
  }
}

function remedyOf(one: Found, other: Found): string {
  if (one.prototype === other.prototype && one.key === other.key) {
    const [here, there] = [one.wrapper.host, other.wrapper.host];
    const name = one.prototype.constructor.name;
    if (here && here === there) {
      return `${here.name} provides ${name} under two tokens: use useExisting for one of them.`;
    }
    if (here && here.metatype === there?.metatype) {
      return `${here.name} is imported twice with two sets of options, and ${name} is in each: put ${name} into a module that is there once.`;
    }
    return `Put ${name} into the providers of one module, and let that module export it.`;
  }
  return 'Let one method do both, or give one of them a queue of its own and enqueue to both.';
}

function placeOf({ wrapper, name }: Found): string {
  return `${wrapper.host?.name ?? '(no module)'}/${name}`;
}
