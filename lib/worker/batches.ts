import { AsyncResource } from 'node:async_hooks';
import { InvalidOptionError, LeaseLostError } from '../delay-queue.errors.js';
import { Batch } from '../handlers/batch-job.js';
import type { BatchJob, BatchPlace } from '../handlers/batch-job.js';
import type { ResolvedBatch } from '../handlers/batch-options.js';
import type { Handler } from '../handlers/handler.js';
import { UNBEGUN } from '../handlers/handler-outcome.js';
import type { HandlerOutcome } from '../handlers/handler-outcome.js';
import { runAsCurrent } from '../job/current-job.js';
import type { EncodedPayload } from '../job/payloads.js';
import { STEP_MAX_JOBS } from '../redis/step.protocol.js';
import { Alarm } from './alarm.js';
import { payloadsOf } from './retry-policy.js';
import type { Run } from './run.js';
import { Timeout } from './timeout.js';
import { OncePerTurn } from '../once-per-turn.js';
import { performance } from '../time-and-randomness.js';

export interface BatchHooks {
  /** Batches that may run at a time. */
  concurrency(): number;
  /** It has come to the others, and its time stands still until its batch begins. */
  waits(run: Run): void;
  /** Its batch begins. */
  begins(run: Run): void;
  /** The method is over for it; what is around that may go on. */
  left(run: Run): void;
  /** Fails the run, unless it has a timeout of its own. */
  timeOut(run: Run, timeoutMs: number): void;
  /** A batch is over: its slot is free. */
  freed(): void;
  /** @throws when the payload cannot be stored */
  encode(payload: unknown): EncodedPayload;
  /** Around the method. */
  traced(runs: readonly Run[], handle: () => Promise<HandlerOutcome>): Promise<HandlerOutcome>;
}

/** What a batch needs to know of a job. */
export interface Joining {
  readonly run: Run;
  /** It may have killed a process: a batch of its own. */
  readonly ownBatch: boolean;
  /** Monotonic ms at which it would expire. */
  readonly expiresAt: number;
}

/** A job must not expire while it waits for its batch to fill: the batch starts a little before. */
const BEFORE_EXPIRY_MS = 20;

class Member implements BatchPlace {
  #settled = false;
  resolve!: (outcome: HandlerOutcome) => void;

  constructor(
    readonly run: Run,
    /** Monotonic ms. */
    public startAt: number,
    readonly expiresAt: number,
    private readonly hooks: Pick<BatchHooks, 'encode' | 'left'>,
  ) {}

  get over(): boolean {
    return this.#settled || this.run.ended;
  }

  end(outcome: HandlerOutcome): void {
    this.#settled = true;
    this.resolve(this.#taken(outcome));
    if (outcome === UNBEGUN) this.hooks.left(this.run);
  }

  /** As it is now: the method may change a payload as soon as it has snoozed its job. */
  #taken(outcome: HandlerOutcome): HandlerOutcome {
    if (outcome.kind !== 'snoozed' || !outcome.payload) return outcome;
    const { value } = outcome.payload;
    try {
      return { ...outcome, payload: { value, encoded: this.hooks.encode(value) } };
    } catch (error) {
      return { kind: 'failed', error }; // As where a single job is snoozed: a bug of the handler.
    }
  }

  /** Its lease must have ended, or it was cancelled while it waited. Its new owner decides its outcome. */
  isForfeit(now: number): boolean {
    const { claim, job, lost, ended } = this.run;
    return ended || lost || job.isAborted || now >= claim.renewedAt + claim.leaseMs;
  }
}

interface RunningBatch {
  readonly members: readonly Member[];
  /** Members whose run is not over. */
  open: number;
  /** One of them was ended from outside. */
  abandoned: boolean;
  /** All of them were ended from outside; the method runs on without a slot. */
  overdue: boolean;
  timeout: Timeout | undefined;
}

/**
 * Collects claimed jobs and runs the handler once for many. Each job keeps its own run, lease and settlement: for the
 * worker a batch is an ordinary handler whose jobs happen to end together.
 */
export class Batches {
  /** Batches that hold a slot. */
  running = 0;
  /** Batches whose method ran on after all its jobs were ended from outside. */
  zombies = 0;
  readonly #batchOf = new Map<Run, RunningBatch>();
  /** Of those that may still run out of time. */
  readonly timeouts = new Set<Timeout>();
  readonly #waiting: Member[] = [];
  readonly #alone: Member[] = [];
  #closed = false;
  #expectsMore = true;
  // A batch must not run in the async context of the job that joined last: its tenant, its trace, its current job.
  readonly #startDue = AsyncResource.bind(() => runAsCurrent(undefined, () => this.#start()));
  readonly #startSoon = new OncePerTurn(this.#startDue);
  readonly #alarm = new Alarm(() => this.#startDue());

