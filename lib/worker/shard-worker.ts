import { channels } from '../delay-queue.channels.js';
import { LeaseLostError, ShutdownError } from '../delay-queue.errors.js';
import type { DelayQueueError } from '../delay-queue.errors.js';
import type { DelayQueueLogger } from '../delay-queue.logger.js';
import type { ResolvedModuleOptions } from '../delay-queue.options.js';
import type { ResolvedHandlerSettings } from '../handlers/handler-settings.js';
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
import { Occupancy } from './occupancy.js';
import type { Ask } from './occupancy.js';
import { PollSchedule } from './poll-schedule.js';
import type { Run } from './run.js';
import { ActiveRuns } from './active-runs.js';
import { tellSettled } from './settlement.js';
import type { Settlement } from './settlement.js';
import type { SlotPool, SlotUser } from './slot-pool.js';
import { FULL_FOR_MS, planStep, SPLIT_FROM } from './step-planner.js';
import type { StepDraft, StepView } from './step-planner.js';
import { SettlementBuffer } from './settlement-buffer.js';
import type { Probe } from './probe.js';
import { clearTimeout, performance, setImmediate } from '../time-and-randomness.js';

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

/** After an error that waiting does not cure (a wrong type, no permission): slow enough to be harmless, quick once mended. */
const FAULT_PAUSE_MS = 1_000;
/** The same while the process stops, which must not take much longer for it. */
const STOPPING_PAUSE_MS = 200;
/** While no step can leave, leases still end. */
const LOOK_AT_LEASES_MS = 500;
const NEVER_SPIN_MS = 5;

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
  readonly #occupancy: Occupancy;
  /** Written anew for each plan. */
  readonly #view = {} as StepView;
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
    this.#occupancy = new Occupancy(this, deps.pool, deps.gate);
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
  }

  get quarantined(): number {
    return this.#turn.quarantined;
  }

  /** What is due in a queue whose worker may take no job waits for that, and not for the end of a pause. */
  get caughtUpAt(): number {
    return this.concurrency === 0 || this.fault ? Infinity : this.#caughtUpAt;
  }

  get running(): number {
    return this.#occupancy.held;
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
    if (this.#stopping || !this.#started || this.#occupancy.stepsOut > 0 || now < this.#faultUntil) return false;
    return this.#backlog || this.#poll.isDue(now);
  }

  get zombies(): number {
    return this.#executor.zombies;
  }

  // For the test kit, which moves the time of jobs by hand and must know when nothing happens any more.

  /** It runs something, or something that ended is not yet known to Redis. */
  get isBusy(): boolean {
    const { held, ending } = this.#occupancy;
    return held + ending + this.#buffer.size > 0;
  }

  /** A step is on its way. */
  get isAsking(): boolean {
    return this.#occupancy.stepsOut > 0;
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
      if (!run.lapsed) this.#occupancy.ended(run.quarantined);
    }
    for (const ended of this.#buffer.take(Infinity).ended) tellSettled(ended.onSettled, true);
    this.#executor.batches?.close();
    this.#runs.close();
    this.#occupancy.leave();
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
    this.#occupancy.leave();
    const empty = () => this.#occupancy.isEmpty && this.#buffer.size === 0;
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
    if (!run.lapsed) this.#occupancy.ended(run.quarantined);
    if (!run.extending) return this.#toBeSettled(run, settlement);
    this.#occupancy.ending++;
    void run.extending.then(() => {
      this.#occupancy.ending--;
      this.#toBeSettled(run, settlement);
    });
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
      this.#occupancy.ended(run.quarantined);
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
    const { held, wanted } = this.#occupancy;
    return batches ? batches.free(held) - wanted : this.deps.pool.freeFor(this);
  }

  #plan(now: number): StepRequest | undefined {
    const { effects, fullSince, request } = planStep(this.#look(now));
    for (const effect of effects) {
      if (effect === 'flushBatches') this.#executor.batches?.flush();
      else this.deps.pool.wait(this);
    }
    this.#fullSince = fullSince;
    return request && this.#complete(request, now);
  }

  #look(now: number): StepView {
    const { gate, pool } = this.deps;
    const { batches } = this.#executor;
    const { stepsOut, wanted } = this.#occupancy;
    const view = this.#view;
    const free = this.#stopping ? 0 : this.#free;
    view.now = now;
    view.isStopping = this.#stopping;
    view.stepsOut = stepsOut;
    view.wanted = wanted;
    view.free = free;
    view.claimSize = free > 0 ? (batches ? batches.claimSize() : this.#share(now)) : 0;
    view.slots = pool.size;
    view.isShared = pool.isShared;
    view.fairShare = pool.fairShare;
    view.ended = this.#buffer.size;
    view.backlog = this.#backlog;
    view.isForced = this.#poll.isForced;
    view.isPollDue = this.#poll.isDue(now);
    view.longestPollMs = this.#poll.longestMs;
    view.heartbeat = this.#speak || now >= this.#runs.nextHeartbeat;
    view.isOpen = gate.isOpen;
    view.isEmpty = gate.isEmpty;
    view.quarantine = this.#turn.want(now, free, stepsOut);
    view.isQuarantineAsked = this.#turn.isAsking;
    view.asksIsolation = this.#turn.asksIsolation(now);
    view.idleUntil = this.#idleUntil;
    view.fullSince = this.#fullSince;
    return view;
  }

  #share(now: number): number {
    const { pool } = this.deps;
    const split = pool.size >= SPLIT_FROM ? Math.ceil(pool.size / 2) : pool.size;
    return Math.min(split, pool.shareOf(this, now));
  }

  /** Takes the endings and renewals of a step. @returns undefined when there are none, and nothing else to say */
  #complete(draft: StepDraft, now: number): StepRequest | undefined {
    const { limit, quarantineLimit, heartbeat } = draft;
    const settle = this.#buffer.take(STEP_MAX_JOBS);
    const company = limit > 0 ? 'due' : quarantineLimit > 0 ? 'quarantined' : undefined;
    const renewals = this.#runs.renewals(heartbeat, company, settle, now);
    this.#speak = false;
    // What a heartbeat was due for is being settled on the other session.
    if (settle.ended.length + renewals.length === 0 && !draft.saysSomething) return undefined;
    this.#idleUntil = draft.idleUntil;
    if (draft.looks) this.#poll.asked();
    const { settings, deadLetters } = this.deps;
    return {
      limit,
      quarantineLimit,
      quarantinedForMs: draft.quarantinedForMs,
      leaseMs: settings.leaseMs,
      idleForMs: draft.idleForMs,
      renewals,
      settle,
      isSole: draft.isSole,
      hasFreeSlots: draft.hasFreeSlots,
      claimInFlight: draft.claimInFlight,
      refreshIdle: draft.refreshIdle,
      // Claims that this step cannot speak for may have ended while the process was frozen: first they are renewed.
      sweep: now < this.#runs.nextHeartbeat && this.#poll.takeSweep(now),
      asksIsolation: draft.asksIsolation,
      deadLetters,
      keepCompleted: settings.keepCompleted,
    };
  }

  #arm(now: number): void {
    if (this.#closed) return;
    let at = this.#runs.nextMoment;
    if (!this.#stopping && this.#occupancy.stepsOut === 0) {
      const { pool } = this.deps;
      if ((pool.isShared && pool.size > 0) || this.#free > 0) at = Math.min(at, this.#poll.at);
      at = Math.min(at, this.#turn.nextMoment(this.#free), this.#fullSince + FULL_FOR_MS);
    }
    if (now < this.#faultUntil) at = Math.min(at, this.#faultUntil);
    // Both sessions wait for answers, or this is a fault's pause: look again soon, but never spin.
    if (this.#sessions.every((session) => session.busy)) at = Math.min(at, now + LOOK_AT_LEASES_MS);
    if (at <= now)
      at = now + (now < this.#faultUntil || this.#occupancy.stepsOut > 0 ? LOOK_AT_LEASES_MS : NEVER_SPIN_MS);
    this.#alarm.set(at);
  }

  // --- The round trip ---------------------------------------------------------------------------------------------------

  async #send(session: Session, request: StepRequest): Promise<void> {
    const { store } = this.deps;
    const quarantined = request.quarantineLimit > 0;
    const sentAt = performance.now();
    const ask = this.#occupancy.ask(request.limit + request.quarantineLimit, quarantined, sentAt);
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
    this.#occupancy.arrived(ask);
    if (!reply || this.#closed) {
      this.#occupancy.brought(ask, 0, 'no');
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
    this.#receive(request, reply, ask);
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
  #receive(request: StepRequest, reply: StepReply, ask: Ask): void {
    const charge = chargeOf(request, reply);
    if (reply.jobs.length === 0) return void this.#occupancy.brought(ask, 0, charge);
    const { at: sentAt, quarantined } = ask;
    const { claim, fresh, replaced } = this.#runs.open(reply, sentAt, charge);
    for (const run of replaced) {
      clearTimeout(run.timer);
      this.#occupancy.ended(run.quarantined);
    }
    // An answer that took longer than the lease may speak of jobs that others run by now: hand them back.
    const tooLate = this.lastAnswerAt - sentAt >= this.deps.settings.leaseMs;
    const starting = this.#occupancy.brought(ask, tooLate || this.#stopping ? 0 : fresh.length, charge);
    for (const [n, record] of fresh.entries()) {
      if (n < starting) this.#start(record, claim, reply.now, quarantined);
      else this.#buffer.add({ id: record.id, claim, settlement: { verb: 'release', dueAt: record.dueAt } });
    }
  }

  /** Its slot is taken already. */
  #start(record: ClaimedRecord, claim: Claim, now: number, quarantined: boolean): void {
    const settlement = this.#executor.start(record, claim, now, quarantined);
    if (!settlement) return;
    this.#occupancy.ended(quarantined);
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
