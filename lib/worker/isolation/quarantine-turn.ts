import { performance, random } from '../../time-and-randomness.js';
import type { StepReply, StepRequest } from '../../redis/step.protocol.js';
import type { IsolationGate, IsolationMember } from './isolation-gate.js';

/** How long a busy process waits for another one that happens to be empty to take the jobs in quarantine. */
const COURTESY_MS = 250;
/** The pause before the next attempt, when other processes have taken the jobs that were there. */
const AFTER_NOTHING_MS = 500;
/** How long until the next request for the role, if another process has it. */
const AFTER_REFUSAL_MS = 1_000;
/** A job that has waited this long starts among other jobs, unless one of them is from the quarantine, too... */
export const OVERDUE_MS = 45_000;
/** ... and after this time it starts whatever runs here. lib/lua/step/isolated.lua goes by it. */
export const LAST_MS = 55_000;

/** A claim from the quarantine, to be planned now. */
export interface QuarantineAsk {
  readonly jobs: number;
  /** How long they must have waited there. */
  readonly quarantinedForMs: number;
}

const NOTHING: QuarantineAsk = Object.freeze({ jobs: 0, quarantinedForMs: 0 });

/** The quarantine of one shard, as its worker sees it: when to claim from it, and when to ask that this process be cleared. */
export class QuarantineTurn {
  /** Jobs in quarantine that may be claimed: none while the queue is paused, or every vain claim would stop the process. */
  quarantined = 0;
  /** Monotonic ms at which the one that waits longest came there. */
  #oldestAt = Infinity;
  #notBefore = 0;
  #askAt = Infinity;
  /** A claim from the quarantine is on its way. Due jobs are asked for only after its answer. */
  isAsking = false;
  /** Asks for a few jobs with one loss; Redis hands out jobs with more losses one by one. */
  readonly #few: number;

  constructor(
    private readonly gate: IsolationGate,
    private readonly worker: IsolationMember & { readonly concurrency: number },
    concurrency: number,
  ) {
    this.#few = Math.max(1, Math.floor(concurrency / 10));
  }

  want(now: number, free: number, stepsOut: number): QuarantineAsk {
    if (this.#isIdle || this.isAsking || free <= 0 || now < this.#notBefore) return NOTHING;
    const jobs = Math.min(this.#few, free);
    if (stepsOut === 0 && this.gate.isEmpty && this.gate.mayIsolate(this.worker)) return { jobs, quarantinedForMs: 0 };
    if (!this.gate.isOpen || this.gate.asksQuarantine(now) || now < this.#overdueAt) return NOTHING;
    return { jobs, quarantinedForMs: this.#waitMs };
  }

  /** Is it time to ask for the role, of which there is one per shard? A process that is empty needs none. */
  asksIsolation(now: number): boolean {
    if (this.#isIdle || this.isAsking || this.gate.isEmpty) return false;
    return now >= this.#askAt && now >= this.gate.clearAgainAt && this.gate.canBeCleared;
  }

  /** Monotonic ms at which a step should go out for the sake of the quarantine, when none is on its way. */
  nextMoment(free: number): number {
    if (this.#isIdle || this.isAsking) return Infinity;
    const { gate } = this;
    let at = Infinity;
    if (gate.isEmpty) {
      if (free > 0 && gate.mayIsolate(this.worker)) at = this.#notBefore; // Otherwise the gate wakes this worker.
    } else if (gate.canBeCleared) at = Math.max(this.#askAt, gate.clearAgainAt);
    if (free > 0 && gate.isOpen) {
      const now = performance.now();
      if (!gate.asksQuarantine(now)) at = Math.min(at, Math.max(this.#overdueAt, this.#notBefore));
    }
    return at;
  }

  /** The step that `want` was for leaves. */
  asks(quarantinedForMs: number): void {
    this.isAsking = true;
    if (quarantinedForMs === 0) this.gate.claims(this.worker);
  }

  /** It got no answer that counts. */
  fails(): void {
    this.isAsking = false;
    this.gate.claimed(this.worker, 0);
  }

  /** Concurrency became 0: a worker that takes no jobs must not pause the process. */
  standDown(): void {
    this.gate.release(this.worker);
  }

  /** After the jobs of `reply` have started. */
  answered(request: StepRequest, reply: StepReply): void {
    const now = performance.now();
    const knew = this.quarantined > 0;
    this.quarantined = reply.paused ? 0 : reply.quarantined;
    const { quarantinedSince } = reply;
    this.#oldestAt = quarantinedSince === undefined ? Infinity : now - Math.max(0, reply.now - quarantinedSince);
    if (request.quarantineLimit > 0) {
      this.isAsking = false;
      if (reply.jobs.length === 0) this.#notBefore = now + AFTER_NOTHING_MS * (1 + random());
      this.gate.claimed(this.worker, reply.jobs.length);
    }
    // Another process took the jobs that this one was to be cleared for, or nobody may take them.
    if (this.quarantined === 0) return this.gate.release(this.worker);
    if (!knew) this.#askAt = now + COURTESY_MS * (1 + 2 * random());
    if (!request.asksIsolation) return;
    if (reply.mayIsolate && !this.#isIdle) this.gate.clear(this.worker);
    this.#askAt = now + AFTER_REFUSAL_MS * (1 + random());
  }

  /** For the test kit: as if `ms` had passed. */
  fastForward(ms: number): void {
    this.#oldestAt -= ms;
    this.#notBefore -= ms;
    this.#askAt -= ms;
  }

  /** The quarantine has nothing to claim, or this worker may run no job because no `pull()` waits. */
  get #isIdle(): boolean {
    return this.quarantined === 0 || this.worker.concurrency === 0;
  }

  get #waitMs(): number {
    return this.gate.runsQuarantined ? LAST_MS : OVERDUE_MS;
  }

  get #overdueAt(): number {
    return this.#oldestAt + this.#waitMs;
  }
}
