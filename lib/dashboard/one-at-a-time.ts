import { performance } from '../time-and-randomness.js';

/** Of answers that differ by what was asked for. */
const MOST_KEPT = 20;

interface Kept {
  readonly answer: Promise<unknown>;
  /** When it came; undefined while it is on its way. */
  at: number | undefined;
}

/** Keeps answers for a while, so that many who ask for the same cost as much as one. */
export class OneAtATime {
  readonly #kept = new Map<string, Kept>();

  /** @param make is called when the answer is older than that, and not while it is on its way; a failure is not kept */
  value<Answer>(key: string, validMs: number, make: () => Promise<Answer>): Promise<Answer> {
    const known = this.#kept.get(key);
    if (known && (known.at === undefined || performance.now() - known.at < validMs)) {
      return known.answer as Promise<Answer>;
    }
    const answer = make();
    const kept: Kept = { answer, at: undefined };
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    if (this.#kept.size > MOST_KEPT) this.#kept.delete(this.#kept.keys().next().value!);
    answer.then(
      () => (kept.at = performance.now()),
      () => this.#kept.get(key) === kept && this.#kept.delete(key),
    );
    return answer;
  }
}
