import { channels } from '../delay-queue.channels.js';
import { type DelayQueueError, HandlerTimeoutError } from '../delay-queue.errors.js';
import type { DelayQueueLogger } from '../delay-queue.logger.js';
import type { ResolvedHandlerSettings } from '../handlers/handler-settings.js';
import type { Handler } from '../handlers/handler.js';
import { type HandlerOutcome, UNBEGUN } from '../handlers/handler-outcome.js';
import { runAsCurrent } from '../job/current-job.js';
import type { DelayedJob } from '../job/delayed-job.js';
import type { Duration } from '../job/duration.js';
import { dueTimeIn, encodeContent } from '../job/envelope.js';
import type { OccurrenceHeader } from '../job/occurrence-header.js';
import { summarizeError } from '../job/error-record.js';
import type { OccurrenceGate } from '../recurring/occurrence-gate.js';
import type { ClaimedRecord } from '../redis/step.protocol.js';
import { admit } from './admission.js';
import type { Terms } from './admission.js';
import { Batches } from './batches.js';
import type { Joining } from './batches.js';
import { endingsAreHeard } from './endings.js';
import { HandlerCalls } from './handler-calls.js';
import type { Surroundings } from './handler-calls.js';
import type { Claim } from './lease-renewal.js';
import { settle } from './retry-policy.js';
import type { RetryRules } from './retry-policy.js';
import type { Run } from './run.js';
import { RunLog } from './run-log.js';
import { COMPLETE, tellSettled, type Settlement } from './settlement.js';
import { Timeout } from './timeout.js';
import { performance } from '../time-and-randomness.js';
import { guarded, warnOnce } from '../user-code.js';

export interface ExecutorHooks extends Surroundings {
  /** The outcome of `run` is decided, and its slot is free. */
  ended(run: Run, settlement: Settlement): void;
  /** A batch is over. */
  freed(): void;
  concurrency(): number;
  /** The handler is about to be called. */
  started(run: Run): void;
  readonly extend: (lease: Duration, job: DelayedJob) => Promise<void>;
  /** Says of an occurrence of a schedule whether it may run. */
  readonly occurrences: Pick<OccurrenceGate, 'begin'>;
}

/** Runs claimed jobs: admission says whether one may run; the handler is called; its outcome becomes a settlement. */
export class Executor {
  /** For a handler that takes many jobs at once. */
  readonly batches: Batches | undefined;
  #zombies = 0;
  readonly #terms: Terms;
  readonly #calls: HandlerCalls;
  /** Where nothing is around the handler: no schema, tracing, middleware or context of the application, no batch. */
  readonly #begin: Handler['begin'];
  readonly #log: RunLog;

  constructor(
    private readonly handler: Handler,
    private readonly settings: ResolvedHandlerSettings,
    private readonly hooks: ExecutorHooks,
    logger: DelayQueueLogger,
  ) {
    const { schema, tracer, contextProvider, payloads, extend } = hooks;
    const { attempts, batch } = settings;
    this.#terms = { queue: handler.queue, attempts, isBatch: batch !== undefined, payloads, extend };
    this.#log = new RunLog(handler, logger);
    this.#calls = new HandlerCalls(handler, settings.middleware, hooks, this.#log, (joining) =>
      this.batches!.join(joining),
    );
    const isBare = !schema && !tracer && !contextProvider && !batch && settings.middleware.length === 0;
    this.#begin = isBare ? handler.begin?.bind(handler) : undefined;
    if (batch) {
      this.batches = new Batches(handler, batch, settings.timeoutMs, {
        concurrency: () => hooks.concurrency(),
        waits: (run) => {
          run.timeout?.cancel();
          run.timeout = undefined;
        },
        begins: (run) => this.#limit(run, run.header.timeoutMs),
        left: (run) => {
          if (!run.ended && !run.timeout && this.#hasAround) this.#limit(run, this.settings.timeoutMs);
        },
        timeOut: (run, timeoutMs) => {
          if (!run.timeout) this.#timeOut(run, timeoutMs);
        },
        freed: () => hooks.freed(),
        encode: (payload) => payloads.encode(payload, handler.queue),
        traced: (runs, handle) => this.#calls.trace(runs, true, handle),
      });
    }
  }

  /** Handlers whose run was over, by timeout or shutdown, before they returned. They hold no slot but still do things. */
  get zombies(): number {
    return this.batches?.zombies ?? this.#zombies;
  }

