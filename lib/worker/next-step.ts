import type { StepReply } from '../redis/step.protocol.js';
import { AnswerSize } from './answer-size.js';
import type { ClaimedJobs } from './claimed-jobs.js';
import { IdleEntry } from './idle-entry.js';
import type { IsolationMember } from './isolation/isolation-gate.js';
import { QuarantineTurn } from './isolation/quarantine-turn.js';
import type { Ask, Occupancy } from './occupancy.js';
import { PollSchedule } from './poll-schedule.js';
import type { SlotUser } from './slot-pool.js';
import { FULL_FOR_MS, isSupplied, planStep, SPLIT_FROM, type StepDraft, type StepView } from './step-planner.js';
import type { StepRequest } from './step-request.js';
import type { ShardWorkerDeps } from './worker-deps.js';

/**
 * When the next step of one shard leaves, and what it asks for. `planStep` decides; this class gives it a view of the
 * worker, applies the plan, and keeps what the answers say about the queue: when to poll next, whether more is due, and
 * which workers wait.
 */
export class NextStep {
  readonly #poll: PollSchedule;
  readonly turn: QuarantineTurn;
  /** Monotonic ms of the last request whose answer left nothing due behind. */
  caughtUpAt = -Infinity;
  /** Written anew for each plan. */
  readonly #view = {} as StepView;
  /** The last claim brought as many jobs as it had slots for, and one at least. */
  #backlog = false;
  /** Nothing is given ahead. */
  #isLimited = false;
  /** No job may start before one ends: see `StepView`. */
  #isAtLimit = false;
  /** The queue runs as many jobs as its `globalConcurrency` allows. */
  #hasNoPlace = false;
  /** Redis must hear at once that a job shares the process now. */
  #speak = false;
  readonly #idle = new IdleEntry();
  readonly #answerSize = new AnswerSize();
  /** Since when (monotonic ms) it is full although Redis has it on the list of idle workers. */
  #fullSince = Infinity;

  constructor(
    private readonly deps: ShardWorkerDeps,
    private readonly worker: IsolationMember & SlotUser & { readonly concurrency: number },
    private readonly jobs: ClaimedJobs,
    private readonly occupancy: Occupancy,
  ) {
    const { settings, gate } = deps;
    this.#poll = new PollSchedule(settings.leaseMs);
    this.turn = new QuarantineTurn(gate, worker, settings.concurrency);
  }

  /** Jobs may be due now, or may have been missed. */
  look(): void {
    this.#poll.force();
  }

