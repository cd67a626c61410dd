/** A number of 32 bits that any change of the text changes. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash ^= hash >>> 16;
  hash = Math.imul(hash, 0x85ebca6b);
  return (hash ^ (hash >>> 13)) >>> 0;
}

/**
 * Randomness that a seed decides. Each purpose has a stream of its own, so that leaving one fault out of a plan does not change
 * what everything else draws. Integers and the four basic operations only: their results are equal in every JavaScript engine.
 */
export class Random {
  #a: number;
  #b: number;

  constructor(seed: number, purpose: string) {
    this.#a = hashOf(`${seed}/${purpose}`);
    this.#b = hashOf(`${purpose}\\${seed}`);
    for (let i = 0; i < 8; i++) this.next();
  }

  /** In [0, 1). */
  next(): number {
    this.#a = (this.#a + 0x6d2b79f5) | 0;
    this.#b = (this.#b + 0x9e3779b9) | 0;
    let mixed = Math.imul(this.#a ^ (this.#a >>> 15), 1 | this.#a);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed ^ this.#b;
    mixed = Math.imul(mixed ^ (mixed >>> 14), 0x2c1b3c6d);
    return ((mixed ^ (mixed >>> 12)) >>> 0) / 4294967296;
  }

  between(low: number, high: number): number {
    return low + (high - low) * this.next();
  }

  /** A whole number from `low` to `high`, both included. */
  whole(low: number, high: number): number {
    return Math.floor(this.between(low, high + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.next() * list.length)]!;
  }

  /** Most often about `usual`, one time in ten up to `longest`. */
  longTailed(usual: number, longest: number): number {
    const x = this.next();
    return this.chance(0.9) ? usual * (0.5 + x) : usual + (longest - usual) * x * x * x;
  }
}

/** As it is written in a plan. */
export function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
