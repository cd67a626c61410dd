import { InvalidIdError, InvalidOptionError } from '../delay-queue.errors.js';
import { SCHEDULE_DEFAULTS } from '../defaults.js';
import { parseDuration, parseInstant, shown } from '../job/duration.js';
import type { Duration } from '../job/duration.js';
import type { EnqueueOptions } from '../job/enqueue-options.js';
import type { MissedPolicy, OverlapPolicy } from '../job/occurrence-header.js';
import { assertJobId } from '../job/job-id.js';
import { integer, isPlainObject, oneOf, readOptions } from '../job/option-rules.js';
import type { OptionNaming, OptionRules } from '../job/option-rules.js';
import { assertTimeZone } from '../job/wall-clock.js';
import type { ScheduleDefinition } from './schedule-record.js';

/** When a schedule occurs. */
export type ScheduleTimes = CronTimes | EveryTimes;

export interface CronTimes {
  /** Five parts, or six with seconds before them, such as `'0 9 * * 1-5'`. */
  cron: string;
  /** Of the IANA list, such as `'Europe/Berlin'`. Default `'UTC'`; never that of the process. */
  timeZone?: string;
}

export interface EveryTimes {
  /** Width of the grid, at least a second, in real time: `'1d'` is 24 hours, also when clocks change. */
  every: Duration;
}

/** Options that hold for each of the occurrences. */
export type OccurrenceOptions = Pick<
  EnqueueOptions,
  'attempts' | 'backoff' | 'timeout' | 'expiresIn' | 'keepExpired' | 'context' | 'group' | 'priority'
>;

/** Options of `schedule()`. */
export interface ScheduleOptions extends OccurrenceOptions {
  /** No occurrence before it. With `every` it is also a time of the grid, which otherwise begins when the schedule is made. */
  from?: Date | number;
  /** No occurrence after it. */
  until?: Date | number;
  /** Most occurrences of this id in all, also when its times or options change meanwhile. Those that are missed count. */
  limit?: number;
  /** Each occurrence is due up to so much later, but before the next one; always the same for the same occurrence. Default 0. */
  jitter?: Duration;
  /**
   * Of occurrences that could not begin in time, such as in an outage: `'once'` runs the latest of them, `'skip'` none
   * that is later than `grace`, `'all'` every one, up to `most`. Those that do not run are counted. Default `'once'`.
   */
  missed?: MissedPolicy;
  /** With `missed: 'skip'`: how late an occurrence may begin, at most until the next one. Default `'1m'`. */
  grace?: Duration;
  /** With `missed: 'all'`: the latest so many are made up for: 1 to 10,000. Default 1,000. */
  most?: number;
  /**
   * When the last occurrence still runs, or waits for a retry: `'skip'` counts the next one and does not run it,
   * `'queue'` lets it wait, and only the newest one waits, `'allow'` runs it beside. Default `'skip'`.
   */
  overlap?: OverlapPolicy;
}

type Draft = { -readonly [K in keyof ScheduleDefinition]: ScheduleDefinition[K] };

export interface ResolvedSchedule {
  readonly definition: ScheduleDefinition;
  /** For `JobPlanner`. */
  readonly jobOptions: OccurrenceOptions;
}

const LEAST_EVERY_MS = 1_000;

/** They are checked where jobs are planned. */
const OF_JOBS = ['attempts', 'backoff', 'timeout', 'expiresIn', 'keepExpired', 'context', 'group', 'priority'] as const;
const leave = () => undefined;

const TIMES_RULES: OptionRules<CronTimes & EveryTimes, Draft> = {
  cron: (draft, value, field) => {
    if (typeof value !== 'string' || value.length > 200) {
      throw new InvalidOptionError(`${field}: ${shown(value)} is not a cron expression, such as '0 9 * * 1-5'.`);
    }
    const cron = value.trim().replace(/\s+/g, ' ');
    // croner takes a date, too, and names such as @daily: they are not what is documented here.
    if (!/^\S+( \S+){4,5}$/.test(cron)) {
      throw new InvalidOptionError(
        `${field}: ${shown(value)} is not a cron expression of five or six parts, such as '0 9 * * 1-5'.`,
      );
    }
    draft.cron = cron;
  },
  timeZone: (draft, value, field) => {
    draft.timeZone = assertTimeZone(value, field);
  },
  every: (draft, value, field) => {
    draft.everyMs = parseDuration(value, field, { min: LEAST_EVERY_MS });
  },
};

