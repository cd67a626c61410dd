import type { MemoryStore } from '../memory/memory.store.js';
import type { MovedShard, TestStore } from './test-store.js';
import { VirtualClock } from './virtual-clock.js';

/** A store in memory: its clock is set, and what is stored stays as it is. */
export class MemoryTestStore implements TestStore {
  readonly standsStill = true;
  readonly #clock: VirtualClock;

  constructor(private readonly store: MemoryStore) {
    const { clock } = store;
    this.#clock = clock instanceof VirtualClock ? clock : new VirtualClock(clock.now());
    store.clock = this.#clock;
  }

  serverNow(): number {
    return this.#clock.now();
  }

  now(): number {
    return this.#clock.now();
  }

  use<T>(work: () => Promise<T>): Promise<T> {
    return work();
  }

  async command(name: string, ...args: string[]): Promise<unknown> {
    return this.store.command(name, args);
  }

  async move(ms: number, shards: readonly MovedShard[]): Promise<void> {
    this.#clock.set(this.#clock.now() + ms);
    for (const { keys, kept } of shards) {
      const [, , leases, , , , , , , , , , meta] = keys as [string, string, string, ...string[]];
      // The scripts believe no lease for a while when the clock jumps; here that is what was asked for.
      if (this.store.command('HEXISTS', [meta!, 'seenAt']) === 1) {
        this.store.command('HSET', [meta!, 'seenAt', String(this.#clock.now())]);
      }
      for (const claim of kept.map(String)) {
        const deadline = this.store.command('ZSCORE', [leases, claim]);
        if (deadline) this.store.command('ZADD', [leases, 'XX', String(Number(deadline) + ms), claim]);
      }
    }
  }
}
