import type { CanActivate, NestInterceptor, PipeTransform, Type } from '@nestjs/common';
import {
  type ApplicationConfig,
  type ContextId,
  ExternalContextCreator,
  type ModulesContainer,
  type NestContainer,
} from '@nestjs/core';
import { InvalidHandlerError } from '../delay-queue.errors.js';
import type { BoundParameter, Method, Parameter } from './handler.parameters.js';
import type { PipeArgument } from './job-params.decorator.js';

type ValueOf<M> = M extends Map<unknown, infer V> ? V : never;
/** Nest's record of a module, and of a provider or controller in it. Nest exports neither by name. */
export type ModuleRecord = ValueOf<ModulesContainer>;
export type InstanceWrapper = ReturnType<ModuleRecord['getProviderByKey']>;

/** Whose enhancers are wanted. */
export interface EnhancerHost {
  instance: object;
  method: Method;
  module: ModuleRecord;
  /** The context that the instance was resolved in. Left out: the static one. */
  contextId?: ContextId | undefined;
  /** Id of the wrapper of the handler class: transient enhancers are made for their consumer. */
  inquirerId?: string | undefined;
}

export interface BoundFilter {
  func(error: unknown, host: object): unknown;
  exceptionMetatypes: Type[];
}

/** Around the call; pipes belong to the parameters. */
export interface Enhancers {
  guards: CanActivate[];
  interceptors: NestInterceptor[];
  /** The one closest to the method first. */
  filters: BoundFilter[];
}

const FILTERS = '__exceptionFilters__';
const CLASS_AND_METHOD_KEYS = ['__guards__', '__pipes__', '__interceptors__', FILTERS];

type Parts = ConstructorParameters<typeof ExternalContextCreator>;

/**
 * Finds and runs enhancers with the parts of Nest's `ExternalContextCreator`. Its `create()`, made for this purpose, was
 * refused: on Nest 11 and 12 it skips a guard that is given as a class on a controller method without a word, it logs each
 * failed attempt at error, and it calls the method itself, where an outcome has to be caught.
 */
export class EnhancerResolver {
  readonly guardsConsumer: Parts[1];
  readonly interceptorsConsumer: Parts[3];
  readonly pipesConsumer: Parts[6];
  readonly #guards: Parts[0];
  readonly #interceptors: Parts[2];
  readonly #pipes: Parts[5];
  readonly #filters: Parts[7];

  /** @throws InvalidHandlerError when this version of Nest is built in another way */
  constructor(modules: ModulesContainer, globals: ApplicationConfig) {
    // All that the parts ask of the container, which Nest does not hand out.
    const container = { getModules: () => modules, applicationConfig: globals } as unknown as NestContainer;
    const nest = ExternalContextCreator.fromContainer(container);
    this.guardsConsumer = part(nest['guardsConsumer'], 'tryActivate');
    this.pipesConsumer = part(nest['pipesConsumer'], 'applyPipes');
    this.interceptorsConsumer = part(nest['interceptorsConsumer'], 'intercept');
    this.#guards = part(nest['guardsContextCreator'], 'create');
    this.#pipes = part(nest['pipesContextCreator'], 'createConcreteContext');
    this.#interceptors = part(nest['interceptorsContextCreator'], 'create');
    this.#filters = part(nest['filtersContextCreator'], 'createContext');
  }

  resolve({ instance, method, module: { token }, contextId, inquirerId }: EnhancerHost): Enhancers {
    // Only for its side effect, the module that filter classes are looked up in: what it returns logs at error.
    this.#filters.create(instance, method as () => Promise<void>, token, contextId, inquirerId);
    return {
      guards: this.#guards.create(instance, method, token, contextId, inquirerId),
      interceptors: this.#interceptors.create(instance, method, token, contextId, inquirerId),
      filters: this.#filters
        .createContext<unknown[], BoundFilter[]>(instance, method, FILTERS, contextId, inquirerId)
        .reverse(),
    };
  }

  /** Gives each parameter the global, class and method pipes, and after them its own. */
  bindParameters(parameters: Parameter[], { instance, method, module, contextId, inquirerId }: EnhancerHost) {
    const shared = this.#pipes.create(instance, method, module.token, contextId, inquirerId);
    // Looks pipe classes up in the module of the call above.
    const own = (pipes: PipeArgument[]): PipeTransform[] =>
      this.#pipes.createConcreteContext(pipes, contextId, inquirerId);
    return parameters.map((parameter): BoundParameter => ({
      ...parameter,
      pipes: [...shared, ...own(parameter.pipes)],
    }));
  }
}

/** These fields are private to Nest, so a release may rename them: better no boot than handlers without their guards. */
function part<T>(value: T, method: keyof T & string): T {
  if (typeof (value as Partial<T> | undefined)?.[method] === 'function') return value;
  throw new InvalidHandlerError(
    `This version of @nestjs/core has no ${method}() where handlers need it. Use a release of Nest 11 or 12 that ` +
      'nestjs-delay-queue was tested with, or upgrade nestjs-delay-queue.',
  );
}

/**
 * Nest drops an enhancer given as a class when the module has not registered it, which is so for handler classes made by
 * `useFactory` or `useValue` (before Nest 12 by `useClass` too). A guard that does not run is worse than no boot.
 *
 * @throws InvalidHandlerError
 */
export function refuseUnregisteredEnhancers(
  handlerClass: object,
  method: Method,
  parameterPipes: PipeArgument[],
  module: ModuleRecord,
  name: string,
): void {
  const declared = CLASS_AND_METHOD_KEYS.flatMap((key): unknown[] => [
    ...(Reflect.getMetadata(key, handlerClass) ?? []),
    ...(Reflect.getMetadata(key, method) ?? []),
  ]);
  for (const enhancer of [...declared, ...parameterPipes]) {
    if (typeof enhancer === 'function' && !module.injectables.has(enhancer)) {
      throw new InvalidHandlerError(
        `${name}: Nest does not construct ${enhancer.name} for a handler class that is provided by a factory, a value or ` +
          `under another token, and would skip it. List the class itself in providers, or pass an instance: new ${enhancer.name}(...).`,
      );
    }
  }
}
