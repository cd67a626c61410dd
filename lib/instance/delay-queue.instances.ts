import { Inject, Module, Optional } from '@nestjs/common';
import { DuplicateInstanceError, InvalidOptionError } from '../delay-queue.errors.js';
import { DEFAULT_INSTANCE } from '../handlers/on-delayed.decorator.js';
import { shown } from '../job/duration.js';
import type { ConnectionOption } from '../redis/connection-option.js';
import { MEMORY_SCHEME } from '../redis/memory.client.js';
import type { QueueDefinition } from '../job/queue-definition.js';
import type { DelayQueueHealth } from '../health/delay-queue.health.js';
import type { DelayQueueRunner } from '../worker/delay-queue.runner.js';
import { unknownInstance } from './unknown-instance.js';

/** What a test overrides; nothing provides it. */
const OVERRIDDEN = Symbol('delay-queue:overridden');

function besideRoot(name: string, method: string): string {
  const which = name === 'default' ? 'the unnamed instance' : `instance "${name}"`;
  const second = [...(name === 'default' ? [] : [`instance: '${name}'`]), ...(method === 'forRedis' ? ['redis'] : [])];
  const options = second.length === 0 ? '' : `, { ${second.join(', ')} }`;
  return (
    `DelayQueueTestingModule.${method}() makes ${which}, and so does DelayQueueModule.forRoot() of the modules under test. ` +
    `Remove ${method}() from imports, and give the builder to DelayQueueTestingModule.override(builder${options}) before ` +
    `compile(): the options of forRoot() hold then, on ${method === 'forRedis' ? 'that Redis' : 'a store in memory'}.`
  );
}

/** The instances of one application. Not static state: a process may run several applications, as tests do. */
export class DelayQueueInstances {
  readonly #names = new Set<string>();
  /** Of instances that a test makes, by which method of `DelayQueueTestingModule`. */
  readonly #ofTests = new Map<string, string>();
  readonly #undo: (() => void)[] = [];
  /** By instance, then by queue. */
  readonly #definitions = new Map<string, Map<string, QueueDefinition>>();
  /** Names by place. */
  readonly #places = new Map<string, string>();
  readonly #healths = new Map<string, DelayQueueHealth>();
  readonly #runners = new Map<string, DelayQueueRunner>();

  /** @param overridden those that `DelayQueueTestingModule.override()` was called for; undefined: it was not called */
  constructor(@Optional() @Inject(OVERRIDDEN) private readonly overridden?: ReadonlySet<string>) {}

