import { types } from 'node:util';
import { InvalidOptionError } from '../delay-queue.errors.js';
import { assertBackoff } from './backoff.js';
import type { Backoff } from './backoff.js';
import { MAX_TIMER_MS, parseDuration, parseInstant, shown } from './duration.js';
import type { Duration } from './duration.js';
import { parseDurability } from './durability.js';
import type { Durability, ResolvedDurability } from './durability.js';
import { assertJobId } from './job-id.js';
import { HIGHEST_PRIORITY } from './place.js';
import { assertGroup } from './queue-limits.js';
import { insteadOf } from './foreign-options.js';
import { nearestOption } from './near-names.js';
import { boolean, isPlainObject, oneOf, integer, reading, readOptions } from './option-rules.js';
import { parseLocalTime } from './wall-clock.js';
import type { LocalTime, ZonedMoment } from './wall-clock.js';
import type { OptionNaming, OptionRule, OptionRules } from './option-rules.js';

/**
 * What happens if the id already has a job that waits, runs or is dead:
 * - `'keep'`: that job stays as it is; but a new job replaces a dead letter, see `onDead`
 * - `'replace'`: payload, options and due time become the new ones. Without `delay` or `at` the due time is now, unless
 * `dueAt: 'keep'`. After a running job there is exactly one more run
 * - `'reschedule'`: only the due time changes
 * - `'reject'`: the call throws `DuplicateJobError`
 *
 * A running job that was cancelled counts as gone, except for `'reject'`: the new job runs when that run has ended.
 */
export type OnDuplicate = 'keep' | 'replace' | 'reschedule' | 'reject';

/** What happens to a dead letter when a job is enqueued under its id. */
export type OnDead = 'replace' | 'keep';

/** Options of one `enqueue()`. An option that is `undefined` counts as left out. */
export interface EnqueueOptions {
  /** How long from now, by the server's clock, until the job may start. Not together with `at`. Default: due now. */
  delay?: Duration;
  /**
   * When the job may start: a Date or epoch ms, or the local time of a zone. A time in the past is due at once, and stays
   * the due time.
   */
  at?: Date | number | LocalTime;
  /**
   * With `onDuplicate: 'replace'`: a waiting job gets the new payload and options and keeps its due time. `delay` or
   * `at` apply if a new job is made, or if the existing one runs or is dead.
   */
  dueAt?: 'keep';
  /** Id of the job: 1 to 256 printable characters without braces. Default: a new one. */
  id?: string;
  /**
   * Takes a hash of the encoded payload as id; the order of its fields counts. Not together with `id`. Default false.
   */
  idFromPayload?: boolean;
  /** What to do about a job that has this id already. Default `'keep'`. */
  onDuplicate?: OnDuplicate;
  /**
   * With `onDuplicate: 'keep'`, what happens to a dead letter under this id: the new job replaces it (`'replace'`), or
   * no job is made until the dead letter is requeued or removed (`'keep'`). Default `'replace'`.
   */
  onDead?: OnDead;
  /**
   * With `'replace'` or `'reschedule'`: the longest time, from the first call on, by which repeated calls may put the job
   * off. The first call is due when it asks, also if that is later; then no other call puts it off. Default: no limit.
   */
  maxWait?: Duration;
  /**
   * How long no second job may be made under this id, even after this one has completed. Default: only until it has
   * ended.
   */
  uniqueFor?: Duration;
  /** Runs that may fail before the job becomes a dead letter: 1 to 1000. Default: what the queue has. */
  attempts?: number;
  /** Delay before the next attempt: `exponential()`, `fixed()` or `steps()`. Default: what the queue has. */
  backoff?: Backoff;
  /** Longest run, up to 24 days. Default: what the queue has. */
  timeout?: Duration;
  /** How late, after its due time, the job may start. Later it is removed. Default: however late. */
  expiresIn?: Duration;
  /** Until when the job may start: a Date or epoch ms. Not together with `expiresIn`. */
  expiresAt?: Date | number;
  /** Makes the expired job a dead letter instead of removing it. Default false. */
  keepExpired?: boolean;
  /**
   * At most 32 texts, together up to 4 KiB, for the handler and all that it awaits. Inside a handler they are merged
   * into the context of the running job; `null` starts from an empty one.
   */
  context?: Readonly<Record<string, string>> | null;
  /** What must be true of the job before the call resolves. Default: what the module has, else `'async'`. */
  durability?: Durability;
  /**
   * The group of the job, such as a customer: 1 to 128 characters. Groups take turns, and `groups` of the queue limits
   * each of them. Default: what the definition has, else none.
   */
  group?: string;
  /** 0 to 9, 9 is the most urgent. A due job counts as if it had been due so many minutes (`priorityStep`) earlier. Default 0. */
  priority?: number;
}

