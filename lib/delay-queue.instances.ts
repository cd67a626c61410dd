import { Module } from '@nestjs/common';
import { DuplicateInstanceError } from './delay-queue.errors.js';
import type { DelayQueueHealth } from './health/delay-queue.health.js';
import type { DelayQueueRunner } from './worker/delay-queue.runner.js';

/** The instances of one application. Not static state: a process may run several applications, as tests do. */
export class DelayQueueInstances {
  readonly #names = new Set<string>();
  readonly #healths = new Map<string, DelayQueueHealth>();
  readonly #runners = new Map<string, DelayQueueRunner>();

  /** @throws DuplicateInstanceError when another `forRoot()` has this name: every handler would be registered twice */
  claim(name: string): void {
    if (this.#names.has(name)) {
      const which = name === 'default' ? 'without a name' : `with the name "${name}"`;
      throw new DuplicateInstanceError(
        `DelayQueueModule.forRoot() is imported twice ${which}. Import it once, in the root module (it is global), ` +
          'or give the second one another `name`.',
      );
    }
    this.#names.add(name);
  }

  get names(): ReadonlySet<string> {
    return this.#names;
  }

  addRunner(name: string, runner: DelayQueueRunner): void {
    this.#runners.set(name, runner);
  }

  runner(name: string): DelayQueueRunner | undefined {
    return this.#runners.get(name);
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
