import { types } from 'node:util';
import { InvalidOptionError } from '../delay-queue.errors.js';

/** A promise that nobody waits for would end the process when it rejects. @returns whether it was one */
export function forget(value: unknown): boolean {
  if (!types.isPromise(value)) return false;
  value.catch(() => undefined);
  return true;
}

/**
 * What a function of the application's gave that must answer at once.
 *
 * @throws InvalidOptionError when it gave a promise
 */
export function atOnce<Value>(value: Value, what: string): Value {
  if (forget(value)) throw new InvalidOptionError(`${what} gave a promise. It must answer at once.`);
  return value;
}