  constructor(
    private readonly handler: Handler,
    private readonly settings: ResolvedBatch,
    private readonly timeoutMs: number | undefined,
    private readonly hooks: BatchHooks,
  ) {}

  /** Slots that are taken when `held` jobs are here, or may come. */
  slots(held: number): number {
    return this.running + Math.ceil(this.#outside(held) / this.settings.size);
  }

  /** Jobs that may be claimed for so many slots when `held` are: a batch that runs has taken its whole slot, however few it holds. */
  free(slots: number, held: number): number {
    return this.settings.size * (slots - this.running) - this.#outside(held);
  }

  /** Of these jobs those that no batch has that runs. What has lost its lease is not held any more, and may still be in one. */
  #outside(held: number): number {
    return Math.max(0, held - this.#batchOf.size);
  }

  /** Jobs that one claim should ask for at most: whole batches, about half of these slots. */
  claimSize(slots: number): number {
    const { size } = this.settings;
    const half = Math.min(STEP_MAX_JOBS, Math.ceil((size * slots) / 2));
    return Math.max(size, half - (half % size));
  }

  /** @returns how the job ended; never rejects */
  join({ run, ownBatch, expiresAt }: Joining): Promise<HandlerOutcome> {
    if (this.#closed) return Promise.resolve(UNBEGUN);
    this.hooks.waits(run);
    const startAt = Math.min(performance.now() + this.settings.waitMs, expiresAt - BEFORE_EXPIRY_MS);
    const member = new Member(run, startAt, expiresAt, this.hooks);
    (run.job as BatchJob).takePlace(member);
    (ownBatch ? this.#alone : this.#waiting).push(member);
    this.#startSoon.schedule();
    return new Promise((resolve) => {
      member.resolve = resolve;
    });
  }

  /** @param more whether further jobs may come. If not, what still collects starts with the jobs that it has. */
  expect(more: boolean): void {
    this.#expectsMore = more;
    if (!more && this.#waiting.length > 0) this.#startSoon.schedule();
  }

  /** What waits for others waits no more. */
  flush(): void {
    for (const member of this.#waiting) member.startAt = 0;
    this.#startSoon.schedule();
  }

  /** The concurrency has changed. What waits for a slot that is there no more goes back: nobody knows when there will be one again. */
  resized(): void {
    const slots = Math.max(0, this.hooks.concurrency() - this.running);
    for (const member of this.#alone.splice(slots)) member.end(UNBEGUN);
    const room = this.settings.size * (slots - this.#alone.length);
    for (const member of this.#waiting.splice(room)) member.end(UNBEGUN);
    this.#startSoon.schedule();
  }

  /** Hands back what waits, and whatever comes after; batches that run go on. */
  close(): void {
    this.#closed = true;
    this.#alarm.clear();
    for (const member of [...this.#alone.splice(0), ...this.#waiting.splice(0)]) member.end(UNBEGUN);
  }

  /** The run of a member is over, `abandoned` from outside or by its own outcome. */
  over(run: Run, abandoned: boolean): void {
    const batch = this.#batchOf.get(run);
    if (!batch) return;
    this.#batchOf.delete(run);
    batch.open--;
    batch.abandoned ||= abandoned;
    if (batch.open === 0 && batch.abandoned) this.#giveUp(batch);
  }

  /** Once per turn of the event loop, so that what one claim brought comes together. */
  #start(): void {
    const { size } = this.settings;
    const now = performance.now();
    while (this.running < this.hooks.concurrency()) {
      if (this.#alone.length > 0) this.#begin(this.#alone.splice(0, 1), now);
      else if (this.#waiting.length >= size || this.#nextStart() <= now)
        this.#begin(this.#waiting.splice(0, size), now);
      else break;
    }
    // Without a slot the end of a batch is the next moment.
    this.#alarm.set(this.running < this.hooks.concurrency() ? this.#nextStart() : Infinity);
  }

  #nextStart(): number {
    if (!this.#expectsMore && this.#waiting.length > 0) return 0;
    return this.#waiting.reduce((soonest, { startAt }) => Math.min(soonest, startAt), Infinity);
  }

  #begin(candidates: readonly Member[], now: number): void {
    const members: Member[] = [];
    for (const member of candidates) {
      // Whoever claims it next says what becomes of it.
      if (now > member.expiresAt) member.end(UNBEGUN);
      else if (!member.isForfeit(now)) members.push(member);
      else {
        member.run.job.abort(new LeaseLostError(this.handler.queue, member.run.id)); // Its middleware hears why.
        member.end(UNBEGUN);
      }
    }
    if (members.length === 0) return;
    const batch: RunningBatch = {
      members,
      open: members.length,
      abandoned: false,
      overdue: false,
      timeout: undefined,
    };
    this.running++;
    for (const { run } of members) {
      this.#batchOf.set(run, batch);
      this.hooks.begins(run);
    }
    void this.#run(batch);
  }

  async #run(batch: RunningBatch): Promise<void> {
    if (this.timeoutMs !== undefined) {
      batch.timeout = new Timeout(this.timeoutMs, () => this.#timeOut(batch));
      this.timeouts.add(batch.timeout);
    }
    await this.#handle(batch.members);
    this.#unlimit(batch);
    // From here on a member that is not over, because a middleware still does something, counts as waiting.
    for (const { run } of batch.members) {
      this.#batchOf.delete(run);
      this.hooks.left(run);
    }
    if (batch.overdue) this.zombies--;
    else this.#free();
  }

  /** Runs the handler for those that are not over. Never rejects. */
  async #handle(members: readonly Member[]): Promise<void> {
    const open = members.filter(({ over }) => !over);
    if (open.length === 0) return;
    const jobs = open.map(({ run }) => run.job as BatchJob);
    const runs = open.map(({ run }) => run);
    const outcome = await this.#traced(runs, () => this.#outcomeOf(new Batch(this.handler.queue, jobs)));
    const left = open.filter(({ over }) => !over);
    if (outcome === UNBEGUN) {
      // Guards or pipes took longer than the runs of some: the others begin without them.
      for (const member of left) if (member.run.job.isAborted) member.end(UNBEGUN);
      await this.#handle(left);
    } else if (outcome.kind === 'invalid' && left.length > 1) {
      // A pipe refused the array, and whose payload it meant it does not say. The method was not entered: halves find it.
      const middle = Math.ceil(left.length / 2);
      await this.#handle(left.slice(0, middle));
      await this.#handle(left.slice(middle));
    } else {
      const quotable = outcome.kind === 'failed' ? runs.flatMap((run) => payloadsOf(run)) : undefined;
      for (const { run } of left) if (quotable) run.quotable = quotable;
      for (const member of left) member.end(outcome);
    }
  }

  async #traced(runs: readonly Run[], handle: () => Promise<HandlerOutcome>): Promise<HandlerOutcome> {
    try {
      return await this.hooks.traced(runs, handle);
    } catch (error) {
      return { kind: 'failed', error };
    }
  }

  async #outcomeOf(batch: Batch): Promise<HandlerOutcome> {
    // A tracer may have asked Redis before, and a registered function is not looked at by a pipeline.
    if (batch.jobs.some(({ isAborted }) => isAborted)) return UNBEGUN;
    try {
      const outcome = await this.handler.invokeBatch!(batch);
      if (outcome.kind !== 'snoozed' || !outcome.payload) return outcome;
      // It would replace the payloads of all jobs by one.
      return { kind: 'failed', error: new InvalidOptionError(SNOOZED_WITH_PAYLOAD) };
    } catch (error) {
      return { kind: 'failed', error };
    }
  }

  #unlimit({ timeout }: RunningBatch): void {
    if (!timeout) return;
    timeout.cancel();
    this.timeouts.delete(timeout);
  }

  #timeOut(batch: RunningBatch): void {
    this.#unlimit(batch);
    for (const { run } of batch.members) if (this.#batchOf.has(run)) this.hooks.timeOut(run, this.timeoutMs!);
    // All were settled by themselves, and still the method runs.
    if (batch.open === 0) this.#giveUp(batch);
  }

  #giveUp(batch: RunningBatch): void {
    if (batch.overdue) return;
    batch.overdue = true;
    this.zombies++;
    this.#free();
  }

  #free(): void {
    this.running--;
    this.#startSoon.schedule();
    this.hooks.freed();
  }
}

const SNOOZED_WITH_PAYLOAD =
  'A batch handler threw new SnoozeJob(delay, { payload }), which would give all its jobs one payload. ' +
  'Use job.snooze(delay, { payload }) on each.';
