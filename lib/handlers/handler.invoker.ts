import {
  type ApplicationConfig,
  type ContextId,
  ContextIdFactory,
  ModuleRef,
  type ModulesContainer,
} from '@nestjs/core';
import { DelayQueueError, InvalidHandlerError } from '../delay-queue.errors.js';
import { Batch } from './batch-job.js';
import { DelayQueueBatchRequest, DelayQueueRequest } from './delay-queue-context.js';
import type { CurrentTrace, Delivering, Delivery } from './delivery.js';
import { type GlobalEnhancers, GlobalEnhancerSelection } from './global-enhancers.js';
import {
  EnhancerResolver,
  type InstanceWrapper,
  type ModuleRecord,
  refuseUnregisteredEnhancers,
} from './handler.enhancers.js';
import type { HandlerOutcome } from './handler-outcome.js';
import { type Method, readParameters, validatesNothing, type Work } from './handler.parameters.js';
import { HandlerPipeline } from './handler.pipeline.js';
import { providerFailed } from './meant-for-requests.js';
import { decisionOf } from './outcomes.js';
import { refuseOtherTypes } from './parameter-types.js';

/** A handler method as the explorer found it. */
export interface HandlerTarget {
  readonly wrapper: InstanceWrapper;
  /** Where `key` is looked up. */
  readonly prototype: object;
  readonly key: string | symbol;
  /** The prototype whose class body holds the method. */
  readonly declaredBy: object;
  /** `ClassName.methodName`, for messages. */
  readonly name: string;
  readonly queue: string;
  /** The name of its `forRoot()`. */
  readonly inInstance: string;
  /** The decorator, and class and method: begins error messages. */
  readonly where: string;
  /** It takes many jobs at once. */
  readonly batched: boolean;
  /** What is done with that which the method returns; undefined for nothing. */
  readonly delivering: Delivering | undefined;
}

export interface BoundTarget {
  /** For a job, or for a batch of them. Never rejects. */
  readonly invoke: (work: Work) => Promise<HandlerOutcome>;
  /** See `Handler`. Undefined for a class that is made per job. */
  readonly begin?: (work: Work, done: (outcome: HandlerOutcome) => void) => void;
  /** A ValidationPipe runs on the payload, but has no class to validate it against. */
  readonly validatesNothing: boolean;
  /** Global enhancers that should run around it live per request, and Nest offers no way to make them for it. */
  readonly missesScopedGlobals: boolean;
}

/**
 * An instance of a handler class, and the context that it and its enhancers were made in: undefined for the static one.
 */
interface Resolved {
  readonly instance: object;
  readonly contextId?: ContextId;
}

/** Makes handler methods callable with a job, inside their guards, pipes, interceptors and filters. */
export class HandlerInvoker {
  readonly globals: GlobalEnhancerSelection;
  readonly #enhancers: EnhancerResolver;
  readonly #enhancersWithoutScopedGlobals: EnhancerResolver;
  /** One instance of a transient class serves all its handlers. */
  readonly #transients = new WeakMap<InstanceWrapper, Promise<Resolved>>();

  constructor(
    modules: ModulesContainer,
    application: ApplicationConfig,
    globalEnhancers: GlobalEnhancers,
    private readonly carrier: CurrentTrace = () => undefined,
  ) {
    this.globals = new GlobalEnhancerSelection(application, globalEnhancers);
    this.#enhancers = new EnhancerResolver(modules, this.globals);
    this.#enhancersWithoutScopedGlobals = new EnhancerResolver(modules, this.globals.withoutScoped());
  }

