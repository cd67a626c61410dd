import { context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Attributes, Context, Span } from '@opentelemetry/api';
import { DelayQueueLogger } from '../delay-queue.logger.js';
import type { JobTracer, TraceCarrier, TracedRuns } from '../delay-queue.tracer.js';
import type { HandlerOutcome } from '../handlers/handler-outcome.js';
import { describeError, summarizeError } from '../job/error-record.js';
import type { EnqueueResult } from '../job/enqueue-result.js';
import { clearTimeout, performance, setTimeout } from '../time-and-randomness.js';
import { guarded } from '../user-code.js';
import { payloadsOf } from '../worker/retry-policy.js';
import type { Run } from '../worker/run.js';
import { bounded, creatorIn, linkTo, markOf } from './span-marks.js';

/** A link that is still being read when the run is over is waited for; the job is not held up by it. */
const LINK_LIMIT_MS = 1_000;
const NOTHING = () => undefined;

/** Spans by the semantic conventions for messaging: a producer's around each enqueue, a consumer's around each run. */
export class OpenTelemetryTracer implements JobTracer {
  readonly #tracer = trace.getTracer('nestjs-delay-queue');
  readonly #logger = new DelayQueueLogger('DelayQueueTracing');
  #warned = false;

  async publish<Result extends EnqueueResult | EnqueueResult[]>(
    what: { readonly instance: string; readonly queue: string; readonly count: number | undefined },
    send: (carrier: TraceCarrier | undefined) => Promise<Result>,
  ): Promise<Result> {
    const begun = this.#harmless(() => this.#beginEnqueue(what));
    if (!begun) return send(undefined);
    const { span, within, carrier } = begun;
    try {
      const result = await this.#within(within, () => send(carrier));
      this.#harmless(() => tellResult(span, result));
      return result;
    } catch (error) {
      this.#harmless(() => failed(span, error));
      throw error;
    } finally {
      this.#harmless(() => span.end());
    }
  }

  #beginEnqueue({ instance, queue, count }: { instance: string; queue: string; count: number | undefined }) {
    const attributes = attributesOf(instance, queue, 'enqueue', 'send');
    if (count !== undefined) attributes['messaging.batch.message_count'] = count;
    const span = this.#tracer.startSpan(`enqueue ${queue}`, { kind: SpanKind.PRODUCER, attributes });
    const within = trace.setSpan(context.active(), span);
    return { span, within, carrier: carrierOf(within) };
  }

  carrier(): TraceCarrier | undefined {
    return this.#harmless(() => carrierOf(context.active()));
  }

  /** One job's span belongs to the trace that enqueued it; a batch, whose jobs come from many, has links to them. */
  async process(what: TracedRuns, handle: () => Promise<HandlerOutcome>): Promise<HandlerOutcome> {
    const begun = this.#harmless(() => this.#beginRun(what));
    if (!begun) return handle();
    const { span, within, isRecording, mark } = begun;
    if (!isRecording) return this.#within(within, handle);
    const { runs } = what;
    for (const run of runs) run.trace = mark;
    const retried = runs.filter(({ job }) => job.attempt > 1);
    const linked = Promise.all(retried.map((run) => linkToLast(span, what, run.id)));
    let open = true;
    const end = () => {
      if (!open) return;
      open = false;
      const endedAt = performance.now();
      if (retried.length === 0) this.#harmless(() => span.end(endedAt));
      else void inTime(linked).then(() => this.#harmless(() => span.end(endedAt)));
    };
    for (const run of runs) {
      endWhenAbandoned(run, (reason) => {
        const over = runs.every(({ ended }) => ended);
        // Of a batch one job says nothing of the others.
        if (open && (over || !what.isBatch)) this.#harmless(() => failed(span, reason, runs));
        if (over) end();
      });
    }
    try {
      const outcome = await this.#within(within, handle);
      if (open) this.#harmless(() => tellOutcome(span, outcome, runs));
      return outcome;
    } catch (error) {
      if (open) this.#harmless(() => failed(span, error, runs));
      throw error;
    } finally {
      end();
    }
  }

  /**
   * A context manager of the application stands around this; the call is made once, whatever that does, and when. A call that fails is the
   * call's own affair: the manager gets a promise that tells no error, so any that it gives back is its own.
   */
  async #within<Result>(within: Context, call: () => Promise<Result>): Promise<Result> {
    let result: Promise<Result> | undefined;
    const once = async () => call();
    const traced = () => {
      result ??= once();
      return result.then(NOTHING, NOTHING);
    };
    this.#harmless(() => context.with(within, traced) as unknown);
    return (result ??= once());
  }

  #beginRun({ instance, queue, runs, isBatch }: TracedRuns) {
    const attributes = attributesOf(instance, queue, 'process', 'process');
    const [first] = runs as [Run];
    const carrier = first.header.trace;
    if (isBatch) attributes['messaging.batch.message_count'] = runs.length;
    else Object.assign(attributes, attributesOfJob(first));
    const parent = isBatch || !carrier ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, carrier);
    const creators = isBatch ? runs.map((run) => creatorIn(run.header.trace)) : [];
    const links = creators.filter((creator) => creator !== undefined).map((creator) => ({ context: creator }));
    const span = this.#tracer.startSpan(`process ${queue}`, { kind: SpanKind.CONSUMER, attributes, links }, parent);
    return { span, within: trace.setSpan(parent, span), isRecording: span.isRecording(), mark: markOf(span) };
  }

  /** A sampler, processor or propagator that throws must neither refuse a job nor fail one that is done. */
  #harmless<Result>(trace: () => Result): Result | undefined {
    return guarded<Result | undefined>(trace, undefined, (error) => {
      if (this.#warned) return;
      this.#warned = true;
      this.#logger.error(`Tracing fails, which concerns no job: ${summarizeError(error)}. Said once.`);
    });
  }
}

