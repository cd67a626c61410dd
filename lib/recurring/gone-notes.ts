import type { ShardStore } from '../redis/shard-store.js';
import { performance } from '../time-and-randomness.js';
import { FIRST_PAGE } from './occurrence-pages.js';
import type { Cursor } from './occurrence-pages.js';

/** An enqueue that comes after its note is tried for ten minutes at most: see SESSION_PX in lib/lua/shared/session.lua. */
export const SWEEP_EVERY_MS = 900_000;
const PAGE = 200;
/** Of one sweep. Where there are more notes the next one goes on. */
const MOST_PAGES = 100;

/**
 * Removes the notes of jobs at a local time that were completed, cancelled, or are dead, so that none stands until its moment, which may
 * be years ahead. A note comes before its job: so it goes when it had no job at two sweeps, and was not written anew between them.
 */
export class GoneNotes {
  #cursor: Cursor = FIRST_PAGE;
  /** Notes without a job at the last sweep: id and score in turn. */
  #gone: string[] = [];

  constructor(
    private readonly store: ShardStore,
    /** Of the last sweep; monotonic ms. A process that has just begun has none to make. */
    private sweptAt = performance.now(),
  ) {}

  /** Looks only now and then, however often it is called. */
  async sweep(now = performance.now()): Promise<void> {
    if (now - this.sweptAt < Math.max(SWEEP_EVERY_MS, 2 * this.store.connection.timeoutMs)) return;
    this.sweptAt = now;
    const over = this.#gone;
    this.#gone = [];
    let hasEnded = false;
    for (let pages = 0; over.length > 0 || (!hasEnded && pages < MOST_PAGES); pages++) {
      const args = [PAGE, ...this.#cursor, ...over.splice(0, 2 * PAGE)];
      const [score, id, ...gone] = (await this.store.call('unzone', args)) as [string, string, ...string[]];
      if (!hasEnded) this.#gone.push(...gone);
      hasEnded ||= score === '';
      this.#cursor = hasEnded ? FIRST_PAGE : [score, id];
    }
  }
}
