import { performance as monotonic } from 'node:perf_hooks';
import timers from 'node:timers';
import promises from 'node:timers/promises';

// The library's own waiting goes by these, taken when it is loaded: test frameworks replace the global ones, and jobs would
// stand still, or run early, whenever a test of the application stops or moves its clocks.
export const { clearInterval, clearTimeout, setImmediate, setInterval, setTimeout } = timers;
export const { setTimeout: sleep } = promises;
/** Milliseconds that no change of a clock moves. */
export const performance: { readonly timeOrigin: number; now(): number } = {
  timeOrigin: monotonic.timeOrigin,
  now: monotonic.now.bind(monotonic),
};

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
