import type { ModulesContainer } from '@nestjs/core';

/** Nest itself puts global modules first by the greatest number that there is. The root module has 1. */
const NEAREST = -1;

/**
 * Lets the hooks of the module that holds `provider` start after those of all other modules, and stop before them.
 *
 * Nest orders hooks by the distance of a module from the root, and modules of one distance by their place in `imports`. Left to
 * that, an application that imports `forRoot()` before its own modules would drain its jobs when their database is closed.
 * Distances are set once all modules are known, and read at the first hook: call it from the factory of a provider.
 *
 * @returns false if this version of Nest does not allow it; then the order of `imports` decides
 */
export function hookLast(modules: ModulesContainer, provider: Function): boolean {
  const records = [...modules.values()].filter((record) => record.providers.has(provider));
  return records.length > 0 && records.every((record) => Reflect.set(record, 'distance', NEAREST));
}
