import { InvalidOptionError } from '../delay-queue.errors.js';
import { middlewareOf } from '../delay-queue.options.js';
import type { ResolvedModuleOptions } from '../delay-queue.options.js';
import { shown } from '../job/duration.js';
import { JOB_RULES } from '../job/enqueue-options.js';
import { isPlainObject, readOptions } from '../job/option-rules.js';
import type { OptionNaming, OptionRules } from '../job/option-rules.js';
import { QUEUE_RULES } from '../job/queue-definition.js';
import type { QueueDefinition, ResolvedQueueDefaults } from '../job/queue-definition.js';
import { assertShares, LIMIT_RULES } from '../job/queue-limits.js';
import type { ResolvedLimits } from '../job/queue-limits.js';
import { assertBatchesFit, resolveBatch } from './batch-options.js';
import type { ResolvedBatch } from './batch-options.js';
import type { HandlerOptions } from './handler.js';
import type { DelayQueueMiddleware } from './middleware.js';

/** What a worker needs to know to run one queue. */
export interface ResolvedHandlerSettings {
  readonly concurrency: number;
  /** Jobs may be claimed before a slot is free. */
  readonly prefetch: boolean;
  readonly leaseMs: number;
  readonly attempts: number;
  readonly backoff: NonNullable<HandlerOptions['backoff']>;
  readonly timeoutMs: number | undefined;
  readonly keepCompleted: { readonly count: number; readonly ageMs: number } | undefined;
  readonly retryIf: HandlerOptions['retryIf'];
  /** Undefined: the handler takes one job at a time. */
  readonly batch: ResolvedBatch | undefined;
  /** Of the module, then of the handler. */
  readonly middleware: readonly DelayQueueMiddleware[];
  /** Undefined: this process says nothing of limits. */
  readonly limits: Readonly<ResolvedLimits> | undefined;
}

interface HandlerDraft extends ResolvedQueueDefaults {
  backoffFunction?: ResolvedHandlerSettings['backoff'];
  instance?: string;
  retryIf?: HandlerOptions['retryIf'];
  batch?: ResolvedBatch;
  middleware?: readonly DelayQueueMiddleware[];
  limits?: ResolvedLimits;
}

const HANDLER_RULES: OptionRules<HandlerOptions, HandlerDraft> = {
  ...LIMIT_RULES,
  attempts: JOB_RULES.attempts,
  timeout: JOB_RULES.timeout,
  concurrency: QUEUE_RULES.concurrency,
  prefetch: QUEUE_RULES.prefetch,
  lease: QUEUE_RULES.lease,
  keepCompleted: QUEUE_RULES.keepCompleted,
  backoff: (draft, value, field) => {
    if (typeof value === 'function') draft.backoffFunction = value as HandlerDraft['backoffFunction'];
    else JOB_RULES.backoff(draft, value, field);
  },
  retryIf: (draft, value, field) => {
    if (typeof value !== 'function') throw new InvalidOptionError(`${field}: ${shown(value)} is not a function.`);
    draft.retryIf = value as HandlerDraft['retryIf'];
  },
  batch: (draft, value, field) => {
    draft.batch = resolveBatch(value, field);
  },
  middleware: (draft, value, field) => {
    draft.middleware = middlewareOf(value, field);
  },
  repeat: (_draft, value, field) => {
    // The runner checks what is in it: reading an expression takes a library that is loaded only then.
    if (!isPlainObject(value))
      throw new InvalidOptionError(`${field}: ${shown(value)} is not an object. Give { cron, timeZone } or { every }.`);
  },
  instance: (draft, value, field) => {
    if (typeof value !== 'string' || value === '') {
      throw new InvalidOptionError(`${field}: ${shown(value)} is not the name of an instance.`);
    }
    draft.instance = value;
  },
};

export const HANDLER_OPTIONS: readonly string[] = Object.keys(HANDLER_RULES);

/**
 * The settings of one handler: `queues[name]` beats `@OnDelayed`, that the definition, that `defaults`, that the library.
 * What a single job says beats them all, but is known only when it runs.
 *
 * @param source what the handler is called, `ClassName.methodName`, or a function that says where an option of it stands
 * @throws InvalidOptionError, InvalidDelayError
 */
export function resolveHandlerSettings({
  queue,
  handlerOptions,
  definition,
  module,
  source,
}: {
  queue: string;
  handlerOptions: unknown;
  definition?: QueueDefinition;
  module: ResolvedModuleOptions;
  source: string | OptionNaming;
}): ResolvedHandlerSettings {
  const naming =
    typeof source === 'string' ? (option: string) => `@OnDelayed("${queue}", { ${option} }) on ${source}` : source;
  const own = readOptions<HandlerDraft>(handlerOptions ?? {}, HANDLER_RULES, {}, naming);
  const fixed = module.queues[queue];
  const merged = { ...module.defaults, ...definition?.defaults, ...own, ...fixed };
  const limits = { ...definition?.rules.limits, ...own.limits, ...fixed?.limits };
  const hasLimits = Object.keys(limits).length > 0;
  if (hasLimits) assertShares(limits, fixed?.shards, naming('shards'));
  if (own.batch) assertBatchesFit(own.batch.size, merged.concurrency, naming('batch'));
  return Object.freeze({
    concurrency: merged.concurrency,
    prefetch: merged.prefetch,
    leaseMs: merged.leaseMs,
    attempts: merged.attempts,
    backoff: fixed?.backoff ?? own.backoffFunction ?? merged.backoff,
    timeoutMs: merged.timeoutMs,
    keepCompleted: merged.keepCompleted || undefined,
    retryIf: own.retryIf,
    batch: own.batch,
    middleware: own.middleware ? [...module.middleware, ...own.middleware] : module.middleware,
    limits: hasLimits ? Object.freeze(limits) : undefined,
  });
}
