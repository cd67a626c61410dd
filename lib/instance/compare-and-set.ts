import { UnavailableError } from '../delay-queue.errors.js';
import { performance, random, sleep } from '../time-and-randomness.js';

/** The answer of a try that came too late: somebody else has written since it read. */
export const AGAIN = Symbol('again');

/** Of other processes, each time it was read. */
const MOST_TRIES = 100;
const LONGEST_PAUSE_MS = 200;

/** What is to be changed, and by which call: for errors. */
export interface Changed {
  readonly call: string;
  readonly queue: string;
  readonly id: string;
}

/**
 * Changes that read, compute, and write only if nobody has written since. Those of one process take turns, for each id: so many at once
 * cost no more than one after the other. Who is second to another process reads again, after a pause that differs from its.
 */
export class CompareAndSet {
  /** The last change of each: with what it failed, or nothing. */
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(
    private readonly timeoutMs: number,
    private readonly mostTries = MOST_TRIES,
  ) {}

  /**
   * @param attempt reads and writes once
   * @throws UnavailableError, and what `attempt` throws
   */
  async run<T>(changed: Changed, attempt: () => Promise<T | typeof AGAIN>): Promise<T> {
    const key = `{${changed.id}}${changed.queue}`;
    const change = this.#after(this.#turns.get(key), changed, attempt);
    const turn = change.then(
      () => undefined,
      (error: unknown) => error,
    );
    this.#turns.set(key, turn);
    try {
      return await change;
    } finally {
      if (this.#turns.get(key) === turn) this.#turns.delete(key);
    }
  }

  async #after<T>(
    turn: Promise<unknown> | undefined,
    changed: Changed,
    attempt: () => Promise<T | typeof AGAIN>,
  ): Promise<T> {
    const since = performance.now();
    const failure = await turn;
    // Each would wait for its own deadline otherwise, one after the other.
    if (failure instanceof UnavailableError && performance.now() - since >= this.timeoutMs / 2) {
      throw unchanged(changed, 'it waited for another change, which has failed', failure);
    }
    for (let tries = 0; tries < this.mostTries; tries++) {
      const answer = await attempt();
      if (answer !== AGAIN) return answer;
      await sleep(random() * Math.min(2 ** tries, LONGEST_PAUSE_MS), undefined, { ref: false });
    }
    throw unchanged(changed, `other processes have changed it each of the ${this.mostTries} times that it was read`);
  }
}

function unchanged({ call, queue, id }: Changed, why: string, cause?: unknown): UnavailableError {
  return new UnavailableError(`${call}("${queue}", "${id}"): ${why}. Nothing was changed; try again.`, {
    cause,
    ids: [id],
  });
}
