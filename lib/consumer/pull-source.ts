import type { Handler } from '../handlers/handler.js';
import type { HandlerOutcome } from '../handlers/handler-outcome.js';
import type { DelayedJob } from '../job/delayed-job.js';
import { performance } from '../time-and-randomness.js';
import type { QueueWorker } from '../worker/queue-worker.js';
import { ClaimedJob } from './claimed-job.js';

/** A call of `pull()` that waits for jobs of one queue. */
export interface Puller {
  wanted: number;
  /** It waits when there are no jobs at once. */
  readonly waits: boolean;
  give(job: ClaimedJob): void;
  /** The queue was polled and had no more due jobs. */
  empty(): void;
}

/**
 * One queue in pull mode: an ordinary worker, whose handler hands the job to a call of `pull()`. Its concurrency is the
 * number of jobs that are held plus those that are asked for. So leases, heartbeats, wake-ups, the quarantine and the
 * drain at shutdown are those of every worker.
 */
export class PullSource {
  readonly #pullers = new Set<Puller>();
  #held = 0;
  /** The queue has no more due jobs, which the calls hear when those that were claimed have come to them, or have ended. */
  #isEmpty = false;
  /** When a claimed job was last seen on its way to a call; monotonic ms. */
  broughtAt = -Infinity;
  /** Calls of `pull()` that may still ask it. */
  #uses = 0;
  #worker: QueueWorker | undefined;

  /**
   * @param answerMs how long a call that settles a job waits for the answer
   * @param rests called when the source is no longer needed: no call is under way and no job of it is held
   */
  constructor(
    readonly queue: string,
    private readonly answerMs: number,
    private readonly rests: (source: PullSource) => void,
  ) {}

  /** The worker calls it with each claimed job. */
  readonly invoke: Handler['invoke'] = (job: DelayedJob) =>
    new Promise<HandlerOutcome>((resolve) => {
      const puller = [...this.#pullers].find(({ wanted }) => wanted > 0);
      // Its puller gave up while the job was on its way.
      if (!puller) return resolve({ kind: 'released', unbegun: true });
      puller.wanted--;
      this.#held++;
      let holds = true;
      const holdAgain = () => {
        holds = true;
        this.#held++;
        this.#resize();
      };
      // Only once: a slot that is counted twice would claim a job that no call asked for.
      const free = () => {
        if (!holds) return;
        holds = false;
        this.#held--;
        this.#resize();
      };
      const settle = (outcome: HandlerOutcome) => {
        resolve(outcome);
        free();
      };
      puller.give(new ClaimedJob(job, settle, free, holdAgain, this.answerMs));
      this.#tellEmpty();
    });

  /** A claimed job is on its way to a call: its schema, its context or its schedule is asked. */
  get isBringing(): boolean {
    return this.#worker!.running > this.#held;
  }

  /** What Redis refuses to the worker, while that lasts. */
  get fault(): Error | undefined {
    return this.#worker!.fault;
  }

  get worker(): QueueWorker | undefined {
    return this.#worker;
  }

  use(): void {
    this.#uses++;
  }

  done(): void {
    this.#uses--;
    this.#resize();
  }

  workWith(worker: QueueWorker): void {
    this.#worker = worker;
    worker.onEmpty = () => {
      this.#isEmpty = true;
      this.#tellEmpty();
    };
    worker.onEnded = () => {
      if (this.isBringing) this.broughtAt = performance.now();
      this.#tellEmpty();
    };
    this.#resize();
  }

  add(puller: Puller): void {
    this.#pullers.add(puller);
    this.#isEmpty = false;
    this.#resize();
  }

  remove(puller: Puller): void {
    this.#pullers.delete(puller);
    this.#resize();
  }

  /**
   * A schema, a context of the application or a schedule may have to be asked before a claimed job is given. Where one ended instead, its
   * slot has asked anew: what that brings would come to nobody, a moment after the call has said that there is none.
   */
  #tellEmpty(): void {
    const worker = this.#worker!;
    if (!this.#isEmpty || worker.running > this.#held || worker.wanted > 0) return;
    this.#isEmpty = false;
    for (const puller of this.#pullers) if (puller.wanted > 0) puller.empty();
  }

  #resize(): void {
    let wanted = 0;
    let waits = false;
    for (const puller of this.#pullers) {
      wanted += puller.wanted;
      waits ||= puller.waits && puller.wanted > 0;
    }
    // First: a worker whose concurrency rises may ask at once.
    this.#worker!.looksOnce = !waits;
    this.#worker!.concurrency = this.#held + wanted;
    if (this.#uses + this.#held === 0) this.rests(this);
  }
}
