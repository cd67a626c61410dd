import { channels } from '../delay-queue.channels.js';
import {
  DelayQueueError,
  HandlerTimeoutError,
  InvalidOptionError,
  LayoutError,
  SchemaError,
  UnknownCodecError,
} from '../delay-queue.errors.js';
import type { DelayQueueLogger, LogFields } from '../delay-queue.logger.js';
import type { ResolvedHandlerSettings } from '../delay-queue.options.js';
import type { JobTracer } from '../delay-queue.tracer.js';
import { BatchJob } from '../handlers/batch-job.js';
import type { Handler, HandlerOutcome } from '../handlers/handler.js';
import { runAsCurrent } from '../job/current-job.js';
import type { ContextProvider } from '../job/current-job.js';
import { DelayedJob, NO_CONTEXT } from '../job/delayed-job.js';
import { MAX_TIMER_MS, readable } from '../job/duration.js';
import type { Duration } from '../job/duration.js';
import { decodeEnvelope, encodeContent } from '../job/envelope.js';
import type { Envelope } from '../job/envelope.js';
import type { Payloads } from '../job/payloads.js';
import { applySchema } from '../job/schema.js';
import type { StandardSchema } from '../job/schema.js';
import type { ClaimedRecord } from '../redis/step.protocol.js';
import { describeError, encodeError, oneLine, summarizeError } from '../job/error-record.js';
import { Batches } from './batches.js';
import type { Joining } from './batches.js';
import { endingsAreHeard } from './endings.js';
import type { Claim } from './lease-renewal.js';
import { withMiddleware } from '../handlers/middleware.js';
import type { MiddlewareTrouble } from '../handlers/middleware.js';
import type { Probe } from './probe.js';
import { asDiscarded, payloadsOf, settle } from './retry-policy.js';
import type { RetryRules } from './retry-policy.js';
import type { Run } from './run.js';
import { COMPLETE, tellSettled } from './settlement.js';
import type { Settlement } from './settlement.js';
import { clearTimeout, performance, setTimeout } from '../real-time.js';
import { guarded, warnOnce } from '../user-code.js';

export interface ExecutorHooks {
  /** The outcome of `run` is decided, and its slot is free. */
  ended(run: Run, settlement: Settlement): void;
  /** A batch is over. */
  freed(): void;
  concurrency(): number;
  /** The handler is about to be called. */
  started(run: Run): void;
  readonly extend: (lease: Duration, job: DelayedJob) => Promise<void>;
  readonly instance: string;
  readonly tracer: JobTracer | undefined;
  /** What the failed attempt before this one has left. */
  readonly lastTrace: (id: string) => Promise<string | undefined>;
  readonly payloads: Payloads;
  readonly contextProvider: ContextProvider | undefined;
  readonly schema: StandardSchema | undefined;
  readonly probe: Probe;
}

/** How long this process keeps its hands off a job that it cannot read. */
const LEFT_TO_OTHERS_MS = 30_000;
/** Reasons why jobs were left to others that are told; they quote what is stored. */
const MOST_WARNINGS = 20;

