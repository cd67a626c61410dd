import type { StepReply, StepRequest } from '../redis/step.js';
import type { Company } from './company.js';
import type { QueueWorker } from './queue-worker.js';
import { performance } from '../real-time.js';

/** How long a busy process leaves suspects to one that happens to be idle. */
const COURTESY_MS = 250;
/** The role lapses after 6 s without a step. */
const REFRESH_MS = 2_000;
const AFTER_NOTHING_MS = 500;
/** How long a volunteer keeps its queues waiting at first. */
const PATIENCE_MS = 2_000;
const PATIENCE_MAX_MS = 3_600_000;
/** Long enough for one claim by each queue of this process: whoever then holds something comes first. */
const AFTER_TURN_MS = 50;

/**
 * Running suspects: jobs that lost a lease and may have killed their process. They run when nothing else does here, so
 * one process stops claiming until it holds nothing, takes a turn, and then serves its queues again before the next.
 */
export class SoloTurn {
  suspects = 0;
  #notBefore = 0;
  #volunteerAt = Infinity;
  #refreshAt = Infinity;
  /** A step that asks for suspects is on its way: too late to give up. */
  #asking = false;
  #turnSince: number | undefined;
  #waitsSince = 0;
  #patienceMs = PATIENCE_MS;
  readonly #few: number;

  constructor(
    private readonly company: Company<QueueWorker>,
    private readonly worker: QueueWorker,
    concurrency: number,
  ) {
    this.#few = Math.max(1, Math.floor(concurrency / 10));
  }

  /** Suspects to ask for in a step planned now. */
  want(now: number, stepsOut: number): number {
    if (this.suspects === 0 || stepsOut > 0 || now < this.#notBefore || !this.company.isEmpty) return 0;
    if (this.#turnSince !== undefined) return 0; // Its endings must be told first, and then it is the queues' turn.
    if (!this.company.mayClaim() && !this.company.isSolo(this.worker)) return 0;
    return this.#few;
  }

  /** Ask for the role, or keep it. */
  volunteers(now: number): boolean {
    if (this.suspects === 0 || this.#rests) return false;
    return this.company.isSolo(this.worker) || (this.company.mayClaim() && now >= this.#volunteerAt);
  }

  /**
   * Nobody may wait behind a volunteer for as long as its longest handler runs: it gives up, serves its queues for as long
   * as it waited, and then waits twice as long, so that suspects come to their turn in the end.
   */
  giveUpWaiting(now: number): void {
    if (this.#asking || this.#turnSince !== undefined || !this.company.isSolo(this.worker)) return;
    const waited = now - this.#waitsSince;
    if (waited < this.#patienceMs) return;
    this.#patienceMs = Math.min(this.#patienceMs * 2, PATIENCE_MAX_MS);
    this.#volunteerAt = now + waited;
    this.#over();
  }

  /** Is a step worth it for the role alone, or to say that the turn is over? */
  mustSpeak(now: number, held: number): boolean {
    if (this.#turnSince !== undefined) return held === 0;
    if (this.company.isEmpty) return false;
    return this.volunteers(now) && now >= this.nextMoment;
  }

  /** Monotonic ms at which a step should go out for the sake of suspects. */
  get nextMoment(): number {
    if (this.suspects === 0 || this.#rests) return Infinity;
    if (!this.company.mayClaim() && !this.company.isSolo(this.worker)) return Infinity;
    if (this.#turnSince !== undefined) return Infinity;
    if (this.company.isEmpty) return this.#notBefore;
    return this.company.isSolo(this.worker) ? this.#refreshAt : this.#volunteerAt;
  }

  /** The step that `want` was for leaves: from now on nothing else may be claimed here. */
  asks(): void {
    this.#asking = true;
    this.company.beginSolo(this.worker);
  }

  /** It got no answer that counts. */
  fails(): void {
    this.#asking = false;
    this.company.endSolo(this.worker);
  }

  /** Concurrency became 0: whoever takes no suspects must stop nobody for them. */
  rest(): void {
    this.#volunteerAt = Infinity;
    if (this.#turnSince === undefined && !this.#asking) this.#over();
  }

  /** Nobody pulls, so that this worker may run nothing. */
  get #rests(): boolean {
    return this.worker.concurrency === 0;
  }

  answered(request: StepRequest, reply: StepReply, held: number): void {
    const now = performance.now();
    this.suspects = reply.suspects;
    if (request.soloWant > 0) {
      this.#asking = false;
      if (reply.jobs.length > 0) {
        this.#turnSince = now;
        this.#patienceMs = PATIENCE_MS;
      } else {
        // Others run them; asking again soon would only be traffic.
        this.#notBefore = now + AFTER_NOTHING_MS * (1 + Math.random());
        this.#over();
      }
    } else if (this.#turnSince !== undefined && held === 0) {
      // Fair to the queues: as much time for them as the turn took, up to the courtesy that others get anyway.
      this.#volunteerAt = now + COURTESY_MS + Math.min(now - this.#turnSince, 5_000);
      this.#notBefore = now + AFTER_TURN_MS;
      this.#turnSince = undefined;
      this.#over();
    }
    if (reply.suspects === 0) {
      this.#volunteerAt = this.#refreshAt = Infinity;
      if (this.#turnSince === undefined) this.#over();
      return;
    }
    if (reply.volunteer && this.company.mayClaim() && request.volunteer && !this.#rests) {
      this.company.beginSolo(this.worker);
      this.#waitsSince = now;
    } else if (!reply.volunteer && this.#turnSince === undefined) {
      this.#over();
    }
    this.#refreshAt = this.company.isSolo(this.worker) ? now + REFRESH_MS : Infinity;
    if (this.#volunteerAt === Infinity || now >= this.#volunteerAt) {
      this.#volunteerAt = now + COURTESY_MS * (1 + 2 * Math.random());
    }
  }

  #over(): void {
    this.#refreshAt = Infinity;
    this.company.endSolo(this.worker);
  }
}
