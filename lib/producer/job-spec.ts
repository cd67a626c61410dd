import type { ResolvedEnqueueDefaults } from '../delay-queue.options.js';
import type { ResolvedEnqueueOptions } from '../job/enqueue-options.js';

const MODES = { keep: 'k', replace: 'p', reschedule: 'r', reject: 'x' } as const;

/**
 * A job as it stands in another queue, in the words of lib/lua/enqueue.lua. Never earlier, and at the due time it has.
 */
export function movedSpec(dueAt: number, maxSize: number | undefined): string {
  const at = `ma${Math.max(0, Math.ceil(dueAt))}`;
  return maxSize === undefined ? at : `${at} - - - ${maxSize}`;
}

function modeOf({ onDuplicate, onDead, dueAt }: ResolvedEnqueueOptions, defaults: ResolvedEnqueueDefaults): string {
  if (onDuplicate === 'keep' && (onDead ?? defaults.onDead) === 'keep') return 'o';
  if (onDuplicate === 'replace' && dueAt === 'keep') return 'u';
  return MODES[onDuplicate];
}

/** When and under which conditions, in the words of lib/lua/enqueue.lua. */
export function specOf(
  hasId: boolean,
  options: ResolvedEnqueueOptions,
  defaults: ResolvedEnqueueDefaults,
  laterMs: number,
): string {
  const mode = hasId ? modeOf(options, defaults) : 'n';
  const { due, maxWaitMs, expiresAtMs } = options;
  const at = due ? `${due.kind === 'at' ? 'a' : 'd'}${due.ms + laterMs}` : `d${(defaults.delayMs ?? 0) + laterMs}`;
  const expiresInMs = expiresInMsOf(options, defaults);
  const uniqueForMs = options.uniqueForMs ?? defaults.uniqueForMs;
  const limit = defaults.maxSize === undefined ? '' : ` ${defaults.maxSize}`;
  if (
    expiresInMs === undefined &&
    expiresAtMs === undefined &&
    maxWaitMs === undefined &&
    uniqueForMs === undefined &&
    limit === ''
  ) {
    return mode + at;
  }
  const expiry = expiresAtMs !== undefined ? `a${expiresAtMs}` : expiresInMs !== undefined ? `i${expiresInMs}` : '-';
  return `${mode}${at} ${expiry} ${maxWaitMs ?? '-'} ${uniqueForMs ?? '-'}${limit}`;
}

/** How long after its due time a job expires; undefined when it does not, or at a moment. */
export function expiresInMsOf(
  { expiresInMs, expiresAtMs }: ResolvedEnqueueOptions,
  defaults: ResolvedEnqueueDefaults,
): number | undefined {
  return expiresInMs ?? (expiresAtMs === undefined ? defaults.expiresInMs : undefined);
}
