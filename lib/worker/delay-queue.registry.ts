import { isObservable } from 'rxjs';
import { madeByRoot } from '../instance/made-by-root.js';
import { InvalidHandlerError, InvalidOptionError } from '../delay-queue.errors.js';
import type { BatchJob } from '../handlers/batch-job.js';
import { assertBatchesFit } from '../handlers/batch-options.js';
import type { BatchOptions } from '../handlers/batch-options.js';
import type { HandlerOptions } from '../handlers/handler.js';
import type { HandlerOutcome } from '../handlers/handler-outcome.js';
import { lastOf } from '../handlers/last-of.js';
import type { DiscoveredHandler } from '../handlers/handler.explorer.js';
import { decisionOf } from '../handlers/outcomes.js';
import type { DelayedJob } from '../job/delayed-job.js';
import { CONCURRENCY, queueNameOf } from '../job/queue-definition.js';
import type { HandledPayloadOf, QueueRef } from '../job/queue-definition.js';
import { integer } from '../job/option-rules.js';
import type { DelayQueueRunner } from './delay-queue.runner.js';

/**
 * A handler that is a plain function: no guards, pipes, interceptors or filters run around it. It may be async, or return an
 * Observable, which is subscribed to until it completes.
 */
export type HandlerFunction<Payload> = (payload: Payload, job: DelayedJob<Payload>) => unknown;

/** The same for a queue that is registered with `batch`. */
export type BatchHandlerFunction<Payload> = (
  payloads: readonly Payload[],
  jobs: readonly BatchJob<Payload>[],
) => unknown;

const COMPLETED: HandlerOutcome = Object.freeze({ kind: 'completed' });

/** Adds and removes handlers of this process while it runs. */
export class DelayQueueRegistry {
  /** @internal */
  constructor(private readonly runner: () => DelayQueueRunner) {
    madeByRoot(runner, 'DelayQueueRegistry');
  }

  /** Queues that this process has handlers for. */
  queues(): string[] {
    return this.runner()
      .handlers.all()
      .map(({ queue }) => queue)
      .sort();
  }

  /**
   * Adds a handler. Once the application has booted, the handler gets jobs at once. Its `repeat` is declared a moment later, and whether
   * cron expression, time zone and payload can be is said by the log.
   *
   * @throws DuplicateHandlerError when the queue has a handler here, InvalidOptionError, InvalidDelayError, InvalidHandlerError
   */
  register<const Q extends QueueRef>(
    queue: Q,
    handle: HandlerFunction<HandledPayloadOf<Q>>,
    options?: Omit<HandlerOptions, 'instance' | 'batch'> & { batch?: undefined },
  ): void;
  register<const Q extends QueueRef>(
    queue: Q,
    handle: BatchHandlerFunction<HandledPayloadOf<Q>>,
    options: Omit<HandlerOptions, 'instance'> & { batch: BatchOptions },
  ): void;
  register(
    queue: QueueRef,
    handle: (payload: any, job: any) => unknown,
    options: Omit<HandlerOptions, 'instance'> = {},
  ): void {
    const name = queueNameOf(queue, 'register(queue)');
    if (typeof handle !== 'function') throw new InvalidHandlerError(`register("${name}", handler): is not a function.`);
    if ((options as HandlerOptions).instance !== undefined) {
      throw new InvalidOptionError(
        `register("${name}"), instance: a function belongs to the instance of its DelayQueueRegistry. Inject that of the other instance.`,
      );
    }
    this.runner().add(functionHandler(queue, handle, options));
  }

  /**
   * Stops claiming from a queue here. Its jobs wait for other processes, or for the next `register()`.
   *
   * @returns true once its running handlers have ended; false when there was no handler
   */
  async unregister(queue: QueueRef): Promise<boolean> {
    return this.runner().remove(queueNameOf(queue, 'unregister(queue)'));
  }

  /**
   * Changes how many jobs, or batches, of a queue run here at a time. If more already run, they go on.
   *
   * @throws InvalidOptionError for a number that is not from 1 to 10,000, or a queue without a handler here
   */
  setConcurrency(queue: QueueRef, concurrency: number): void {
    const name = queueNameOf(queue, 'setConcurrency(queue)');
    const worker = this.runner().workers.get(name);
    if (!worker) throw new InvalidOptionError(`setConcurrency("${name}"): this process does not work on that queue.`);
    const wanted = integer(concurrency, CONCURRENCY.min, CONCURRENCY.max, `setConcurrency("${name}")`);
    assertBatchesFit(worker.batchSize, wanted, `setConcurrency("${name}")`);
    worker.concurrency = wanted;
  }
}

/** A handler that is a plain function. */
export function functionHandler(
  queue: QueueRef,
  handle: (payload: any, job: any) => unknown,
  options: HandlerOptions = {},
): DiscoveredHandler {
  const name = queueNameOf(queue);
  return {
    queue: name,
    name: handle.name || `the function registered for "${name}"`,
    options,
    definition: typeof queue === 'string' ? undefined : queue,
    invoke: (job) => outcomeOf(() => handle(job.accepted, job)),
    invokeBatch: ({ accepted, jobs }) => outcomeOf(() => handle(accepted, jobs)),
  };
}

async function outcomeOf(handle: () => unknown): Promise<HandlerOutcome> {
  try {
    const result = await handle();
    // What nobody subscribes to does nothing, and the job would count as done.
    const last = isObservable(result) ? await lastOf(result) : result;
    return decisionOf(last) ?? COMPLETED;
  } catch (error) {
    return decisionOf(error) ?? { kind: 'failed', error };
  }
}
