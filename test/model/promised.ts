import type { Model } from './model.js';

/** What the library answered that it will run, kept apart from the model: from answers alone. */
export class Promised {
  /** The newest payload of each id. */
  readonly #owed = new Map<string, number>();

  accepted(id: string, payload: number): void {
    this.#owed.set(id, payload);
  }

  started(id: string, payload: number): void {
    if (this.#owed.get(id) === payload) this.#owed.delete(id);
  }

  takenAway(id: string): void {
    this.#owed.delete(id);
  }

  /** Neither run, nor dead, nor expired. */
  missing(model: Model): string[] {
    const lost = [...this.#owed].filter(([id, payload]) => {
      if (model.expired.has(payload)) return false;
      const job = model.jobs.get(id);
      return job?.state !== 'dead' || job.version.payload !== payload;
    });
    return lost.map(([id, payload]) => `payload ${payload} of ${id}`);
  }
}
