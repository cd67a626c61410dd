import { InvalidOptionError } from '../delay-queue.errors.js';
import { parseDuration, parseInstant } from '../job/duration.js';
import type { Duration } from '../job/duration.js';
import { AT_TAKES_IT } from '../job/enqueue-options.js';
import { assertStoredId } from '../job/job-id.js';
import { boolean, integer, readOptions } from '../job/option-rules.js';
import { assertGroup } from '../job/queue-limits.js';
import type { OptionNaming, OptionRule, OptionRules } from '../job/option-rules.js';

/** Jobs that one call of a bulk act concerns at most. */
export const MOST_JOBS = 1_000;

/**
 * Which jobs: 1,000 ids at most, or all that are due from `from` on and before `to`; of these two one may be left out.
 * `group` is the group of all jobs that `ids` name, as of single calls (`GroupOption`).
 */
export type JobChoice = { ids: readonly string[]; group?: string } | { from?: Date | number; to?: Date | number };

export interface BulkActOptions {
  /** Most jobs of a range in one call: 1 to 1,000. Default 1,000. */
  limit?: number;
  /** Where the call before has ended. Everything else must be the same as then. */
  cursor?: string;
  /** True: nothing is changed; the results say what would be. */
  dryRun?: boolean;
}

export interface BulkCancelOptions extends BulkActOptions {
  /** Running jobs as well, as `cancel(queue, id, { running: true })` does. */
  running?: boolean;
}

/** The new due time: in all cases the same for all, unless `spread` is given, or later by as much as `by` says. */
export type NewTimes = ({ delay: Duration } | { at: Date | number } | { by: Duration }) & {
  /**
   * Spreads the jobs evenly over this time, which begins at the new due time. Jobs of a range keep their order, and where
   * the new times and the range overlap none becomes due sooner than it was.
   */
  spread?: Duration;
};

export type Choice =
  | { readonly ids: readonly string[]; readonly group: string | undefined }
  | { readonly from: number | undefined; readonly to: number | undefined };

export interface ActDraft {
  limit: number;
  cursor: string | undefined;
  dryRun: boolean;
  running: boolean;
}

/** What `reschedule` asks for, checked. */
export interface TimesDraft {
  delay?: number;
  at?: number;
  by?: number;
  spread: number;
}

const ACT_RULES: OptionRules<BulkActOptions, ActDraft> = {
  limit: (draft, value, field) => {
    draft.limit = integer(value, 1, MOST_JOBS, field);
  },
  cursor: (draft, value, field) => {
    if (typeof value !== 'string')
      throw new InvalidOptionError(`${field}: is not what the call before gave as cursor.`);
    draft.cursor = value;
  },
  dryRun: (draft, value, field) => {
    draft.dryRun = boolean(value, field);
  },
};

const CANCEL_RULES: OptionRules<BulkCancelOptions, ActDraft> = {
  ...ACT_RULES,
  running: (draft, value, field) => {
    draft.running = boolean(value, field);
  },
};

const CHOICE_RULES: OptionRules<
  { ids: unknown; group: unknown; from: unknown; to: unknown },
  Record<string, unknown>
> = {
  group: (draft, value, field) => {
    draft['group'] = assertGroup(value, field);
  },
  ids: (draft, value, field) => {
    if (!Array.isArray(value)) throw new InvalidOptionError(`${field}: must be an array of ids.`);
    if (value.length > MOST_JOBS) {
      throw new InvalidOptionError(
        `${field}: ${value.length} ids are more than ${MOST_JOBS}. Give them in several calls.`,
      );
    }
    draft['ids'] = [...new Set(value.map((id) => assertStoredId(id, field)))];
  },
  from: (draft, value, field) => {
    draft['from'] = parseInstant(value, field);
  },
  to: (draft, value, field) => {
    draft['to'] = parseInstant(value, field);
  },
};

const TIMES_RULES: OptionRules<{ delay: unknown; at: unknown; by: unknown; spread: unknown }, TimesDraft> = {
  delay: (draft, value, field) => {
    draft.delay = parseDuration(value, field, { moment: AT_TAKES_IT });
  },
  at: (draft, value, field) => {
    draft.at = parseInstant(value, field);
  },
  by: (draft, value, field) => {
    draft.by = parseDuration(value, field, { min: 1 });
  },
  spread: (draft, value, field) => {
    draft.spread = parseDuration(value, field);
  },
};

/** @throws InvalidOptionError, InvalidDelayError, InvalidIdError */
export function readChoice(choice: unknown, naming: OptionNaming): Choice {
  const { ids, group, from, to } = readOptions(choice, CHOICE_RULES, {}, naming) as {
    ids?: readonly string[];
    group?: string;
    from?: number;
    to?: number;
  };
  const isRange = from !== undefined || to !== undefined;
  // A choice that says nothing would be all jobs, by a slip.
  if ((ids !== undefined) === isRange) {
    throw new InvalidOptionError(
      `${naming('...')}: give either { ids }, or { from, to } of which one may be left out.`,
    );
  }
  if (ids) return { ids, group };
  if (group !== undefined)
    throw new InvalidOptionError(`${naming('group')}: is of { ids }; a range has the jobs of all groups.`);
  if (from !== undefined && to !== undefined && to <= from) {
    throw new InvalidOptionError(`${naming('to')}: is not behind \`from\`.`);
  }
  return { from, to };
}

export function readActOptions(options: unknown, choice: Choice, naming: OptionNaming, cancels = false): ActDraft {
  const draft: ActDraft = { limit: MOST_JOBS, cursor: undefined, dryRun: false, running: false };
  const rules: Readonly<Record<string, OptionRule<ActDraft>>> = cancels ? CANCEL_RULES : ACT_RULES;
  readOptions(options, rules, draft, naming);
  if ('ids' in choice && (options as BulkActOptions).limit !== undefined) {
    throw new InvalidOptionError(`${naming('limit')}: is of a range; give fewer ids instead.`);
  }
  return draft;
}

/** @throws InvalidOptionError, InvalidDelayError */
export function readTimes(to: unknown, naming: OptionNaming): TimesDraft {
  const times = readOptions(to, TIMES_RULES, { spread: 0 } as TimesDraft, naming);
  const given = [times.delay, times.at, times.by].filter((value) => value !== undefined);
  if (given.length !== 1) throw new InvalidOptionError(`${naming('...')}: give one of { delay }, { at } and { by }.`);
  if (times.by !== undefined && times.spread > 0) {
    throw new InvalidOptionError(`${naming('spread')}: begins at a due time; give { delay } or { at } with it.`);
  }
  return times;
}
