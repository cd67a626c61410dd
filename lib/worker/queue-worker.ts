import type { Logger } from '@nestjs/common';
import { JobCancelledError, LeaseLostError, ShutdownError } from '../delay-queue.errors.js';
import type { DelayQueueError } from '../delay-queue.errors.js';
import type { ResolvedHandlerSettings, ResolvedModuleOptions } from '../delay-queue.options.js';
import type { Handler } from '../handlers/handler.js';
import { parseDuration } from '../job/duration.js';
import type { Duration } from '../job/duration.js';
import type { Lane } from '../redis/lane.js';
import { typedError } from '../redis/redis.errors.js';
import type { ShardStore } from '../redis/shard.store.js';
import { STEP_MAX_JOBS } from '../redis/step.js';
import type { Renewal, StepReply, StepRequest } from '../redis/step.js';
import { Alarm } from './alarm.js';
import type { Company, CompanyMember } from './company.js';
import { Executor } from './executor.js';
import { LeaseBook } from './lease-book.js';
import type { Claim } from './lease-book.js';
import { NextLook } from './next-look.js';
import type { Run } from './run.js';
import type { Settlement } from './settlement.js';
import { SettlementBuffer } from './settlement-buffer.js';
import type { SettlementBatch } from './settlement-buffer.js';
import { SoloTurn } from './solo-turn.js';

export interface QueueWorkerDeps {
  handler: Handler;
  settings: ResolvedHandlerSettings;
  store: ShardStore;
  company: Company<QueueWorker>;
  deadLetters: ResolvedModuleOptions['deadLetters'];
  commandTimeoutMs: number;
  encodePayload(payload: unknown): string;
  logger: Logger;
}

/** From this concurrency on a claim asks for half the slots, so that Redis works on one step while Node works on the other. */
const SPLIT_FROM = 32;
/** After an error that waiting does not cure (a wrong type, no permission): slow enough to be harmless, quick once mended. */
const FAULT_PAUSE_MS = 1_000;
/** While no step can leave, leases still end. */
const LOOK_AT_LEASES_MS = 500;
const NEVER_SPIN_MS = 5;

/**
 * Drains one queue: decides what the next round trip asks for, sends it, starts what it brought.
 *
 * Two lanes, so that a step is on its way while the jobs of the other run; what is held plus what is asked for never
 * exceeds the concurrency (nothing is fetched ahead: a job leased here could run elsewhere).
 */
export class QueueWorker implements CompanyMember {
  readonly queue: string;
  /** Monotonic ms of the last answered step; what health calls the life of the loop. */
  lastAnswerAt = performance.now();
  /** The error of the loop, while it cannot make progress. */
  fault: DelayQueueError | undefined;
  paused = false;

  readonly #runs = new Map<string, Run>();
  readonly #leases: LeaseBook;
  readonly #buffer = new SettlementBuffer();
  readonly #lanes: readonly [Lane, Lane];
  readonly #extendLane: Lane;
  readonly #alarm = new Alarm(() => this.#pump());
  readonly #look: NextLook;
  readonly #solo: SoloTurn;
  readonly #executor: Executor;
  #extending: Promise<unknown> = Promise.resolve();
  #held = 0;
  #wanted = 0;
  #stepsOut = 0;
  #concurrency: number;
  #backlog = false;
  #speak = false;
  #scheduled = false;
  #started = false;
  #stopping = false;
  #closed = false;
  #idleUntil = 0;
  #faultUntil = 0;
  #settled: (() => void) | undefined;