  /**
   * Call it once all providers exist, in `onModuleInit`: global enhancers added later do not count.
   *
   * @throws InvalidHandlerError when a parameter, an enhancer or a delivery would not do what it says
   */
  async bind(target: HandlerTarget): Promise<BoundTarget> {
    const { wrapper, prototype, key, declaredBy, name, batched, inInstance } = target;
    const method = methodOf(prototype, key);
    const parameters = readParameters(declaredBy, key, method, name, inInstance);
    refuseOtherTypes(parameters, target);
    const module = wrapper.host as ModuleRecord;
    const pipes = parameters.flatMap((parameter) => parameter.pipes);
    refuseUnregisteredEnhancers(prototype.constructor, method, pipes, module, name);

    const resolver = hasScopedGlobals(wrapper, module) ? this.#enhancers : this.#enhancersWithoutScopedGlobals;
    // This instance was never constructed, but it can say which pipes there are, even for a class that is made per job.
    const specimen = { instance: Object.create(prototype) as object, method, module };
    const facts = {
      validatesNothing: validatesNothing(resolver.bindParameters(parameters, specimen), method, batched),
      missesScopedGlobals: resolver !== this.#enhancers && this.globals.scopedNames().length > 0,
    };
    const pipelineOf = ({ instance, contextId }: Resolved, delivery?: Delivery): HandlerPipeline => {
      const host = { instance, method: methodOf(instance, key), module, contextId, inquirerId: wrapper.id };
      const bound = resolver.bindParameters(parameters, host);
      return new HandlerPipeline(instance, host.method, bound, resolver.resolve(host), resolver, inInstance, delivery);
    };
    const resolved = isPerJob(wrapper) ? undefined : await this.#resolveOnce(wrapper, module);
    // Asked again: Nest 11 looks at the dependencies of a transient class only when it makes one.
    if (!resolved || isPerJob(wrapper)) {
      if (target.delivering) throw perJobRefusal(target);
      return { invoke: (work) => invokePerJob(target, module, pipelineOf, work), ...facts };
    }
    const pipeline = pipelineOf(resolved, this.#deliveryOf(target, resolved.instance));
    return { invoke: (work) => pipeline.run(work), begin: (work, done) => pipeline.begin(work, done), ...facts };
  }

  #deliveryOf({ delivering, where, queue }: HandlerTarget, instance: object): Delivery | undefined {
    try {
      return delivering?.({ instance, queue, carrier: this.carrier });
    } catch (error) {
      throw error instanceof DelayQueueError ? new InvalidHandlerError(`${where}: ${error.message}`) : error;
    }
  }

  async #resolveOnce(wrapper: InstanceWrapper, module: ModuleRecord): Promise<Resolved> {
    if (!wrapper.isTransient) return { instance: wrapper.instance as object };
    let resolved = this.#transients.get(wrapper);
    if (!resolved) {
      // What the wrapper of a transient class holds is a prototype whose constructor never ran.
      const contextId = ContextIdFactory.create();
      resolved = moduleRefOf(module)
        .resolve<object>(wrapper.token, contextId, { strict: true })
        .then((instance) => ({ instance, contextId }));
      this.#transients.set(wrapper, resolved);
    }
    return resolved;
  }
}

function perJobRefusal({ where }: HandlerTarget): InvalidHandlerError {
  return new InvalidHandlerError(
    `${where}: its class is made anew for each job, so nobody could look at the client before the first one. ` +
      'Put the method on a class that depends on nothing request-scoped.',
  );
}

/** A value exists once, even where the request-scoped global enhancers of its class would make Nest think otherwise. */
function isPerJob(wrapper: InstanceWrapper): boolean {
  return !isValue(wrapper) && !wrapper.isDependencyTreeStatic();
}

function isValue({ metatype }: InstanceWrapper): boolean {
  return metatype === null || metatype === undefined;
}

/**
 * Nest makes request-scoped and transient global enhancers for controllers and marked classes only (see `@OnDelayed`).
 */
function hasScopedGlobals(wrapper: InstanceWrapper, module: ModuleRecord): boolean {
  if (isValue(wrapper)) return false;
  return module.controllers.get(wrapper.token) === wrapper || module.entryProviders.includes(wrapper);
}

async function invokePerJob(
  { wrapper, name, queue, inInstance }: HandlerTarget,
  module: ModuleRecord,
  pipelineOf: (resolved: Resolved) => HandlerPipeline,
  work: Work,
): Promise<HandlerOutcome> {
  let pipeline: HandlerPipeline;
  try {
    pipeline = pipelineOf(await resolveFor(work, wrapper, module));
  } catch (error) {
    providerFailed(wrapper, name, error, { queue, payload: work.payload, inInstance });
    return decisionOf(error) ?? { kind: 'failed', error };
  }
  return pipeline.run(work);
}

/** As Nest's router does it for a request: one tree of providers and enhancers for the whole job or batch. */
async function resolveFor(work: Work, wrapper: InstanceWrapper, module: ModuleRecord): Promise<Resolved> {
  const request = work instanceof Batch ? new DelayQueueBatchRequest(work.jobs) : new DelayQueueRequest(work);
  const contextId = ContextIdFactory.getByRequest(request);
  const { payload } = contextId;
  const moduleRef = moduleRefOf(module);
  // A durable provider outlives the job, so it may see no more than what its strategy gives for the whole tree.
  const visible = wrapper.isDependencyTreeDurable() ? payload : Object.assign(request, payload);
  moduleRef.registerRequestByContextId(visible, contextId);
  return { instance: await moduleRef.resolve<object>(wrapper.token, contextId, { strict: true }), contextId };
}

/** Of the handler's own module: any other would not find a provider that the module does not export. */
function moduleRefOf(module: ModuleRecord): ModuleRef {
  return module.getProviderByKey<ModuleRef>(ModuleRef).instance;
}

function methodOf(host: object, key: string | symbol): Method {
  return (host as Record<string | symbol, Method>)[key] as Method;
}