  /**
   * A test that overrides one instance means none of them to work on what `forRoot()` names: real handlers would run real jobs.
   *
   * @throws UnknownInstanceError for an instance that there is not, InvalidOptionError for one that was left out
   */
  checkOverridden(name: string, connection: ConnectionOption): void {
    if (this.overridden === undefined) return;
    for (const wanted of this.overridden) {
      if (!this.#names.has(wanted)) {
        const options = wanted === DEFAULT_INSTANCE ? '' : `, { instance: ${shown(wanted)} }`;
        throw unknownInstance(`DelayQueueTestingModule.override(builder${options})`, wanted, this.#names);
      }
    }
    const isOfTest = typeof connection === 'string' && connection.startsWith(MEMORY_SCHEME);
    if (this.overridden.has(name) || this.#ofTests.has(name) || isOfTest) return;
    const options = name === DEFAULT_INSTANCE ? '' : `instance: '${name}'`;
    throw new InvalidOptionError(
      `DelayQueueTestingModule.override(): ${name === DEFAULT_INSTANCE ? 'the unnamed instance' : `instance "${name}"`} is left ` +
        'out, and would work on the Redis of its forRoot(). Give the builder to ' +
        `DelayQueueTestingModule.override(builder${options && `, { ${options} }`}) too; where a Redis is meant, with ` +
        `{ ${options && `${options}, `}redis: url }.`,
    );
  }

  /**
   * @param testMethod of `DelayQueueTestingModule`, where that makes the instance
   * @throws DuplicateInstanceError when another `forRoot()` has this name: every handler would be registered twice
   */
  claim(name: string, testMethod?: string): void {
    if (testMethod !== undefined) this.#ofTests.set(name, testMethod);
    const method = this.#ofTests.get(name);
    if (this.#names.has(name)) {
      if (method !== undefined) throw new DuplicateInstanceError(besideRoot(name, method));
      const which = name === 'default' ? 'without a name' : `with the name "${name}"`;
      throw new DuplicateInstanceError(
        `DelayQueueModule.forRoot() is imported twice ${which}. Import it once, in the root module (it is global), ` +
          'or give the second one another `name`.',
      );
    }
    this.#names.add(name);
  }

  /**
   * Takes note of where the jobs of an instance lie.
   *
   * @param place the same for two instances with one database and one prefix
   * @returns the instance that was there before
   */
  lieAt(place: string, name: string): string | undefined {
    const other = this.#places.get(place);
    if (other === undefined) this.#places.set(place, name);
    return other;
  }

  /** What to undo when the application cannot boot: Nest runs no shutdown hooks then. */
  onFailedBoot(undo: () => void): void {
    this.#undo.push(undo);
  }

  /** Runs one part of the boot; when it fails, no connection of any instance is left open. */
  async booting<T>(part: () => T | Promise<T>): Promise<T> {
    try {
      return await part();
    } catch (error) {
      for (const undo of this.#undo) undo();
      throw error;
    }
  }

  get names(): ReadonlySet<string> {
    return this.#names;
  }

  /**
   * Takes up what `forFeature()` says of queues.
   *
   * @throws InvalidOptionError when another feature says something else of one of them
   */
  addDefinitions(instance: string, definitions: readonly QueueDefinition<any>[]): void {
    let ofInstance = this.#definitions.get(instance);
    if (!ofInstance) this.#definitions.set(instance, (ofInstance = new Map()));
    for (const definition of definitions) {
      const known = ofInstance.get(definition.name);
      if (known && known !== definition) {
        throw new InvalidOptionError(
          `forFeature(): queue "${definition.name}" is defined twice, by different definitions. Export one and share it.`,
        );
      }
      ofInstance.set(definition.name, definition);
    }
  }

  definition(instance: string, queue: string): QueueDefinition | undefined {
    return this.#definitions.get(instance)?.get(queue);
  }

  definedQueues(instance: string): Iterable<string> {
    return this.#definitions.get(instance)?.keys() ?? [];
  }

  /** @param call what names the instance; begins the message @throws UnknownInstanceError */
  checkDeclared(name: string, call: string): void {
    if (!this.#names.has(name)) throw unknownInstance(call, name, this.#names);
  }

  addRunner(name: string, runner: DelayQueueRunner): void {
    this.#runners.set(name, runner);
  }

  runner(name: string): DelayQueueRunner | undefined {
    return this.#runners.get(name);
  }

  /** The handler that another instance of this process has for the queue; undefined also if this one has one, or only enqueues. */
  handledElsewhere(name: string, queue: string): { readonly instance: string; readonly handler: string } | undefined {
    const own = this.#runners.get(name);
    if (this.#runners.size < 2 || !own || own.options.consume === false || own.handlers.get(queue)) return undefined;
    for (const [instance, { handlers }] of this.#runners) {
      const handler = handlers.get(queue);
      if (handler) return { instance, handler: handler.name };
    }
    return undefined;
  }

  addHealth(name: string, health: DelayQueueHealth): void {
    this.#healths.set(name, health);
  }

  health(name: string): DelayQueueHealth | undefined {
    return this.#healths.get(name);
  }
}

/** Imported by every `forRoot()` and, as a plain class, made once by Nest. */
@Module({ providers: [DelayQueueInstances], exports: [DelayQueueInstances] })
export class DelayQueueInstancesModule {}
