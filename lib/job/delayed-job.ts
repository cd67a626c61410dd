import { inspect } from 'node:util';
import type { InspectOptionsStylized } from 'node:util';
import type { Duration } from './duration.js';

/** What a worker knows about a claimed job. */
export interface DelayedJobInit<T = unknown> {
  id: string;
  queue: string;
  payload: T;
  attempt: number;
  maxAttempts: number;
  snoozes: number;
  /** Server time in ms. */
  dueAt: number;
  /** Server time in ms. */
  enqueuedAt: number;
  latenessMs: number;
  context: Readonly<Record<string, string>>;
  schedule?: JobSchedule | undefined;
  group?: string | undefined;
  priority?: number;
  /** Renews the lease of this job alone; rejects with `LeaseLostError` when the lease is gone. */
  extend?: (lease: Duration, job: DelayedJob) => Promise<void>;
}

/** Of an occurrence: what its schedule planned. */
export interface JobSchedule {
  /** Id of the schedule. */
  readonly id: string;
  /** The time for which it was made, without jitter. */
  readonly at: Date;
  /** The time of the one behind it; undefined for the last one. */
  readonly next: Date | undefined;
}

/** The context of jobs without one; shared, so that it can be recognised by identity. */
export const NO_CONTEXT: Readonly<Record<string, string>> = Object.freeze({});

/** The running job, as a handler sees it. */
export class DelayedJob<T = unknown> {
  readonly id: string;
  readonly queue: string;
  /** The payload as it was stored, before pipes and schemas. */
  readonly payload: T;
  /** 1 for the first run; snoozes and releases do not count. */
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly snoozes: number;
  /** Claim time minus due time, both by the server's clock. */
  readonly latenessMs: number;
  readonly context: Readonly<Record<string, string>>;
  /** Undefined unless a schedule made this job. */
  readonly schedule: JobSchedule | undefined;
  /** What `enqueue()` was given; undefined without one. */
  readonly group: string | undefined;
  /** 0 to 9. */
  readonly priority: number;

  // What changes is private: a handler may freeze its job.
  #onSettled: ((lost: boolean) => void) | undefined;
  #onLapsed: (() => void) | undefined;
  #onResumed: (() => void) | undefined;
  // Made on demand: most handlers never read the signal, and an AbortController costs more than the claim of a job.
  #controller: AbortController | undefined;
  #accepted: { value: unknown } | undefined;
  #abortReason: { reason: unknown } | undefined;
  // As numbers: most handlers never read the Dates, and every running job would hold two. And each reader gets a Date of its own, because
  // it may change it, and the job goes back with its due time.
  readonly #dueAt: number;
  readonly #enqueuedAt: number;
  readonly #extend: DelayedJobInit['extend'];

  constructor(init: DelayedJobInit<T>) {
    this.id = init.id;
    this.queue = init.queue;
    this.payload = init.payload;
    this.attempt = init.attempt;
    this.maxAttempts = init.maxAttempts;
    this.snoozes = init.snoozes;
    this.#dueAt = init.dueAt;
    this.#enqueuedAt = init.enqueuedAt;
    this.latenessMs = init.latenessMs;
    this.context = init.context;
    this.schedule = init.schedule;
    this.group = init.group;
    this.priority = init.priority ?? 0;
    this.#extend = init.extend;
  }

  /**
   * Called when Redis has confirmed the end of the run, or when it is certain that it never will.
   *
   * @internal
   */
  get onSettled(): ((lost: boolean) => void) | undefined {
    return this.#onSettled;
  }

  /** @internal */
  set onSettled(listener: ((lost: boolean) => void) | undefined) {
    this.#onSettled = listener;
  }

  /**
   * Called when its lease has ended and nothing renews it.
   *
   * @internal
   */
  get onLapsed(): (() => void) | undefined {
    return this.#onLapsed;
  }

  /** @internal */
  set onLapsed(listener: (() => void) | undefined) {
    this.#onLapsed = listener;
  }

  /**
   * Called when its lease was extended after that.
   *
   * @internal
   */
  get onResumed(): (() => void) | undefined {
    return this.#onResumed;
  }

  /** @internal */
  set onResumed(listener: (() => void) | undefined) {
    this.#onResumed = listener;
  }

  /** By the server's clock. */
  get dueAt(): Date {
    return new Date(this.#dueAt);
  }

  /** By the server's clock. */
  get enqueuedAt(): Date {
    return new Date(this.#enqueuedAt);
  }

  /**
   * Aborts on a timeout, a lost lease, a cancellation, and when `drainTimeout` has passed. `signal.reason` is the
   * error.
   */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#abortReason) this.#controller.abort(this.#abortReason.reason);
    }
    return this.#controller.signal;
  }

  /**
   * The value that pipes and the handler receive: the output of the queue's schema, or the payload without a schema.
   *
   * @internal
   */
  get accepted(): unknown {
    return this.#accepted ? this.#accepted.value : this.payload;
  }

  /** @internal */
  accept(value: unknown): void {
    this.#accepted = { value };
  }

  /**
   * Whether the signal has aborted, without making a signal.
   *
   * @internal
   */
  get isAborted(): boolean {
    return this.#abortReason !== undefined;
  }

  /** @internal */
  abort(reason: unknown): void {
    if (this.#abortReason) return;
    this.#abortReason = { reason };
    this.#controller?.abort(reason);
  }

  /**
   * Gives this job a lease of its own that lasts at least `lease` from now; heartbeats then renew it to that length.
   * The lease never ends sooner than it did before.
   *
   * @param lease ms or text such as `'2m'`
   * @throws LeaseLostError when another process may have the job; UnavailableError without an answer within
   *   `commandTimeout`
   */
  extend(lease: Duration): Promise<void> {
    const extended = this.#extend?.(lease, this) ?? Promise.resolve();
    // A lost lease also aborts the signal. If the handler does not await `extend()`, its rejection must not end the
    // process.
    extended.catch(() => undefined);
    return extended;
  }

  /** What `JSON.stringify` shows of it. */
  toJSON(): Record<string, unknown> {
    const { id, queue, payload, attempt, maxAttempts, snoozes, dueAt, enqueuedAt, latenessMs, context } = this;
    const { group, priority } = this;
    const all = { id, queue, payload, attempt, maxAttempts, snoozes, dueAt, enqueuedAt, latenessMs, context };
    return { ...all, ...(group !== undefined && { group }), ...(priority > 0 && { priority }) };
  }

  /** What `console.log` shows of it. */
  [inspect.custom](depth: number, options: InspectOptionsStylized): string {
    const { name } = this.constructor;
    return depth < 0
      ? options.stylize(`[${name}]`, 'special')
      : `${name} ${inspect(this.toJSON(), { ...options, depth })}`;
  }
}
