import { BackPressureError } from '../delay-queue.errors.js';
import { MAX_BYTES, MAX_JOBS } from '../redis/enqueue.protocol.js';
import type { ShardStore } from '../redis/shard-store.js';
import { performance } from '../time-and-randomness.js';
import type { Call, Failure } from './call.js';
import { unavailable } from './call-failures.js';

/** What one shard's unanswered calls may hold in memory. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

/** The calls of one process to one shard that have not been answered: those that wait to be sent, and how each of them ends. */
export class PendingCalls {
  #single: Call[] = [];
  /** Bulk calls give way to single ones after each chunk. */
  #bulk: Call[] = [];
  /** Of all calls that have not ended, sent or not. */
  #bytes = 0;
  #closed = false;
  /** When Redis answered a call of this shard; monotonic ms. */
  #answeredAt = -Infinity;

  constructor(
    private readonly store: ShardStore,
    private readonly timeoutMs: number,
  ) {}

  /** How many wait to be sent. */
  get waiting(): number {
    return this.#single.length + this.#bulk.length;
  }

  /** How many of them are no bulk calls. */
  get waitingSingles(): number {
    return this.#single.length;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Nothing will ever be sent again. */
  get isOver(): boolean {
    return this.#closed || this.store.connection.isClosed;
  }

  /** Of a call that is made now; monotonic ms. */
  get deadline(): number {
    return performance.now() + this.timeoutMs;
  }

  /** Redis has answered a call. */
  answered(): void {
    this.#answeredAt = performance.now();
  }

  /** From now on calls are refused. */
  close(): void {
    this.#closed = true;
  }

  /** @returns false when it was refused */
  admit(call: Call): boolean {
    if (this.isOver) {
      call.reject(this.#unavailable(call, false));
      return false;
    }
    if (this.#bytes + call.bytes > MAX_WAITING_BYTES) {
      const waiting = `${Math.round(this.#bytes / 1024)} KiB wait to be sent to queue "${this.store.queue}"`;
      call.reject(() => new BackPressureError(`${waiting}, which is the most one process may hold. Retry later.`));
      return false;
    }
    this.#bytes += call.bytes;
    return true;
  }

  /** Lets an admitted call wait to be sent. */
  push(call: Call, isBulk: boolean): void {
    (isBulk ? this.#bulk : this.#single).push(call);
  }

  /** @returns the next script call: one script of its own, or as many jobs as fit. At most so many jobs of single calls */
  next(mostSingles: number): Call[] | undefined {
    return nextOf(this.#single, mostSingles) ?? nextOf(this.#bulk, MAX_JOBS);
  }

  /** @returns undefined when the call has ended before */
  settle<C extends Call>(call: C): C | undefined {
    if (call.settled) return undefined;
    call.settled = true;
    this.#bytes -= call.bytes;
    return call;
  }

  fail(call: Call, failure: Failure): void {
    this.settle(call)?.reject(failure);
  }

  /** The call was certainly not executed. */
  failUnsent(call: Call, cause?: unknown): void {
    this.fail(call, this.#unavailable(call, false, cause));
  }

  /** The call may have been executed. */
  failInDoubt(call: Call, cause: unknown): void {
    this.fail(call, this.#unavailable(call, true, cause));
  }

  /** Refuses all that wait. */
  refuseWaiting(): void {
    for (const call of [...this.#single, ...this.#bulk]) this.failUnsent(call);
    this.#single = [];
    this.#bulk = [];
  }

  /** Refuses those of the waiting calls that have expired. */
  refuseExpired(expired: (call: Call) => boolean): void {
    this.#single = this.#unexpired(this.#single, expired);
    this.#bulk = this.#unexpired(this.#bulk, expired);
  }

  #unexpired(queue: Call[], expired: (call: Call) => boolean): Call[] {
    if (!queue.some(expired)) return queue;
    for (const call of queue) if (expired(call)) this.failUnsent(call);
    return queue.filter((call) => !call.settled);
  }

  #unavailable(call: Call, sent: boolean, cause?: unknown): Failure {
    const { store, timeoutMs, isOver } = this;
    const isBusy = !sent && cause === undefined && performance.now() - this.#answeredAt < timeoutMs;
    return unavailable(call, { store, timeoutMs, isOver, isBusy, sent, cause });
  }
}

function nextOf(queue: Call[], most: number): Call[] | undefined {
  let bytes = 0;
  let jobs = 0;
  let count = 0;
  for (const call of queue) {
    if (!call.items) {
      if (count === 0) count = 1;
      break;
    }
    bytes += call.bytes;
    jobs += call.items.length;
    if (count > 0 && (jobs > most || bytes > MAX_BYTES)) break;
    count++;
  }
  return count === 0 ? undefined : queue.splice(0, count);
}
