import { types } from 'node:util';
import { DEFAULTS, FLEET_EVENTS_DEFAULTS } from './defaults.js';
import { InvalidOptionError } from './delay-queue.errors.js';
import type { ContextProvider } from './job/current-job.js';
import { parseDurability, waitTimeout } from './job/durability.js';
import type { Durability, ResolvedDurability } from './job/durability.js';
import { MAX_TIMER_MS, parseDuration, shown } from './job/duration.js';
import type { Duration } from './job/duration.js';
import { boolean, integer, isPlainObject, oneOf, readOptions } from './job/option-rules.js';
import type { OptionNaming, OptionRules } from './job/option-rules.js';
import { QUEUE_RULES, queueNameOf, resolveQueueDefaults } from './job/queue-definition.js';
import type { QueueDefaults, QueueDefinition, QueueRef, ResolvedQueueDefaults } from './job/queue-definition.js';
import type { DelayQueueMiddleware } from './handlers/middleware.js';
import { checkCodecs } from './job/payload-codec.js';
import type { CodecOption } from './job/payload-codec.js';
import { assertShares, LIMIT_RULES } from './job/queue-limits.js';
import type { QueueLimits, ResolvedLimits } from './job/queue-limits.js';
import { assertQueueName, loggedNameProblem } from './job/queue-name.js';
import { checkConnection, unsetHost } from './redis/connection-option.js';
import type { ConnectionOption } from './redis/connection-option.js';
import { MOST_SHARDS } from './shards/shard-state.js';

export interface DeadLetterOptions {
  /** How many dead letters a queue keeps; the oldest are removed first. Default 10,000. */
  max?: number;
  /** How long a queue keeps dead letters. Default `'90d'`. */
  maxAge?: Duration;
}

/** Options of a single queue. */
export interface QueueSettings extends QueueDefaults, QueueLimits {
  /**
   * Parts that the queue is split into, each in a Redis Cluster slot of its own: 1 to 256. Every process that uses the
   * queue must give the same number; `DelayQueueInspector.reshard()` changes it. Default 1.
   */
  shards?: number;
  /**
   * Tells other processes how jobs end: each process that runs jobs of the queue adds an entry per step to a stream in Redis.
   * Default: not.
   */
  events?: FleetEventsOptions;
}

export interface FleetEventsOptions {
  /** About how many entries the stream keeps, the newest ones. Default 10,000. */
  keep?: number;
}

/** Options of `forRoot()`. An option that is `undefined` counts as left out. */
export interface DelayQueueModuleOptions {
  /**
   * Where Redis is: a URL, ioredis options, `{ sentinels, name }`, `{ cluster: [...] }`, an ioredis instance, which is
   * duplicated, or `memory://`. Default `redis://127.0.0.1:6379`.
   */
  connection?: ConnectionOption;
  /** The start of every key: 1 to 64 printable characters without braces. Default `'dq'`. */
  prefix?: string;
  /** Options for every queue that does not set its own. */
  defaults?: QueueDefaults;
  /** Options for single queues. They override handlers and definitions, so that operators have the last word. */
  queues?: Readonly<Record<string, QueueSettings>>;
  /** False: this process only enqueues. A list: it runs the handlers of these queues only. Default true. */
  consume?: boolean | readonly QueueRef[];
  /** How long shutdown waits for running handlers before it aborts them. Default `'10s'`. */
  drainTimeout?: Duration;
  /** How long boot waits for Redis. Default `'10s'`. */
  connectTimeout?: Duration;
  /** How long a command may take before its connection counts as dead. Default `'5s'`. */
  commandTimeout?: Duration;
  /**
   * `'eager'`: boot fails without Redis. `'lazy'`: boot goes on, and health is down until Redis is there. Default
   * `'eager'`.
   */
  connect?: 'eager' | 'lazy';
  /** What happens at boot if the server is unsafe (evicts keys, is too old). Default `'strict'`: boot fails. */
  startupChecks?: 'strict' | 'warn' | 'off';
  /** What must have the job before `enqueue()` resolves; also per call. Default `'async'`. */
  durability?: Durability;
  /**
   * How payloads are stored. In a list the first codec writes and all of them read, so that jobs outlive a change; JSON
   * is always read. A job with an unknown codec is left to other processes. Default `'json'`.
   */
  codec?: CodecOption | readonly CodecOption[];
  /** Encoded payloads with more bytes are compressed (zlib), if that makes them smaller. Default: none are. */
  compressAbove?: number;
  /** Most bytes of one encoded payload, before compression. Default 262,144. */
  maxPayloadBytes?: number;
  /** How many dead letters a queue keeps, and for how long. */
  deadLetters?: DeadLetterOptions;
  /** Which global guards, pipes, interceptors and filters run around handlers. Default `'pipes'`. */
  globalEnhancers?: 'all' | 'pipes' | 'none';
  /** Runs around all handlers of this instance, the first one outermost. Default none. */
  middleware?: readonly DelayQueueMiddleware[];
  /** Carries the application's own async context from enqueue to handler. Default: none. */
  contextProvider?: ContextProvider;
  /** Refuses queue names that have no handler here, no definition, and no entry in `queues`. Default false. */
  strictQueues?: boolean;
  /** Warns after boot when `enableShutdownHooks()` was not called. Default true. */
  shutdownHooksWarning?: boolean;
}