const SCHEDULE_RULES: OptionRules<ScheduleOptions, Draft> = {
  attempts: leave,
  backoff: leave,
  timeout: leave,
  expiresIn: leave,
  keepExpired: leave,
  context: leave,
  group: leave,
  priority: leave,
  from: (draft, value, field) => {
    draft.from = parseInstant(value, field);
  },
  until: (draft, value, field) => {
    draft.until = parseInstant(value, field);
  },
  limit: (draft, value, field) => {
    draft.limit = integer(value, 1, 1_000_000_000, field);
  },
  jitter: (draft, value, field) => {
    draft.jitterMs = parseDuration(value, field, { max: 86_400_000 });
  },
  missed: (draft, value, field) => {
    draft.missed = oneOf(value, ['once', 'skip', 'all'], field);
  },
  grace: (draft, value, field) => {
    draft.graceMs = parseDuration(value, field, { min: 1 });
  },
  most: (draft, value, field) => {
    draft.most = integer(value, 1, 10_000, field);
  },
  overlap: (draft, value, field) => {
    draft.overlap = oneOf(value, ['skip', 'allow', 'queue'], field);
  },
};

/**
 * @param naming says in errors where an option stands
 * @throws InvalidOptionError, InvalidDelayError
 */
export function resolveSchedule(times: unknown, options: unknown, naming: OptionNaming): ResolvedSchedule {
  const draft: Draft = {
    cron: null,
    timeZone: null,
    everyMs: null,
    from: null,
    until: null,
    limit: null,
    ...SCHEDULE_DEFAULTS,
    expiresInMs: null,
    place: null,
  };
  const misplaced = isPlainObject(times) && Object.keys(times).find((name) => Object.hasOwn(SCHEDULE_RULES, name));
  if (misplaced) {
    throw new InvalidOptionError(
      `${naming(misplaced)}: it does not say when the schedule occurs. Give it with the options, behind the payload.`,
    );
  }
  readOptions(times, TIMES_RULES, draft, naming);
  readOptions(options, SCHEDULE_RULES, draft, naming);
  if ((draft.cron === null) === (draft.everyMs === null)) {
    throw new InvalidOptionError(`${naming('cron, every')}: give either { cron, timeZone } or { every }.`);
  }
  if (draft.cron === null && draft.timeZone !== null) {
    throw new InvalidOptionError(
      `${naming('every, timeZone')}: \`every\` is real time and knows no zone. Leave it out, or use \`cron\`.`,
    );
  }
  if (draft.cron !== null) draft.timeZone ??= 'UTC';
  if (draft.from !== null && draft.until !== null && draft.until < draft.from) {
    throw new InvalidOptionError(`${naming('from, until')}: \`until\` is before \`from\`.`);
  }
  const given = options as Record<string, unknown>;
  assertEffect(draft, given, naming);
  const jobOptions = Object.fromEntries(
    OF_JOBS.filter((name) => Object.hasOwn(given, name)).map((name) => [name, given[name]]),
  );
  return { definition: draft, jobOptions: jobOptions as OccurrenceOptions };
}

/** An option that changes nothing is a mistake about another one. @throws InvalidOptionError */
function assertEffect(
  { missed, everyMs, jitterMs }: Draft,
  given: Readonly<Record<string, unknown>>,
  naming: OptionNaming,
): void {
  for (const [option, policy] of [
    ['grace', 'skip'],
    ['most', 'all'],
  ] as const) {
    if (given[option] === undefined || missed === policy) continue;
    throw new InvalidOptionError(
      `${naming(option)}: it has no effect with missed: '${missed}'. Leave it out, or give missed: '${policy}'.`,
    );
  }
  // Those of a cron expression are not all as far from each other.
  if (everyMs !== null && jitterMs >= everyMs) {
    throw new InvalidOptionError(
      `${naming('jitter')}: ${shown(given['jitter'])} reaches into the next occurrence, and each is due before that. ` +
        'Give less than `every`.',
    );
  }
}

/** What stands in `@OnDelayed(queue, { repeat })`. */
export const REPEAT_OPTIONS: readonly string[] = [
  ...Object.keys(TIMES_RULES),
  'payload',
  ...Object.keys(SCHEDULE_RULES),
];

/** The schedule that `@OnDelayed(queue, { repeat })` declares. */
export const CODE_SCHEDULE = '@code';

const MOST_CHARACTERS = 200;

/** @throws InvalidIdError */
export function assertScheduleId(id: unknown, field: string): string {
  const checked = assertJobId(id, field, MOST_CHARACTERS);
  if (checked.length > MOST_CHARACTERS) {
    throw new InvalidIdError(
      `${field}: ${shown(id)} is longer than ${MOST_CHARACTERS} characters, which the ids of its jobs need.`,
    );
  }
  return checked;
}

/** Of a schedule that a caller makes: ids with `@` belong to the code. @throws InvalidIdError */
export function assertOwnScheduleId(id: unknown, field: string): string {
  if (isPlainObject(id))
    throw new InvalidIdError(`${field}: the id comes second, as text: schedule(queue, id, times, payload).`);
  const checked = assertScheduleId(id, field);
  if (checked.startsWith('@')) {
    throw new InvalidIdError(
      `${field}: ${shown(id)} begins with @, as the schedules that are declared in code do. Choose another id.`,
    );
  }
  return checked;
}
