import type { Disk } from './disk.js';
import type { Engine } from './engine.js';
import type { Took } from './network.js';
import { Random } from './random.js';

interface Replica {
  /** How far behind it is, ms. */
  readonly lagMs: number;
  /** Nothing new reaches it from then on; Infinity: everything does. */
  stalledAt: number;
  stalledUntil: number;
}

/** The replicas of one server. Each has the writes of some milliseconds ago, in their order. */
export class Replicas {
  readonly #all: readonly Replica[];
  #stalled: Took = () => {};

  constructor(
    seed: number,
    name: string,
    private readonly engine: Engine,
    /** Of their master. */
    public disk: Disk,
    count: number,
  ) {
    const random = new Random(seed, `replicas of ${name}`);
    this.#all = Array.from({ length: count }, () => ({
      lagMs: random.between(0.2, 4),
      stalledAt: Infinity,
      stalledUntil: 0,
    }));
  }

  get count(): number {
    return this.#all.length;
  }

  /** How many of them have the first `length` writes. */
  having(length: number): number {
    const count = this.#all.filter((one) => this.#has(one) >= length).length;
    if (count < this.count && this.#all.some(({ stalledAt }) => stalledAt < Infinity)) this.#stalled();
    return count;
  }

  /** As their master sees them while it is cut off from them: for a minute it takes them for connected, and hears nothing. */
  outOfReach(): Replicas {
    const unheard = new Replicas(0, '', this.engine, this.disk, this.count);
    unheard.stall(Infinity, 1, () => {});
    for (const one of unheard.#all) one.stalledAt = -Infinity;
    return unheard;
  }

  /** Of the one that is the furthest: it becomes the master. */
  most(): number {
    return Math.max(...this.#all.map((one) => this.#has(one)));
  }

  /** For so long nothing reaches some of them. */
  stall(ms: number, share: number, took: Took): void {
    this.#stalled = took;
    const { now } = this.engine;
    for (const one of this.#all.slice(0, Math.ceil(share * this.count))) {
      if (one.stalledUntil <= now) one.stalledAt = now;
      one.stalledUntil = Math.max(one.stalledUntil, now + ms);
    }
  }

  #has(one: Replica): number {
    const { now } = this.engine;
    if (one.stalledUntil <= now) one.stalledAt = Infinity;
    // Not what its master had first either, of which the disk of that one no longer knows when it was written.
    if (one.stalledAt === -Infinity) return 0;
    return this.disk.lengthAt(Math.min(now - one.lagMs, one.stalledAt));
  }
}
