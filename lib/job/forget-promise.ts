import { types } from 'node:util';

/**
 * What the application gave where no promise is taken. One that nobody waits for would end the process when it rejects.
 *
 * @returns whether it was one
 */
export function forgetPromise(value: unknown): boolean {
  if (!types.isPromise(value)) return false;
  value.then(undefined, () => undefined);
  return true;
}
