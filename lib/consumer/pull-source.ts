import type { Handler } from '../handlers/handler.js';
import type { HandlerOutcome } from '../handlers/handler-outcome.js';
import type { DelayedJob } from '../job/delayed-job.js';
import type { QueueWorker } from '../worker/queue-worker.js';
import { ClaimedJob } from './claimed-job.js';

/** Somebody who waits for jobs of one queue. */
export interface Puller {
  wanted: number;
  give(job: ClaimedJob): void;
  /** The queue was looked at and had nothing more. */
  empty(): void;
}

/**
 * One queue in pull mode: a worker whose concurrency is what is held plus what is asked for, and whose handler hands the
 * job to whoever pulls. So leases, heartbeats, wake-ups, the quarantine and the drain at shutdown are those of every worker.
 */
export class PullSource {
  readonly #pullers = new Set<Puller>();
  #held = 0;
  /** Calls of `pull()` that may still ask it. */
  #uses = 0;
  #worker: QueueWorker | undefined;

  /**
   * @param answerMs how long whoever settles a job waits for an answer
   * @param rests called when nobody needs it any more: no call is under way and no job of it is held
   */
  constructor(
    readonly queue: string,
    private readonly answerMs: number,
    private readonly rests: (source: PullSource) => void,
  ) {}

  /** What the worker calls with each job it has claimed. */
  readonly invoke: Handler['invoke'] = (job: DelayedJob) =>
    new Promise<HandlerOutcome>((resolve) => {
      const puller = [...this.#pullers].find(({ wanted }) => wanted > 0);
      // Its puller gave up while the job was on its way.
      if (!puller) return resolve({ kind: 'released' });
      puller.wanted--;
      this.#held++;
      let holds = true;
      // Once: a slot that outlived its job would claim what nobody asked for.
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
      puller.give(new ClaimedJob(job, settle, free, this.answerMs));
    });

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

  drainWith(worker: QueueWorker): void {
    this.#worker = worker;
    worker.onEmpty = () => {
      for (const puller of this.#pullers) if (puller.wanted > 0) puller.empty();
    };
    this.#resize();
  }

  add(puller: Puller): void {
    this.#pullers.add(puller);
    this.#resize();
  }

  remove(puller: Puller): void {
    this.#pullers.delete(puller);
    this.#resize();
  }

  #resize(): void {
    let wanted = 0;
    for (const puller of this.#pullers) wanted += puller.wanted;
    this.#worker!.concurrency = this.#held + wanted;
    if (this.#uses + this.#held === 0) this.rests(this);
  }
}
