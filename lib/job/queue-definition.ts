import { types } from 'node:util';
import { KEEP_COMPLETED_DEFAULTS } from '../defaults.js';
import { InvalidOptionError, InvalidQueueError } from '../delay-queue.errors.js';
import type { Backoff } from './backoff.js';
import { parseDuration, shown } from './duration.js';
import type { Duration } from './duration.js';
import { JOB_RULES } from './enqueue-options.js';
import { integer, readOptions } from './option-rules.js';
import type { OnDead, ResolvedJobOptions } from './enqueue-options.js';
import type { OptionNaming, OptionRules } from './option-rules.js';
import { HIGHEST_PRIORITY } from './place.js';
import { LIMIT_RULES } from './queue-limits.js';
import type { QueueLimits, ResolvedLimits } from './queue-limits.js';
import type { DelayQueueTypes, Given, Storable } from './payload-types.js';
import { assertQueueName } from './queue-name.js';
import { isStandardSchema } from './schema.js';
import type { StandardSchema } from './schema.js';

/** Options for all jobs of a queue, in `defineQueue()`, `forRoot({ defaults })` and `forRoot({ queues })`. */
export interface QueueDefaults {
  /** Runs that may fail before a job becomes a dead letter: 1 to 1000. Default 10. */
  attempts?: number;
  /** Delay before the next attempt. Default `exponential('1s', { max: '1h', jitter: 0.2 })`. */
  backoff?: Backoff;
  /** Longest run, up to 24 days. Default none. */
  timeout?: Duration;
  /** Jobs that one process runs at a time: 1 to 10,000. Default 10. */
  concurrency?: number;
  /**
   * Claims jobs before a slot is free, where handlers are shorter than a round trip to Redis: at most what the process runs in 25 ms. False:
   * no job is claimed before it starts. Default true.
   */
  prefetch?: boolean;
  /** How long a claim is valid without a heartbeat: 100 ms to 24 hours, best not under a second. Default `'30s'`. */
  lease?: Duration;
  /** Delay of jobs that were enqueued with neither `delay` nor `at`. Default: due now. */
  delay?: Duration;
  /** How late, after its due time, a job may start. Default: however late. */
  expiresIn?: Duration;
  /** Makes expired jobs dead letters instead of removing them. Default false. */
  keepExpired?: boolean;
  /**
   * How long no second job may be made under one id, even after the first has completed. Default: only until it has
   * ended.
   */
  uniqueFor?: Duration;
  /**
   * With `onDuplicate: 'keep'`, what happens to a dead letter under the id: the new job replaces it (`'replace'`), or
   * no job is made until the dead letter is requeued or removed (`'keep'`). Default `'replace'`.
   */
  onDead?: OnDead;
  /**
   * Most jobs that may wait and run, without dead letters and what schedules have stored ahead: 1 to 1,000,000,000. When
   * the queue holds that many, `enqueue()` of another job throws `QueueFullError`. Retries, snoozes, occurrences and calls
   * about stored jobs are not refused. Default: no limit.
   */
  maxSize?: number;
  /** Keeps completed jobs, so that `get()` and `list(queue, 'completed')` show them. Default false. */
  keepCompleted?: KeepCompletedOptions | false;
}

/** How many completed jobs a queue keeps, and for how long. Both limits hold. */
export interface KeepCompletedOptions {
  /** How many, the newest ones: 1 to 1,000,000. Default 1,000. */
  count?: number;
  /** For how long after they have completed. Default `'7d'`. */
  age?: Duration;
}

/** Options of `defineQueue()`. */
export interface QueueOptions<T = unknown> extends QueueDefaults, QueueLimits {
  /**
   * Any Standard Schema. It runs at enqueue, on the payload after encoding and decoding, and the input is stored.
   * Before the handler it runs again, and the handler receives its output.
   */
  schema?: StandardSchema<T, any>;
  /** Makes the id from the payload when a call gives none. */
  id?: (payload: T) => string;
  /**
   * Each further call under the id puts the job off by `wait`, up to `maxWait` after the first one, which
   * itself is due after `wait`; the newest payload counts. Needs `id`.
   */
  debounce?: { wait: Duration; maxWait?: Duration };
  /** At most one job per id within this time, also after it was completed. Needs `id`. */
  throttle?: Duration;
  /** Makes the group from the payload when a call gives none; undefined for no group. */
  group?: (payload: T) => string | undefined;
  /** Of jobs whose call gives none: 0 to 9. Default 0. */
  priority?: number;
}

/** Checked. Only what was given is set. */
export interface ResolvedQueueRules {
  schema?: StandardSchema<any, any>;
  id?: (payload: any) => string;
  debounce?: { readonly waitMs: number; readonly maxWaitMs?: number };
  throttleMs?: number;
  group?: (payload: any) => string | undefined;
  priority?: number;
  limits?: Readonly<ResolvedLimits>;
}

