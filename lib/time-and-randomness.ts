import crypto from 'node:crypto';
import { performance as monotonic } from 'node:perf_hooks';
import timers from 'node:timers';
import promises from 'node:timers/promises';

// The only file of the library that reads a clock, sets a timer or draws a random number: a simulation of the library replaces
// this one file. The store in memory stands apart and takes its clock as a parameter. Held by
// test/contract/time-and-randomness.spec.ts.

// Timers and the monotonic clock are taken when the library is loaded. Test frameworks replace the global ones, and jobs would
// stand still, or run early, whenever a test of the application stops or moves its clocks.
export const { clearImmediate, clearInterval, clearTimeout, setImmediate, setInterval, setTimeout } = timers;
export const { setTimeout: sleep } = promises;
/** Milliseconds that no change of the system's clock moves. */
export const performance: { readonly timeOrigin: number; now(): number } = {
  timeOrigin: monotonic.timeOrigin,
  now: monotonic.now.bind(monotonic),
};

/**
 * Epoch ms. The application's global clock, read at each call: a test that replaces it sees its own time in generated ids and
 * in error records. No lease and no deadline goes by it.
 */
export function wallClock(): number {
  return Date.now();
}

/** In [0, 1), for jitter. */
export function random(): number {
  return Math.random();
}

// For names that no other process may have.
export const { randomBytes, randomInt } = crypto;

/** @throws what `late` makes, when `promise` has not settled after so many ms; Infinity for never */
export async function within<T>(ms: number, promise: Promise<T>, late: () => Error): Promise<T> {
  if (ms === Infinity) return promise;
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), ms);
  });
  try {
    return await Promise.race([promise, deadline]);
  } finally {
    clearTimeout(timer);
  }
}