/** Runs claimed jobs: decode, judge whether they may run at all, call the handler, turn the ending into a settlement. */
export class Executor {
  /** For a handler that takes many jobs at once. */
  readonly batches: Batches | undefined;
  #zombies = 0;
  #warnedOfZombies = false;
  readonly #warnedOfLeaving = new Set<string>();
  readonly #told = new Set<string>();
  readonly #handle: Handler['invoke'];
  /** Where nothing is around the handler: no schema, tracing, middleware or context of the application, no batch. */
  readonly #begin: Handler['begin'];
  readonly #logger: DelayQueueLogger;
  readonly #trouble: MiddlewareTrouble = {
    withoutNext: (what) =>
      this.#warnOnce(what, 'ended without calling next(): its jobs complete without their handler'),
    tooLate: (what, error) => this.#tellOnce(what, 'did something after its job had ended', error),
  };

  constructor(
    private readonly handler: Handler,
    private readonly settings: ResolvedHandlerSettings,
    private readonly hooks: ExecutorHooks,
    logger: DelayQueueLogger,
  ) {
    this.#logger = logger;
    this.#handle = withMiddleware((job) => handler.invoke(job), settings.middleware, this.#trouble);
    const { schema, tracer, contextProvider } = hooks;
    const isBare = !schema && !tracer && !contextProvider && !settings.batch && settings.middleware.length === 0;
    this.#begin = isBare ? handler.begin?.bind(handler) : undefined;
    if (settings.batch) {
      this.batches = new Batches(handler, settings.batch, settings.timeoutMs, {
        concurrency: () => hooks.concurrency(),
        begins: (run) => this.#limit(run, run.header.timeoutMs),
        timeOut: (run, timeoutMs) => {
          if (run.timer === undefined) this.#timeOut(run, timeoutMs);
        },
        freed: () => hooks.freed(),
        traced: (runs, handle) => this.#trace(runs, true, handle),
      });
    }
  }

  /** Handlers whose run was over, by timeout or shutdown, before they returned. They hold no slot but still do things. */
  get zombies(): number {
    return this.batches?.zombies ?? this.#zombies;
  }

  /** @returns a settlement when the job must not run: undecodable, expired, out of attempts */
  start(record: ClaimedRecord, claim: Claim, now: number, quarantined = false): Settlement | undefined {
    let envelope: Envelope;
    let payload: unknown;
    try {
      envelope = decodeEnvelope(record.envelope);
      payload = this.hooks.payloads.decode(envelope.body, envelope.mark);
    } catch (error) {
      if (error instanceof LayoutError || error instanceof UnknownCodecError) {
        return this.#leaveToOthers(record.id, error, now);
      }
      this.#logger.error(
        `${this.#name(record.id)} cannot be decoded and is now a dead letter: ${reasonOf(error)}`,
        this.#notStarted(record, now),
      );
      return { verb: 'dead', reason: 'undecodable', error: encodeError(error), charge: false };
    }
    const { header } = envelope;
    const { charged, losses, snoozes, limit } = record.attempts;
    const maxAttempts = limit ?? header.attempts ?? this.settings.attempts;
    if (charged >= maxAttempts) {
      const reason = losses > 0 ? 'leaseLost' : 'exhausted';
      const error = new Error(
        `All ${maxAttempts} attempts were used${losses > 0 ? '; the last one lost its lease' : ''}.`,
      );
      this.#logger.error(
        `${this.#name(record.id)} is now a dead letter (${reason}): ${error.message}`,
        this.#notStarted(record, now),
      );
      return { verb: 'dead', reason, error: encodeError(error), charge: false };
    }
    if (envelope.expiresAt !== undefined && now > envelope.expiresAt) {
      this.#logger.warn(
        `${this.#name(record.id)} expired ${readable(now - envelope.expiresAt)} before it could start.`,
        this.#notStarted(record, now),
      );
      if (!header.keepExpired) return { verb: 'expired' };
      return {
        verb: 'dead',
        reason: 'expired',
        error: encodeError(new Error('It expired before it could start.')),
        charge: false,
      };
    }
    const dueAt = Number.isFinite(record.dueAt) ? record.dueAt : envelope.dueAt;
    const init = {
      id: record.id,
      queue: this.handler.queue,
      payload,
      attempt: charged + 1,
      maxAttempts,
      snoozes,
      dueAt,
      enqueuedAt: envelope.enqueuedAt,
      latenessMs: Math.max(0, now - dueAt),
      context: header.context ?? NO_CONTEXT,
      extend: this.hooks.extend,
    };
    const job = this.batches ? new BatchJob(init) : new DelayedJob(init);
    const run: Run = {
      id: record.id,
      job,
      attempt: init.attempt,
      maxAttempts,
      snoozes,
      header,
      claim,
      quarantined,
      ended: false,
      lost: false,
      timer: undefined,
      startedAt: endingsAreHeard() ? performance.now() : 0,
      durationMs: undefined,
      trace: undefined,
      error: undefined,
    };
    let joining: Joining | undefined;
    if (this.batches) {
      const { expiresAt = Infinity } = envelope;
      joining = { run, ownBatch: losses > 0, expiresAt: performance.now() + expiresAt - now };
    } else {
      this.#limit(run, header.timeoutMs ?? this.settings.timeoutMs);
    }
    if (channels.claimed.hasSubscribers) {
      const { id, queue, attempt, latenessMs } = init;
      channels.claimed.publish({ instance: this.hooks.instance, queue, id, attempt, latenessMs });
    }
    this.hooks.started(run);
    const failed = (error: unknown) => this.#finish(run, { kind: 'failed', error });
    try {
      if (this.#begin && !this.hooks.probe.begins) {
        // It is told inside the job, and what follows must not be: neither the next step nor what others hear of this one.
        runAsCurrent(job, this.#begin, job, (outcome) => runAsCurrent(undefined, this.#finish, run, outcome));
      } else {
        this.#traced(run, joining).then((outcome) => this.#finish(run, outcome), failed);
      }
    } catch (error) {
      // Nothing of it throws by design; the other jobs of this claim must not pay for what does.
      failed(error);
    }
    return undefined;
  }

  #limit(run: Run, timeoutMs: number | undefined): void {
    if (timeoutMs === undefined) return;
    run.timeout = { ms: timeoutMs, at: performance.now() + timeoutMs };
    run.timer = setTimeout(() => this.#timeOut(run, timeoutMs), Math.min(timeoutMs, MAX_TIMER_MS));
  }

  /** Takes `ms` from what is left of a run's timeout, for the test kit, which moves the time of jobs by hand. */
  hasten(run: Run, ms: number): void {
    const { timeout } = run;
    if (!timeout || run.ended) return;
    clearTimeout(run.timer);
    timeout.at -= ms;
    const left = timeout.at - performance.now();
    if (left <= 0) this.#timeOut(run, timeout.ms);
    else run.timer = setTimeout(() => this.#timeOut(run, timeout.ms), Math.min(left, MAX_TIMER_MS));
  }

  #traced(run: Run, joining: Joining | undefined): Promise<HandlerOutcome> {
    // Of a batch the method is what is traced.
    if (!this.hooks.tracer || joining) return this.#invoke(run.job, joining);
    return this.#trace([run], false, () => this.#invoke(run.job, joining));
  }

  #trace(runs: readonly Run[], isBatch: boolean, handle: () => Promise<HandlerOutcome>): Promise<HandlerOutcome> {
    const { tracer, instance, lastTrace } = this.hooks;
    return tracer
      ? tracer.process({ instance, queue: this.handler.queue, runs, isBatch, lastTrace }, handle)
      : handle();
  }

  #invoke(job: DelayedJob, joining: Joining | undefined): Promise<HandlerOutcome> {
    const { contextProvider, schema, probe } = this.hooks;
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
        ? this.#acceptable(schema, outcome.payload.value, outcome)
        : outcome;
    });
  }

  #inside(job: DelayedJob, joining: Joining | undefined): Promise<HandlerOutcome> {
    const { contextProvider } = this.hooks;
    // Jobs of a batch come from many contexts, so it has none; middleware runs around each job's stay in it.
    if (joining) return withMiddleware(() => this.batches!.join(joining), this.settings.middleware, this.#trouble)(job);
    return contextProvider ? this.#inContext(contextProvider, job) : this.#handle(job);
  }

  /** A payload for the next run passes the schema as one that is enqueued; what would be refused then is a failure now. */
  async #acceptable(schema: StandardSchema, payload: unknown, snoozed: HandlerOutcome): Promise<HandlerOutcome> {
    const { payloads } = this.hooks;
    const { queue } = this.handler;
    try {
      await applySchema(schema, payloads.reread(payloads.encode(payload, queue), queue), queue);
      return snoozed;
    } catch (error) {
      return { kind: 'failed', error };
    }
  }

  /** The outcome is what the handler made of the job, whatever the provider returns, throws or does afterwards. */
  #inContext(provider: ContextProvider, job: DelayedJob): Promise<HandlerOutcome> {
    return new Promise((resolve) => {
      let inside: Promise<HandlerOutcome> | undefined;
      const next = () => {
        if (!inside) resolve((inside = this.#handle(job)));
        return inside;
      };
      const failed = (error: unknown) => {
        if (inside)
          this.#tellOnce('contextProvider.run()', 'failed after the handler was called, which concerns no job', error);
        else resolve({ kind: 'failed', error });
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

  /** Ends a run from outside; what its handler still does is a zombie's work. */
  abandon(run: Run, reason: DelayQueueError): void {
    if (run.ended) return;
    this.#stop(run, true);
    this.#zombies++;
    // What the zombie decides later is not what is settled now.
    tellSettled(run.job.onSettled, true);
    run.job.onSettled = undefined;
    run.job.abort(reason);
  }

  #stop(run: Run, abandoned: boolean): void {
    run.ended = true;
    clearTimeout(run.timer);
    this.batches?.over(run, abandoned);
  }

  #timeOut(run: Run, timeoutMs: number): void {
    if (run.ended) return;
    const error = new HandlerTimeoutError(this.handler.queue, run.id, timeoutMs);
    this.abandon(run, error);
    this.#decide(run, { kind: 'failed', error });
    if (!this.#warnedOfZombies) {
      this.#warnedOfZombies = true;
      this.#logger.warn(
        `${this.handler.name} ran on after its timeout of ${readable(timeoutMs)} (queue "${this.handler.queue}"). ` +
          'It may overlap with the next attempt; let it obey job.signal. Said once.',
        this.#fields(run.job),
      );
    }
  }

  readonly #finish = (run: Run, outcome: HandlerOutcome): void => {
    if (run.ended) {
      this.#zombies--;
      return;
    }
    this.#stop(run, false);
    this.#decide(run, outcome);
  };

  /**
   * The end of a run. What is the application's and called in here (rules for retries, codec, logger) is guarded; the slot is
   * free and the settlement on its way before anybody is told.
   */
  #decide(run: Run, outcome: HandlerOutcome): void {
    const settlement = outcome.kind === 'completed' ? COMPLETE : settle(outcome, run, this.#rulesOf(run));
    if (run.startedAt > 0) run.durationMs = performance.now() - run.startedAt;
    if ('error' in outcome) run.error = outcome.error;
    const { probe } = this.hooks;
    if (probe.decided) guarded(() => probe.decided!(run.job, settlement), undefined, probeFailed);
    this.hooks.ended(run, settlement);
    this.#log(run, outcome, settlement);
  }

  #rulesOf({ header, trace }: Run): RetryRules {
    return {
      backoff: header.backoff ?? this.settings.backoff,
      retryIf: this.settings.retryIf,
      trace,
      tell: (what, instead, error) => this.#tellOnce(what, instead, error),
      warn: (what, does) => this.#warnOnce(what, does),
      encodeContent: (payload) => {
        const { body, mark } = this.hooks.payloads.encode(payload, this.handler.queue);
        return encodeContent(header, body, mark);
      },
    };
  }

  #log(run: Run, outcome: HandlerOutcome, settlement: Settlement): void {
    const { job } = run;
    const payloads = payloadsOf(job);
    if (settlement.verb === 'retry' && 'error' in outcome) {
      const inTime = `attempt ${run.attempt} of ${run.maxAttempts} failed, next in ${readable(settlement.delayMs)}`;
      this.#logger.warn(
        `${this.#name(run.id)} ${inTime}: ${summarizeError(outcome.error, payloads)}`,
        this.#fields(job),
        describeError(outcome.error, payloads),
      );
    } else if (settlement.verb === 'dead') {
      const thrown =
        outcome.kind === 'discarded' ? asDiscarded(outcome) : 'error' in outcome ? outcome.error : undefined;
      const why =
        'reason' in outcome ? oneLine(String(outcome.reason)) : 'it was snoozed as often as SnoozeJob allowed';
      const cause = 'error' in outcome ? summarizeError(outcome.error, payloads) : why;
      const line = `is now a dead letter (${settlement.reason}) after attempt ${run.attempt} of ${run.maxAttempts}: ${cause}`;
      this.#logger.error(
        `${this.#name(run.id)} ${line}`,
        this.#fields(job),
        thrown === undefined ? undefined : describeError(thrown, payloads),
      );
    } else if (outcome.kind === 'completed' && outcome.handled !== undefined && this.#logger.isDebug) {
      this.#logger.debug(
        `${this.#name(run.id)} failed and a filter handled it: ${summarizeError(outcome.handled, payloads)}`,
        this.#fields(job),
      );
    }
  }

  /** Of a part of the application that stands around the handler and fails without concern to the job. */
  #tellOnce(what: string, instead: string, error?: unknown): void {
    if (!this.#isNews(what)) return;
    const why = error === undefined ? '' : `: ${summarizeError(error)}`;
    this.#logger.error(`${what} of queue "${this.handler.queue}" ${instead}${why}. Said once.`, {
      queue: this.handler.queue,
    });
  }

  /** Of one that does what is allowed, and perhaps not what was meant. */
  #warnOnce(what: string, does: string): void {
    const { queue } = this.handler;
    if (this.#isNews(`${what} ${does}`))
      this.#logger.warn(`${what} of queue "${queue}" ${does}. Said once.`, { queue });
  }

  #isNews(about: string): boolean {
    return !this.#told.has(about) && this.#told.add(about) !== undefined;
  }

  /** A job stored by a newer library, or by a codec unknown here, is not broken: another process will run it. */
  #leaveToOthers(id: string, { message }: DelayQueueError, now: number): Settlement {
    if (!this.#warnedOfLeaving.has(message) && this.#warnedOfLeaving.size < MOST_WARNINGS) {
      this.#warnedOfLeaving.add(message);
      this.#logger.warn(`${this.#name(id)} was left to others: ${message} Said once of this queue.`, {
        queue: this.handler.queue,
        id,
      });
    }
    return { verb: 'release', dueAt: now + LEFT_TO_OTHERS_MS };
  }

  #fields({ queue, id, attempt, latenessMs }: DelayedJob): LogFields {
    return { queue, id, attempt, latenessMs };
  }

  /** With the attempts that it has used. */
  #notStarted({ id, attempts, dueAt }: ClaimedRecord, now: number): LogFields {
    const latenessMs = Math.max(0, now - dueAt) || 0;
    return { queue: this.handler.queue, id, attempt: attempts.charged, latenessMs };
  }

  #name(id: string): string {
    return `Job "${id}" of queue "${this.handler.queue}"`;
  }
}

function probeFailed(thrown: unknown): void {
  warnOnce('probe', `The test kit failed over the end of a job: ${summarizeError(thrown)}. Said once.`);
}

/** Why decoding failed, without a word of what was decoded: parsers quote their input. */
function reasonOf(error: unknown): string {
  return error instanceof DelayQueueError ? error.message : 'its payload is not valid JSON';
}
