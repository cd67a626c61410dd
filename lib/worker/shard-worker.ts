import { channels } from '../delay-queue.channels.js';
import type { DelayQueueError } from '../delay-queue.errors.js';
import { OncePerTurn } from '../once-per-turn.js';
import { Rest } from '../redis/rest.js';
import { performance } from '../time-and-randomness.js';
import type { Session } from '../redis/session.js';
import type { StepReply } from '../redis/step.protocol.js';
import { Alarm } from './alarm.js';
import { BoundedWait } from './bounded-wait.js';
import { ClaimedJobs } from './claimed-jobs.js';
import type { IsolationMember } from './isolation/isolation-gate.js';
import { NextStep } from './next-step.js';
import { Occupancy } from './occupancy.js';
import type { SlotUser } from './slot-pool.js';
import { StepFaults } from './step-faults.js';
import { isSupplied } from './step-planner.js';
import type { StepRequest } from './step-request.js';
import { StepSessions } from './step-sessions.js';
import type { ShardWorkerDeps } from './worker-deps.js';

/** While no step can leave, leases still end. */
const LOOK_AT_LEASES_MS = 500;
const NEVER_SPIN_MS = 5;

/**
 * Works on one shard of a queue: sends the steps that `NextStep` plans, and gives what they bring to `ClaimedJobs`.
 *
 * Held jobs plus requested jobs exceed the concurrency of the queue only by what `Prefetch` allows.
 */
export class ShardWorker implements IsolationMember, SlotUser {
  readonly queue: string;
  /** Monotonic ms of the last answered step, by which health knows that the loop lives. */
  lastAnswerAt = performance.now();
  /** A step was answered since it was made. */
  hasAnswer = false;
  paused = false;
  /** Endings of which Redis had confirmed nothing when the worker stopped. */
  unconfirmed = 0;
  /** Called when a step left nothing due that it had asked for, or when it may not ask because claiming pauses in this process. */
  onEmpty: (() => void) | undefined;
  /** Called when a claimed job has ended here, also when it never came to its handler, and when a step was answered. */
  onEnded: (() => void) | undefined;

  readonly occupancy: Occupancy;
  readonly jobs: ClaimedJobs;
  readonly next: NextStep;
  readonly #name: string;
  readonly #sessions: StepSessions;
  readonly #alarm = new Alarm(() => this.#pump());
  readonly #faults: StepFaults;
  /** Handlers that end together travel together. */
  readonly #pumpSoon = new OncePerTurn(() => this.#pump());

  // The stage of its life.
  #started = false;
  #stopping = false;
  hasEnded = false;
  #stopped: Promise<void> | undefined;
  #drainUntil = Infinity;
  #handingBack = false;
  readonly #wait = new BoundedWait();
  readonly #rest: Rest;

  constructor(private readonly deps: ShardWorkerDeps) {
    const { handler, store, logger } = deps;
    this.queue = handler.queue;
    this.#name = store.workerName();
    this.#sessions = new StepSessions(() => store.session());
    this.#faults = new StepFaults(handler.queue, logger);
    this.occupancy = new Occupancy(this, deps.pool, deps.gate);
    this.jobs = new ClaimedJobs(deps, this.occupancy, {
      changed: (freesSlot) => this.#changed(freesSlot),
      leaseMoved: () => this.#arm(performance.now()),
    });
    this.#rest = new Rest(deps.rest, store.keys.changed, () => this.wake(), (sentAt) => this.#foundUnchanged(sentAt)); // prettier-ignore
    this.next = new NextStep(deps, this, this.jobs, this.occupancy);
  }

  /** The error of the loop, while it cannot make progress. */
  get fault(): DelayQueueError | undefined {
    return this.#faults.current;
  }

  get quarantined(): number {
    return this.next.turn.quarantined;
  }

  /** Due jobs of a queue whose worker may take no job wait for free slots, not for the end of a pause. */
  get caughtUpAt(): number {
    return this.concurrency === 0 || this.fault ? Infinity : this.next.caughtUpAt;
  }

  get running(): number {
    return this.occupancy.held - this.jobs.prefetched.size;
  }

  /** Of the whole queue; with `batch` in batches. */
  get concurrency(): number {
    return this.deps.pool.size;
  }

