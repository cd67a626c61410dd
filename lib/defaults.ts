import { exponential } from './job/backoff.js';

// Every default of the library. Durations are in ms; the checked options have the same field names.

/** Options of `forRoot()`. `defaults` holds for every queue that does not set its own. */
export const DEFAULTS = Object.freeze({
  connection: 'redis://127.0.0.1:6379',
  prefix: 'dq',
  defaults: Object.freeze({
    attempts: 10,
    backoff: exponential('1s', { max: '1h', jitter: 0.2 }),
    concurrency: 10,
    prefetch: true,
    leaseMs: 30_000,
  }),
  queues: Object.freeze(Object.create(null)),
  consume: true,
  drainTimeoutMs: 10_000,
  connectTimeoutMs: 10_000,
  commandTimeoutMs: 5_000,
  connect: 'eager',
  startupChecks: 'strict',
  durability: 'async',
  codec: Object.freeze(['json'] as const),
  compressAbove: undefined,
  maxPayloadBytes: 262_144,
  deadLetters: Object.freeze({ max: 10_000, maxAgeMs: 90 * 86_400_000 }),
  globalEnhancers: 'pipes',
  middleware: Object.freeze([]),
  contextProvider: undefined,
  strictQueues: false,
  shutdownHooksWarning: true,
});

/** `keepCompleted: {}` of a queue or a handler. */
export const KEEP_COMPLETED_DEFAULTS = Object.freeze({ count: 1_000, ageMs: 7 * 86_400_000 });

/** Options of `schedule()`. */
export const SCHEDULE_DEFAULTS = Object.freeze({
  jitterMs: 0,
  missed: 'once',
  graceMs: 60_000,
  most: 1_000,
  overlap: 'skip',
} as const);

/** `events: {}` of a queue. */
export const FLEET_EVENTS_DEFAULTS = Object.freeze({ keep: 10_000 });

/** Thresholds of health; without a default a threshold is not checked. */
export const HEALTH_DEFAULTS = Object.freeze({ lagDegradedMs: 30_000, lastClaimDownMs: 60_000, memoryDegraded: 0.8 });

/** `@RelayDelayed`: how long a confirmation is waited for. There is always a limit, because some clients never answer. */
export const RELAY_DEFAULTS = Object.freeze({ timeoutMs: 10_000 });

/** One page of `list()` of the inspector. */
export const LIST_DEFAULTS = Object.freeze({ limit: 50 });

/** `requeueDead()` of the inspector: every dead letter, due at once, with all its attempts. */
export const REQUEUE_DEFAULTS = Object.freeze({
  delay: 0,
  resetAttempts: true,
  limit: Infinity,
  before: -1,
  reason: '',
  spread: 0,
});
