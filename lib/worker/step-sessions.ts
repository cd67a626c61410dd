import type { Session } from '../redis/session.js';
import { performance } from '../time-and-randomness.js';
import type { StepRequest } from './step-request.js';

/** So long a worker that stops asks, at most, what a claim has brought whose answer was lost. */
const LONGEST_DOUBT_MS = 5_000;

/**
 * The sessions on which the steps of one shard leave: one step is on its way while the jobs of the other run. There are more than two
 * where a round trip takes so long that slots would stand empty (`Prefetch`).
 */
export class StepSessions {
  readonly all: Session[];
  /** Monotonic ms. */
  #askUntil = Infinity;

  constructor(private readonly open: () => Session) {
    this.all = [open(), open()];
  }

  /** @returns one on which a step can leave, unless as many are on their way as may be */
  free(stepsOut: number, most: number): Session | undefined {
    if (stepsOut >= most) return undefined;
    const free = this.all.find(({ busy }) => !busy);
    if (free || this.all.length >= most) return free;
    const session = this.open();
    this.all.push(session);
    return session;
  }

  get areBusy(): boolean {
    return this.all.every(({ busy }) => busy);
  }

  /** The worker begins to stop. */
  stop(commandTimeoutMs: number): void {
    this.#askUntil = performance.now() + Math.min(commandTimeoutMs, LONGEST_DOUBT_MS);
  }

  /**
   * Whether a worker that stops asks once more what this claim has brought, whose answer was lost: such jobs are handed back, and would wait
   * for the end of their lease. Not for long, because nobody wants to wait for a Redis that is away to shut down.
   *
   * @param waits for jobs of this worker anyway: to ask then costs no time
   */
  mayHaveBrought(session: Session, { limit, quarantineLimit }: StepRequest, waits: boolean): boolean {
    return limit + quarantineLimit > 0 && session.isInDoubt && (waits || performance.now() < this.#askUntil);
  }
}
