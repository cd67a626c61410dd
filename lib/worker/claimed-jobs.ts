import { LeaseLostError, ShutdownError } from '../delay-queue.errors.js';
import { parseDuration } from '../job/duration.js';
import { decodeError } from '../job/error-record.js';
import { LEASE_MS } from '../job/queue-definition.js';
import { OccurrenceGate } from '../recurring/occurrence-gate.js';
import { isRepeated, STEP_MAX_JOBS, type ClaimedRecord, type StepReply } from '../redis/step.protocol.js';
import { ActiveRuns } from './active-runs.js';
import { endingsAreHeard } from './endings.js';
import { Executor } from './executor.js';
import type { Charge } from './isolation/isolation-gate.js';
import type { Claim } from './lease-renewal.js';
import type { Ask, Occupancy } from './occupancy.js';
import { PrefetchedJobs } from './prefetched-jobs.js';
import type { Run } from './run.js';
import { SettlementBuffer } from './settlement-buffer.js';
import type { SettlementBatch } from './settlement-buffer.js';
import { interrupted, tellSettled, type Settlement } from './settlement.js';
import type { StepRequest } from './step-request.js';
import { handBackStrays } from './strays.js';
import type { ShardWorkerDeps } from './worker-deps.js';

export interface ClaimedJobsHooks {
  /** A slot is free, or an ending waits to be sent. @param freesSlot no step would ask for that slot by itself */
  changed(freesSlot: boolean): void;
  /** A job has got a lease of its own, which may be the next one to renew. */
  leaseMoved(): void;
}

/**
 * The jobs that this worker has of its shard, from the answer that brought them until Redis has confirmed their
 * settlement: the runs with their leases, the handlers, and the endings that are not sent yet.
 */
export class ClaimedJobs {
  readonly runs: ActiveRuns;
  readonly executor: Executor;
  readonly prefetched: PrefetchedJobs;
  readonly occurrences: OccurrenceGate;
  /** Runs that have ended here. */
  ended = 0;
  /** Jobs that Redis took back because their handlers had not ended when the process had to stop. */
  handedBack = 0;
  /** Their ids, from when they were given up here. */
  readonly #givenUp = new Set<string>();
  /** No step will leave any more. */
  #isOver = false;
  readonly #endings = new SettlementBuffer();
  readonly #leaseMs: number;
  /** How long to wait for the answer to a renewal after its lease has ended. */
  readonly #renewalGraceMs: number;
  readonly #queue: string;

  constructor(
    { handler, settings, store, logger, ...deps }: ShardWorkerDeps,
    private readonly occupancy: Occupancy,
    private readonly hooks: ClaimedJobsHooks,
  ) {
    this.#leaseMs = settings.leaseMs;
    this.#renewalGraceMs = Math.min(deps.commandTimeoutMs, settings.leaseMs);
    this.#queue = handler.queue;
    this.occurrences = new OccurrenceGate(store, logger);
    this.runs = new ActiveRuns(store, settings.leaseMs, logger, deps.heartbeats ?? true, deps.fleet);
    this.runs.onResumed = ({ job, quarantined }) => {
      job.onResumed?.();
      this.runs.markAccompanied(quarantined); // The gate tells only other workers.
      occupancy.resumed(quarantined);
    };
    this.executor = new Executor(
      handler,
      settings,
      {
        ended: (run, settlement) => this.#end(run, settlement),
        // While all batch slots were busy, this worker was not on the wake-up list. If their jobs were settled early,
        // no step asks for more. So poll now.
        freed: () => {
          deps.pool.freed();
          hooks.changed(true);
        },
        concurrency: () => this.occupancy.batches,
        started: (run) => this.runs.add(run),
        extend: async (lease, job) => {
          await this.runs.extend(job, parseDuration(lease, 'extend(lease)', LEASE_MS));
          hooks.leaseMoved();
        },
        instance: store.connection.instance,
        fleet: deps.fleet,
        tracer: deps.tracer,
        lastTrace: async (id) => {
          const found = (await store.call('get', [id])) as string[] | null;
          return found ? decodeError(found[3]!).error?.trace : undefined;
        },
        payloads: deps.payloads,
        contextProvider: deps.contextProvider,
        schema: deps.schema,
        probe: deps.probe,
        occurrences: this.occurrences,
      },
      logger,
    );
    const slots = deps.prefetch ? () => deps.pool.size : () => Infinity;
    this.prefetched = new PrefetchedJobs(occupancy, slots, {
      start: (record, claim, now) => this.#start(record, claim, now, false),
      giveBack: (record, claim) => {
        this.#release(record, claim);
        hooks.changed(false);
      },
      gone: (claim) => this.runs.leases.close(claim),
    });
  }

  /** Endings that no step has taken yet. */
  get untold(): number {
    return this.#endings.size;
  }

  /** Endings of which Redis has confirmed nothing. */
  get unconfirmed(): number {
    return this.#endings.unconfirmed;
  }

  /** Nothing runs, nothing is on its way, and Redis has heard of every ending. */
  get isEmpty(): boolean {
    return this.occupancy.isEmpty && this.#endings.size === 0;
  }

  // --- What a step sends -----------------------------------------------------------------------------------------------

  takeEndings(): SettlementBatch {
    return this.#endings.take(STEP_MAX_JOBS);
  }

  /** The step failed: its endings and renewals are sent again. */
  refused({ settle, renewals }: StepRequest): void {
    this.#endings.giveBack(settle);
    this.runs.notRenewed(renewals);
  }

