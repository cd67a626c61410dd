import type { DelayQueueLogger, LogFields } from '../delay-queue.logger.js';
import type { Handler } from '../handlers/handler.js';
import type { HandlerOutcome } from '../handlers/handler-outcome.js';
import type { DelayedJob } from '../job/delayed-job.js';
import { readable } from '../job/duration.js';
import { describeError, oneLine, summarizeError } from '../job/error-record.js';
import type { ClaimedRecord } from '../redis/step.protocol.js';
import type { Refusal } from './admission.js';
import { payloadsOf } from './retry-policy.js';
import type { Run } from './run.js';
import type { Settlement } from './settlement.js';

/**
 * How many different reasons for leaving jobs to other processes are logged: they quote stored text, so they need a
 * bound.
 */
const MOST_WARNINGS = 20;

/** Writes the log lines about the jobs of one handler. */
export class RunLog {
  #warnedOfZombies = false;
  readonly #warnedOfLeaving = new Set<string>();
  readonly #said = new Set<string>();

  constructor(
    private readonly handler: Handler,
    private readonly logger: DelayQueueLogger,
  ) {}

  /** A claimed job does not run. Its fields have the attempts that it has used. */
  refused({ id, attempts, dueAt }: ClaimedRecord, { level, line, leftBecause }: Refusal, now: number): void {
    const { queue } = this.handler;
    if (leftBecause !== undefined) {
      if (this.#warnedOfLeaving.has(leftBecause) || this.#warnedOfLeaving.size >= MOST_WARNINGS) return;
      this.#warnedOfLeaving.add(leftBecause);
      this.logger.warn(`${this.#name(id)} ${line} Said once of this queue.`, { queue, id });
      return;
    }
    const latenessMs = Math.max(0, now - dueAt) || 0;
    this.logger[level](`${this.#name(id)} ${line}`, { queue, id, attempt: attempts.charged, latenessMs });
  }

  ended(run: Run, outcome: HandlerOutcome, settlement: Settlement): void {
    const { job } = run;
    if (settlement.verb === 'retry' && 'error' in outcome) {
      const payloads = payloadsOf(run);
      const inTime = `attempt ${run.attempt} of ${run.maxAttempts} failed, next in ${readable(settlement.delayMs)}`;
      this.logger.warn(
        `${this.#name(run.id)} ${inTime}: ${summarizeError(outcome.error, payloads)}${this.#remedy(outcome.error)}`,
        this.#fields(job),
        describeError(outcome.error, payloads),
      );
    } else if (settlement.verb === 'dead') {
      this.#dead(run, outcome, settlement.reason);
    } else if (outcome.kind === 'completed' && outcome.handled !== undefined && this.logger.isDebug) {
      this.logger.debug(
        `${this.#name(run.id)} failed and a filter handled it: ${summarizeError(outcome.handled, payloadsOf(run))}`,
        this.#fields(job),
      );
    }
  }

  #dead(run: Run, outcome: HandlerOutcome, reason: string): void {
    const payloads = payloadsOf(run);
    const line = `is now a dead letter (${reason}) after attempt ${run.attempt} of ${run.maxAttempts}:`;
    const fields = this.#fields(run.job);
    if ('error' in outcome) {
      const why = `${summarizeError(outcome.error, payloads)}${this.#remedy(outcome.error)}`;
      this.logger.error(`${this.#name(run.id)} ${line} ${why}`, fields, describeError(outcome.error, payloads));
    } else if (outcome.kind === 'discarded') {
      // No error: the handler decided so, and its reason says why. The stack of DiscardJob is stored with the job.
      this.logger.warn(`${this.#name(run.id)} ${line} ${oneLine(String(outcome.reason))}`, fields);
    } else {
      this.logger.error(`${this.#name(run.id)} ${line} it was snoozed as often as SnoozeJob allowed`, fields);
    }
  }

  /** The handler runs on after its timeout. */
  outran(job: DelayedJob, timeoutMs: number): void {
    if (this.#warnedOfZombies) return;
    this.#warnedOfZombies = true;
    this.logger.warn(
      `${this.handler.name} ran on after its timeout of ${readable(timeoutMs)} (queue "${this.handler.queue}"). ` +
        'It may overlap with the next attempt; let it obey job.signal. Said once.',
      this.#fields(job),
    );
  }

  /** A part of the application that stands around the handler failed, without concern to the job. */
  tellOnce(what: string, instead: string, error?: unknown): void {
    const { queue } = this.handler;
    if (!this.#isNews(what)) return;
    const why = error === undefined ? '' : `: ${summarizeError(error)}`;
    this.logger.error(`${what} of queue "${queue}" ${instead}${why}. Said once.`, { queue });
  }

  /** Code of the application does something that is allowed but may be a mistake. */
  warnOnce(what: string, does: string): void {
    const { queue } = this.handler;
    if (this.#isNews(`${what} ${does}`)) this.logger.warn(`${what} of queue "${queue}" ${does}. Said once.`, { queue });
  }

  /** Of the first that is no error: nothing tells where it was thrown. Of undefined, its text says so. */
  #remedy(thrown: unknown): string {
    const { name, stack } = describeError(thrown);
    if (name === 'UnrecoverableError' && this.#isNews(name)) {
      return '. UnrecoverableError is of BullMQ, and retried here: throw DiscardJob to end a job at once. Said once';
    }
    const hasStack = stack !== undefined;
    if (hasStack || thrown === undefined || !this.#isNews('no error')) return '';
    return '. Throw an Error, so that the stack is kept. Said once';
  }

  #isNews(about: string): boolean {
    return !this.#said.has(about) && this.#said.add(about) !== undefined;
  }

  #fields({ queue, id, attempt, latenessMs }: DelayedJob): LogFields {
    return { queue, id, attempt, latenessMs };
  }

  #name(id: string): string {
    return `Job "${id}" of queue "${this.handler.queue}"`;
  }
}
