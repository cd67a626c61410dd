import { InvalidOptionError } from '../delay-queue.errors.js';
import type { ResolvedEnqueueDefaults } from '../delay-queue.options.js';
import type { ResolvedEnqueueOptions } from '../job/enqueue-options.js';
import type { OptionNaming } from '../job/option-rules.js';
import { wallClock } from '../time-and-randomness.js';

/** The clock of a machine may be wrong by so much before a call is judged by it. */
const CLOCK_ERROR_MS = 60_000;

/**
 * A delay counts from the server's time, which is not known here. So with a delay only what no clock that is nearly right could
 * excuse is refused; with `at` everything.
 *
 * @param laterMs put on top of its own delay
 * @throws InvalidOptionError for a job that expires before it is due
 */
export function refuseExpired(
  { due, dueAt, expiresAtMs = Infinity }: ResolvedEnqueueOptions,
  { delayMs = 0 }: ResolvedEnqueueDefaults,
  queue: string,
  naming: OptionNaming = (option) => `enqueue("${queue}", { ${option} })`,
  laterMs = 0,
): void {
  if (dueAt === 'keep' || (due === undefined && delayMs + laterMs === 0)) return;
  const own = due?.ms ?? delayMs;
  const [ms, excused] = due?.kind === 'at' ? [own + laterMs, 0] : [wallClock() + own + laterMs, CLOCK_ERROR_MS];
  if (expiresAtMs >= ms - excused) return;
  throw new InvalidOptionError(
    `${naming(due ? `${due.kind}, expiresAt` : 'expiresAt')}: the job would expire at ${isoOf(expiresAtMs)}, before it is due ` +
      `at ${isoOf(ms)}, and never run. Give a later \`expiresAt\`, or \`expiresIn\`, which counts from the due time.`,
  );
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}
