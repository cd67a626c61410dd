import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach } from '@jest/globals';

type Endable = { stop(): Promise<unknown> } | { kill(): Promise<unknown> } | { close(): Promise<unknown> };

const LONGEST_MS = 20_000;

/**
 * For the top of a spec: what is handed to the function that this gives ends when the test does, however that ends; the
 * last one first. Call it after `inAWorld()`, so that applications close before the proxies that they speak through.
 */
export function endingWithEachTest(): <T extends Endable>(thing: T) => T {
  const open: Endable[] = [];
  afterEach(async () => {
    const failures: unknown[] = [];
    for (const thing of open.splice(0).reverse()) await inTime(thing).catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw failures[0];
  });
  return (thing) => {
    open.push(thing);
    return thing;
  };
}

/** One that does not end must not keep the others: processes would be left, and the run would never end. */
async function inTime(thing: Endable): Promise<void> {
  const over = new AbortController();
  const late = sleep(LONGEST_MS, undefined, { signal: over.signal }).then(
    () => Promise.reject(new Error(`${thing.constructor.name} did not end within ${LONGEST_MS} ms`)),
    () => undefined,
  );
  await Promise.race([end(thing), late]).finally(() => over.abort());
}

function end(thing: Endable): Promise<unknown> {
  if ('stop' in thing) return thing.stop();
  if ('kill' in thing) return thing.kill();
  return thing.close();
}
