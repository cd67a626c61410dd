import { context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Attributes, Span } from '@opentelemetry/api';
import type { JobTracer, TraceCarrier, TracedRuns } from '../delay-queue.tracer.js';
import type { HandlerOutcome } from '../handlers/handler.js';
import { describeError } from '../job/error-record.js';
import type { EnqueueResult } from '../producer/delay-queue.producer.js';
import { clearTimeout, performance, setTimeout } from '../real-time.js';
import type { Run } from '../worker/run.js';
import { bounded, creatorIn, linkTo, markOf } from './span-marks.js';

/** A link that is still being read when the run is over is waited for; the job is not held up by it. */
const LINK_LIMIT_MS = 1_000;

/** Spans by the semantic conventions for messaging: a producer's around each enqueue, a consumer's around each run. */
export class OpenTelemetryTracer implements JobTracer {
  readonly #tracer = trace.getTracer('nestjs-delay-queue');

  async publish<Result extends EnqueueResult | EnqueueResult[]>(
    { instance, queue, count }: { instance: string; queue: string; count: number },
    send: (carrier: TraceCarrier | undefined) => Promise<Result>,
  ): Promise<Result> {
    const attributes = attributesOf(instance, queue, 'enqueue', 'send');
    const span = this.#tracer.startSpan(`enqueue ${queue}`, { kind: SpanKind.PRODUCER, attributes });
    const within = trace.setSpan(context.active(), span);
    const carrier: Record<string, string> = {};
    propagation.inject(within, carrier);
    try {
      const result = await context.with(within, () => send(bounded(carrier)));
      if (Array.isArray(result)) span.setAttribute('messaging.batch.message_count', count);
      else span.setAttributes({ 'messaging.message.id': result.id, 'delay_queue.outcome': result.outcome });
      return result;
    } catch (error) {
      failed(span, error);
      throw error;
    } finally {
      span.end();
    }
  }

  /** One job's span belongs to the trace that enqueued it; a batch, whose jobs come from many, has links to them. */
  async process(what: TracedRuns, handle: () => Promise<HandlerOutcome>): Promise<HandlerOutcome> {
    const { instance, queue, runs, isBatch } = what;
    const attributes = attributesOf(instance, queue, 'process', 'process');
    const [first] = runs as [Run];
    const carrier = first.envelope.header.trace;
    if (isBatch) attributes['messaging.batch.message_count'] = runs.length;
    else Object.assign(attributes, attributesOfJob(first));
    const parent = isBatch || !carrier ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, carrier);
    const creators = isBatch ? runs.map((run) => creatorIn(run.envelope.header.trace)) : [];
    const links = creators.filter((creator) => creator !== undefined).map((creator) => ({ context: creator }));
    const span = this.#tracer.startSpan(`process ${queue}`, { kind: SpanKind.CONSUMER, attributes, links }, parent);
    if (!span.isRecording()) return context.with(trace.setSpan(parent, span), handle);
    const mark = markOf(span);
    for (const run of runs) run.trace = mark;
    const linked = Promise.all(runs.filter(({ job }) => job.attempt > 1).map((run) => linkToLast(span, what, run.id)));
    let open = true;
    const end = () => {
      if (!open) return;
      open = false;
      const endedAt = performance.now();
      if (runs.every(({ job }) => job.attempt === 1)) span.end(endedAt);
      else void inTime(linked).then(() => span.end(endedAt));
    };
    if (!isBatch) endWhenAbandoned(span, first, end);
    try {
      const outcome = await context.with(trace.setSpan(parent, span), handle);
      if (open) tellOutcome(span, outcome);
      return outcome;
    } catch (error) {
      failed(span, error);
      throw error;
    } finally {
      end();
    }
  }
}

function attributesOf(instance: string, queue: string, name: string, type: string): Attributes {
  return {
    'messaging.system': 'nestjs-delay-queue',
    'messaging.destination.name': queue,
    'messaging.operation.name': name,
    'messaging.operation.type': type,
    'delay_queue.instance': instance,
  };
}

function attributesOfJob({ id, job }: Run): Attributes {
  return {
    'messaging.message.id': id,
    'delay_queue.attempt': job.attempt,
    'delay_queue.lateness_ms': job.latenessMs,
  };
}

function tellOutcome(span: Span, outcome: HandlerOutcome): void {
  span.setAttribute('delay_queue.outcome', outcome.kind);
  if ('error' in outcome) failed(span, outcome.error);
  else if (outcome.kind === 'discarded') span.setStatus({ code: SpanStatusCode.ERROR, message: outcome.reason });
}

function failed(span: Span, error: unknown): void {
  const { name, message, stack } = describeError(error);
  span.recordException({ name, message, stack });
  span.setAttribute('error.type', name);
  span.setStatus({ code: SpanStatusCode.ERROR, message });
}

/** A handler that runs on after its timeout, perhaps for ever, is not what the span is about. */
function endWhenAbandoned(span: Span, run: Run, end: () => void): void {
  const { signal } = run.job;
  signal.addEventListener(
    'abort',
    () => {
      failed(span, signal.reason);
      if (run.ended) end();
    },
    { once: true },
  );
}

async function linkToLast(span: Span, what: TracedRuns, id: string): Promise<void> {
  // No reason to fail anything: a link less.
  const link = linkTo(await what.lastTrace(id).catch(() => undefined));
  if (link) span.addLink(link);
}

async function inTime(linked: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise((resolve) => {
    timer = setTimeout(resolve, LINK_LIMIT_MS);
  });
  await Promise.race([linked, limit]);
  clearTimeout(timer);
}
