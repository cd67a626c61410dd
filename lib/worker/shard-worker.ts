import { channels } from '../delay-queue.channels.js';
import { LeaseLostError, ShutdownError } from '../delay-queue.errors.js';
import type { DelayQueueError } from '../delay-queue.errors.js';
import type { DelayQueueLogger } from '../delay-queue.logger.js';
import type { ResolvedHandlerSettings, ResolvedModuleOptions } from '../delay-queue.options.js';
import type { JobTracer } from '../delay-queue.tracer.js';
import type { Handler } from '../handlers/handler.js';
import { parseDuration } from '../job/duration.js';
import { decodeError } from '../job/error-record.js';
import type { Payloads } from '../job/payloads.js';
import { LEASE_MS } from '../job/queue-definition.js';
import type { StandardSchema } from '../job/schema.js';
import type { Session } from '../redis/session.js';
import { typedError } from '../redis/redis.errors.js';
import type { ShardStore } from '../redis/shard-store.js';
import { isRepeated, STEP_MAX_JOBS } from '../redis/step.protocol.js';
import type { ClaimedRecord, StepReply } from '../redis/step.protocol.js';
import type { StepRequest } from './step-request.js';
import { Alarm } from './alarm.js';
import { endingsAreHeard } from './endings.js';
import { Executor } from './executor.js';
import type { Charge, IsolationGate, IsolationMember } from './isolation/isolation-gate.js';
import { QuarantineTurn } from './isolation/quarantine-turn.js';
import type { Claim } from './lease-renewal.js';
import { PollSchedule } from './poll-schedule.js';
import type { Run } from './run.js';
import { ActiveRuns } from './active-runs.js';
import { tellSettled } from './settlement.js';
import type { Settlement } from './settlement.js';
import type { Reservation, SlotPool, SlotUser } from './slot-pool.js';
import { SettlementBuffer } from './settlement-buffer.js';
import type { Probe } from './probe.js';
import { clearTimeout, performance, setImmediate } from '../real-time.js';

export interface ShardWorkerDeps {
  handler: Handler;
  settings: ResolvedHandlerSettings;
  store: ShardStore;
  /** Of the queue: its shards share it. */
  pool: SlotPool;
  /** Of the process. */
  gate: IsolationGate;
  deadLetters: ResolvedModuleOptions['deadLetters'];
  /** Default true. */
  heartbeats?: boolean;
  commandTimeoutMs: number;
  payloads: Payloads;
  contextProvider: ResolvedModuleOptions['contextProvider'];
  tracer?: JobTracer | undefined;
  schema: StandardSchema | undefined;
  probe: Probe;
  logger: DelayQueueLogger;
}

/** From this concurrency on a claim asks for half the slots, so that Redis works on one step while Node works on the other. */
const SPLIT_FROM = 32;
/** After an error that waiting does not cure (a wrong type, no permission): slow enough to be harmless, quick once mended. */
const FAULT_PAUSE_MS = 1_000;
/** The same while the process stops, which must not take much longer for it. */
const STOPPING_PAUSE_MS = 200;
/** While no step can leave, leases still end. */
const LOOK_AT_LEASES_MS = 500;
const NEVER_SPIN_MS = 5;
/** A worker that is full for longer says so; most jobs of a backlog end sooner, and then the next claim says it. */
const FULL_FOR_MS = 20;

/**
 * Drains one shard of a queue: decides what the next round trip asks for, sends it, starts what it brought.
 *
 * Two sessions, so that a step is on its way while the jobs of the other run; what is held plus what is asked for never
 * exceeds the concurrency of the queue (nothing is fetched ahead: a job leased here could run elsewhere).
 */