/** Checked defaults. Only those that were given are set. */
export interface ResolvedQueueDefaults extends ResolvedJobOptions {
  concurrency?: number;
  prefetch?: boolean;
  leaseMs?: number;
  delayMs?: number;
  maxSize?: number;
  keepCompleted?: { readonly count: number; readonly ageMs: number } | false;
}

/** A queue with the type of its payloads and its defaults. Frozen; made by `defineQueue()`. */
export interface QueueDefinition<T = unknown, Output = T> {
  readonly name: string;
  readonly defaults: Readonly<ResolvedQueueDefaults>;
  readonly rules: Readonly<ResolvedQueueRules>;
  /** Marks a definition and carries the payload types. The value is always undefined. */
  readonly [PAYLOAD]: { readonly input: T; readonly output: Output } | undefined;
}

type TypedName = Extract<keyof DelayQueues, string>;

/** A name of a queue: those in `DelayQueues`, which an editor completes, and, unless `DelayQueueTypes` closes the list, any other. */
export type QueueName = DelayQueueTypes extends { names: 'closed' } ? TypedName : TypedName | (string & {});

/** A queue, by its name or by its definition. */
export type QueueRef<T = any> = QueueName | QueueDefinition<T, any>;

/**
 * Payload types of queues that are used by plain name. To be augmented:
 *
 *     declare module 'nestjs-delay-queue' {
 *       interface DelayQueues {
 *         'payment.check': CheckPayment;
 *       }
 *     }
 */
export interface DelayQueues {}

/** Type of the payloads of a queue, from its definition or from `DelayQueues`; otherwise `unknown`. */
export type PayloadOf<Q> =
  Q extends QueueDefinition<infer T, any>
    ? T
    : Q extends keyof DelayQueues
      ? DelayQueues[Q] & Storable<DelayQueues[Q]>
      : unknown;

/** Type of the value that the handler of a queue receives: the output of its schema, otherwise `PayloadOf`. */
export type HandledPayloadOf<Q> = Q extends QueueDefinition<any, infer Output> ? Output : PayloadOf<Q>;

// From the registry, so that definitions are known to each other's copies of this library.
const PAYLOAD: unique symbol = Symbol.for('nestjs-delay-queue:payload');

export const CONCURRENCY = { min: 1, max: 10_000 } as const;

/**
 * Below the minimum, heartbeats would be most of the traffic; above the maximum, a crashed worker would be missed too
 * late.
 */
export const LEASE_MS = { min: 100, max: 24 * 3_600_000 } as const;

const KEEP_RULES: OptionRules<KeepCompletedOptions, { count: number; ageMs: number }> = {
  count: (draft, value, field) => {
    draft.count = integer(value, 1, 1_000_000, field);
  },
  age: (draft, value, field) => {
    draft.ageMs = parseDuration(value, field, { min: 1 });
  },
};

const MAX_SIZE = 1_000_000_000;

export const QUEUE_RULES: OptionRules<QueueDefaults, ResolvedQueueDefaults> = {
  ...JOB_RULES,
  concurrency: (resolved, value, field) => {
    resolved.concurrency = integer(value, CONCURRENCY.min, CONCURRENCY.max, field);
  },
  prefetch: (resolved, value, field) => {
    if (typeof value !== 'boolean')
      throw new InvalidOptionError(`${field}: ${shown(value)} is neither true nor false.`);
    resolved.prefetch = value;
  },
  lease: (resolved, value, field) => {
    resolved.leaseMs = parseDuration(value, field, LEASE_MS);
  },
  delay: (resolved, value, field) => {
    resolved.delayMs = parseDuration(value, field);
  },
  maxSize: (resolved, value, field) => {
    resolved.maxSize = integer(value, 1, MAX_SIZE, field);
  },
  keepCompleted: (resolved, value, field) => {
    if (value === true) throw new InvalidOptionError(`${field}: true does not say how many. Use {} or { count, age }.`);
    resolved.keepCompleted =
      value !== false &&
      Object.freeze(readOptions(value, KEEP_RULES, { ...KEEP_COMPLETED_DEFAULTS }, (option) => `${field}.${option}`));
  },
};

interface DebounceDraft {
  waitMs?: number;
  maxWaitMs?: number;
}

