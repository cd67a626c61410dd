import { InvalidOptionError } from '../delay-queue.errors.js';
import { parseDuration, shown } from './duration.js';
import type { Duration } from './duration.js';
import { integer, isPlainObject, oneOf, readOptions } from './option-rules.js';
import type { OptionRules } from './option-rules.js';

export interface ReplicaDurability {
  /** Replicas that must have the job: 1 to 100. */
  replicas: number;
  /** How long to wait for them, at most `commandTimeout`. Default 1 s, or half of a `commandTimeout` below 2 s. */
  timeout?: Duration;
}

/**
 * What must have the job before `enqueue()` resolves, in addition to the memory of the Redis server:
 * - `'async'`: nothing else; replicas and disk follow later
 * - `{ replicas, timeout }`: that many replicas (WAIT)
 * - `'fsync'`: the append-only file on the server's disk (WAITAOF; Redis 7.2 or Valkey, appendonly yes). The call waits
 * up to 3 s, or `commandTimeout` if that is shorter; with `appendfsync everysec` it takes about a second
 *
 * A call that waits settles within `commandTimeout` plus this timeout. If the time was not enough, it throws
 * `NotDurableError`.
 */
export type Durability = 'async' | 'fsync' | ReplicaDurability;

/** Checked. What is waited for, and for how long. */
export interface ResolvedDurability {
  /** 0: none, but the append-only file. */
  readonly replicas: number;
  /** Undefined: the default. */
  readonly timeoutMs: number | undefined;
}

const FSYNC: ResolvedDurability = Object.freeze({ replicas: 0, timeoutMs: undefined });
const DEFAULT_TIMEOUT_MS = 1_000;
/** With `appendfsync everysec` Redis syncs once a second, and up to two seconds later while an earlier sync is busy. */
const FSYNC_TIMEOUT_MS = 3_000;

/** @throws InvalidOptionError, InvalidDelayError */
export function parseDurability(value: unknown, field: string): 'async' | ResolvedDurability {
  if (!isPlainObject(value)) {
    if (typeof value !== 'string') {
      throw new InvalidOptionError(`${field}: ${shown(value)} is neither 'async', 'fsync' nor { replicas, timeout }.`);
    }
    return oneOf(value, ['async', 'fsync'], field) === 'async' ? 'async' : FSYNC;
  }
  const draft: { replicas: number; timeoutMs: number | undefined } = { replicas: 0, timeoutMs: undefined };
  readOptions(value, REPLICA_RULES, draft, (option) => `${field}.${option}`);
  if (draft.replicas === 0) throw new InvalidOptionError(`${field}: \`replicas\` is missing.`);
  return Object.freeze(draft);
}

const REPLICA_RULES: OptionRules<ReplicaDurability, { replicas: number; timeoutMs: number | undefined }> = {
  replicas: (draft, value, field) => {
    draft.replicas = integer(value, 1, 100, field);
  },
  timeout: (draft, value, field) => {
    draft.timeoutMs = parseDuration(value, field, { min: 1 });
  },
};

/**
 * How long a call waits: never longer than a command may take, so that a connection that has died is noticed. Rounded
 * up to two digits: only calls with the same timeout share a wait, and a timeout that is computed anew each time would
 * share none.
 *
 * @throws InvalidOptionError
 */
export function waitTimeout(
  { replicas, timeoutMs }: ResolvedDurability,
  commandTimeoutMs: number,
  field: string,
): number {
  if (replicas === 0) return Math.min(FSYNC_TIMEOUT_MS, commandTimeoutMs);
  if (timeoutMs === undefined) return Math.min(DEFAULT_TIMEOUT_MS, Math.ceil(commandTimeoutMs / 2));
  if (timeoutMs <= commandTimeoutMs) {
    const step = 10 ** Math.max(0, Math.floor(Math.log10(timeoutMs)) - 1);
    return Math.min(commandTimeoutMs, Math.ceil(timeoutMs / step) * step);
  }
  throw new InvalidOptionError(
    `${field}.timeout: ${timeoutMs} ms is longer than commandTimeout (${commandTimeoutMs} ms). Raise that or wait less.`,
  );
}
