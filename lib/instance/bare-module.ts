import { Inject } from '@nestjs/common';
import type { OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { InvalidOptionError } from '../delay-queue.errors.js';
import { DelayQueueInstances } from './delay-queue.instances.js';

/** A module that does nothing without its `forRoot()`: it may stand in `imports` as it is only if its `forRoot()` stands somewhere else. */
export abstract class NeedsForRoot implements OnModuleInit {
  /** What `forRoot()` provides. @internal */
  protected abstract readonly made: symbol | Function;
  /** What is said when nobody called it. @internal */
  protected abstract readonly advice: string;

  /** @internal */
  constructor(
    @Inject(ModuleRef) private readonly modules: ModuleRef,
    @Inject(DelayQueueInstances) private readonly instances: DelayQueueInstances,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.instances.booting(() => this.#refuseBare());
  }

  #refuseBare(): void {
    try {
      this.modules.get(this.made, { strict: false });
    } catch {
      throw new InvalidOptionError(this.advice);
    }
  }
}