function carrierOf(within: Context): TraceCarrier | undefined {
  const carrier: Record<string, string> = {};
  propagation.inject(within, carrier);
  return bounded(carrier);
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

function tellResult(span: Span, result: EnqueueResult | EnqueueResult[]): void {
  if (Array.isArray(result)) return;
  span.setAttributes({ 'messaging.message.id': result.id, 'delay_queue.outcome': result.outcome });
}

function tellOutcome(span: Span, outcome: HandlerOutcome, runs: readonly Run[]): void {
  span.setAttribute('delay_queue.outcome', outcome.kind);
  if ('error' in outcome) failed(span, outcome.error, runs);
  else if (outcome.kind === 'discarded') {
    span.setAttribute('error.type', 'DiscardJob');
    span.setStatus({ code: SpanStatusCode.ERROR, message: outcome.reason });
  }
}

/** Traces are read by more people than payloads: what the log leaves out of an error is left out here. */
function failed(span: Span, error: unknown, runs: readonly Run[] = []): void {
  const { name, message, stack } = describeError(
    error,
    runs.flatMap((run) => payloadsOf(run)),
  );
  span.recordException({ name, message, stack });
  span.setAttribute('error.type', name);
  span.setStatus({ code: SpanStatusCode.ERROR, message });
}

/** The span ends at the timeout, although the handler may run on for ever. */
function endWhenAbandoned({ job: { signal } }: Run, tell: (reason: unknown) => void): void {
  signal.addEventListener('abort', () => tell(signal.reason), { once: true });
}

async function linkToLast(span: Span, what: TracedRuns, id: string): Promise<void> {
  // No reason to fail anything: a link less.
  try {
    const link = linkTo(await what.lastTrace(id));
    if (link) span.addLink(link);
  } catch {}
}

async function inTime(linked: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise((resolve) => {
    timer = setTimeout(resolve, LINK_LIMIT_MS);
  });
  await Promise.race([linked, limit]);
  clearTimeout(timer);
}
