import { channels } from '../delay-queue.channels.js';
import { JobCancelledError, LeaseLostError, UnavailableError } from '../delay-queue.errors.js';
import type { DelayQueueLogger } from '../delay-queue.logger.js';
import type { DelayedJob } from '../job/delayed-job.js';
import { readable } from '../job/duration.js';
import type { Session } from '../redis/session.js';
import { typedError } from '../redis/redis.errors.js';
import type { ShardStore } from '../redis/shard-store.js';
import type { ClaimedRecord, StepReply } from '../redis/step.protocol.js';
import { endingsAreHeard, publishEnding } from './endings.js';
import type { FleetEvents } from './fleet-events.js';
import type { Charge } from './isolation/isolation-gate.js';
import { LeaseRenewal } from './lease-renewal.js';
import type { Claim, Renewal } from './lease-renewal.js';
import type { Run } from './run.js';
import { tellSettled } from './settlement.js';
import type { SettlementBatch } from './settlement-buffer.js';
import { performance, within } from '../time-and-randomness.js';

const NO_RUNS: readonly Run[] = [];

/**
 * Claims that one step renews: scripts stay bounded. A worker with more claims sends more steps (docs/performance.md).
 */
const MOST_RENEWALS = 200;

/** Which jobs this worker runs under which leases, and what Redis says about them. */
export class ActiveRuns {
  readonly #runs = new Map<string, Run>();
  /**
   * Runs whose lease has ended. They may still be extended or settled as long as no worker has claimed the job again.
   */
  readonly #lapsed = new WeakMap<DelayedJob, Run>();
  readonly leases: LeaseRenewal;
  readonly #session: Session;
  #extending: Promise<unknown> = Promise.resolve();
  /** The run whose extension is on its way: only the answer to that says under which claim it goes on. */
  #moving: Run | undefined;
  #closed = false;
  /** Called with a run that was given up, and whose lease was extended all the same. */
  onResumed: ((run: Run) => void) | undefined;

  constructor(
    private readonly store: ShardStore,
    private readonly leaseMs: number,
    private readonly logger: DelayQueueLogger,
    /** False: leases run out unless they are extended one by one. */
    readonly heartbeats: boolean,
    readonly fleet?: FleetEvents,
  ) {
    this.leases = new LeaseRenewal(leaseMs, heartbeats);
    this.#session = store.session();
  }

