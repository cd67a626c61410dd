import 'reflect-metadata';
import { InvalidHandlerError } from '../delay-queue.errors.js';
import type { Given } from '../job/payload-types.js';
import type { HandledPayloadOf, QueueRef } from '../job/queue-definition.js';
import type { BatchJob } from './batch-job.js';
import type { BatchOptions } from './batch-options.js';
import type { HandlerDecorator } from './handler-types.js';
import type { HandlerOptions } from './handler.js';
import { noteHandler } from './decorated-classes.js';
import type { Delivering } from './delivery.js';

/** Name of the `forRoot()` instance that has no name. */
export const DEFAULT_INSTANCE = 'default';

/** One `@OnDelayed`, or a decorator built on it, as it was written; nothing in it has been checked. */
export interface HandlerRegistration {
  readonly queue: QueueRef;
  readonly options: HandlerOptions;
  /** The prototype whose class body holds the method. Parameter decorators and `design:paramtypes` are stored there. */
  readonly declaredBy: object;
  /** What it was written as, for messages. */
  readonly decorator: string;
  /** Left out: what the method returns is of no interest. */
  readonly delivering: Delivering | undefined;
}

const REGISTRATIONS = 'delay-queue:handlers';

// Nest adds request-scoped global enhancers, and transient ones of any level, only to controllers and to classes with
// this mark. Without it Nest silently skips a request-scoped APP_GUARD.
const ENTRY_PROVIDER = '__entryProvider__';

/**
 * Runs the method for every job of a queue. Works on any provider or controller; one method may carry several.
 *
 * The method receives `(payload, job)`, or the values that its parameter decorators (`@JobPayload()`, `@Job()`) name.
 * When it returns or resolves, the job is completed; when it throws, the job is retried.
 *
 * @param queue name, or a definition made by `defineQueue()`
 * @param options checked at bootstrap, which fails naming class and method
 * @throws InvalidHandlerError when put on anything but an instance method
 */
export function OnDelayed<const Q extends QueueRef>(
  queue: Q,
  options: Given<HandlerOptions> & { batch: BatchOptions },
): HandlerDecorator<HandledPayloadOf<Q>, HandledPayloadOf<Q>[], BatchJob<HandledPayloadOf<Q>>[]>;
export function OnDelayed<const Q extends QueueRef>(
  queue: Q,
  options?: Given<HandlerOptions> & { batch?: undefined },
): HandlerDecorator<HandledPayloadOf<Q>>;
/** With options that are known only when it runs, the method is not looked at. */
export function OnDelayed(queue: QueueRef, options: Given<HandlerOptions>): MethodDecorator;
export function OnDelayed(queue: QueueRef, options: HandlerOptions = {}): MethodDecorator {
  return handlerDecorator('@OnDelayed', queue, options);
}

/** @param decorator what the application wrote, for messages */
export function handlerDecorator(
  decorator: string,
  queue: QueueRef,
  options: HandlerOptions,
  delivering?: Delivering,
): MethodDecorator {
  return (target, method, descriptor) => {
    const fn: unknown = descriptor?.value;
    if (typeof target === 'function' || typeof fn !== 'function') {
      const className = typeof target === 'function' ? target.name : target.constructor.name;
      throw new InvalidHandlerError(
        `${decorator} on ${method === undefined ? className : `${className}.${String(method)}`}: put it on an instance method.`,
      );
    }
    const registration: HandlerRegistration = { queue, options, declaredBy: target, decorator, delivering };
    const others: HandlerRegistration[] = Reflect.getOwnMetadata(REGISTRATIONS, target, method) ?? [];
    const registrations = [...others, registration];
    noteHandler(method, registration);
    // Under the name, so that a decorator above this one may wrap the function; on the function, so that a mixin may
    // copy it to another class. If a handler is not found, its jobs wait for ever.
    Reflect.defineMetadata(REGISTRATIONS, registrations, target, method);
    Reflect.defineMetadata(REGISTRATIONS, registrations, fn);
    Reflect.defineMetadata(ENTRY_PROVIDER, true, target.constructor);
  };
}

/** The registrations on a prototype and those that it inherits. An override without `@OnDelayed` is not a handler. */
export function registrationsOn(prototype: object): [method: string | symbol, HandlerRegistration][] {
  const found: [string | symbol, HandlerRegistration][] = [];
  const seen = new Set<string | symbol>();
  for (
    let owner: object | null = prototype;
    owner && owner !== Object.prototype;
    owner = Reflect.getPrototypeOf(owner)
  ) {
    for (const key of Reflect.ownKeys(owner)) {
      if (seen.has(key)) continue;
      seen.add(key);
      // By descriptor: reading the property would run the getters of classes that are none of our business.
      const fn: unknown = Reflect.getOwnPropertyDescriptor(owner, key)?.value;
      if (typeof fn !== 'function') continue;
      const registrations: HandlerRegistration[] =
        Reflect.getOwnMetadata(REGISTRATIONS, owner, key) ?? Reflect.getOwnMetadata(REGISTRATIONS, fn) ?? [];
      for (const registration of registrations) found.push([key, registration]);
    }
  }
  return found;
}
