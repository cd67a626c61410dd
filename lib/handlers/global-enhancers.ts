import type { CanActivate, ExceptionFilter, NestInterceptor, PipeTransform } from '@nestjs/common';
import { ApplicationConfig } from '@nestjs/core';

/**
 * Which of the application's global guards, pipes, interceptors and filters run around handlers: all of them, only pipes,
 * or none. Those at class and method level always run.
 */
export type GlobalEnhancers = 'all' | 'pipes' | 'none';

/**
 * The application's configuration as Nest's context creators shall see it. It asks the real one each time, so what
 * `app.useGlobalPipes()` adds before `init()` counts, and it is the only place that knows the option.
 */
export class GlobalEnhancerSelection extends ApplicationConfig {
  readonly #application: ApplicationConfig;
  readonly #selected: GlobalEnhancers;
  readonly #withScoped: boolean;

  constructor(application: ApplicationConfig, selected: GlobalEnhancers, withScoped = true) {
    super();
    this.#application = application;
    this.#selected = selected;
    this.#withScoped = withScoped;
  }

  /** The same without what lives per request or per consumer. */
  withoutScoped(): ApplicationConfig {
    return new GlobalEnhancerSelection(this.#application, this.#selected, false);
  }

  override getGlobalPipes(): PipeTransform[] {
    return this.#pipes(this.#application.getGlobalPipes());
  }

  override getGlobalGuards(): CanActivate[] {
    return this.#others(this.#application.getGlobalGuards());
  }

  override getGlobalInterceptors(): NestInterceptor[] {
    return this.#others(this.#application.getGlobalInterceptors());
  }

  override getGlobalFilters(): ExceptionFilter[] {
    return this.#others(this.#application.getGlobalFilters());
  }

  override getGlobalRequestPipes(): ReturnType<ApplicationConfig['getGlobalRequestPipes']> {
    return this.#scoped(this.#pipes(this.#application.getGlobalRequestPipes()));
  }

  override getGlobalRequestGuards(): ReturnType<ApplicationConfig['getGlobalRequestGuards']> {
    return this.#scoped(this.#others(this.#application.getGlobalRequestGuards()));
  }

  override getGlobalRequestInterceptors(): ReturnType<ApplicationConfig['getGlobalRequestInterceptors']> {
    return this.#scoped(this.#others(this.#application.getGlobalRequestInterceptors()));
  }

  override getGlobalRequestFilters(): ReturnType<ApplicationConfig['getGlobalRequestFilters']> {
    return this.#scoped(this.#others(this.#application.getGlobalRequestFilters()));
  }

  /** Names of the selected enhancers that live per request or per consumer. */
  scopedNames(): string[] {
    return scopedNames(this);
  }

  /** Names of the request-scoped ones that are left out. */
  ignoredPerJobNames(): string[] {
    const isPerJob = (wrapper: Scoped) => !wrapper.isDependencyTreeStatic();
    return without(scopedNames(this.#application, isPerJob), scopedNames(this));
  }

  /** For the log at boot; undefined when the application has no global enhancers. */
  describe(): string | undefined {
    const all = allNames(this.#application);
    if (all.length === 0) return undefined;
    const included = allNames(this);
    const list = (names: string[]) => (names.length > 0 ? names.join(', ') : 'none');
    return (
      `Global enhancers around handlers (globalEnhancers: '${this.#selected}'): ` +
      `${list(included)}; left out: ${list(without(all, included))}.`
    );
  }

  #pipes<T>(pipes: T[]): T[] {
    return this.#selected === 'none' ? [] : pipes;
  }

  #others<T>(enhancers: T[]): T[] {
    return this.#selected === 'all' ? enhancers : [];
  }

  #scoped<T>(wrappers: T[]): T[] {
    return this.#withScoped ? wrappers : [];
  }
}

function allNames(config: ApplicationConfig): string[] {
  return [
    ...config.getGlobalGuards().map((guard) => `guard ${nameOf(guard?.constructor)}`),
    ...config.getGlobalPipes().map((pipe) => `pipe ${nameOf(pipe?.constructor)}`),
    ...config.getGlobalInterceptors().map((interceptor) => `interceptor ${nameOf(interceptor?.constructor)}`),
    ...config.getGlobalFilters().map((filter) => `filter ${nameOf(filter?.constructor)}`),
    ...scopedNames(config),
  ];
}

type Scoped = ReturnType<ApplicationConfig['getGlobalRequestGuards']>[number];

function scopedNames(config: ApplicationConfig, wanted: (wrapper: Scoped) => boolean = () => true): string[] {
  const names = (kind: string, wrappers: unknown[]) =>
    (wrappers as Scoped[]).filter(wanted).map(({ metatype }) => `${kind} ${nameOf(metatype)}`);
  return [
    ...names('guard', config.getGlobalRequestGuards()),
    ...names('pipe', config.getGlobalRequestPipes()),
    ...names('interceptor', config.getGlobalRequestInterceptors()),
    ...names('filter', config.getGlobalRequestFilters()),
  ];
}

function nameOf(type: { name: string } | null | undefined): string {
  return type?.name || '(anonymous)';
}

function without(all: string[], some: string[]): string[] {
  return all.filter((name) => !some.includes(name));
}
