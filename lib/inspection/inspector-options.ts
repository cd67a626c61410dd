import { InvalidOptionError } from '../delay-queue.errors.js';
import { MAX_TIMER_MS, parseDuration, parseInstant } from '../job/duration.js';
import type { Duration } from '../job/duration.js';
import type { DeadReason } from '../job/error-record.js';
import { assertStoredId } from '../job/job-id.js';
import { boolean, integer, oneOf } from '../job/option-rules.js';
import type { OptionRules } from '../job/option-rules.js';
import { assertGroup } from '../job/queue-limits.js';
import { MOST_SHARDS } from '../shards/shard-state.js';

/** Jobs that one call of a script concerns at most. */
export const CHUNK = 200;
const SHARDS = { min: 1, max: MOST_SHARDS } as const;
const REASONS = ['exhausted', 'discarded', 'leaseLost', 'undecodable', 'invalid', 'expired'] as const;

export interface ListOptions {
  /** Earliest due time; for dead letters the time of death, for completed jobs the time of completion. */
  from?: Date | number;
  /** Latest of these times. */
  to?: Date | number;
  /** Most jobs per page: 1 to 200. Default 50. A page of large jobs may have fewer. */
  limit?: number;
  /** The cursor that the previous page returned. */
  cursor?: string;
  /** Only jobs of this group; of `'due'` and `'delayed'`, without those in quarantine. */
  group?: string;
}

export interface RequeueOptions {
  /** How long from now until the jobs are due. Default: now. */
  delay?: Duration;
  /** True: the jobs have all their attempts again. False: exactly one more run, whatever they died of. Default true. */
  resetAttempts?: boolean;
  /** How many dead letters to requeue at most. Default: all. */
  limit?: number;
  /** Only dead letters that died before this time: a Date or epoch ms. */
  before?: Date | number;
  /** Only those that died of this. Default: of anything. */
  reason?: DeadReason;
  /** Spreads the due times evenly over this time, so that the jobs do not all run at once. */
  spread?: Duration;
  /** The group of all jobs that are given by their ids, as of single calls (`GroupOption`). */
  group?: string;
}

export interface RemoveDeadOptions {
  /** How many dead letters to remove at most. Default: all. */
  limit?: number;
  /** The group of all jobs that are given by their ids, as of single calls (`GroupOption`). */
  group?: string;
}

export interface ReshardOptions {
  /** The new number of shards: 1 to 256. */
  to: number;
  /** Refuses when the queue has another number. Default: whatever it has. */
  from?: number;
  /** How long running jobs may take to end. Default `'1m'`. */
  wait?: Duration;
}

export interface PurgeOptions {
  /** Which jobs. Default: waiting and dead ones. */
  states?: readonly ('waiting' | 'dead' | 'completed')[];
}

export function chosenIds(
  ids: readonly string[] | 'all',
  method: string,
  { group }: { group?: string } = {},
): readonly string[] | undefined {
  if (ids === 'all' && group !== undefined) {
    throw new InvalidOptionError(
      `${method}({ group }): is of jobs that are given by their ids. Leave it out, or give ids.`,
    );
  }
  if (ids === 'all') return undefined;
  if (!Array.isArray(ids)) throw new InvalidOptionError(`${method}(queue, ids): give an array of ids, or 'all'.`);
  return ids.map((id) => assertStoredId(id, `${method}(queue, ids)`));
}

export interface ListDraft {
  from?: number;
  to?: number;
  limit: number;
  cursor?: string;
  group?: string;
}

export const LIST_RULES: OptionRules<ListOptions, ListDraft> = {
  from: (draft, value, field) => {
    draft.from = parseInstant(value, field);
  },
  to: (draft, value, field) => {
    draft.to = parseInstant(value, field);
  },
  limit: (draft, value, field) => {
    draft.limit = integer(value, 1, CHUNK, field);
  },
  cursor: (draft, value, field) => {
    if (typeof value !== 'string') throw new InvalidOptionError(`${field}: is not what list() gave as cursor.`);
    draft.cursor = value;
  },
  group: (draft, value, field) => {
    draft.group = assertGroup(value, field);
  },
};

export const CURSOR = 'list({ cursor })';

export interface ReshardDraft {
  to?: number;
  from?: number;
  waitMs: number;
}

export const RESHARD_RULES: OptionRules<ReshardOptions, ReshardDraft> = {
  to: (draft, value, field) => {
    draft.to = integer(value, SHARDS.min, SHARDS.max, field);
  },
  from: (draft, value, field) => {
    draft.from = integer(value, SHARDS.min, SHARDS.max, field);
  },
  wait: (draft, value, field) => {
    draft.waitMs = parseDuration(value, field, { max: MAX_TIMER_MS });
  },
};

export interface RequeueDraft {
  delay: number;
  resetAttempts: boolean;
  limit: number;
  /** -1: of any age. */
  before: number;
  /** '': for any reason. */
  reason: string;
  spread: number;
  group?: string;
}

export const REQUEUE_RULES: OptionRules<RequeueOptions, RequeueDraft> = {
  delay: (draft, value, field) => {
    draft.delay = parseDuration(value, field);
  },
  resetAttempts: (draft, value, field) => {
    if (typeof value !== 'boolean') throw new InvalidOptionError(`${field}: must be true or false.`);
    draft.resetAttempts = value;
  },
  limit: (draft, value, field) => {
    draft.limit = integer(value, 1, Number.MAX_SAFE_INTEGER, field);
  },
  before: (draft, value, field) => {
    draft.before = parseInstant(value, field);
  },
  reason: (draft, value, field) => {
    draft.reason = oneOf(value, REASONS, field);
  },
  spread: (draft, value, field) => {
    draft.spread = parseDuration(value, field);
  },
  group: (draft, value, field) => {
    draft.group = assertGroup(value, field);
  },
};

export const REMOVE_DEAD_RULES: OptionRules<RemoveDeadOptions, { limit: number; group?: string }> = {
  limit: (draft, value, field) => {
    draft.limit = integer(value, 1, Number.MAX_SAFE_INTEGER, field);
  },
  group: (draft, value, field) => {
    draft.group = assertGroup(value, field);
  },
};

export const PURGE_RULES: OptionRules<PurgeOptions, { states: readonly string[] }> = {
  states: (draft, value, field) => {
    if (!Array.isArray(value))
      throw new InvalidOptionError(`${field}: must be an array of 'waiting', 'dead' and 'completed'.`);
    draft.states = value.map((state) => oneOf(state, ['waiting', 'dead', 'completed'], field));
  },
};

export const REMOVE_RULES: OptionRules<{ force?: boolean }, { force: boolean }> = {
  force: (draft, value, field) => {
    draft.force = boolean(value, field);
  },
};
