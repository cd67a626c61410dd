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

/** What started in one queue, as the clock of its server says. In the order of their times: of a clock that was set back, too. */
export class StartsOfQueue {
  readonly #ofQueue = new Counted();
  readonly #ofGroups = new Counted();
  #starts: Start[] = [];
  /** The same by their groups. */
  #groups = new Map<string, Start[]>();
  /** So many at the beginning have left the window of the queue, and of their groups. */
  #leftQueue = 0;
  #leftGroups = 0;

  note(of: Omit<Start, 'hasLeftQueue' | 'hasLeftGroup'>): void {
    const start: Start = { ...of, hasLeftQueue: false, hasLeftGroup: false };
    this.#starts.push(start);
    this.#noteInGroup(start);
  }

  /** It was claimed and did not begin: it counts no more. */
  giveBack(id: string, claim: string): void {
    this.#keep((start) => start.id !== id || start.claim !== claim);
  }

  /** The rates that hold now. Of a clock that was set back: what started in its future counts as started now. */
  sees(now: number, rate: RateOfQueue | undefined, groupRate: RateOfQueue | undefined): void {
    this.#ofQueue.sees(now, rate);
    this.#ofGroups.sees(now, groupRate);
    const starts = this.#starts;
    for (let i = starts.length - 1; i >= 0 && starts[i]!.at > now; i--) starts[i]!.at = now;
    if (rate) this.#leftQueue = leave(starts, this.#leftQueue, 'hasLeftQueue', now - rate.per);
    if (groupRate) this.#leftGroups = leave(starts, this.#leftGroups, 'hasLeftGroup', now - groupRate.per);
    const [first] = starts;
    if (first && first.at < now - 2 * KEPT_MS) this.#keep(({ at }) => at >= now - KEPT_MS);
  }

  /** Writes were lost, and these starts with them. */
  rolledBack(length: number): void {
    this.#keep((start) => start.length <= length);
  }

  /** How many started in the window that ends now. @param group undefined for the queue */
  count(now: number, { per }: RateOfQueue, group?: string): number {
    const { since } = group === undefined ? this.#ofQueue : this.#ofGroups;
    const hasLeft = group === undefined ? 'hasLeftQueue' : 'hasLeftGroup';
    const starts = this.#of(group);
    const from = Math.max(now - per, since);
    let many = 0;
    for (let i = starts.length - 1; i >= 0 && starts[i]!.at > from; i--) if (!starts[i]![hasLeft]) many++;
    return many;
  }

  /** When the window has room, by the clock of the server; in the past where it has. @param group undefined for the queue */
  opensAt(now: number, { max, per }: RateOfQueue, group?: string): number {
    const starts = this.#of(group);
    const last = starts[starts.length - max];
    if (!last) return -Infinity;
    const one = starts[starts.length - MOST_ENTRIES - 1];
    const isCoarse = one !== undefined && one.at > now - per;
    return last.at + per + (isCoarse ? Math.ceil(per / PARTS) : 0);
  }

  #of(group: string | undefined): readonly Start[] {
    return group === undefined ? this.#starts : (this.#groups.get(group) ?? NONE);
  }

  #keep(isKept: (start: Start) => boolean): void {
    if (this.#starts.every(isKept)) return;
    this.#starts = this.#starts.filter(isKept);
    this.#leftQueue = this.#leftGroups = 0;
    this.#groups = new Map();
    for (const start of this.#starts) this.#noteInGroup(start);
  }

  #noteInGroup(start: Start): void {
    if (start.group === undefined) return;
    const known = this.#groups.get(start.group);
    if (known) known.push(start);
    else this.#groups.set(start.group, [start]);
  }
}

const NONE: readonly Start[] = [];

/** All up to this time have left a window. @returns how many have, of which some had before */
function leave(starts: readonly Start[], left: number, flag: 'hasLeftQueue' | 'hasLeftGroup', until: number): number {
  let n = left;
  for (; n < starts.length && (starts[n]![flag] || starts[n]!.at <= until); n++) starts[n]![flag] = true;
  return n;
}
