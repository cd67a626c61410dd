/** A step on a way quicker than all that were seen would come too early and claim nothing, which costs a round trip. */
const SPARE_MS = 0.05;
/** Ways of long ago say nothing: clocks drift apart, and networks change. */
const REMEMBERED_MS = 2_000;

/**
 * When a step must leave to be at the server at a moment of its clock. Nobody knows how much of a round trip is the way there, but each
 * answer says when its step was there: that moment less the one at which it left is all that is needed. Of these the least counts: a step
 * that goes by it comes when its job is due, or later if something holds it up. One that left at the due time would bring its job a
 * way later.
 *
 * Moments here are monotonic ms, those there are ms with their fraction.
 */
export class Departures {
  /** Time at arrival there minus time at departure here. */
  #least = Infinity;
  /** That of the stretch of time before. */
  #leastBefore = Infinity;
  #since = -Infinity;

  /** A step was answered. */
  learn(wasThereAt: number, leftAt: number, answeredAt: number): void {
    // It is later there than was believed: the clock was set, or another server answers.
    if (wasThereAt - answeredAt > this.#ahead) this.#least = this.#leastBefore = Infinity;
    const sinceMs = answeredAt - this.#since;
    if (sinceMs >= REMEMBERED_MS) {
      this.#leastBefore = sinceMs < 2 * REMEMBERED_MS ? this.#least : Infinity;
      this.#least = Infinity;
      this.#since = answeredAt;
    }
    this.#least = Math.min(this.#least, wasThereAt - leftAt);
  }

  /** @returns when to leave, monotonic ms */
  for(moment: number): number {
    return moment - this.#ahead + SPARE_MS;
  }

  get #ahead(): number {
    return Math.min(this.#least, this.#leastBefore);
  }
}
