import type { ModuleRef } from '@nestjs/core';
import { InvalidOptionError } from '../delay-queue.errors.js';

/**
 * A module that does nothing without `forRoot()` may stand in `imports` as it is only if `forRoot()` stands somewhere else.
 *
 * @param made what `forRoot()` provides
 * @throws InvalidOptionError
 */
export function refuseBare(modules: ModuleRef, made: symbol | Function, message: string): void {
  try {
    modules.get(made, { strict: false });
  } catch {
    throw new InvalidOptionError(message);
  }
}
