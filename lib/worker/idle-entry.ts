import type { StepRequest } from '../redis/step.protocol.js';

/** The entry of one shard's worker in the list of idle workers, which are woken for jobs that become due, as far as answers tell of it. */
export class IdleEntry {
  /** Until then (monotonic ms) Redis has it; 0 if it has not. */
  until = 0;
  /** When (monotonic ms) the last step left that made it, or kept it, of those that were answered. */
  #listedAt = -Infinity;

  /**
   * A step was answered.
   *
   * @param jobs how many it brought
   * @param sentAt monotonic ms at which it left
   * @returns whether the entry may be gone and nobody knew: then the worker must look again, or at rest nobody would wake it for minutes
   */
  answered({ limit, ahead, hasFreeSlots, claimInFlight }: StepRequest, jobs: number, sentAt: number): boolean {
    const hasSlots = hasFreeSlots || claimInFlight;
    // Then the script took it off the list.
    if (limit > 0 && limit - ahead <= jobs && !hasSlots) this.until = 0;
    if (limit > 0 || hasSlots) {
      this.#listedAt = Math.max(this.#listedAt, sentAt);
      return false;
    }
    // It said that this worker is full. A step without an answer is sent again by itself, so a later one may have overtaken it.
    if (sentAt >= this.#listedAt) return false;
    this.until = 0;
    return true;
  }
}