export class ShardWorker implements IsolationMember, SlotUser {
  readonly queue: string;
  readonly #name: string;
  /** Monotonic ms of the last answered step; what health calls the life of the loop. */
  lastAnswerAt = performance.now();
  /** A step was answered since it was made. */
  hasAnswer = false;
  /** The error of the loop, while it cannot make progress. */
  fault: DelayQueueError | undefined;
  paused = false;
  /** Jobs that were handed back because their handlers had not ended when the process had to stop. */
  handedBack = 0;
  /** Called when a step brought less than it asked for, or when it may not ask because claiming pauses in this process. */
  onEmpty: (() => void) | undefined;

  readonly #runs: ActiveRuns;
  readonly #buffer = new SettlementBuffer();
  readonly #sessions: readonly [Session, Session];
  readonly #alarm = new Alarm(() => this.#pump());
  readonly #patience = new Alarm(() => this.#settled?.(true));
  readonly #poll: PollSchedule;
  readonly #turn: QuarantineTurn;
  readonly #executor: Executor;
  #held = 0;
  /** Runs that are over, but whose lease is just being changed. */
  #ending = 0;
  #wanted = 0;
  #stepsOut = 0;
  #backlog = false;
  #speak = false;
  #scheduled = false;
  #started = false;
  #stopping = false;
  #closed = false;
  #idleUntil = 0;
  /** Since when it is full and counted among those that wait; monotonic ms. */
  #fullSince = Infinity;
  #faultUntil = 0;
  #settled: ((timeUp?: boolean) => void) | undefined;
  #stopped: Promise<void> | undefined;
  #drainUntil = Infinity;
  /** Monotonic ms of the last request whose answer left nothing due behind. */
  #caughtUpAt = -Infinity;
  #handingBack = false;

