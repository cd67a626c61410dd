import { InvalidQueueError } from '../delay-queue.errors.js';
import type { Backoff } from './backoff.js';
import { parseDuration, shown } from './duration.js';
import type { Duration } from './duration.js';
import { integer, JOB_RULES, readOptions } from './enqueue-options.js';
import type { OptionNaming, OptionRules, ResolvedJobOptions } from './enqueue-options.js';
import { assertQueueName } from './queue-name.js';

/** What may be said of all jobs of a queue: by `defineQueue()`, by `forRoot({ defaults })` and by `forRoot({ queues })`. */
export interface QueueDefaults {
  /** Runs that may fail before a job becomes a dead letter: 1 to 1000. Default 10. */
  attempts?: number;
  /** Delay before the next attempt. Default `exponential('1s', { max: '1h', jitter: 0.2 })`. */
  backoff?: Backoff;
  /** Longest run, up to 24 days. Default none. */
  timeout?: Duration;
  /** Jobs that one process runs at a time: 1 to 10,000. Default 10. */
  concurrency?: number;
  /** How long a claim is valid without a heartbeat: 100 ms to 24 hours, best not under a second. Default `'30s'`. */
  lease?: Duration;
  /** Delay of jobs that were enqueued with neither `delay` nor `at`. Default: due now. */
  delay?: Duration;
  /** How late, after its due time, a job may start. Default: however late. */
  expiresIn?: Duration;
  /** Makes expired jobs dead letters instead of removing them. Default false. */
  keepExpired?: boolean;
  /** How long no second job may be made under one id, also after the first was completed. Default: only until then. */
  uniqueFor?: Duration;
}

/** Checked defaults. Only those that were given are set. */
export interface ResolvedQueueDefaults extends ResolvedJobOptions {
  concurrency?: number;
  leaseMs?: number;
  delayMs?: number;
}

/** A queue with the type of its payloads and its defaults. Frozen; made by `defineQueue()`. */
export interface QueueDefinition<T = unknown> {
  readonly name: string;
  readonly defaults: Readonly<ResolvedQueueDefaults>;
  /** Marks a definition. Of a payload it knows only the type: the value is always undefined. */
  readonly [PAYLOAD]: T | undefined;
}

/** A queue, by its name or by its definition. */
export type QueueRef<T = unknown> = string | QueueDefinition<T>;

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

/** Type of the payloads of a queue: what its definition or `DelayQueues` says, otherwise `unknown`. */
export type PayloadOf<Q> =
  Q extends QueueDefinition<infer T> ? T : Q extends keyof DelayQueues ? DelayQueues[Q] : unknown;

// From the registry, so that definitions are known to each other's copies of this library.
const PAYLOAD: unique symbol = Symbol.for('nestjs-delay-queue:payload');

export const CONCURRENCY = { min: 1, max: 10_000 } as const;

/** Below the minimum, heartbeats would be most of the traffic; above the maximum, a crashed worker would be missed too late. */
export const LEASE_MS = { min: 100, max: 24 * 3_600_000 } as const;

export const QUEUE_RULES: OptionRules<QueueDefaults, ResolvedQueueDefaults> = {
  ...JOB_RULES,
  concurrency: (resolved, value, field) => {
    resolved.concurrency = integer(value, CONCURRENCY.min, CONCURRENCY.max, field);
  },
  lease: (resolved, value, field) => {
    resolved.leaseMs = parseDuration(value, field, LEASE_MS);
  },
  delay: (resolved, value, field) => {
    resolved.delayMs = parseDuration(value, field);
  },
};

/**
 * Names a queue once, with the type of its payloads and its defaults, for producers and handlers to share:
 *
 *     export const paymentCheck = defineQueue<CheckPayment>('payment.check', { attempts: 5 });
 *
 * @throws InvalidQueueError, InvalidOptionError, InvalidDelayError
 */
export function defineQueue<T = unknown>(name: string, options: QueueDefaults = {}): QueueDefinition<T> {
  const checkedName = assertQueueName(name, 'defineQueue()');
  const defaults = resolveQueueDefaults(options, (option) => `defineQueue("${checkedName}", { ${option} })`);
  return Object.freeze({ name: checkedName, defaults, [PAYLOAD]: undefined });
}

/**
 * @returns the checked name
 * @throws InvalidQueueError
 */
export function queueNameOf(queue: QueueRef, field = 'Queue'): string {
  if (isQueueDefinition(queue)) return queue.name;
  if (typeof queue === 'string') return assertQueueName(queue, field);
  throw new InvalidQueueError(`${field}: ${shown(queue)} is neither a name nor made by defineQueue().`);
}

export function isQueueDefinition(value: unknown): value is QueueDefinition {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, PAYLOAD);
}

/** @throws InvalidOptionError, InvalidDelayError */
export function resolveQueueDefaults(options: unknown, naming: OptionNaming): Readonly<ResolvedQueueDefaults> {
  return Object.freeze(readOptions(options, QUEUE_RULES, {}, naming));
}
