import { AsyncResource } from 'node:async_hooks';
import type { ClaimedRecord, StepReply } from '../redis/step.protocol.js';
import { performance } from '../time-and-randomness.js';
import type { Claim } from './lease-renewal.js';
import type { Occupancy } from './occupancy.js';
import { PATIENCE_MS, Prefetch } from './prefetch.js';

/** A job that was claimed before a slot was free for it. */
interface Prefetched {
  readonly record: ClaimedRecord;
  readonly claim: Claim;
  /** Server time of the answer that brought it, in ms. */
  readonly serverNow: number;
  /** Monotonic ms of that answer. */
  readonly arrivedAt: number;
}

export interface PrefetchedJobsHooks {
  /** It has a slot. @param now server time */
  start(record: ClaimedRecord, claim: Claim, now: number): void;
  /** It goes back to Redis with its due time. */
  giveBack(record: ClaimedRecord, claim: Claim): void;
  /** Redis has it no longer under this claim. */
  gone(claim: Claim): void;
}

/** Jobs that wait in this process for a slot, in the order of their claims. Each of them counts as held. */
export class PrefetchedJobs {
  readonly prefetch = new Prefetch();
  /** Monotonic ms at which jobs went back last. */
  releasedAt = -Infinity;
  /** By id: a `Map` keeps the order. */
  readonly #waiting = new Map<string, Prefetched>();
  /** A job that starts in the place of another one must not see what that one left in the async context. */
  readonly #context = new AsyncResource('DelayQueueWorker');
  #isStarting = false;
  #startsSoon = false;
  readonly #startSoon = () => this.#context.runInAsyncScope(this.#startNow);
  readonly #startNow = () => {
    this.#startsSoon = false;
    this.#start();
  };

  constructor(
    private readonly occupancy: Occupancy,
    private readonly slots: () => number,
    private readonly hooks: PrefetchedJobsHooks,
  ) {}

  get size(): number {
    return this.#waiting.size;
  }

  has(id: string): boolean {
    return this.#waiting.has(id);
  }

  /** Monotonic ms at which the first job has waited for too long; Infinity without any. */
  get patienceEnds(): number {
    for (const { arrivedAt } of this.#waiting.values()) return arrivedAt + PATIENCE_MS;
    return Infinity;
  }

  /** Starts the jobs of an answer as far as there are slots; the others wait. Their slots, or places, are taken already. */
  receive(records: readonly ClaimedRecord[], claim: Claim, serverNow: number, arrivedAt: number): void {
    let unplaced = records.length;
    for (const record of records) {
      this.#drop(record.id);
      unplaced--;
      const hasSlot = this.size === 0 && this.occupancy.held - unplaced <= this.slots();
      if (hasSlot) this.hooks.start(record, claim, serverNow);
      else this.#waiting.set(record.id, { record, claim, serverNow, arrivedAt });
    }
    this.#start();
  }

  slotIsFree(): void {
    if (this.size === 0 || this.#startsSoon || this.#isStarting) return;
    this.#startsSoon = true;
    queueMicrotask(this.#startSoon);
  }

  /** What an answer says of claims that were renewed. */
  confirmed({ left, aborted }: StepReply): void {
    if (this.size === 0) return;
    for (const { record, claim } of left.size > 0 ? [...this.#waiting.values()] : [])
      if (left.get(claim.number)?.has(record.id) === false) this.#drop(record.id);
    for (const id of aborted) this.#giveBack(id);
  }

  /** All go back, and nothing is fetched ahead for a while. */
  release(now = performance.now()): void {
    if (this.size === 0) return;
    this.prefetch.rest(now);
    this.releasedAt = now;
    for (const id of this.#waiting.keys()) this.#giveBack(id);
  }

  /** As when the process dies: leaves them to their lease. */
  abandon(): void {
    for (const _ of this.#waiting.keys()) this.occupancy.ended(false);
    this.#waiting.clear();
  }

  #start(): void {
    if (this.#isStarting) return;
    this.#isStarting = true;
    try {
      this.#fillSlots();
    } finally {
      // Nothing in a start should throw. If something does, what waits must still start when the next slot is free.
      this.#isStarting = false;
    }
  }

  #fillSlots(): void {
    for (const [id, { record, claim, serverNow, arrivedAt }] of this.#waiting) {
      if (this.occupancy.held - this.size >= this.slots()) break;
      const now = performance.now();
      // A process that was frozen may have lost it, and another one may run it. And handlers that never wait leave no turn of the event
      // loop in which patience could end: without this look all of them would run in one.
      if (now >= Math.min(claim.renewedAt + claim.leaseMs, arrivedAt + PATIENCE_MS)) {
        this.release(now);
        break;
      }
      this.#waiting.delete(id);
      this.hooks.start(record, claim, serverNow + Math.floor(now - arrivedAt));
    }
  }

  #giveBack(id: string): void {
    const job = this.#take(id);
    if (job) this.hooks.giveBack(job.record, job.claim);
  }

  #drop(id: string): void {
    const job = this.#take(id);
    if (job) this.hooks.gone(job.claim);
  }

  #take(id: string): Prefetched | undefined {
    const job = this.#waiting.get(id);
    if (!job) return undefined;
    this.#waiting.delete(id);
    this.occupancy.ended(false);
    return job;
  }
}
