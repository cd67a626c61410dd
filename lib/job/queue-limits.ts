import { InvalidOptionError } from '../delay-queue.errors.js';
import { parseDuration } from './duration.js';
import type { Duration } from './duration.js';
import { integer, oneOf, readOptions } from './option-rules.js';
import type { OptionNaming, OptionRules } from './option-rules.js';
import { nameProblem } from './queue-name.js';

/** At most `max` starts within any window of this length, by the server's clock. */
export interface RateLimit {
  /** How many jobs start: 1 to 1,000,000. */
  max: number;
  /** Length of the window: 100 ms to 24 hours. */
  per: Duration;
}

/** Limits that each group of a queue has for itself. */
export interface GroupLimits {
  /** Jobs of one group that run at a time, over all processes: 1 to 10,000. With 1 they run one by one, in due order. */
  concurrency?: number;
  /** How many jobs of one group may start within a time. */
  rateLimit?: RateLimit;
  /**
   * Only with `concurrency: 1`. `'pass'`: while a job waits for its next attempt, later jobs of its group run. `'block'`: they wait until it
   * has succeeded or is dead, also while it snoozes. Default `'pass'`.
   */
  retries?: 'pass' | 'block';
}

/** Limits of one queue over all processes. They are stored in Redis: the last process that boots with some sets them. */
export interface QueueLimits {
  /** Jobs of this queue that run at a time in all processes together: 1 to 1,000,000. Default: no limit. */
  globalConcurrency?: number;
  /** How many jobs of this queue may start within a time, in all processes together. Default: no limit. */
  rateLimit?: RateLimit;
  /** Limits of each group; `enqueue(queue, payload, { group })` says which group a job belongs to. Default: none. */
  groups?: GroupLimits;
  /** How much older a job looks for each step of its priority: 0 to 24 hours. Default `'1m'`. */
  priorityStep?: Duration;
}

interface ResolvedRate {
  readonly max: number;
  readonly perMs: number;
}

/** Checked. Only what was given is set. */
export interface ResolvedLimits {
  concurrency?: number;
  rate?: ResolvedRate;
  groupConcurrency?: number;
  groupRate?: ResolvedRate;
  groupRetries?: 'pass' | 'block';
  stepMs?: number;
}

const MOST = 1_000_000;
const PER_MS = { min: 100, max: 86_400_000 } as const;

function rateOf(value: unknown, field: string): ResolvedRate {
  const rules: OptionRules<RateLimit, { max?: number; perMs?: number }> = {
    max: (draft, max, name) => {
      draft.max = integer(max, 1, MOST, name);
    },
    per: (draft, per, name) => {
      draft.perMs = parseDuration(per, name, PER_MS);
    },
  };
  const draft = readOptions<{ max?: number; perMs?: number }>(value, rules, {}, (option) => `${field}.${option}`);
  if (draft.max === undefined || draft.perMs === undefined) {
    throw new InvalidOptionError(`${field}: needs both \`max\` and \`per\`, such as { max: 100, per: '1m' }.`);
  }
  return Object.freeze({ max: draft.max, perMs: draft.perMs });
}

const GROUP_RULES: OptionRules<GroupLimits, ResolvedLimits> = {
  concurrency: (limits, value, field) => {
    limits.groupConcurrency = integer(value, 1, 10_000, field);
  },
  rateLimit: (limits, value, field) => {
    limits.groupRate = rateOf(value, field);
  },
  retries: (limits, value, field) => {
    limits.groupRetries = oneOf(value, ['pass', 'block'], field);
  },
};

const RULES: OptionRules<QueueLimits, ResolvedLimits> = {
  globalConcurrency: (limits, value, field) => {
    limits.concurrency = integer(value, 1, MOST, field);
  },
  rateLimit: (limits, value, field) => {
    limits.rate = rateOf(value, field);
  },
  groups: (limits, value, field) => {
    readOptions(value, GROUP_RULES, limits, (option) => `${field}.${option}`);
    if (limits.groupRetries === 'block' && limits.groupConcurrency !== 1) {
      throw new InvalidOptionError(
        `${field}.retries: 'block' is for groups with \`concurrency: 1\`, which run one job at a time.`,
      );
    }
  },
  priorityStep: (limits, value, field) => {
    limits.stepMs = parseDuration(value, field, { max: PER_MS.max });
  },
};

