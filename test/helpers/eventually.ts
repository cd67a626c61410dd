import { setTimeout as sleep } from 'node:timers/promises';

/** Retries an assertion until it holds or the deadline has passed; then fails with its last error. */
export async function eventually<T>(check: () => T | Promise<T>, withinMs = 5_000): Promise<T> {
  const until = performance.now() + withinMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() >= until) throw error;
      await sleep(10);
    }
  }
}