  constructor(private readonly deps: QueueWorkerDeps) {
    const { handler, settings, store, logger } = deps;
    this.queue = handler.queue;
    this.#concurrency = settings.concurrency;
    this.#leases = new LeaseBook(settings.leaseMs);
    this.#look = new NextLook(settings.leaseMs);
    this.#solo = new SoloTurn(deps.company, this, settings.concurrency);
    this.#lanes = [store.lane(), store.lane()];
    this.#extendLane = store.lane();
    this.#executor = new Executor(
      handler,
      settings,
      {
        ended: (run, settlement) => this.#end(run, settlement),
        extend: (run, lease) => this.#extend(run, lease),
        encodePayload: deps.encodePayload,
      },
      logger,
    );
  }

  get suspects(): number {
    return this.#solo.suspects;
  }

  get running(): number {
    return this.#held;
  }

  get concurrency(): number {
    return this.#concurrency;
  }

  get zombies(): number {
    return this.#executor.zombies;
  }

  start(): void {
    this.#started = true;
    this.deps.company.join(this);
    this.#pump();
  }

  /** Jobs may be due now, or may have been missed. */
  kick(): void {
    this.#look.now();
    this.#pump();
  }

  leaveAlone(): void {
    for (const claim of this.#leases.all()) claim.alone = false;
    this.#speak = true;
    this.#pump();
  }

  /** Stops claiming, waits for handlers up to `drainMs`, then aborts and hands back the rest, uncharged. */
  async stop(drainMs: number): Promise<void> {
    if (this.#stopping || !this.#started) return;
    this.#stopping = true;
    this.deps.company.leave(this);
    const empty = () => this.#held === 0 && this.#buffer.size === 0 && this.#stepsOut === 0;
    this.#pump();
    await this.#until(empty, drainMs);
    for (const run of this.#runs.values()) {
      if (run.ended) continue;
      this.#executor.abandon(run, new ShutdownError(this.queue, run.id));
      this.#end(run, { verb: 'release', dueAt: run.job.dueAt.getTime() });
    }
    this.#pump();
    if (!(await this.#until(empty, this.deps.commandTimeoutMs))) {
      const open = this.#buffer.size;
      this.deps.logger.warn(`Queue "${this.queue}": ${open} endings could not be told to Redis; their leases will run out.`);
    }
    this.#closed = true;
    this.#alarm.clear();
    const lanes = [...this.#lanes, this.#extendLane];
    await Promise.all(lanes.map((lane) => this.deps.store.leave(lane).catch(() => undefined)));
  }

  // --- What ended -------------------------------------------------------------------------------------------------------

  #end(run: Run, settlement: Settlement): void {
    run.ended = true;
    this.#held--;
    this.deps.company.ended();
    if (!run.lost) this.#buffer.add({ id: run.id, claim: run.claim, settlement });
    else if (this.#runs.get(run.id) === run) this.#runs.delete(run.id);
    this.#settled?.();
    this.#schedule();
  }

  /** Once per turn of the event loop: handlers that end together travel together. */
  #schedule(): void {
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
    this.#abortOverdue(now);
    if (now >= this.#faultUntil) {
      for (const lane of this.#lanes) {
        if (lane.busy) continue;
        const request = this.#plan(now);
        if (!request) break;
        void this.#send(lane, request);
      }
    }
    this.#arm(now);
  }

  #plan(now: number): StepRequest | undefined {
    const { company, settings } = this.deps;
    const outstanding = this.#stepsOut > 0;
    const free = this.#stopping ? 0 : this.#concurrency - this.#held - this.#wanted;
    const mayClaim = free > 0 && company.mayClaim();
    const soloWant = this.#stopping ? 0 : this.#solo.want(now, this.#stepsOut);
    const heartbeat = this.#speak || now >= this.#leases.nextHeartbeat;
    let want = 0;
    if (soloWant === 0 && mayClaim && (!outstanding || this.#backlog || this.#look.isForced)) {
      const cap = this.#concurrency >= SPLIT_FROM ? Math.ceil(this.#concurrency / 2) : this.#concurrency;
      if (this.#buffer.size > 0 || heartbeat || this.#look.isDue(now)) want = Math.min(free, cap, STEP_MAX_JOBS);
    }

    // Another queue of this process runs suspects: this one only shows that it lives.
    const waitsForTurn = free > 0 && !mayClaim && !outstanding && this.#look.isDue(now);
    const solo = soloWant > 0 || this.#solo.mustSpeak(now);
    if (this.#buffer.size + want === 0 && !heartbeat && !solo && !waitsForTurn) return undefined;
    // The second lane is for throughput: below a quarter of the slots waiting for the first one costs less.
    if (outstanding && !heartbeat && !this.#look.isForced && this.#buffer.size + want < this.#concurrency / 4) return undefined;

    const settle = this.#buffer.take(STEP_MAX_JOBS);
    const renewals = this.#renewals(heartbeat, want > 0, settle);
    this.#speak = false;
    const moreFree = mayClaim && (free > want || this.#wanted > 0);
    if (want === 0 && !moreFree) this.#idleUntil = 0;
    const refreshIdle = (want > 0 || moreFree) && now > this.#idleUntil - NextLook.IDLE_SLACK_MS / 2;
    const idleForMs = Math.ceil(this.#look.longestMs + NextLook.IDLE_SLACK_MS);
    if (refreshIdle) this.#idleUntil = now + idleForMs;
    if (want + soloWant > 0 || waitsForTurn) this.#look.asked();
    return {
      want,
      soloWant,
      leaseMs: settings.leaseMs,
      idleForMs,
      renewals,
      settle,
      alone: want + soloWant > 0 && company.isEmpty && !outstanding,
      moreFree,
      refreshIdle,
      sweep: this.#look.takeSweep(now),
      volunteer: this.#solo.volunteers(now),
      deadLetters: this.deps.deadLetters,
    };
  }

  /** Claims to renew, with what will be held of them once `settle` is done. */
  #renewals(heartbeat: boolean, claims: boolean, settle: SettlementBatch): Renewal[] {
    const renewals: Renewal[] = [];
    for (const claim of this.#leases.all()) {
      if (claim.alone && claims) claim.alone = false;
      else if (!heartbeat) continue;
      let held = claim.unsettled;
      for (const ended of settle.ended) if (ended.claim === claim) held--;
      if (held > 0) renewals.push({ claim, held });
    }
    return renewals;
  }

  #arm(now: number): void {
    if (this.#closed) return;
    let at = this.#leases.nextHeartbeat;
    if (!this.#stopping && this.#stepsOut === 0) {
      if (this.#concurrency - this.#held - this.#wanted > 0) at = Math.min(at, this.#look.at);
      at = Math.min(at, this.#solo.nextMoment);
    }
    // Both lanes wait for answers, or this is a fault's pause: look again soon, but never spin.
    if (this.#lanes.every((lane) => lane.busy)) at = Math.min(at, now + LOOK_AT_LEASES_MS);
    if (at <= now) at = now + (now < this.#faultUntil || this.#stepsOut > 0 ? LOOK_AT_LEASES_MS : NEVER_SPIN_MS);
    this.#alarm.set(at);
  }

  // --- The round trip ---------------------------------------------------------------------------------------------------

  async #send(lane: Lane, request: StepRequest): Promise<void> {
    const { company, store } = this.deps;
    const asked = request.want + request.soloWant;
    const mark = asked > 0 ? company.asking(this, asked) : 0;
    const sentAt = performance.now();
    this.#stepsOut++;
    this.#wanted += asked;
    if (request.soloWant > 0) company.beginSolo(this);
    let reply: StepReply | undefined;
    try {
      reply = await store.step(lane, request, () => this.#closed);
    } catch (error) {
      this.#buffer.giveBack(request.settle);
      this.#fail(error);
    }
    this.#stepsOut--;
    this.#wanted -= asked;
    if (!reply || this.#closed) {
      if (asked > 0) company.brought(this, mark, asked, 0, false);
      if (request.soloWant > 0) company.endSolo(this);
      this.#settled?.();
      return;
    }
    this.#recover();
    this.#confirm(request, reply, sentAt);
    const fresh = this.#open(request, reply, sentAt);
    const alone = request.alone && reply.jobs.length === 1;
    if (asked > 0) company.brought(this, mark, asked, fresh.length, alone);
    for (const [record, claim] of fresh) this.#start(record, claim, reply.now);
    this.#solo.answered(request, reply, this.#held);
    this.#settled?.();
    this.#pump();
  }

  /** What the step told about jobs held before it. */
  #confirm(request: StepRequest, reply: StepReply, sentAt: number): void {
    const lost = reply.lost.length > 0 ? new Set(reply.lost) : undefined;
    for (const { id, claim } of request.settle.ended) {
      this.#leases.close(claim);
      const run = this.#runs.get(id);
      if (run?.ended && run.claim === claim) this.#runs.delete(id);
      if (lost?.has(id)) this.#reportLost(id);
    }
    this.#leases.renewed(request.renewals, sentAt);
    for (const [number, ids] of reply.left) {
      for (const run of this.#runs.values()) {
        if (run.claim.number === number && !run.ended && !ids.has(run.id)) this.#lose(run);
      }
    }
    for (const id of reply.aborted) this.#runs.get(id)?.job.abort(new JobCancelledError(this.queue, id));
  }

  /** Enters the claimed batch into the books. @returns the jobs to start */
  #open(request: StepRequest, reply: StepReply, sentAt: number): [StepReply['jobs'][number], Claim][] {
    this.lastAnswerAt = performance.now();
    this.paused = reply.paused;
    const { jobs, claim: number } = reply;
    const asked = request.want + request.soloWant;
    if (asked > 0) this.#backlog = jobs.length === asked;
    if (asked > 0 && this.#backlog && !request.moreFree) this.#idleUntil = 0;
    this.#look.answered(reply, this.lastAnswerAt, request.want > 0, this.#backlog);
    if (jobs.length === 0) return [];
    const claim = this.#leases.open(number, jobs.length, sentAt, request.alone && jobs.length === 1);
    const fresh: [StepReply['jobs'][number], Claim][] = [];
    // An answer that took longer than the lease may speak of jobs that others run by now: hand them back.
    const tooLate = this.lastAnswerAt - sentAt >= this.deps.settings.leaseMs;
    for (const record of jobs) {
      const running = this.#runs.get(record.id);
      if (running && !running.ended) {
        // We lost its lease and got it back: the handler goes on under the new token.
        if (!running.lost) this.#leases.close(running.claim);
        running.claim = claim;
        running.lost = false;
      } else if (tooLate || this.#stopping) {
        this.#buffer.add({ id: record.id, claim, settlement: { verb: 'release', dueAt: record.dueAt } });
      } else {
        fresh.push([record, claim]);
      }
    }
    return fresh;
  }

  #start(record: StepReply['jobs'][number], claim: Claim, now: number): void {
    this.#held++;
    const started = this.#executor.start(record, claim, now);
    if ('verb' in started) {
      this.#held--;
      this.deps.company.ended();
      this.#buffer.add({ id: record.id, claim, settlement: started });
      this.#schedule();
    } else {
      this.#runs.set(record.id, started);
    }
  }

  // --- Leases -----------------------------------------------------------------------------------------------------------

  async #extend(run: Run, lease: Duration): Promise<void> {
    const leaseMs = parseDuration(lease, 'extend(lease)');
    const move = async () => {
      if (run.ended || run.lost) throw new LeaseLostError(this.queue, run.id);
      const old = run.claim;
      const sentAt = performance.now();
      let number: number;
      try {
        number = await this.deps.store.extend(this.#extendLane, old.number, run.id, leaseMs, () => this.#closed || run.ended);
      } catch (error) {
        throw typedError(error, `extending the lease of job "${run.id}" of queue "${this.queue}"`);
      }
      if (number === 0) {
        if (run.claim === old && !run.ended) this.#lose(run);
        throw new LeaseLostError(this.queue, run.id);
      }
      this.#leases.close(old);
      run.claim = this.#leases.open(number, 1, sentAt, false, leaseMs);
    };
    const moved = this.#extending.then(move, move);
    this.#extending = moved.catch(() => undefined);
    await moved;
    this.#arm(performance.now());
  }

  #abortOverdue(now: number): void {
    const patience = Math.min(this.deps.commandTimeoutMs, this.deps.settings.leaseMs);
    for (const claim of this.#leases.overdue(now, patience)) {
      for (const run of this.#runs.values()) {
        // Only the signal: whether the lease is really lost is for Redis to say, and a late settle may still count.
        if (run.claim === claim && !run.ended) run.job.abort(new LeaseLostError(this.queue, run.id));
      }
    }
  }

  #lose(run: Run): void {
    if (run.lost) return;
    run.lost = true;
    this.#leases.close(run.claim);
    run.job.abort(new LeaseLostError(this.queue, run.id));
    this.#reportLost(run.id, run.job.attempt);
  }

  #reportLost(id: string, attempt = this.#runs.get(id)?.job.attempt): void {
    const which = attempt === undefined ? '' : ` (attempt ${attempt})`;
    this.deps.logger.warn(
      `Job "${id}" of queue "${this.queue}"${which} lost its lease of ${this.deps.settings.leaseMs} ms; another run may follow. ` +
        'Was the event loop blocked, or the process frozen?',
    );
  }

  // --- Trouble ----------------------------------------------------------------------------------------------------------

  #fail(error: unknown): void {
    if (this.#closed) return;
    const fault = typedError(error, `a step of queue "${this.queue}"`);
    if (this.fault?.message !== fault.message) this.deps.logger.error(`${fault.message} The worker tries again every second.`);
    this.fault = fault;
    this.#faultUntil = performance.now() + FAULT_PAUSE_MS;
    this.#arm(performance.now());
  }

  #recover(): void {
    if (!this.fault) return;
    this.fault = undefined;
    this.deps.logger.log(`Queue "${this.queue}" is being drained again.`);
  }

  async #until(done: () => boolean, ms: number): Promise<boolean> {
    if (done()) return true;
    return new Promise((resolve) => {
      const finish = (ok: boolean) => {
        clearTimeout(timer);
        this.#settled = undefined;
        resolve(ok);
      };
      const timer = setTimeout(() => finish(done()), ms);
      this.#settled = () => done() && finish(true);
    });
  }
}
