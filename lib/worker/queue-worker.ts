import type { DelayQueueError } from '../delay-queue.errors.js';
import type { ShardStore } from '../redis/shard-store.js';
import { ShardWorker } from './shard-worker.js';
import type { ShardWorkerDeps } from './worker-deps.js';
import { SlotPool } from './slot-pool.js';
import { performance } from '../time-and-randomness.js';

/**
 * All that works on one queue in this process: a worker per shard. They share the concurrency of the queue, job by job, or batch by
 * batch. Batches are made of jobs of one shard.
 */
export class QueueWorker {
  readonly queue: string;
  /** 1 for a handler that takes one job at a time. */
  readonly batchSize: number;
  /** Called when all shards have been looked at and had less than was asked for. */
  onEmpty: (() => void) | undefined;
  /** See `ShardWorker`. */
  onEnded: (() => void) | undefined;
  readonly settings: ShardWorkerDeps['settings'];
  readonly #pool: SlotPool;
  #concurrency: number;
  readonly #workers: ReadonlyMap<string, ShardWorker>;
  readonly #empty = new Set<ShardWorker>();
  readonly #logger: ShardWorkerDeps['logger'];
  /** Until then nothing was asked for; monotonic ms. */
  #restedUntil = 0;

  constructor({ stores, ...deps }: Omit<ShardWorkerDeps, 'store' | 'pool'> & { stores: readonly ShardStore[] }) {
    this.queue = deps.handler.queue;
    this.settings = deps.settings;
    this.#logger = deps.logger;
    this.#concurrency = deps.settings.concurrency;
    const { batch } = deps.settings;
    this.#pool = new SlotPool(this.#concurrency, batch !== undefined);
    this.batchSize = batch?.size ?? 1;
    this.#workers = new Map(
      stores.map((store) => {
        const worker = new ShardWorker({ ...deps, store, pool: this.#pool });
        worker.onEmpty = () => this.#foundNothing(worker);
        worker.onEnded = () => this.onEnded?.();
        return [store.keys.due, worker];
      }),
    );
  }

  /** One per shard. */
  get shards(): Iterable<ShardWorker> {
    return this.#workers.values();
  }

  get concurrency(): number {
    return this.#concurrency;
  }

  set concurrency(concurrency: number) {
    const more = concurrency > this.#concurrency;
    if (more && this.#concurrency === 0) this.#restedUntil = performance.now();
    this.#concurrency = concurrency;
    this.#pool.size = concurrency;
    // A shard that asks only now has no answer yet.
    if (more) this.#empty.clear();
    for (const worker of this.#workers.values()) worker.resized(more);
  }

  /** Nobody waits for its jobs, so no job has to wait for it: it is not woken. */
  set looksOnce(looksOnce: boolean) {
    this.#pool.looksOnce = looksOnce;
  }

  get running(): number {
    return this.#sum(({ running }) => running);
  }

  /** Jobs that steps on their way may bring. */
  get wanted(): number {
    return this.#sum(({ occupancy }) => occupancy.wanted);
  }

  /** See `ClaimedJobs`. */
  get handedBack(): number {
    return this.#sum(({ jobs }) => jobs.handedBack);
  }

  get zombies(): number {
    return this.#sum(({ zombies }) => zombies);
  }

  /**
   * Of all shards the one whose last answer is oldest: monotonic ms of that answer, or of the moment since when it
   * waits for one.
   */
  get lastAnswerAt(): number {
    const asking = [...this.#workers.values()].filter(({ paused }) => !paused);
    const all = asking.length > 0 ? asking : [...this.#workers.values()];
    return Math.max(this.#restedUntil, Math.min(...all.map(({ lastAnswerAt }) => lastAnswerAt)));
  }

  /** Each shard's loop was answered since it began. */
  get hasAnswer(): boolean {
    return [...this.#workers.values()].every(({ hasAnswer }) => hasAnswer);
  }

  /** The error of a shard whose loop cannot make progress. */
  get fault(): DelayQueueError | undefined {
    for (const { fault } of this.#workers.values()) if (fault) return fault;
    return undefined;
  }

  get paused(): boolean {
    return [...this.#workers.values()].every(({ paused }) => paused);
  }

  start(): void {
    for (const worker of this.#workers.values()) worker.start();
  }

  /** @param due key of the shard whose head has changed; undefined when wake-ups may have been missed */
  wake(due: string | undefined): void {
    if (due !== undefined) return this.#workers.get(due)?.wake();
    for (const worker of this.#workers.values()) worker.wake();
  }

  /** See `ShardWorker.stop`. */
  async stop(drainMs: number): Promise<void> {
    const workers = [...this.#workers.values()];
    await Promise.all(workers.map((worker) => worker.stop(drainMs)));
    const open = this.#sum(({ unconfirmed }) => unconfirmed);
    for (const worker of workers) worker.unconfirmed = 0; // It may be called again.
    if (open === 0) return;
    this.#logger.warn(
      `Queue "${this.queue}": stopped while Redis had not confirmed how ${open} ${open === 1 ? 'job' : 'jobs'} ended. ` +
        'What it has not heard of runs again once its lease has ended.',
      { queue: this.queue },
    );
  }

  #sum(valueOf: (worker: ShardWorker) => number): number {
    let total = 0;
    for (const worker of this.#workers.values()) total += valueOf(worker);
    return total;
  }

  #foundNothing(worker: ShardWorker): void {
    if (this.#workers.size > 1 && this.#empty.add(worker).size < this.#workers.size) return;
    this.#empty.clear();
    this.onEmpty?.();
  }
}