/** Checked options that job, definition and module have in common. Only those that were given are set. */
export interface ResolvedJobOptions {
  attempts?: number;
  backoff?: Backoff;
  timeoutMs?: number;
  expiresInMs?: number;
  keepExpired?: boolean;
  uniqueForMs?: number;
  onDead?: OnDead;
}

/** Checked options of one `enqueue()`. */
export interface ResolvedEnqueueOptions extends ResolvedJobOptions {
  /** Undefined means now, or the default delay of the queue. */
  due?: { readonly kind: 'delay' | 'at'; readonly ms: number };
  /** `at` as it was said, when that was a local time. */
  zoned?: ZonedMoment;
  dueAt?: 'keep';
  id?: string;
  idFromPayload: boolean;
  onDuplicate: OnDuplicate;
  maxWaitMs?: number;
  expiresAtMs?: number;
  /** Null: do not inherit the context of the running job. */
  context?: Readonly<Record<string, string>> | null;
  durability?: 'async' | ResolvedDurability;
  group?: string;
  priority?: number;
}

/** The rules of whatever may be said both of one job and of all jobs of a queue. */
export const JOB_RULES = {
  attempts: (resolved, value, field) => {
    resolved.attempts = integer(value, 1, 1000, field);
  },
  backoff: (resolved, value, field) => {
    resolved.backoff = assertBackoff(value, field);
  },
  timeout: (resolved, value, field) => {
    resolved.timeoutMs = parseDuration(value, field, { min: 1, max: MAX_TIMER_MS });
  },
  expiresIn: (resolved, value, field) => {
    resolved.expiresInMs = parseDuration(value, field, { min: 1 });
  },
  keepExpired: (resolved, value, field) => {
    resolved.keepExpired = boolean(value, field);
  },
  uniqueFor: (resolved, value, field) => {
    resolved.uniqueForMs = parseDuration(value, field);
  },
  onDead: (resolved, value, field) => {
    resolved.onDead = oneOf(value, ['replace', 'keep'], field);
  },
} as const satisfies Record<string, OptionRule<ResolvedJobOptions>>;

export const AT_TAKES_IT = 'Give it as `at`';

const ENQUEUE_RULES: OptionRules<EnqueueOptions, ResolvedEnqueueOptions> = {
  ...JOB_RULES,
  delay: (resolved, value, field) => {
    setDue(resolved, 'delay', parseDuration(value, field, { moment: AT_TAKES_IT }), field);
  },
  at: (resolved, value, field) => {
    if (isPlainObject(value)) {
      resolved.zoned = parseLocalTime(value, field);
      setDue(resolved, 'at', parseInstant(resolved.zoned.at, field), field);
    } else {
      setDue(resolved, 'at', parseInstant(value, field), field);
    }
  },
  expiresIn: (resolved, value, field) => {
    resolved.expiresInMs = parseDuration(value, field, { min: 1, moment: 'Give it as `expiresAt`' });
  },
  dueAt: (resolved, value, field) => {
    if (value !== 'keep') {
      throw new InvalidOptionError(
        `${field}: ${shown(value)} is not 'keep'; \`at\` and \`delay\` say when a job is due.`,
      );
    }
    resolved.dueAt = value;
  },
  id: (resolved, value, field) => {
    resolved.id = assertJobId(value, field);
  },
  idFromPayload: (resolved, value, field) => {
    resolved.idFromPayload = boolean(value, field);
  },
  onDuplicate: (resolved, value, field) => {
    resolved.onDuplicate = oneOf(value, ['keep', 'replace', 'reschedule', 'reject'], field);
  },
  maxWait: (resolved, value, field) => {
    resolved.maxWaitMs = parseDuration(value, field);
  },
  expiresAt: (resolved, value, field) => {
    resolved.expiresAtMs = parseInstant(value, field);
  },
  context: (resolved, value, field) => {
    resolved.context = value === null ? null : assertContext(value, field);
  },
  durability: (resolved, value, field) => {
    resolved.durability = parseDurability(value, field);
  },
  group: (resolved, value, field) => {
    resolved.group = assertGroup(value, field);
  },
  priority: (resolved, value, field) => {
    resolved.priority = integer(value, 0, HIGHEST_PRIORITY, field);
  },
};

// With every field: objects of one shape are faster to read, and nothing is inherited from an extended
// Object.prototype. Written out each time, because spreading a frozen object costs four times as much as everything
// else in this file.
const noOptions = (): ResolvedEnqueueOptions => ({
  due: undefined,
  zoned: undefined,
  dueAt: undefined,
  id: undefined,
  idFromPayload: false,
  onDuplicate: 'keep',
  maxWaitMs: undefined,
  uniqueForMs: undefined,
  onDead: undefined,
  attempts: undefined,
  backoff: undefined,
  timeoutMs: undefined,
  expiresInMs: undefined,
  expiresAtMs: undefined,
  keepExpired: undefined,
  context: undefined,
  durability: undefined,
  group: undefined,
  priority: undefined,
});

