import type { RateOfQueue } from './limited-store.js';

/** A window has so many entries; of more, those of one 64th of it are one; see lib/lua/step/turns.lua. */
const MOST_ENTRIES = 128;
const PARTS = 64;
/** No window of a run is longer. */
const KEPT_MS = 10_000;

interface Start {
  readonly id: string;
  readonly claim: string;
  /** By the clock of the server; of one that was set back meanwhile not later than it was then. */
  at: number;
  /** Writes of the server, this one included. */
  readonly length: number;
  /** Undefined of one that counts for its queue only. */
  readonly group: string | undefined;
  /** It has left the window of its queue, or of its group: for good, also where the clock went back afterwards. */
  hasLeftQueue: boolean;
  hasLeftGroup: boolean;
}

/** Since when starts are counted for a rate, and in how long a window. */
class Counted {
  since = Infinity;
  #per = 0;

  /** Starts from before a queue had a rate, or had one with so long a window, are forgotten. */
  sees(now: number, rate: RateOfQueue | undefined): void {
    if (!rate) this.since = Infinity;
    else if (this.since === Infinity) this.since = now;
    else if (rate.per > this.#per) this.since = Math.max(this.since, now - this.#per);
    if (this.since !== Infinity) this.since = Math.min(this.since, now);
    this.#per = rate?.per ?? 0;
  }
}

/** What started in one queue, as the clock of its server says. */
export class StartsOfQueue {
  readonly #ofQueue = new Counted();
  readonly #ofGroups = new Counted();
  #starts: Start[] = [];

  note(start: Omit<Start, 'hasLeftQueue' | 'hasLeftGroup'>): void {
    this.#starts.push({ ...start, hasLeftQueue: false, hasLeftGroup: false });
  }

  /** It was claimed and did not begin: it counts no more. */
  giveBack(id: string, claim: string): void {
    this.#starts = this.#starts.filter((start) => start.id !== id || start.claim !== claim);
  }

  /** The rates that hold now. Of a clock that was set back: what started in its future counts as started now. */
  sees(now: number, rate: RateOfQueue | undefined, groupRate: RateOfQueue | undefined): void {
    this.#ofQueue.sees(now, rate);
    this.#ofGroups.sees(now, groupRate);
    for (const start of this.#starts) {
      start.at = Math.min(start.at, now);
      start.hasLeftQueue ||= rate !== undefined && start.at + rate.per <= now;
      start.hasLeftGroup ||= groupRate !== undefined && start.at + groupRate.per <= now;
    }
    const [first] = this.#starts;
    if (first && first.at < now - 2 * KEPT_MS) this.#starts = this.#starts.filter(({ at }) => at >= now - KEPT_MS);
  }

  /** Writes were lost, and these starts with them. */
  rolledBack(length: number): void {
    this.#starts = this.#starts.filter((start) => start.length <= length);
  }

  /** How many started in the window that ends now. @param group undefined for the queue */
  count(now: number, { per }: RateOfQueue, group?: string): number {
    const { since } = group === undefined ? this.#ofQueue : this.#ofGroups;
    const hasLeft = group === undefined ? 'hasLeftQueue' : 'hasLeftGroup';
    return this.#of(group).filter((start) => !start[hasLeft] && start.at > now - per && start.at > since).length;
  }

  /** When the window has room, by the clock of the server; in the past where it has. @param group undefined for the queue */
  opensAt(now: number, { max, per }: RateOfQueue, group?: string): number {
    const starts = this.#of(group);
    const last = starts[starts.length - max];
    if (!last) return -Infinity;
    const isCoarse = starts.filter(({ at }) => at > now - per).length > MOST_ENTRIES;
    return last.at + per + (isCoarse ? Math.ceil(per / PARTS) : 0);
  }

  #of(group: string | undefined): readonly Start[] {
    return group === undefined ? this.#starts : this.#starts.filter((start) => start.group === group);
  }
}