  get zombies(): number {
    return this.jobs.executor.zombies;
  }

  batchSlots(asked: number): number {
    return this.jobs.executor.batches!.slots(this.occupancy.held + asked);
  }

  wantsJobs(now: number): boolean {
    if (this.#stopping || !this.#started || this.occupancy.stepsOut > 0 || now < this.#faults.pauseUntil) return false;
    return this.next.isWanted(now);
  }

  // --- Its life ---------------------------------------------------------------------------------------------------------

  start(): void {
    if (this.#stopping) return; // closed before the subscription, which comes first, was confirmed
    this.#started = true;
    this.deps.gate.join(this);
    this.#pump();
  }

  /**
   * Stops claiming, waits for handlers up to `drainMs`, then aborts the others and hands their jobs back without using
   * an attempt. If called again, the earlier deadline counts.
   */
  stop(drainMs: number): Promise<void> {
    this.#drainUntil = Math.min(this.#drainUntil, performance.now() + drainMs);
    if (!this.#handingBack) this.#wait.endAt(this.#drainUntil);
    this.#stopped ??= this.#drain();
    return this.#stopped;
  }

  async #drain(): Promise<void> {
    this.#stopping = true;
    if (!this.#started) {
      this.#handingBack = true;
      return this.#wait.end();
    }
    this.#sessions.stop(this.deps.commandTimeoutMs);
    this.occupancy.leave(true);
    const { jobs } = this;
    const { batches } = jobs.executor;
    jobs.prefetched.release();
    batches?.close();
    this.#pump();
    await this.#wait.until(() => jobs.isEmpty && !batches?.running);
    this.#handingBack = true;
    jobs.handBack();
    this.#wait.endAt(performance.now() + this.deps.commandTimeoutMs);
    this.#pump();
    await this.#wait.until(() => jobs.isEmpty);
    this.unconfirmed = jobs.unconfirmed;
    this.close();
    await this.deps.store.leave(this.#name, [...this.#sessions.all, jobs.runs.close()]).catch(() => undefined);
  }

  /** No step leaves any more, and no answer counts. */
  close(): void {
    this.#stopping = this.hasEnded = true;
    this.#alarm.clear();
    this.#rest.end();
    this.jobs.occurrences.end();
    this.jobs.giveUpEndings();
    this.#wait.end();
  }

  // --- What makes it plan again ----------------------------------------------------------------------------------------

  /** Jobs may be due now, or may have been missed. */
  wake(): void {
    this.next.look();
    this.#pump();
  }

  reconsider(): void {
    this.#pumpSoon.schedule();
  }

  resume(): void {
    this.next.look();
    this.#pumpSoon.schedule();
  }

  /** The concurrency of the queue has changed. */
  resized(more: boolean): void {
    // While this worker was full, it was not on the wake-up list.
    if (more) this.next.look();
    if (!more) this.jobs.prefetched.release();
    this.jobs.executor.batches?.resized();
    if (this.concurrency === 0) this.next.turn.standDown();
    this.#pumpSoon.schedule();
  }

  markAccompanied(withQuarantined: boolean): void {
    this.jobs.runs.markAccompanied(withQuarantined);
    this.next.speak();
    this.#pump();
  }

  #changed(freesSlot: boolean): void {
    if (freesSlot) this.next.slotIsFree();
    this.onEnded?.();
    this.#wait.look();
    this.#pumpSoon.schedule();
  }

  // --- The loop ---------------------------------------------------------------------------------------------------------

  #pump(): void {
    if (this.hasEnded || !this.#started) return;
    const now = performance.now();
    this.jobs.abortOverdue(now);
    this.#wait.look(); // What nothing renews is waited for no longer than its lease lasts.
    if (now >= this.jobs.prefetched.patienceEnds) this.jobs.prefetched.release(now);
    if (now >= this.#faults.pauseUntil) {
      const { prefetch } = this.jobs.prefetched;
      const next = () => this.#sessions.free(this.occupancy.stepsOut, prefetch.steps);
      for (let session = next(); session; session = next()) {
        const request = this.next.plan(now, this.#stopping);
        if (!request) break;
        void this.#send(session, request);
      }
    }
    this.#arm(now);
  }

  #arm(now: number): void {
    if (this.hasEnded) return;
    const { pauseUntil } = this.#faults;
    let at = Math.min(this.next.nextMoment(this.#stopping), this.jobs.prefetched.patienceEnds);
    if (now < pauseUntil) at = Math.min(at, pauseUntil);
    // Both sessions wait for answers, or this is a fault's pause: poll again soon, but never spin.
    if (this.#sessions.areBusy) at = Math.min(at, now + LOOK_AT_LEASES_MS);
    if (at <= now) at = now + (now < pauseUntil || this.occupancy.stepsOut > 0 ? LOOK_AT_LEASES_MS : NEVER_SPIN_MS);
    this.#alarm.set(at);
  }

  async #send(session: Session, request: StepRequest): Promise<void> {
    const sentAt = performance.now();
    const ask = this.next.sent(request, sentAt);
    let reply: StepReply | undefined;
    try {
      const waits = () => this.occupancy.held > 0 || this.jobs.unconfirmed > 0;
      const mustBeHeard = () =>
        request.settle.ended.length > 0 || this.#sessions.mayHaveBrought(session, request, waits());
      const isVain = () => this.hasEnded || (this.#stopping && !mustBeHeard());
      const tell = (error: unknown) => void (this.#stopping || this.#faults.failed(error));
      reply = await this.deps.store.step(session, this.#name, request, isVain, tell);
    } catch (error) {
      this.jobs.refused(request);
      this.#failed(error);
    }
    this.occupancy.arrived(ask);
    if (!reply || this.hasEnded) {
      this.occupancy.brought(ask, 0, 'no');
      this.next.failed(request);
      if (this.hasEnded) this.jobs.giveUpEndings(request.settle);
      this.#wait.look();
      this.#arm(performance.now()); // Only now: before, a step was out whose answer would have been the next moment.
      return;
    }
    this.#faults.answered();
    if (channels.step.hasSubscribers) this.#tellStep(request, sentAt);
    this.jobs.confirmed(request, reply, sentAt);
    const arrivedAt = (this.lastAnswerAt = performance.now());
    this.hasAnswer = true;
    this.paused = reply.paused;
    const mayRest = this.#rest.isPossible && !this.#stopping;
    const rests = this.next.answered(request, reply, sentAt, arrivedAt, mayRest);
    if (rests) this.#rest.begin(reply.quiet!.held, reply.now, arrivedAt);
    else if (rests === false) this.#rest.end();
    if (this.deps.prefetch && request.limit > 0) this.#supplied(request, reply, arrivedAt);
    const { untold } = this.jobs;
    this.jobs.receive(request, reply, ask, arrivedAt, this.#stopping);
    // With limits what ended at once, as one that had expired, makes room for others: the step that tells of it claims them.
    const hasMore = reply.isCut || (reply.isLimited && this.jobs.untold > untold);
    if (reply.paused) this.jobs.prefetched.release(arrivedAt);
    this.next.turn.answered(request, reply);
    if ((request.limit > reply.jobs.length && !hasMore) || this.next.isBarred) this.onEmpty?.();
    this.onEnded?.();
    this.#wait.look();
    this.#pump();
  }

  #foundUnchanged(sentAt: number): void {
    this.lastAnswerAt = performance.now();
    this.next.caughtUpAt = Math.max(this.next.caughtUpAt, sentAt);
  }

  #supplied({ limit, ahead }: StepRequest, { jobs }: StepReply, now: number): void {
    const { prefetched, ended } = this.jobs;
    if (!isSupplied(limit - ahead, jobs.length)) return;
    const { prefetch, size: waiting } = prefetched;
    prefetch.supplied({ now, ended, slots: this.concurrency, busy: this.running, waiting });
  }

  #failed(error: unknown): void {
    if (this.hasEnded) return;
    if (this.#stopping) return this.#faults.failedWhileStopping();
    this.#faults.failed(error);
    this.next.look(); // The wake-up that made it poll has had no answer.
  }

  #tellStep({ limit, quarantineLimit, settle }: StepRequest, sentAt: number): void {
    const kind = limit + quarantineLimit > 0 ? 'claim' : settle.ended.length > 0 ? 'settle' : 'heartbeat';
    const { instance } = this.deps.store.connection;
    channels.step.publish({ instance, queue: this.queue, kind, durationMs: performance.now() - sentAt });
  }
}