const DEFINITION_RULES: OptionRules<QueueOptions<any>, ResolvedQueueDefaults & ResolvedQueueRules> = {
  ...QUEUE_RULES,
  ...LIMIT_RULES,
  group: (resolved, value, field) => {
    if (typeof value !== 'function') throw new InvalidOptionError(`${field}: ${shown(value)} is not a function.`);
    resolved.group = value as ResolvedQueueRules['group'];
  },
  priority: (resolved, value, field) => {
    resolved.priority = integer(value, 0, HIGHEST_PRIORITY, field);
  },
  schema: (resolved, value, field) => {
    if (!isStandardSchema(value)) {
      throw new InvalidOptionError(`${field}: ${shown(value)} is not a Standard Schema (zod, valibot, arktype, ...).`);
    }
    resolved.schema = value;
  },
  id: (resolved, value, field) => {
    if (typeof value !== 'function') throw new InvalidOptionError(`${field}: ${shown(value)} is not a function.`);
    resolved.id = value as ResolvedQueueRules['id'];
  },
  debounce: (resolved, value, field) => {
    const rules: OptionRules<{ wait: Duration; maxWait?: Duration }, DebounceDraft> = {
      wait: (draft, wait, name) => {
        draft.waitMs = parseDuration(wait, name);
      },
      maxWait: (draft, maxWait, name) => {
        draft.maxWaitMs = parseDuration(maxWait, name);
      },
    };
    const { waitMs, maxWaitMs } = readOptions(value, rules, {} as DebounceDraft, (option) => `${field}.${option}`);
    if (waitMs === undefined) throw new InvalidOptionError(`${field}: \`wait\` is missing.`);
    resolved.debounce = Object.freeze({ waitMs, maxWaitMs });
  },
  throttle: (resolved, value, field) => {
    resolved.throttleMs = parseDuration(value, field, { min: 1 });
  },
};

/** Types of a schema, as Standard Schema declares them. */
type InputOf<S> = S extends StandardSchema<infer Input, any> ? Input : never;
type OutputOf<S> = S extends StandardSchema<any, infer Output> ? Output : never;

/**
 * Defines a queue once, with the type of its payloads and its defaults; producers and handlers share the definition:
 *
 *     export const paymentCheck = defineQueue<CheckPayment>('payment.check', { attempts: 5 });
 *     export const mailSend = defineQueue('mail.send', { schema: z.object({ to: z.email() }), id: ({ to }) => to });
 *
 * @throws InvalidQueueError, InvalidOptionError, InvalidDelayError
 */
export function defineQueue<S extends StandardSchema<any, any>>(
  name: string & Storable<InputOf<S>>,
  options: Given<Omit<QueueOptions<InputOf<S>>, 'schema'>> & { schema: S },
): QueueDefinition<InputOf<S>, OutputOf<S>>;
export function defineQueue<T = unknown>(
  name: string & Storable<T>,
  options?: Given<QueueOptions<T>>,
): QueueDefinition<T>;
export function defineQueue(name: string, options: QueueOptions<any> = {}): QueueDefinition<any, any> {
  const checkedName = assertQueueName(name, 'defineQueue()');
  const naming: OptionNaming = (option) => `defineQueue("${checkedName}", { ${option} })`;
  const resolved = readOptions(options, DEFINITION_RULES, {} as ResolvedQueueDefaults & ResolvedQueueRules, naming);
  const { schema, id, debounce, throttleMs, group, priority, limits, ...defaults } = resolved;
  if (debounce && throttleMs !== undefined) {
    throw new InvalidOptionError(`${naming('debounce, throttle')}: use one of them, they contradict each other.`);
  }
  if (debounce && defaults.onDead === 'keep') {
    throw new InvalidOptionError(
      `${naming('debounce, onDead')}: a debounce replaces what is there, so a dead letter cannot stay.`,
    );
  }
  if ((debounce || throttleMs !== undefined) && !id) {
    throw new InvalidOptionError(
      `${naming(debounce ? 'debounce' : 'throttle')}: needs \`id\`, to tell which jobs are the same.`,
    );
  }
  return Object.freeze({
    name: checkedName,
    defaults: Object.freeze(defaults),
    rules: Object.freeze({ schema, id, debounce, throttleMs, group, priority, limits }),
    [PAYLOAD]: undefined,
  });
}

/**
 * @returns the checked name
 * @throws InvalidQueueError
 */
export function queueNameOf(queue: QueueRef, field = 'Queue'): string {
  if (isQueueDefinition(queue)) return queue.name;
  if (typeof queue === 'string') return assertQueueName(queue, field);
  const hint = queue === undefined ? ' If it is imported, look for a circular import.' : '';
  throw new InvalidQueueError(`${field}: ${shown(queue)} is neither a name nor made by defineQueue().${hint}`);
}

export function isQueueDefinition(value: unknown): value is QueueDefinition {
  return typeof value === 'object' && value !== null && !types.isProxy(value) && Object.hasOwn(value, PAYLOAD);
}

/** @throws InvalidOptionError, InvalidDelayError */
export function resolveQueueDefaults(options: unknown, naming: OptionNaming): Readonly<ResolvedQueueDefaults> {
  return Object.freeze(readOptions(options, QUEUE_RULES, {}, naming));
}