export interface ResolvedQueueSettings extends ResolvedQueueDefaults {
  shards?: number;
  events?: { readonly keep: number };
  limits?: Readonly<ResolvedLimits>;
}

/** The defaults of all queues. */
type CompleteQueueDefaults = ResolvedQueueDefaults &
  Required<Pick<ResolvedQueueDefaults, 'attempts' | 'backoff' | 'concurrency' | 'prefetch' | 'leaseMs'>>;

/** Checked, complete and frozen; only `connection` stays as it was given. */
export interface ResolvedModuleOptions {
  /** Of the instance; `'default'` when it has none. */
  readonly name: string;
  readonly connection: ConnectionOption;
  /** Which part of `connection` was given without a value, so that the default is used. */
  readonly unsetHost?: string | undefined;
  readonly prefix: string;
  readonly defaults: Readonly<CompleteQueueDefaults>;
  /**
   * `attempts` of `defaults`, only if the application set it. The library's own default does not count here, because a
   * handler in another process may have another number.
   */
  readonly statedAttempts?: number | undefined;
  readonly queues: Readonly<Partial<Record<string, Readonly<ResolvedQueueSettings>>>>;
  readonly consume: boolean | readonly string[];
  readonly drainTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly commandTimeoutMs: number;
  readonly connect: 'eager' | 'lazy';
  readonly startupChecks: 'strict' | 'warn' | 'off';
  readonly durability: 'async' | ResolvedDurability;
  readonly codec: readonly CodecOption[];
  readonly compressAbove: number | undefined;
  readonly maxPayloadBytes: number;
  readonly deadLetters: { readonly max: number; readonly maxAgeMs: number };
  readonly globalEnhancers: 'all' | 'pipes' | 'none';
  readonly middleware: readonly DelayQueueMiddleware[];
  readonly contextProvider: ContextProvider | undefined;
  readonly strictQueues: boolean;
  readonly shutdownHooksWarning: boolean;
}

/** Redis holds at most 512 MiB in one value; half of it leaves room for the rest of the job. */
const MAX_PAYLOAD_BYTES = 256 * 1024 * 1024;

/**
 * @param name of the instance, `'default'` for the unnamed one
 * @throws InvalidOptionError, InvalidDelayError, InvalidQueueError naming where the bad value stands
 */
export function resolveModuleOptions(options: unknown, name: string): ResolvedModuleOptions {
  const at: OptionNaming = (option) =>
    name === 'default' ? `forRoot({ ${option} })` : `forRoot({ name: ${shown(name)}, ${option} })`;
  // A proxy may throw at each look. What reads the options refuses such a one.
  const isSafe = !types.isProxy(options) && isPlainObject(options);
  const unset: ResolvedModuleOptions = {
    name,
    ...DEFAULTS,
    ...(isSafe && Object.hasOwn(options, 'connection') && { unsetHost: 'connection' }),
  };
  const early = isSafe ? ['name', 'isGlobal'].find((key) => Object.hasOwn(options, key)) : undefined;
  if (early !== undefined) {
    throw new InvalidOptionError(
      `${at('...')}: \`${early}\` must be known before the factory runs. Give it beside the factory: ` +
        `forRootAsync({ ${early}, useFactory }).`,
    );
  }
  const resolved = readOptions(options ?? {}, moduleRules(at), unset, at);
  const { durability, commandTimeoutMs } = resolved;
  if (durability !== 'async') waitTimeout(durability, commandTimeoutMs, at('durability'));
  return Object.freeze(resolved);
}

type Draft = { -readonly [K in keyof ResolvedModuleOptions]: ResolvedModuleOptions[K] };

