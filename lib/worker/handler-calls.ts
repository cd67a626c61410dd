import { InvalidOptionError, SchemaError } from '../delay-queue.errors.js';
import type { JobTracer } from '../delay-queue.tracer.js';
import type { Handler } from '../handlers/handler.js';
import type { HandlerOutcome, SnoozedPayload } from '../handlers/handler-outcome.js';
import { withMiddleware } from '../handlers/middleware.js';
import type { DelayQueueMiddleware, MiddlewareTrouble } from '../handlers/middleware.js';
import { runAsCurrent } from '../job/current-job.js';
import type { ContextProvider } from '../job/current-job.js';
import type { DelayedJob } from '../job/delayed-job.js';
import type { Payloads } from '../job/payloads.js';
import { applySchema } from '../job/schema.js';
import type { StandardSchema } from '../job/schema.js';
import type { Joining } from './batches.js';
import type { FleetEvents } from './fleet-events.js';
import type { Probe } from './probe.js';
import type { Run } from './run.js';
import type { RunLog } from './run-log.js';

/** What stands around each call of a handler. */
export interface Surroundings {
  readonly instance: string;
  readonly tracer: JobTracer | undefined;
  /** The trace that the failed attempt before this one has left in its error record. */
  readonly lastTrace: (id: string) => Promise<string | undefined>;
  readonly payloads: Payloads;
  readonly contextProvider: ContextProvider | undefined;
  readonly schema: StandardSchema | undefined;
  readonly probe: Probe;
  /** Where processes hear of runs that are not theirs. */
  readonly fleet: FleetEvents | undefined;
}

/** Calls a handler through all that stands around it, from the outside in: tracer, schema, context of the application, middleware. */
export class HandlerCalls {
  readonly #handle: Handler['invoke'];
  readonly #trouble: MiddlewareTrouble = {
    withoutNext: (what) =>
      this.log.warnOnce(what, 'ended without calling next(): its jobs complete without their handler'),
    tooLate: (what, error) => this.log.tellOnce(what, 'did something after its job had ended', error),
  };

  constructor(
    private readonly handler: Handler,
    private readonly middleware: readonly DelayQueueMiddleware[],
    private readonly around: Surroundings,
    private readonly log: RunLog,
    /** Puts a job into a batch. */
    private readonly join: (joining: Joining) => Promise<HandlerOutcome>,
  ) {
    this.#handle = withMiddleware((job) => handler.invoke(job), middleware, this.#trouble);
  }

  /** Calls the handler with a job, or puts the job into a batch. The promise is of the outcome of its run. */
  call(run: Run, joining: Joining | undefined): Promise<HandlerOutcome> {
    // For a batch the trace covers the method.
    if (!this.around.tracer || joining) return this.#invoke(run.job, joining);
    return this.trace([run], false, () => this.#invoke(run.job, joining));
  }

  trace(runs: readonly Run[], isBatch: boolean, handle: () => Promise<HandlerOutcome>): Promise<HandlerOutcome> {
    const { tracer, instance, lastTrace } = this.around;
    return tracer
      ? tracer.process({ instance, queue: this.handler.queue, runs, isBatch, lastTrace }, handle)
      : handle();
  }

  #invoke(job: DelayedJob, joining: Joining | undefined): Promise<HandlerOutcome> {
    const { contextProvider, schema, probe } = this.around;
    // Nothing comes before the handler, so it needs no promise of its own.
    if (!schema && !joining && !contextProvider && !probe.begins) return runAsCurrent(job, this.#handle, job);
    return runAsCurrent(job, async (): Promise<HandlerOutcome> => {
      if (schema) {
        try {
          job.accept(await applySchema(schema, job.payload, job.queue));
        } catch (error) {
          // Other errors are of the schema itself, such as a look-up that failed: worth another attempt.
          return { kind: error instanceof SchemaError ? 'invalid' : 'failed', error };
        }
      }
      const instead = probe.begins?.(job);
      if (instead) return instead;
      const outcome = await this.#inside(job, joining);
      return schema && outcome.kind === 'snoozed' && outcome.payload
        ? this.#acceptable(schema, outcome.payload, outcome)
        : outcome;
    });
  }

  #inside(job: DelayedJob, joining: Joining | undefined): Promise<HandlerOutcome> {
    const { contextProvider } = this.around;
    // Jobs of a batch come from many contexts, so it has none; middleware runs around each job's stay in it.
    if (joining) return withMiddleware(() => this.join(joining), this.middleware, this.#trouble)(job);
    return contextProvider ? this.#inContext(contextProvider, job) : this.#handle(job);
  }

  /** A payload for the next run passes the schema as one that is enqueued; what would be refused then is a failure now. */
  async #acceptable(
    schema: StandardSchema,
    { value, encoded }: SnoozedPayload,
    snoozed: Extract<HandlerOutcome, { kind: 'snoozed' }>,
  ): Promise<HandlerOutcome> {
    const { payloads } = this.around;
    const { queue } = this.handler;
    try {
      const payload = { value, encoded: encoded ?? payloads.encode(value, queue) };
      await applySchema(schema, payloads.reread(payload.encoded, queue), queue);
      return { ...snoozed, payload };
    } catch (error) {
      return { kind: 'failed', error };
    }
  }

  /** The outcome is the handler's, even if the provider returns, throws or does something else afterwards. */
  #inContext(provider: ContextProvider, job: DelayedJob): Promise<HandlerOutcome> {
    return new Promise((resolve) => {
      let inside: Promise<HandlerOutcome> | undefined;
      let hasFailed = false;
      const next = () => {
        if (hasFailed) return this.#tooLate();
        if (!inside) resolve((inside = this.#handle(job)));
        return inside;
      };
      const failed = (error: unknown) => {
        if (inside)
          this.log.tellOnce(
            'contextProvider.run()',
            'failed after the handler was called, which concerns no job',
            error,
          );
        else {
          hasFailed = true;
          resolve({ kind: 'failed', error });
        }
      };
      try {
        Promise.resolve(provider.run(job.context, next)).then(() => {
          if (!inside) failed(new InvalidOptionError('contextProvider.run(context, next) did not call next().'));
        }, failed);
      } catch (error) {
        failed(error);
      }
    });
  }

  /** The attempt has failed, and its handler would run beside the next one. */
  #tooLate(): Promise<HandlerOutcome> {
    const error = new InvalidOptionError('contextProvider.run(context, next) called next() after it had failed.');
    this.log.tellOnce('contextProvider.run() with a late next()', 'ran nothing by it', error);
    const refused = Promise.reject<HandlerOutcome>(error);
    refused.catch(() => undefined); // A provider that drops it must not end the process.
    return refused;
  }
}
