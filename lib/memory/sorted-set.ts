/** One end of a range of scores. */
export interface Bound {
  score: number;
  exclusive: boolean;
}

interface Entry {
  readonly member: string;
  readonly score: number;
}

/**
 * Members by score, and of one score by their bytes, as in Redis.
 *
 * A sorted array: to add or remove in the middle moves what is behind, which takes microseconds for the tens of thousands of
 * jobs that one process holds in tests. A skip list would be ten times the code.
 */
export class SortedSet {
  readonly #scores = new Map<string, number>();
  readonly #order: Entry[] = [];

  get size(): number {
    return this.#order.length;
  }

  score(member: string): number | undefined {
    return this.#scores.get(member);
  }

  set(member: string, score: number): void {
    const was = this.#scores.get(member);
    if (was === score) return;
    if (was !== undefined) this.#order.splice(this.#place(member, was), 1);
    this.#scores.set(member, score);
    this.#order.splice(this.#place(member, score), 0, { member, score });
  }

  delete(member: string): boolean {
    const score = this.#scores.get(member);
    if (score === undefined) return false;
    const place = this.#place(member, score);
    if (place === 0)
      this.#order.shift(); // What is due goes first, and for the engine this moves nothing.
    else this.#order.splice(place, 1);
    return this.#scores.delete(member);
  }

  rank(member: string): number | undefined {
    const score = this.#scores.get(member);
    return score === undefined ? undefined : this.#place(member, score);
  }

  /** From one place up to and without another one. */
  slice(from: number, to: number): readonly Entry[] {
    return this.#order.slice(from, to);
  }

  /** The places of all scores from `min` to `max`: the first one, and the one behind the last one. */
  between(min: Bound, max: Bound): [from: number, to: number] {
    const from = this.#count(({ score }) => score < min.score || (min.exclusive && score === min.score));
    const to = this.#count(({ score }) => score < max.score || (!max.exclusive && score === max.score));
    return [from, Math.max(from, to)];
  }

  /** Where this entry stands, or would have to. */
  #place(member: string, score: number): number {
    return this.#count((entry) => entry.score < score || (entry.score === score && entry.member < member));
  }

  /** How many entries at the beginning are before something. */
  #count(isBefore: (entry: Entry) => boolean): number {
    let [low, high] = [0, this.#order.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isBefore(this.#order[middle]!)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