const NONE: Readonly<ResolvedEnqueueOptions> = Object.freeze(noOptions());

/**
 * @param naming says in errors where an option stands
 * @throws InvalidOptionError, InvalidDelayError, InvalidIdError: before anything is sent
 */
export function resolveEnqueueOptions(
  options: unknown,
  queue: string,
  naming?: OptionNaming,
  payload?: unknown,
): Readonly<ResolvedEnqueueOptions> {
  // A function of its own, because a call without options would pay for the default of `naming` as well.
  return options === undefined ? NONE : resolveGiven(options, queue, payload, naming);
}

function resolveGiven(
  options: unknown,
  queue: string,
  payload: unknown,
  naming: OptionNaming = (option) => `enqueue("${queue}", { ${option} })`,
): ResolvedEnqueueOptions {
  if (typeof options === 'string' || typeof options === 'number' || types.isDate(options)) {
    const wanted = types.isDate(options) ? '{ at }' : `{ delay: ${shown(options)} }`;
    throw new InvalidOptionError(
      `${naming('...')}: options must be a plain object, but are ${shown(options)}. Give ${wanted}.`,
    );
  }
  if (typeof payload === 'string' && reading(naming, () => isNoOption(options))) throw jobNames(naming('...'));
  const resolved = readOptions(options, ENQUEUE_RULES, noOptions(), naming);
  if (resolved.expiresInMs !== undefined && resolved.expiresAtMs !== undefined) {
    throw contradiction('expiresIn', 'expiresAt', naming('expiresIn, expiresAt'));
  }
  if (resolved.id !== undefined && resolved.idFromPayload) {
    throw contradiction('id', 'idFromPayload', naming('id, idFromPayload'));
  }
  return resolved;
}

/** What somebody gives who has named the job before it: something that is no option, nor nearly one, nor one of BullMQ. */
function isNoOption(options: unknown): boolean {
  if (typeof options !== 'object' || options === null) return false;
  const known = Object.keys(ENQUEUE_RULES);
  return (
    !isPlainObject(options) ||
    Object.keys(options).some(
      (key) => !known.includes(key) && nearestOption(key, known) === undefined && insteadOf(key, known) === undefined,
    )
  );
}

/** @param field of what was called */
export function jobNames(field: string): InvalidOptionError {
  return new InvalidOptionError(
    `${field}: there are no job names here; what follows the queue is the payload, and then the options. Give each kind of job a ` +
      'queue of its own, or a field of the payload that tells them apart.',
  );
}

/** Names that a payload of the application is less likely to consist of: not `id`, `group`, `priority`, `context`, `timeout`. */
const TELLING = new Set(
  'delay at dueAt idFromPayload onDuplicate onDead maxWait uniqueFor attempts backoff expiresIn expiresAt keepExpired durability'.split(
    ' ',
  ),
);

/** True of a payload whose fields are options, one and all. */
export function isLikeOptions(payload: unknown): boolean {
  if (!isPlainObject(payload)) return false;
  let tells = false;
  // Most payloads end it with their first field.
  for (const key in payload) {
    if (!Object.hasOwn(ENQUEUE_RULES, key)) return false;
    tells ||= TELLING.has(key);
  }
  return tells;
}

function setDue(resolved: ResolvedEnqueueOptions, kind: 'delay' | 'at', ms: number, field: string): void {
  if (resolved.due) throw contradiction('delay', 'at', field);
  resolved.due = { kind, ms };
}

/**
 * @returns a frozen copy
 * @throws InvalidOptionError unless it is a map of at most 32 texts with, keys included, at most 4 KiB of UTF-8
 */
export function assertContext(context: unknown, field: string): Readonly<Record<string, string>> {
  if (!isPlainObject(context)) throw new InvalidOptionError(`${field}: ${shown(context)} is not a map of texts.`);
  const entries = Object.entries(context);
  if (entries.length > 32) throw new InvalidOptionError(`${field}: has ${entries.length} entries; at most 32.`);
  let bytes = 0;
  for (const [key, text] of entries) {
    if (typeof text !== 'string') throw new InvalidOptionError(`${field}: ${shown(key)} is ${shown(text)}, not text.`);
    bytes += Buffer.byteLength(key) + Buffer.byteLength(text);
  }
  if (bytes > 4096) throw new InvalidOptionError(`${field}: has ${bytes} bytes; at most 4096, keys included.`);
  return Object.freeze({ ...context }) as Readonly<Record<string, string>>;
}

function contradiction(one: string, other: string, field: string): InvalidOptionError {
  return new InvalidOptionError(`${field}: use either \`${one}\` or \`${other}\`, not both.`);
}