  /** The step was answered. */
  confirmed({ settle, renewals }: StepRequest, reply: StepReply, sentAt: number): void {
    if (this.#givenUp.size > 0) {
      this.handedBack += settle.ended.filter(({ id }) => this.#givenUp.has(id) && !reply.lost.includes(id)).length;
    }
    this.runs.confirm(settle, renewals, reply, this.#queue, sentAt);
    this.prefetched.confirmed(reply);
    handBackStrays(renewals, reply, { runs: this.runs, prefetched: this.prefetched, endings: this.#endings });
    this.#endings.forget(settle);
  }

  /** Aborts the signals of jobs whose lease has ended. Those that nothing renews hold a slot no longer. */
  abortOverdue(now: number): void {
    for (const run of this.runs.abortOverdue(now, this.#renewalGraceMs)) {
      this.occupancy.ended(run.quarantined);
      run.job.onLapsed?.();
    }
  }

  // --- What a step brought ----------------------------------------------------------------------------------------------

  /** Starts the jobs of an answer, and hands back those that may not start here any more. */
  receive(request: StepRequest, reply: StepReply, ask: Ask, arrivedAt: number, isStopping: boolean): void {
    const charge = chargeOf(request, reply);
    if (reply.jobs.length === 0) return void this.occupancy.brought(ask, 0, charge);
    const { at: sentAt, quarantined } = ask;
    const { claim, fresh, replaced } = this.runs.open(reply, sentAt, charge);
    for (const run of replaced) {
      run.timeout?.cancel();
      this.occupancy.ended(run.quarantined);
    }
    // An answer that took longer than the lease may have jobs that other processes run by now.
    const tooLate = arrivedAt - sentAt >= this.#leaseMs;
    // What went back comes first again, so what was asked for before goes back as well: its jobs are due later.
    const isBehind = !quarantined && sentAt < this.prefetched.releasedAt;
    const starting = this.occupancy.brought(ask, tooLate || isStopping || isBehind ? 0 : fresh.length, charge);
    for (const record of fresh.slice(starting)) this.#release(record, claim);
    if (starting < fresh.length) fresh.length = starting;
    if (quarantined) for (const record of fresh) this.#start(record, claim, reply.now, true);
    else this.prefetched.receive(fresh, claim, reply.now, arrivedAt);
  }

  #release({ id, dueAt }: ClaimedRecord, claim: Claim): void {
    this.#endings.add({ id, claim, settlement: { verb: 'release', dueAt, unbegun: true } });
  }

  /** Its slot is taken already. */
  #start(record: ClaimedRecord, claim: Claim, now: number, quarantined: boolean): void {
    const settlement = this.executor.start(record, claim, now, quarantined);
    if (!settlement) return;
    this.occupancy.ended(quarantined);
    this.prefetched.slotIsFree();
    const { attempts, dueAt } = record;
    const notStarted = endingsAreHeard(this.runs.fleet)
      ? { attempt: attempts.charged, latenessMs: Math.max(0, now - dueAt) || 0 }
      : undefined;
    this.#endings.add({ id: record.id, claim, settlement, notStarted });
    this.hooks.changed(false);
  }

  // --- What ended -------------------------------------------------------------------------------------------------------

  #end(run: Run, settlement: Settlement): void {
    run.ended = true;
    this.ended++;
    if (!run.lapsed) this.occupancy.ended(run.quarantined);
    this.prefetched.slotIsFree();
    if (!run.extending) return this.#toBeSettled(run, settlement);
    this.occupancy.ending++;
    void run.extending.then(() => {
      this.occupancy.ending--;
      this.#toBeSettled(run, settlement);
    });
  }

  #toBeSettled(run: Run, settlement: Settlement): void {
    const { id, claim, job, cameBackDue } = run;
    // A pulled job whose lease has ended may be settled when its worker is gone: nobody else would answer.
    if (run.lost || this.#isOver) {
      this.runs.forget(run);
      // Nothing is to be settled, so that no step would ask for the slot that is free now.
      return this.hooks.changed(true);
    }
    if (cameBackDue === undefined) this.#endings.add({ id, claim, settlement, onSettled: job.onSettled, run });
    else {
      const handBack = { verb: 'release', dueAt: cameBackDue } as const;
      this.#endings.add({ id, claim, settlement: handBack, onSettled: () => job.onSettled?.(true) });
    }
    this.hooks.changed(false);
  }

  /** The process must stop: ends what still runs, and gives it to others without a charge. */
  handBack(): void {
    this.prefetched.release();
    for (const run of this.runs.unfinished()) {
      this.#givenUp.add(run.id);
      this.executor.abandon(run, new ShutdownError(this.#queue, run.id));
      this.#end(run, interrupted(run));
    }
  }

  /** As when the process dies: ends what still runs, and leaves it to its lease. */
  abandon(): void {
    this.prefetched.abandon();
    for (const run of this.runs.unfinished()) {
      this.executor.abandon(run, new LeaseLostError(this.#queue, run.id));
      if (!run.lapsed) this.occupancy.ended(run.quarantined);
    }
    this.executor.batches?.close();
  }

  /** No step will leave any more: all listeners for an ending hear that it could not be sent, also of those that come later. */
  giveUpEndings(batch: SettlementBatch = this.#endings.take(Infinity)): void {
    this.#isOver = true;
    this.#endings.forget(batch);
    for (const { onSettled } of batch.ended) tellSettled(onSettled, true);
  }
}

/** As lib/lua/step.lua marks the claim. */
function chargeOf({ isSole, quarantineLimit }: StepRequest, { jobs }: StepReply): Charge {
  if (jobs.length !== 1) return 'no';
  if (quarantineLimit > 0 && isRepeated(jobs[0]!.attempts)) return 'repeated';
  return isSole ? 'alone' : 'no';
}