const TIMEOUT_RULES: OptionRules<
  Pick<DelayQueueModuleOptions, 'drainTimeout' | 'connectTimeout' | 'commandTimeout'>,
  Draft
> = {
  drainTimeout: (draft, value, field) => {
    draft.drainTimeoutMs = parseDuration(value, field, { max: MAX_TIMER_MS });
  },
  connectTimeout: (draft, value, field) => {
    draft.connectTimeoutMs = parseDuration(value, field, { min: 1, max: MAX_TIMER_MS });
  },
  commandTimeout: (draft, value, field) => {
    draft.commandTimeoutMs = parseDuration(value, field, { min: 1, max: MAX_TIMER_MS });
  },
};

const PAYLOAD_RULES: OptionRules<
  Pick<DelayQueueModuleOptions, 'codec' | 'compressAbove' | 'maxPayloadBytes'>,
  Draft
> = {
  codec: (draft, value, field) => {
    draft.codec = checkCodecs(value, field);
  },
  compressAbove: (draft, value, field) => {
    draft.compressAbove = integer(value, 1, MAX_PAYLOAD_BYTES, field);
  },
  maxPayloadBytes: (draft, value, field) => {
    draft.maxPayloadBytes = integer(value, 1, MAX_PAYLOAD_BYTES, field);
  },
};

/** In the order in which the message about an unknown option lists them. */
function moduleRules(at: OptionNaming): OptionRules<DelayQueueModuleOptions, Draft> {
  return {
    connection: (draft, value, field) => {
      draft.connection = checkConnection(value, field);
      draft.unsetHost = unsetHost(draft.connection);
    },
    prefix: (draft, value, field) => {
      draft.prefix = checkPrefix(value, field);
    },
    defaults: (draft, value) => {
      const given = resolveQueueDefaults(value, (option) => at(`defaults: { ${option} }`));
      draft.defaults = Object.freeze({ ...DEFAULTS.defaults, ...given });
      draft.statedAttempts = given.attempts;
    },
    queues: (draft, value, field) => {
      draft.queues = resolveQueues(value, field, at);
    },
    consume: (draft, value, field) => {
      draft.consume = Array.isArray(value)
        ? Object.freeze([...new Set(value.map((queue: QueueRef) => queueNameOf(queue, field)))])
        : consumesAny(value, field);
    },
    ...TIMEOUT_RULES,
    connect: (draft, value, field) => {
      draft.connect = oneOf(value, ['eager', 'lazy'], field);
    },
    startupChecks: (draft, value, field) => {
      draft.startupChecks = oneOf(value, ['strict', 'warn', 'off'], field);
    },
    durability: (draft, value, field) => {
      draft.durability = parseDurability(value, field);
    },
    ...PAYLOAD_RULES,
    deadLetters: (draft, value) => {
      draft.deadLetters = resolveDeadLetters(value, (option) => at(`deadLetters: { ${option} }`));
    },
    globalEnhancers: (draft, value, field) => {
      draft.globalEnhancers = oneOf(value, ['all', 'pipes', 'none'], field);
    },
    middleware: (draft, value, field) => {
      draft.middleware = middlewareOf(value, field);
    },
    contextProvider: (draft, value, field) => {
      const { capture, run } = (value ?? {}) as Partial<ContextProvider>;
      if (typeof capture !== 'function' || typeof run !== 'function') {
        throw new InvalidOptionError(`${field}: must be an object with the methods capture() and run(context, next).`);
      }
      draft.contextProvider = value as ContextProvider;
    },
    strictQueues: (draft, value, field) => {
      draft.strictQueues = boolean(value, field);
    },
    shutdownHooksWarning: (draft, value, field) => {
      draft.shutdownHooksWarning = boolean(value, field);
    },
  };
}

function consumesAny(value: unknown, field: string): boolean {
  if (typeof value === 'boolean') return value;
  throw new InvalidOptionError(
    `${field}: ${shown(value)} is neither true, false, nor a list of queues such as ['mail.send'].`,
  );
}

/** Defaults that a producer adds to a job. `attempts`, `backoff` and `timeout` are the worker's. */
export type ResolvedEnqueueDefaults = Readonly<
  Pick<ResolvedQueueDefaults, 'delayMs' | 'expiresInMs' | 'keepExpired' | 'uniqueForMs' | 'onDead' | 'maxSize'> & {
    /** This process says that the queue limits its groups. */
    limitsGroups?: true | undefined;
  }
>;

