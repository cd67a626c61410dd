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
