import type { HandlerOutcome } from './handlers/handler-outcome.js';
import type { EnqueueResult } from './job/enqueue-result.js';
import type { Run } from './worker/run.js';

/**
 * The fields that a propagator wrote: `traceparent`, `tracestate` and the like. Stored apart from the job's context.
 */
export type TraceCarrier = Readonly<Record<string, string>>;

/** What `nestjs-delay-queue/tracing` is to the rest: around the two ends of a job. Never refuses or loses anything. */
export interface JobTracer {
  /**
   * Runs around one enqueue call: calls `send` once, with the trace context for its jobs. `count` is the number of jobs
   * of `enqueueMany()`.
   */
  publish<Result extends EnqueueResult | EnqueueResult[]>(
    what: { readonly instance: string; readonly queue: string; readonly count: number | undefined },
    send: (carrier: TraceCarrier | undefined) => Promise<Result>,
  ): Promise<Result>;
  /**
   * Around one run of a handler: calls `handle` once. May set `run.trace`, which a failed attempt leaves for the next
   * one.
   */
  process(what: TracedRuns, handle: () => Promise<HandlerOutcome>): Promise<HandlerOutcome>;
  /** The trace context of the code that asks, for a message to another service. */
  carrier(): TraceCarrier | undefined;
}

export interface TracedRuns {
  readonly instance: string;
  readonly queue: string;
  /** One, but for a batch. */
  readonly runs: readonly Run[];
  readonly isBatch: boolean;
  /** Reads the trace that the failed attempt before this one has left in its error record. */
  lastTrace(id: string): Promise<string | undefined>;
}