  /**
   * A slot is free, and nothing is to be settled that would make a step ask for it. None leaves beside other free slots, or while claiming
   * pauses here, whose end makes it look: else thousands of jobs that had lost their leases would send one each.
   */
  slotIsFree(): void {
    if (this.deps.gate.isOpen && (this.jobs.executor.batches || this.#free <= 1)) this.#poll.force();
  }

  /** The next step tells Redis which jobs share the process. */
  speak(): void {
    this.#speak = true;
  }

  /** It would ask for jobs if it had a slot. */
  isWanted(now: number): boolean {
    return this.#backlog || this.#poll.isDue(now);
  }

  /** There are free slots, and for as long as claiming pauses here nothing will fill them. */
  get isBarred(): boolean {
    const { gate } = this.deps;
    return this.#free > 0 && !gate.isOpen && !gate.isEmpty;
  }

  /** Monotonic ms at which something is to be done, when no answer comes before. */
  nextMoment(isStopping: boolean): number {
    let at = this.jobs.runs.nextMoment;
    if (this.occupancy.stepsOut > 0) return at;
    const fullAt = this.#fullSince + FULL_FOR_MS;
    if (isStopping) return Math.min(at, fullAt);
    const { pool } = this.deps;
    const free = this.#free;
    if ((pool.isShared && pool.size > 0) || free + this.#ahead(false) > 0) at = Math.min(at, this.#poll.at);
    return Math.min(at, this.turn.nextMoment(free), fullAt);
  }

  /** @returns undefined when no step leaves now. The request takes its endings and renewals: no other step has them */
  plan(now: number, isStopping: boolean): StepRequest | undefined {
    const { waitsForSlot, fullSince, request } = planStep(this.#look(now, isStopping));
    this.jobs.executor.batches?.expect(this.deps.gate.isOpen && !this.#hasNoPlace);
    if (waitsForSlot) this.deps.pool.wait(this.worker);
    this.#fullSince = fullSince;
    return request && this.#complete(request, now);
  }

  /** The step leaves. */
  sent({ limit, quarantineLimit, quarantinedForMs }: StepRequest, now: number): Ask {
    // First: another worker hears of what this one asks for, and may plan at once. Nothing may join a job that is to run alone.
    if (quarantineLimit > 0) this.turn.asks(quarantinedForMs);
    return this.occupancy.ask(limit + quarantineLimit, quarantineLimit > 0, now);
  }

  /** It got no answer that counts. */
  failed({ quarantineLimit }: StepRequest): void {
    if (quarantineLimit > 0) this.turn.fails();
  }

  /** The time of the store goes on only when somebody moves it, who then wakes this worker: so does the test kit. */
  timeStandsStill(): void {
    this.#poll.timePasses = false;
  }

  /** It was answered; the jobs that it brought have not been started. @returns as of `PollSchedule` */
  answered(request: StepRequest, reply: StepReply, sentAt: number, now: number, mayRest: boolean): boolean | undefined {
    const { limit, ahead, hasFreeSlots, claimInFlight } = request;
    if (reply.paused || reply.head === undefined || reply.head > reply.now)
      this.caughtUpAt = Math.max(this.caughtUpAt, sentAt);
    this.#hasNoPlace = reply.hasNoPlace;
    this.#isAtLimit = reply.isLimited && reply.head === undefined;
    if (limit > 0) {
      this.#answerSize.answered(reply);
      this.#isLimited = reply.isLimited;
      this.#backlog = isSupplied(limit - ahead, reply.jobs.length);
    }
    if (this.#idle.answered(request, reply.jobs.length, sentAt)) this.#poll.force();
    const mayAsk = limit > 0 || hasFreeSlots || claimInFlight;
    return this.#poll.answered(reply, sentAt, now, limit > 0, this.#backlog, mayAsk, limit > ahead, mayRest);
  }

  /** Jobs that may be asked for. */
  get #free(): number {
    const { batches } = this.jobs.executor;
    const { held, wanted } = this.occupancy;
    const { pool } = this.deps;
    return batches ? batches.free(pool.batchesFor(this.worker), held) - wanted : pool.freeFor(this.worker);
  }

  #look(now: number, isStopping: boolean): StepView {
    const { gate, pool } = this.deps;
    const { batches } = this.jobs.executor;
    const { stepsOut, wanted } = this.occupancy;
    const view = this.#view;
    const free = isStopping ? 0 : this.#free;
    view.now = now;
    view.isStopping = isStopping;
    view.stepsOut = stepsOut;
    view.wanted = wanted;
    view.free = free;
    view.ahead = this.#ahead(isStopping);
    const size =
      free + view.ahead > 0 ? (batches ? batches.claimSize(pool.shareOf(this.worker, now)) : this.#share(now)) : 0;
    view.claimSize = Math.min(size, this.#answerSize.most);
    view.slots = pool.size;
    view.looksOnce = pool.looksOnce;
    view.isShared = pool.isShared;
    view.fairShare = pool.fairShare;
    view.ended = this.jobs.untold;
    view.backlog = this.#backlog;
    view.isAtLimit = this.#isAtLimit;
    view.isForced = this.#poll.isForced;
    view.isPollDue = this.#poll.isDue(now);
    view.longestPollMs = this.#poll.longestMs;
    view.heartbeat = this.#speak || now >= this.jobs.runs.nextHeartbeat;
    view.isOpen = gate.isOpen;
    view.isEmpty = gate.isEmpty;
    view.quarantine = this.turn.want(now, free, stepsOut);
    view.isQuarantineAsked = this.turn.isAsking;
    view.asksIsolation = this.turn.asksIsolation(now);
    view.idleUntil = this.#idle.until;
    view.fullSince = this.#fullSince;
    return view;
  }

  /** Jobs that may be asked for before there is a slot for them. */
  #ahead(isStopping: boolean): number {
    const { pool, gate } = this.deps;
    const { prefetch } = this.jobs.prefetched;
    if (prefetch.allowed === 0 || isStopping || !this.#backlog || this.#isLimited || pool.size === 0) return 0;
    // What waits for a slot would keep the process from becoming empty for a job from the quarantine.
    return gate.isOpen && this.turn.quarantined === 0 ? prefetch.allowed : 0;
  }

  #share(now: number): number {
    const { pool } = this.deps;
    const { ahead } = this.#view;
    const all = pool.size + ahead;
    const split = all >= SPLIT_FROM ? Math.ceil(all / 2) : all;
    return Math.min(split, pool.shareOf(this.worker, now) + ahead);
  }

  /** Takes the endings and renewals of a step. @returns undefined when there are none, and nothing else to send */
  #complete(draft: StepDraft, now: number): StepRequest | undefined {
    const { limit, ahead, quarantineLimit, heartbeat } = draft;
    const { runs } = this.jobs;
    const settle = this.jobs.takeEndings();
    const claims = limit > 0 ? 'due' : quarantineLimit > 0 ? 'quarantined' : undefined;
    const renewals = runs.renewals(heartbeat, claims, settle, now);
    this.#speak = false;
    // The jobs whose heartbeat was due are being settled on the other session.
    if (settle.ended.length + renewals.length === 0 && !draft.saysSomething) return undefined;
    this.#idle.until = draft.idleUntil;
    if (draft.looks) this.#poll.asked();
    const { settings, deadLetters } = this.deps;
    return {
      limit,
      ahead,
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
      looksOnce: draft.looksOnce,
      // Leases that this step cannot renew may have ended while the process was frozen: they are renewed before it
      // recovers.
      sweep: now < runs.nextHeartbeat && this.#poll.takeSweep(now),
      asksIsolation: draft.asksIsolation,
      deadLetters,
      keepCompleted: settings.keepCompleted,
    };
  }
}