/** The defaults for jobs of one queue: `queues[name]` beats the definition, and the definition beats `defaults`. */
export function resolveEnqueueDefaults({
  queue,
  definition,
  module,
}: {
  queue: string;
  definition?: QueueDefinition;
  module: ResolvedModuleOptions;
}): ResolvedEnqueueDefaults {
  const { delayMs, expiresInMs, keepExpired, uniqueForMs, onDead, maxSize }: ResolvedQueueDefaults = {
    ...module.defaults,
    ...definition?.defaults,
    ...module.queues[queue],
  };
  const { groupConcurrency, groupRate } = { ...definition?.rules.limits, ...module.queues[queue]?.limits };
  const limitsGroups = groupConcurrency !== undefined || groupRate !== undefined ? true : undefined;
  return Object.freeze({ delayMs, expiresInMs, keepExpired, uniqueForMs, onDead, maxSize, limitsGroups });
}

/** @throws InvalidOptionError */
export function middlewareOf(value: unknown, field: string): readonly DelayQueueMiddleware[] {
  if (Array.isArray(value) && value.every((entry) => typeof entry === 'function')) {
    const ofClass = value.find((entry) => /^class\b/.test(Function.prototype.toString.call(entry)));
    if (ofClass) {
      throw new InvalidOptionError(
        `${field}: ${shown(ofClass.name)} is a class. Give a function (job, next) => ..., as a method of an instance.`,
      );
    }
    return Object.freeze([...value]);
  }
  throw new InvalidOptionError(`${field}: must be an array of functions (job, next) => ...`);
}

const SHARDS = { min: 1, max: MOST_SHARDS } as const;

const SETTINGS_RULES: OptionRules<QueueSettings, ResolvedQueueSettings> = {
  ...QUEUE_RULES,
  ...LIMIT_RULES,
  shards: (resolved, value, field) => {
    resolved.shards = integer(value, SHARDS.min, SHARDS.max, field);
  },
  events: (resolved, value, field) => {
    const rules: OptionRules<FleetEventsOptions, { keep: number }> = {
      keep: (draft, keep, name) => {
        draft.keep = integer(keep, 1, 10_000_000, name);
      },
    };
    resolved.events = readOptions(value, rules, { ...FLEET_EVENTS_DEFAULTS }, (option) => `${field}: { ${option} }`);
  },
};

function resolveQueues(value: unknown, field: string, at: OptionNaming): ResolvedModuleOptions['queues'] {
  if (!isPlainObject(value)) throw new InvalidOptionError(`${field}: ${shown(value)} is not a map of queue names.`);
  // Without a prototype: a queue may be called "constructor".
  const queues: Record<string, Readonly<ResolvedQueueSettings>> = Object.create(null);
  for (const [name, options] of Object.entries(value)) {
    assertQueueName(name, field);
    const naming: OptionNaming = (option) => at(`queues: { ${shown(name)}: { ${option} } }`);
    const settings = readOptions(options, SETTINGS_RULES, {} as ResolvedQueueSettings, naming);
    if (settings.limits) assertShares(settings.limits, settings.shards, naming('shards'));
    queues[name] = Object.freeze(settings);
  }
  for (const name of Object.keys(queues)) {
    const [, owner, index] = /^(.+):(\d+)$/.exec(name) ?? [];
    const shards = (owner !== undefined && queues[owner]?.shards) || 1;
    if (shards > 1 && Number(index) < shards && index === String(Number(index))) {
      throw new InvalidOptionError(
        `${field}: ${shown(name)} cannot be a queue next to ${shown(owner)}, which keeps one of its ${shards} shards there.`,
      );
    }
  }
  return Object.freeze(queues);
}

function resolveDeadLetters(value: unknown, naming: OptionNaming): ResolvedModuleOptions['deadLetters'] {
  const rules: OptionRules<DeadLetterOptions, { max: number; maxAgeMs: number }> = {
    max: (draft, max, field) => {
      draft.max = integer(max, 1, 10_000_000, field);
    },
    maxAge: (draft, maxAge, field) => {
      draft.maxAgeMs = parseDuration(maxAge, field, { min: 1 });
    },
  };
  return Object.freeze(readOptions(value, rules, { ...DEFAULTS.deadLetters }, naming));
}

function checkPrefix(value: unknown, field: string): string {
  const problem = loggedNameProblem(value, 64);
  if (problem === undefined) return value as string;
  throw new InvalidOptionError(`${field}: ${problem}. Use 1 to 64 printable characters without braces.`);
}