  /** @returns a settlement when the job must not run: undecodable, expired, out of attempts */
  start(record: ClaimedRecord, claim: Claim, now: number, quarantined = false): Settlement | undefined {
    const run = admit(record, claim, quarantined, now, this.#terms);
    if ('settlement' in run) {
      this.#log.refused(record, run, now);
      return run.settlement;
    }
    if (endingsAreHeard(this.hooks.fleet)) run.startedAt = performance.now();
    let joining: Joining | undefined;
    if (this.batches) {
      const ownBatch = record.attempts.losses > 0;
      joining = { run, ownBatch, expiresAt: performance.now() + run.expiresAt - now };
    }
    if (channels.claimed.hasSubscribers) {
      const { id, queue, attempt, latenessMs } = run.job;
      channels.claimed.publish({ instance: this.hooks.instance, queue, id, attempt, latenessMs });
    }
    this.hooks.started(run);
    if (run.header.occurrence) this.#begins(run, run.header.occurrence, record, joining, now);
    else this.#dispatch(run, joining);
    return undefined;
  }

  /** An occurrence of a schedule runs only if its schedule's policies let it. */
  #begins(
    run: Run,
    rules: OccurrenceHeader,
    { dueAt, attempts, envelope }: ClaimedRecord,
    joining: Joining | undefined,
    now: number,
  ): void {
    // A loss may be charged, and its process may have died before the handler began.
    const hasBegun = attempts.charged > attempts.losses || attempts.snoozes > 0;
    const wasLost = attempts.losses > 0;
    const claim = run.claim.number;
    const beginning = { id: run.id, claim, hasBegun, wasLost, dueAt, givenDueAt: dueTimeIn(envelope), rules, now };
    run.asks = true;
    void this.hooks.occurrences.begin(beginning).then((instead) => {
      run.asks = undefined;
      // A run that was ended from outside meanwhile does not begin, nor one whose lease is over: another process may have run it by now.
      const isOver = run.job.isAborted || performance.now() >= run.claim.renewedAt + run.claim.leaseMs;
      if (instead || isOver) this.#finish(run, instead ?? UNBEGUN);
      else this.#dispatch(run, joining);
    });
  }

  #dispatch(run: Run, joining: Joining | undefined): void {
    const { job } = run;
    // Not sooner: an attempt must not be charged for the time in which Redis is asked whether an occurrence may begin.
    if (!joining || this.#hasAround) this.#limit(run, run.header.timeoutMs ?? this.settings.timeoutMs);
    const failed = (error: unknown) => this.#finish(run, { kind: 'failed', error });
    try {
      if (this.#begin && !this.hooks.probe.begins) {
        // The handler reports inside the job's async context. Leave that before settling, or the next step and every
        // listener would see this job as `currentJob()`.
        runAsCurrent(job, this.#begin, job, (outcome) => runAsCurrent(undefined, this.#finish, run, outcome));
      } else {
        this.#calls.call(run, joining).then((outcome) => this.#finish(run, outcome), failed);
      }
    } catch (error) {
      // Nothing here should throw. If something does, the other jobs of this claim must still start.
      failed(error);
    }
  }

  /** With a batch: what is called for each of its jobs, before it waits for the others and after the method, may take time. */
  get #hasAround(): boolean {
    return this.hooks.schema !== undefined || this.settings.middleware.length > 0;
  }

  #limit(run: Run, timeoutMs: number | undefined): void {
    if (timeoutMs === undefined) return;
    run.timeout = new Timeout(timeoutMs, () => this.#timeOut(run, timeoutMs));
  }

  /** Ends a run from outside. Its handler may go on as a zombie. */
  abandon(run: Run, reason: DelayQueueError): void {
    if (run.ended) return;
    this.#stop(run, true);
    this.#zombies++;
    // The zombie may decide otherwise later; that does not change the settlement of now.
    tellSettled(run.job.onSettled, true);
    run.job.onSettled = undefined;
    run.job.abort(reason);
  }

  #stop(run: Run, abandoned: boolean): void {
    run.ended = true;
    run.timeout?.cancel();
    this.batches?.over(run, abandoned);
  }

  #timeOut(run: Run, timeoutMs: number): void {
    if (run.ended) return;
    const error = new HandlerTimeoutError(this.handler.queue, run.id, timeoutMs);
    this.abandon(run, error);
    this.#decide(run, { kind: 'failed', error });
    this.#log.outran(run.job, timeoutMs);
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
   * The end of a run. Calls of the application's code (rules for retries, codec, logger) are guarded. The slot is free
   * and the settlement is buffered before any listener is called.
   */
  #decide(run: Run, outcome: HandlerOutcome): void {
    const settlement = outcome.kind === 'completed' ? COMPLETE : settle(outcome, run, this.#rulesOf(run));
    if (run.startedAt > 0) run.durationMs = performance.now() - run.startedAt;
    if ('error' in outcome) run.error = outcome.error;
    const { probe } = this.hooks;
    if (probe.decided) guarded(() => probe.decided!(run.job, settlement), undefined, probeFailed);
    this.hooks.ended(run, settlement);
    this.#log.ended(run, outcome, settlement);
  }

  #rulesOf({ header, trace }: Run): RetryRules {
    return {
      backoff: header.backoff ?? this.settings.backoff,
      retryIf: this.settings.retryIf,
      trace,
      tell: (what, instead, error) => this.#log.tellOnce(what, instead, error),
      warn: (what, does) => this.#log.warnOnce(what, does),
      encodeContent: ({ value, encoded }) => {
        const { body, mark } = encoded ?? this.hooks.payloads.encode(value, this.handler.queue);
        return encodeContent(header, body, mark);
      },
    };
  }
}

function probeFailed(thrown: unknown): void {
  warnOnce('probe', `The test kit failed over the end of a job: ${summarizeError(thrown)}. Said once.`);
}
