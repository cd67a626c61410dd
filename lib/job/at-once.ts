import { InvalidOptionError } from '../delay-queue.errors.js';
import { summarizeRefusal } from './error-record.js';
import { forgetPromise } from './forget-promise.js';

/**
 * What a function of the application gives that must answer at once.
 *
 * @param what names the queue and the function; begins the error message
 * @param payload what it was given: its values are left out of the message
 * @throws InvalidOptionError when it gives a promise, or throws; what it threw is the cause
 */
export function answerOf<Value>(call: () => Value, what: string, payload?: unknown): Value {
  const value = called(call, what, payload);
  if (forgetPromise(value)) throw new InvalidOptionError(`${what} gave a promise. It must answer at once.`);
  return value;
}

function called<Value>(call: () => Value, what: string, payload: unknown): Value {
  try {
    return call();
  } catch (cause) {
    throw new InvalidOptionError(`${what} threw ${summarizeRefusal(cause, payload)}`, { cause });
  }
}

/** Calls it in this turn. @returns what gives its answer, or throws its error, when that is wanted */
export function heldBack<Value>(call: () => Value): () => Value {
  try {
    const value = call();
    return () => value;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}
