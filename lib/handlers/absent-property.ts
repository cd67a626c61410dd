import { DelayQueueLogger } from '../delay-queue.logger.js';

/**
 * Says once of a parameter that its property is in no payload, because a misspelt one would be undefined in each job. Once it was there, it
 * is one that may be missing, and nothing is said.
 */
export class AbsentProperty {
  #isLooking = true;

  constructor(
    private readonly property: string,
    /** Class and method. */
    private readonly name: string,
    private readonly instance: string,
  ) {}

  look(value: unknown): void {
    if (!this.#isLooking) return;
    this.#isLooking = false;
    if (value !== undefined) return;
    const property = JSON.stringify(this.property);
    DelayQueueLogger.of(this.instance).warn(
      `${this.name}: the payload has no ${property}, so @JobPayload(${property}) gave undefined. Correct the name; if it may be missing, ` +
        'give the parameter a default or a pipe, and this is not said. Said once.',
    );
  }
}