  /** Runs whose outcome is not decided. */
  *unfinished(): Iterable<Run> {
    for (const run of this.#runs.values()) if (!run.ended) yield run;
  }

  /** Monotonic ms; Infinity without leases. What renews none asks which jobs were cancelled. */
  get nextHeartbeat(): number {
    return this.leases.nextHeartbeat;
  }

  /** Monotonic ms at which a lease must be renewed, or ends because this worker does not renew it. */
  get nextMoment(): number {
    const { nextHeartbeat, nextEnd } = this.leases;
    return this.heartbeats ? nextHeartbeat : Math.min(nextHeartbeat, nextEnd);
  }

  has(id: string): boolean {
    return this.#runs.has(id);
  }

  add(run: Run): void {
    this.#runs.set(run.id, run);
  }

  /** A run that has nothing to settle because it lost its lease. */
  forget(run: Run): void {
    tellSettled(run.job.onSettled, true);
    if (this.#runs.get(run.id) === run) this.#runs.delete(run.id);
  }

  /**
   * Another job shares the process: the loss of a lease is no longer charged here. Exception: a job that lost too many
   * leases, as long as no other job from the quarantine joins it.
   */
  markAccompanied(withQuarantined: boolean): void {
    this.leases.markAccompanied(withQuarantined);
  }

  /**
   * Claims to renew, with the number of their jobs. Those of which `settle` ends all are left out.
   *
   * @param heartbeat true: renews as many claims as a step may; false: only claims that lose their mark
   * @param claims the kind of jobs that the same step claims
   */
  renewals(
    heartbeat: boolean,
    claims: 'due' | 'quarantined' | undefined,
    settle: SettlementBatch,
    now: number,
  ): Renewal[] {
    if (claims) this.leases.markAccompanied(claims === 'quarantined');
    const ending = new Map<Claim, number>();
    if (heartbeat || this.leases.hasNews)
      for (const { claim } of settle.ended) ending.set(claim, (ending.get(claim) ?? 0) + 1);
    return this.leases.ask(heartbeat ? MOST_RENEWALS : 0, ending, now);
  }

  /** A step was refused. */
  notRenewed(renewals: readonly Renewal[]): void {
    this.leases.notRenewed(renewals);
  }

  /** Applies the answer of a step to the jobs that were held before it. */
  confirm(
    settled: SettlementBatch,
    renewals: readonly Renewal[],
    reply: StepReply,
    queue: string,
    sentAt: number,
  ): void {
    const lost = reply.lost.length > 0 ? new Set(reply.lost) : undefined;
    const heard = settled.ended.length > 0 && endingsAreHeard(this.fleet);
    const superseded = heard && reply.superseded.length > 0 ? new Set(reply.superseded) : undefined;
    for (const ended of settled.ended) {
      const { id, claim, onSettled } = ended;
      this.leases.close(claim);
      tellSettled(onSettled, lost?.has(id) === true);
      const run = this.#runs.get(id);
      if (run?.ended && run.claim === claim) this.#runs.delete(id);
      if (lost?.has(id)) this.#reportLost(id, run);
      else if (heard)
        publishEnding(this.store.connection.instance, queue, ended, superseded?.has(id) === true, this.fleet);
    }
    this.leases.renewed(renewals, sentAt);
    if (reply.left.size > 0) {
      for (const run of this.unfinished()) {
        if (run === this.#moving || reply.left.get(run.claim.number)?.has(run.id) !== false) continue;
        if (this.heartbeats) this.#lose(run);
        // It leaves its slot when its lease has ended, whoever settles it or not.
        else run.job.abort(new LeaseLostError(queue, run.id));
      }
    }
    for (const id of reply.aborted) {
      const run = this.#runs.get(id);
      // Of the claims that were asked about: a later run of this id may have begun before this answer came.
      if (run && renewals.some(({ claim }) => claim === run.claim)) run.job.abort(new JobCancelledError(queue, id));
    }
  }

  /**
   * Enters a claimed batch.
   *
   * @returns its claim, the jobs to start, which are those that do not run here already, and the runs that these take the
   *   place of
   */
  open(reply: StepReply, sentAt: number, charge: Charge): { claim: Claim; fresh: ClaimedRecord[]; replaced: Run[] } {
    const claim = this.leases.open(reply.claim, reply.jobs.length, sentAt, charge !== 'no');
    claim.repeated = charge === 'repeated';
    const replaced: Run[] = [];
    const fresh = reply.jobs.filter((record) => {
      const run = this.#runs.get(record.id);
      if (!run || run.ended) return true;
      // The same id was claimed again while our old run of it, whose lease we lost, still goes on. To start it would
      // run one id twice in this process; to let the old run settle it could lose a replacement. So keep the claim
      // until the old run has ended, and then hand it back.
      this.#lose(run);
      if (!this.heartbeats) {
        // Nothing renews the lease of the old run, and it may never end: it counts as over, like one of a dead process.
        this.#runs.delete(run.id);
        run.job.onSettled?.(true);
        if (!run.lapsed) replaced.push(run);
        run.lapsed = true;
        return true;
      }
      run.claim = claim;
      run.lost = false;
      run.cameBackDue = record.dueAt;
      return false;
    });
    return { claim, fresh, replaced };
  }

  /**
   * Gives a running job a lease of its own, which never ends sooner than the present one. One call at a time, because
   * they share a session.
   *
   * @throws LeaseLostError when another process may have the job; UnavailableError when Redis does not answer in time
   */
  async extend(job: DelayedJob, leaseMs: number): Promise<void> {
    const here = this.#runs.get(job.id);
    const run = here?.job === job ? here : this.#lapsed.get(job);
    if (!run) throw new LeaseLostError(this.store.queue, job.id, !job.isAborted);
    const { timeoutMs } = this.store.connection;
    const deadline = performance.now() + timeoutMs;
    const unanswered = () => {
      const what = `extending the lease of job "${run.id}" of queue "${this.store.queue}"`;
      const then = 'It may yet take effect, which is harmless.';
      return new UnavailableError(`Redis did not answer for ${timeoutMs} ms: ${what}. ${then}`, {
        maybeAccepted: true,
      });
    };
    const move = async () => {
      // The calls before it took all of its time, and its caller already has the error.
      if (performance.now() >= deadline) throw unanswered();
      if (run.ended || run.lost || run.cameBackDue !== undefined) throw new LeaseLostError(this.store.queue, run.id);
      const old = run.claim;
      const alone = old.sole && old.unsettled === 1;
      const sentAt = performance.now();
      const lease = this.heartbeats ? Math.max(leaseMs, old.leaseMs) : leaseMs;
      let number: number;
      this.#moving = run;
      try {
        number = await this.store.extend(this.#session, old.number, run.id, lease, () => this.#closed);
      } catch (error) {
        throw typedError(error, `extending the lease of job "${run.id}" of queue "${this.store.queue}"`);
      } finally {
        this.#moving = undefined;
      }
      // The answer to a call that was resent may be that of long ago, and this process may have claimed the job again since.
      if (number === 0 || run.claim !== old) {
        if (run.claim === old && !run.ended) this.#lose(run);
        throw new LeaseLostError(this.store.queue, run.id);
      }
      // A heartbeat that crossed the request may have missed the job under its old claim.
      if (!run.lost) this.leases.close(old);
      run.lost = false;
      // Asked again: another job may have been claimed while the request was on its way.
      const isAlone = alone && old.sole;
      // By then it ends at the earliest, as Redis sees it as well.
      const lastsMs = Math.max(lease, old.renewedAt + old.leaseMs - sentAt);
      run.claim = this.leases.open(number, 1, sentAt, isAlone, lastsMs, lease);
      run.claim.repeated = old.repeated;
      if (run.lapsed && !this.#runs.has(run.id)) {
        this.#runs.set(run.id, run);
        if (!run.ended) {
          run.lapsed = false;
          this.onResumed?.(run);
        }
      }
    };
    const moved = this.#extending.then(move, move);
    this.#extending = moved.catch(() => undefined);
    run.extending = this.#extending;
    await within(timeoutMs, moved, unanswered);
  }

  /**
   * Aborts the signals of jobs whose lease must have ended. It does no more, because only Redis knows whether a lease
   * is lost: a late settlement may still count.
   *
   * @returns runs that count no longer: nothing renews their lease, so any process may claim the job
   */
  abortOverdue(now: number, graceMs: number): readonly Run[] {
    const overdue = this.leases.overdue(now, this.heartbeats ? graceMs : 0);
    if (overdue.size === 0) return NO_RUNS;
    const lapsed: Run[] = [];
    for (const run of this.unfinished()) {
      if (!overdue.has(run.claim)) continue;
      run.job.abort(new LeaseLostError(this.store.queue, run.id));
      if (this.heartbeats) continue;
      this.#runs.delete(run.id);
      this.leases.close(run.claim);
      this.#lapsed.set(run.job, run);
      if (!run.lapsed) lapsed.push(run);
      run.lapsed = true;
    }
    return lapsed;
  }

  /** @returns the session to clean up */
  close(): Session {
    this.#closed = true;
    return this.#session;
  }

  #lose(run: Run): void {
    if (run.lost) return;
    run.lost = true;
    this.leases.close(run.claim);
    run.job.abort(new LeaseLostError(this.store.queue, run.id));
    this.#reportLost(run.id, run);
  }

  #reportLost(id: string, run: Run | undefined): void {
    if (channels.leaseLost.hasSubscribers) {
      const { connection, queue } = this.store;
      channels.leaseLost.publish({ instance: connection.instance, queue, id, attempt: run?.job.attempt });
    }
    this.fleet?.tell({ type: 'leaseLost', id, attempt: run?.job.attempt ?? 0, latenessMs: run?.job.latenessMs ?? 0 });
    const attempt = run ? ` (attempt ${run.job.attempt})` : '';
    this.logger.warn(
      `Job "${id}" of queue "${this.store.queue}"${attempt} lost its lease of ${readable(run?.claim.leaseMs ?? this.leaseMs)}; another run may follow. ` +
        'Was the event loop blocked, or the process frozen?',
      {
        queue: this.store.queue,
        id,
        ...(run && { attempt: run.job.attempt, latenessMs: run.job.latenessMs }),
      },
    );
  }
}