  constructor(private readonly deps: ShardWorkerDeps) {
    const { handler, settings, store, logger } = deps;
    this.queue = handler.queue;
    this.#name = store.workerName();
    this.#runs = new ActiveRuns(store, settings.leaseMs, logger, deps.heartbeats ?? true);
    this.#poll = new PollSchedule(settings.leaseMs);
    this.#turn = new QuarantineTurn(deps.gate, this, settings.concurrency);
    this.#sessions = [store.session(), store.session()];
    this.#executor = new Executor(
      handler,
      settings,
      {
        ended: (run, settlement) => this.#end(run, settlement),
        freed: () => this.#freed(),
        concurrency: () => this.concurrency,
        started: (run) => this.#runs.add(run),
        extend: async (lease, job) => {
          await this.#runs.extend(job, parseDuration(lease, 'extend(lease)', LEASE_MS));
          this.#arm(performance.now());
        },
        instance: store.connection.instance,
        tracer: deps.tracer,
        lastTrace: async (id) => {
          const found = (await store.call('get', [id])) as string[] | null;
          return found ? decodeError(found[3]!).error?.trace : undefined;
        },
        payloads: deps.payloads,
        contextProvider: deps.contextProvider,
        schema: deps.schema,
        probe: deps.probe,
      },
      logger,
    );
    deps.pool.join(this);
  }

  get quarantined(): number {
    return this.#turn.quarantined;
  }

  /** What is due in a queue whose worker may take no job waits for that, and not for the end of a pause. */
  get caughtUpAt(): number {
    return this.concurrency === 0 || this.fault ? Infinity : this.#caughtUpAt;
  }

  get running(): number {
    return this.#held;
  }

  /** Of the whole queue; with `batch` of this shard, in batches. */
  get concurrency(): number {
    return this.deps.pool.size;
  }

  /** The concurrency of the queue has changed. */
  resized(more: boolean): void {
    // While it was full nobody told it of new heads.
    if (more) this.#poll.force();
    if (this.concurrency === 0) this.#turn.standDown();
    this.#pumpSoon();
  }

  wantsJobs(now: number): boolean {
    if (this.#stopping || !this.#started || this.#stepsOut > 0 || now < this.#faultUntil) return false;
    return this.#backlog || this.#poll.isDue(now);
  }

  get zombies(): number {
    return this.#executor.zombies;
  }

  // For the test kit, which moves the time of jobs by hand and must know when nothing happens any more.

  /** It runs something, or something that ended is not yet known to Redis. */
  get isBusy(): boolean {
    return this.#held + this.#ending + this.#buffer.size > 0;
  }

  /** A step is on its way. */
  get isAsking(): boolean {
    return this.#stepsOut > 0;
  }

  /** Claims whose leases its heartbeats renew. */
  get keptClaims(): number[] {
    return this.#runs.kept;
  }

  unfinished(): Iterable<Run> {
    return this.#runs.unfinished();
  }

  /** Monotonic ms at which the first of what runs has run out of time. */
  get nextTimeout(): number {
    let next = this.#executor.batches?.nextTimeout ?? Infinity;
    for (const { timeout } of this.#runs.unfinished()) if (timeout) next = Math.min(next, timeout.at);
    return next;
  }

  /** Takes `ms` from what is left of timeouts, of leases that nothing renews, and of waiting for a turn. */
  hasten(ms: number): void {
    for (const run of this.#runs.unfinished()) this.#executor.hasten(run, ms);
    this.#executor.batches?.hasten(ms);
    this.#runs.hasten(ms);
    this.#turn.hasten(ms);
    if (this.deps.heartbeats === false) this.#pumpSoon();
  }

  /** A batch waits for no more jobs. */
  hurry(): void {
    this.#executor.batches?.flush();
  }

  /** As if the process had died: nothing that runs is settled, no lease is renewed, nobody is told. */
  crash(): void {
    this.#stopping = this.#closed = true;
    this.#alarm.clear();
    this.#patience.clear();
    for (const run of this.#runs.unfinished()) {
      this.#executor.abandon(run, new LeaseLostError(this.queue, run.id));
      if (!run.lapsed) this.#leaveSlot(run.quarantined);
    }
    for (const ended of this.#buffer.take(Infinity).ended) tellSettled(ended.onSettled, true);
    this.#executor.batches?.close();
    this.#runs.close();
    this.deps.gate.leave(this);
    this.deps.pool.leave(this);
    this.#settled?.(true);
  }

  start(): void {
    if (this.#stopping) return; // closed before the subscription, which comes first, was confirmed
    this.#started = true;
    this.deps.gate.join(this);
    this.#pump();
  }

  /** Jobs may be due now, or may have been missed. */
  wake(): void {
    this.#poll.force();
    this.#pump();
  }

  reconsider(): void {
    this.#pumpSoon();
  }

  resume(): void {
    this.#poll.force();
    this.#pumpSoon();
  }

  markAccompanied(withQuarantined: boolean): void {
    this.#runs.markAccompanied(withQuarantined);
    this.#speak = true;
    this.#pump();
  }

  /**
   * Stops claiming, waits for handlers up to `drainMs`, then aborts and hands back the rest, uncharged. Called again, the
   * sooner of the deadlines counts.
   */
  stop(drainMs: number): Promise<void> {
    this.#drainUntil = Math.min(this.#drainUntil, performance.now() + drainMs);
    if (!this.#handingBack) this.#patience.set(this.#drainUntil);
    this.#stopped ??= this.#drain();
    return this.#stopped;
  }

  async #drain(): Promise<void> {
    this.#stopping = true;
    if (!this.#started) {
      this.#handingBack = true;
      return this.#patience.clear();
    }
    this.deps.gate.leave(this);
    this.deps.pool.leave(this);
    const empty = () => this.#held + this.#ending + this.#buffer.size + this.#stepsOut === 0;
    this.#executor.batches?.close();
    this.#pump();
    await this.#until(() => empty() && !this.#executor.batches?.running);
    this.#handingBack = true;
    for (const run of this.#runs.unfinished()) {
      this.handedBack++;
      this.#executor.abandon(run, new ShutdownError(this.queue, run.id));
      this.#end(run, { verb: 'release', dueAt: run.job.dueAt.getTime() });
    }
    this.#patience.set(performance.now() + this.deps.commandTimeoutMs);
    this.#pump();
    if (!(await this.#until(empty)) && this.#buffer.size > 0) {
      const open = `${this.#buffer.size} endings could not be told to Redis`;
      this.deps.logger.warn(`Queue "${this.queue}": ${open}; their leases will run out.`, { queue: this.queue });
    }
    this.#closed = true;
    this.#alarm.clear();
    this.#patience.clear();
    for (const ended of this.#buffer.take(Infinity).ended) tellSettled(ended.onSettled, true);
    await this.deps.store.leave(this.#name, [...this.#sessions, this.#runs.close()]).catch(() => undefined);
  }

  // --- What ended -------------------------------------------------------------------------------------------------------

  #end(run: Run, settlement: Settlement): void {
    run.ended = true;
    if (!run.lapsed) this.#leaveSlot(run.quarantined);
    if (!run.extending) return this.#toBeSettled(run, settlement);
    this.#ending++;
    void run.extending.then(() => {
      this.#ending--;
      this.#toBeSettled(run, settlement);
    });
  }

  #leaveSlot(quarantined: boolean): void {
    this.#held--;
    this.deps.pool.release(1);
    this.deps.gate.ended(quarantined);
  }

  #freed(): void {
    // While all batches ran nobody told it of new heads, and when their jobs were settled before nothing asks for more.
    this.#poll.force();
    this.#settled?.();
    this.#pumpSoon();
  }

  #toBeSettled(run: Run, settlement: Settlement): void {
    const { id, claim, job, cameBackDue } = run;
    if (run.lost) {
      this.#runs.forget(run);
      // Nothing is to be settled, so that no step would ask for the slot that is free now.
      this.#poll.force();
    } else if (cameBackDue === undefined) this.#buffer.add({ id, claim, settlement, onSettled: job.onSettled, run });
    else {
      const handBack = { verb: 'release', dueAt: cameBackDue } as const;
      this.#buffer.add({ id, claim, settlement: handBack, onSettled: () => job.onSettled?.(true) });
    }
    this.#settled?.();
    this.#pumpSoon();
  }

  /** Once per turn of the event loop: handlers that end together travel together. */
  #pumpSoon(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#pump();
    });
  }

  // --- What to ask for --------------------------------------------------------------------------------------------------

  #pump(): void {
    if (this.#closed || !this.#started) return;
    const now = performance.now();
    const patienceMs = Math.min(this.deps.commandTimeoutMs, this.deps.settings.leaseMs);
    for (const run of this.#runs.abortOverdue(now, patienceMs)) {
      this.#leaveSlot(run.quarantined);
      run.job.onLapsed?.();
    }
    if (now >= this.#faultUntil) {
      for (const session of this.#sessions) {
        if (session.busy) continue;
        const request = this.#plan(now);
        if (!request) break;
        void this.#send(session, request);
      }
    }
    this.#arm(now);
  }

  /** Jobs that may be asked for. */
  get #free(): number {
    const { batches } = this.#executor;
    return batches ? batches.free(this.#held) - this.#wanted : this.deps.pool.freeFor(this);
  }

  #plan(now: number): StepRequest | undefined {
    const { gate, pool, settings } = this.deps;
    const { batches } = this.#executor;
    const outstanding = this.#stepsOut > 0;
    const free = this.#stopping ? 0 : this.#free;
    const mayClaim = free > 0 && gate.isOpen;
    if (batches && !gate.isOpen) batches.flush();
    const { jobs: quarantineLimit, quarantinedForMs } = this.#turn.want(now, free, this.#stepsOut);
    const heartbeat = this.#speak || now >= this.#runs.nextHeartbeat;
    let limit = 0;
    if (
      quarantineLimit === 0 &&
      mayClaim &&
      !this.#turn.isAsking &&
      (!outstanding || this.#backlog || this.#poll.isForced)
    ) {
      const split = pool.size >= SPLIT_FROM ? Math.ceil(pool.size / 2) : pool.size;
      const cap = batches ? batches.claimSize() : Math.min(split, pool.shareOf(this, now));
      if (this.#buffer.size > 0 || heartbeat || this.#poll.isDue(now)) limit = Math.min(free, cap, STEP_MAX_JOBS);
    }

    // Claiming pauses in this process, or other shards have all slots: this one only shows that it lives, and lets others be
    // woken instead.
    const noSlot = free <= 0 && !this.#stopping && pool.isShared && pool.size > 0;
    const waitsForTurn = (noSlot || (free > 0 && !mayClaim)) && !outstanding && this.#poll.isDue(now);
    if (noSlot && (this.#backlog || this.#buffer.size > 0 || this.#poll.isDue(now))) pool.wait(this);
    // Two claims that were out together brought more than either knew of: Redis counts this worker among those that wait.
    const maySplit = pool.size >= SPLIT_FROM && !pool.isShared;
    const full = maySplit && free <= 0 && !outstanding && this.#idleUntil > now;
    this.#fullSince = full ? Math.min(this.#fullSince, now) : Infinity;
    const leavesIdle = now >= this.#fullSince + FULL_FOR_MS;
    const asksIsolation = this.#turn.asksIsolation(now);
    const solo = quarantineLimit > 0 || asksIsolation;
    const speaks = heartbeat || solo || waitsForTurn || leavesIdle;
    if (this.#buffer.size + limit === 0 && !speaks) return undefined;
    // The second session is for throughput: below a quarter of the slots waiting for the first one costs less.
    if (outstanding && !heartbeat && !this.#poll.isForced && this.#buffer.size + limit < pool.fairShare / 4)
      return undefined;

    const settle = this.#buffer.take(STEP_MAX_JOBS);
    const company = limit > 0 ? 'due' : quarantineLimit > 0 ? 'quarantined' : undefined;
    const renewals = this.#runs.renewals(heartbeat, company, settle, now);
    this.#speak = false;
    // What a heartbeat was due for is being settled on the other session.
    if (settle.ended.length + renewals.length + limit === 0 && !solo && !waitsForTurn && !leavesIdle) return undefined;
    const hasFreeSlots = mayClaim && (free > limit || this.#wanted > 0);
    const claimInFlight = free <= 0 && this.#wanted > 0 && !this.#stopping && gate.isOpen;
    if (limit === 0 && !hasFreeSlots && !claimInFlight) this.#idleUntil = 0;
    const refreshIdle = (limit > 0 || hasFreeSlots) && now > this.#idleUntil - PollSchedule.IDLE_SLACK_MS / 2;
    const idleForMs = Math.ceil(this.#poll.longestMs + PollSchedule.IDLE_SLACK_MS);
    if (refreshIdle) this.#idleUntil = now + idleForMs;
    if (limit > 0 || waitsForTurn) this.#poll.asked();
    return {
      limit,
      quarantineLimit,
      quarantinedForMs,
      leaseMs: settings.leaseMs,
      idleForMs,
      renewals,
      settle,
      // A step that is out and may bring nothing, such as one that settles, is no company.
      isSole: limit + quarantineLimit > 0 && gate.isEmpty,
      hasFreeSlots,
      claimInFlight,
      refreshIdle,
      // Claims that this step cannot speak for may have ended while the process was frozen: first they are renewed.
      sweep: now < this.#runs.nextHeartbeat && this.#poll.takeSweep(now),
      asksIsolation,
      deadLetters: this.deps.deadLetters,
      keepCompleted: settings.keepCompleted,
    };
  }

  #arm(now: number): void {
    if (this.#closed) return;
    let at = this.#runs.nextMoment;
    if (!this.#stopping && this.#stepsOut === 0) {
      const { pool } = this.deps;
      if ((pool.isShared && pool.size > 0) || this.#free > 0) at = Math.min(at, this.#poll.at);
      at = Math.min(at, this.#turn.nextMoment(this.#free), this.#fullSince + FULL_FOR_MS);
    }
    if (now < this.#faultUntil) at = Math.min(at, this.#faultUntil);
    // Both sessions wait for answers, or this is a fault's pause: look again soon, but never spin.
    if (this.#sessions.every((session) => session.busy)) at = Math.min(at, now + LOOK_AT_LEASES_MS);
    if (at <= now) at = now + (now < this.#faultUntil || this.#stepsOut > 0 ? LOOK_AT_LEASES_MS : NEVER_SPIN_MS);
    this.#alarm.set(at);
  }

  // --- The round trip ---------------------------------------------------------------------------------------------------

  async #send(session: Session, request: StepRequest): Promise<void> {
    const { gate, pool, store } = this.deps;
    const asked = request.limit + request.quarantineLimit;
    const quarantined = request.quarantineLimit > 0;
    const mark = asked > 0 ? gate.asking(this, asked, quarantined) : 0;
    const sentAt = performance.now();
    this.#stepsOut++;
    this.#wanted += asked;
    const slots = pool.reserve(this, asked, sentAt);
    if (quarantined) this.#turn.asks(request.quarantinedForMs);
    let reply: StepReply | undefined;
    try {
      reply = await store.step(
        session,
        this.#name,
        request,
        () => this.#closed || (this.#stopping && request.settle.ended.length === 0),
      );
    } catch (error) {
      this.#buffer.giveBack(request.settle);
      this.#runs.notRenewed(request.renewals);
      this.#fail(error);
    }
    this.#stepsOut--;
    this.#wanted -= asked;
    if (!reply || this.#closed) {
      pool.answered(slots, 0);
      if (asked > 0) gate.brought(this, mark, asked, { jobs: 0, quarantined, charge: 'no' });
      if (quarantined) this.#turn.fails();
      if (this.#closed) for (const ended of request.settle.ended) tellSettled(ended.onSettled, true);
      this.#settled?.();
      this.#arm(performance.now()); // Only now: before, a step was out whose answer would have been the next moment.
      return;
    }
    this.#recover();
    if (channels.step.hasSubscribers) this.#tellStep(request, sentAt);
    this.#runs.confirm(request.settle, request.renewals, reply, this.queue, sentAt);
    if (reply.paused || reply.head === undefined || reply.head > reply.now)
      this.#caughtUpAt = Math.max(this.#caughtUpAt, sentAt);
    this.#schedulePoll(request, reply);
    this.#receive(request, reply, sentAt, mark, slots);
    this.#turn.answered(request, reply);
    if (request.limit > reply.jobs.length || this.#isBarred) this.onEmpty?.();
    this.#settled?.();
    this.#pump();
  }

  /** There are free slots, and for as long as claiming pauses here nothing will fill them. */
  get #isBarred(): boolean {
    const { gate } = this.deps;
    return this.#free > 0 && !gate.isOpen && !gate.isEmpty;
  }

  #tellStep({ limit, quarantineLimit, settle }: StepRequest, sentAt: number): void {
    const kind = limit + quarantineLimit > 0 ? 'claim' : settle.ended.length > 0 ? 'settle' : 'heartbeat';
    const { instance } = this.deps.store.connection;
    channels.step.publish({ instance, queue: this.queue, kind, durationMs: performance.now() - sentAt });
  }

  #schedulePoll({ limit, hasFreeSlots, claimInFlight }: StepRequest, reply: StepReply): void {
    this.lastAnswerAt = performance.now();
    this.hasAnswer = true;
    this.paused = reply.paused;
    if (limit > 0) {
      this.#backlog = reply.jobs.length === limit;
      if (this.#backlog && !hasFreeSlots) this.#idleUntil = 0;
    }
    this.#poll.answered(
      reply,
      this.lastAnswerAt,
      limit > 0,
      limit > 0 && this.#backlog,
      limit > 0 || hasFreeSlots || claimInFlight,
    );
  }

  /** Starts what a step brought. */
  #receive(request: StepRequest, reply: StepReply, sentAt: number, mark: number, slots: Reservation): void {
    const { gate, pool, settings } = this.deps;
    const asked = request.limit + request.quarantineLimit;
    if (asked === 0) return;
    const quarantined = request.quarantineLimit > 0;
    const charge = chargeOf(request, reply);
    if (reply.jobs.length === 0) {
      pool.answered(slots, 0);
      return gate.brought(this, mark, asked, { jobs: 0, quarantined, charge });
    }
    const { claim, fresh, replaced } = this.#runs.open(reply, sentAt, charge);
    for (const run of replaced) {
      clearTimeout(run.timer);
      this.#leaveSlot(run.quarantined);
    }
    // An answer that took longer than the lease may speak of jobs that others run by now: hand them back.
    const tooLate = this.lastAnswerAt - sentAt >= settings.leaseMs;
    const starting = pool.answered(slots, tooLate || this.#stopping ? 0 : fresh.length);
    // First: whoever hears of the company may plan the next step at once, and these slots are taken.
    this.#held += starting;
    gate.brought(this, mark, asked, { jobs: starting, quarantined, charge });
    for (const [n, record] of fresh.entries()) {
      if (n < starting) this.#start(record, claim, reply.now, quarantined);
      else this.#buffer.add({ id: record.id, claim, settlement: { verb: 'release', dueAt: record.dueAt } });
    }
  }

  /** Its slot is taken already. */
  #start(record: ClaimedRecord, claim: Claim, now: number, quarantined: boolean): void {
    const settlement = this.#executor.start(record, claim, now, quarantined);
    if (!settlement) return;
    this.#leaveSlot(quarantined);
    const { attempts, dueAt } = record;
    const notStarted = endingsAreHeard()
      ? { attempt: attempts.charged, latenessMs: Math.max(0, now - dueAt) || 0 }
      : undefined;
    this.#buffer.add({ id: record.id, claim, settlement, notStarted });
    this.#pumpSoon();
  }

  // --- Trouble ----------------------------------------------------------------------------------------------------------

  #fail(error: unknown): void {
    if (this.#closed) return;
    if (this.#stopping) {
      // A step that settles nothing need not outlive the wish to stop, but an overdue heartbeat would be sent again at once.
      this.#faultUntil = performance.now() + STOPPING_PAUSE_MS;
      return;
    }
    const fault = typedError(error, `a step of queue "${this.queue}"`);
    if (this.fault?.message !== fault.message)
      this.deps.logger.error(`${fault.message} The worker tries again every second.`, { queue: this.queue });
    this.fault = fault;
    this.#poll.force(); // Whatever told it to look was answered by nothing.
    this.#faultUntil = performance.now() + FAULT_PAUSE_MS;
  }

  #recover(): void {
    if (!this.fault) return;
    this.fault = undefined;
    this.deps.logger.log(`Queue "${this.queue}" is being drained again.`, { queue: this.queue });
  }

  /** @returns whether it is done; false when patience ended first */
  async #until(done: () => boolean): Promise<boolean> {
    if (done()) return true;
    return new Promise((resolve) => {
      this.#settled = (timeUp = false) => {
        if (!timeUp && !done()) return;
        this.#settled = undefined;
        resolve(done());
      };
    });
  }
}

/** As lib/lua/step.lua marks the claim. */
function chargeOf({ isSole, quarantineLimit }: StepRequest, { jobs }: StepReply): Charge {
  if (jobs.length !== 1) return 'no';
  if (quarantineLimit > 0 && isRepeated(jobs[0]!.attempts)) return 'repeated';
  return isSole ? 'alone' : 'no';
}
