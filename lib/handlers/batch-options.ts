import { InvalidOptionError } from '../delay-queue.errors.js';
import { parseDuration } from '../job/duration.js';
import type { Duration } from '../job/duration.js';
import { integer, readOptions } from '../job/option-rules.js';
import type { OptionRules } from '../job/option-rules.js';

/** Makes a handler receive many jobs at once. */
export interface BatchOptions {
  /** Most jobs of one batch: 1 to 200, which is what one round trip brings. */
  size: number;
  /**
   * How long the first job of a batch waits for others, at most: up to an hour. Jobs start later by up to that time.
   * Default 0: a batch has the jobs that were due together.
   */
  wait?: Duration;
}

/** Checked. */
export interface ResolvedBatch {
  readonly size: number;
  readonly waitMs: number;
}

const SIZE = { min: 1, max: 200 } as const;
const WAIT_MS = { max: 3_600_000 } as const;
/** Jobs that one process holds of a queue, as with the highest concurrency of handlers that take one job each. */
const MOST_HELD = 10_000;

const RULES: OptionRules<BatchOptions, { size?: number; waitMs: number }> = {
  size: (draft, value, field) => {
    draft.size = integer(value, SIZE.min, SIZE.max, field);
  },
  wait: (draft, value, field) => {
    draft.waitMs = parseDuration(value, field, WAIT_MS);
  },
};

/** @throws InvalidOptionError, InvalidDelayError */
export function resolveBatch(value: unknown, field: string): ResolvedBatch {
  if (value === true || typeof value === 'number') {
    throw new InvalidOptionError(
      `${field}: ${value} is not an object. Give \`batch: { size: ${value === true ? 10 : value} }\`.`,
    );
  }
  const { size, waitMs } = readOptions<{ size?: number; waitMs: number }>(
    value,
    RULES,
    { waitMs: 0 },
    (option) => `${field}: ${option}`,
  );
  if (size === undefined) throw new InvalidOptionError(`${field}: \`size\` is missing.`);
  return Object.freeze({ size, waitMs });
}

/**
 * `concurrency` counts batches, and each may hold `size` jobs.
 *
 * @throws InvalidOptionError when a process would hold more than 10,000 jobs of the queue
 */
export function assertBatchesFit(size: number, concurrency: number, field: string): void {
  if (size * concurrency <= MOST_HELD) return;
  throw new InvalidOptionError(
    `${field}: ${concurrency} batches of ${size} are ${size * concurrency} jobs at a time, and ${MOST_HELD} is the most. ` +
      'Lower concurrency or batch.size.',
  );
}