/** The rules of limits among other options of a queue. */
export const LIMIT_RULES = Object.fromEntries(
  Object.entries(RULES).map(([option, rule]) => [
    option,
    (resolved: { limits?: ResolvedLimits }, value: unknown, field: string) =>
      rule((resolved.limits ??= {}), value, field),
  ]),
) as OptionRules<QueueLimits, { limits?: ResolvedLimits }>;

/** @throws InvalidOptionError, InvalidDelayError */
export function resolveLimits(value: unknown, naming: OptionNaming): ResolvedLimits {
  return readOptions<ResolvedLimits>(value, RULES, {}, naming);
}

/**
 * Each shard of a queue gets an equal share of the limits of the queue (lib/lua/shared/groups.lua). One that may start nothing would
 * never run its jobs.
 *
 * @throws InvalidOptionError for a limit that is lower than the number of shards
 */
export function assertShares({ concurrency, rate }: ResolvedLimits, shards: number | undefined, field: string): void {
  const problem = shareProblem({ globalConcurrency: concurrency, rateLimit: rate }, shards ?? 1);
  if (problem !== undefined) throw new InvalidOptionError(`${field}: ${problem}`);
}

/** @returns what is wrong with these limits for so many shards, and what to do */
export function shareProblem(
  {
    globalConcurrency = Infinity,
    rateLimit,
  }: { globalConcurrency?: number | undefined; rateLimit?: { max: number } | undefined },
  shards: number,
): string | undefined {
  const max = rateLimit?.max ?? Infinity;
  if (Math.min(globalConcurrency, max) >= shards) return undefined;
  const [name, n] = globalConcurrency < shards ? ['globalConcurrency', globalConcurrency] : ['rateLimit.max', max];
  return (
    `${name} is ${n}, and ${shards} shards share it, so some of them could never run a job. ` +
    `Give at least ${shards}, or fewer shards.`
  );
}

/** As lib/lua/shared/groups.lua reads them. */
export function limitsText({
  concurrency,
  rate,
  groupConcurrency,
  groupRate,
  groupRetries,
  stepMs,
}: ResolvedLimits): string {
  const words = [
    concurrency !== undefined && `count:${concurrency}`,
    rate && `rate:${rate.max}/${rate.perMs}`,
    groupConcurrency !== undefined && `groupCount:${groupConcurrency}`,
    groupRate && `groupRate:${groupRate.max}/${groupRate.perMs}`,
    groupRetries === 'block' && 'block:1',
    stepMs !== undefined && `step:${stepMs}`,
  ];
  return words.filter(Boolean).join(' ');
}

/** @returns undefined when there is none */
export function parseLimits(text: string): QueueLimits | undefined {
  const found = new Map(
    Array.from(text.matchAll(/(\w+):(\d+)(?:\/(\d+))?/g), ([, name, a, b]) => [name!, [Number(a), Number(b)]]),
  );
  if (found.size === 0) return undefined;
  const rate = (name: string) => {
    const [max, per] = found.get(name) ?? [];
    return max === undefined ? undefined : { rateLimit: { max, per: per! } };
  };
  const count = found.get('count')?.[0];
  const groupCount = found.get('groupCount')?.[0];
  const step = found.get('step')?.[0];
  const groups = {
    ...(groupCount !== undefined && { concurrency: groupCount }),
    ...rate('groupRate'),
    ...(found.has('block') && { retries: 'block' as const }),
  };
  return {
    ...(count !== undefined && { globalConcurrency: count }),
    ...rate('rate'),
    ...(Object.keys(groups).length > 0 && { groups }),
    ...(step !== undefined && { priorityStep: step }),
  };
}

const MOST_LETTERS = 128;

/** @throws InvalidOptionError unless it is 1 to 128 printable characters without braces */
export function assertGroup(group: unknown, field: string): string {
  const problem = nameProblem(group, MOST_LETTERS);
  if (problem === undefined) return group as string;
  throw new InvalidOptionError(`${field}: ${problem}. Use 1 to ${MOST_LETTERS} printable characters without braces.`);
}
