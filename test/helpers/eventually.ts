import { setTimeout as sleep } from 'node:timers/promises';

const LOOK_EVERY_MS = 10;
/** Deliberate defects make tests wait in vain, where nobody needs to be patient. */
const PATIENCE_MS = Number(process.env['PATIENCE_MS'] ?? 20_000);

/**
 * Retries an assertion until it holds; then fails with its last error. How long is counted in looks: on a busy machine both those and what
 * is waited for take longer.
 */
export async function eventually<T>(check: () => T | Promise<T>, withinMs = PATIENCE_MS): Promise<T> {
  for (let left = withinMs; ; left -= LOOK_EVERY_MS) {
    try {
      return await check();
    } catch (error) {
      if (left <= 0) throw error;
      await sleep(LOOK_EVERY_MS);
    }
  }
}
