import { setTimeout as sleep } from 'node:timers/promises';

/** For the examples, which watch what handlers do: an application has no need of it. */
export async function until(condition: () => boolean | Promise<boolean>, withinMs = 10_000): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error('It did not happen in time.');
    await sleep(10);
  }
}
