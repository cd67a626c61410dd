import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { channelName } from '../delay-queue.channels.js';
import type {
  DelayQueueMessages,
  EnqueuedMessage,
  OccurrencesSkippedMessage,
  StepMessage,
} from '../delay-queue.channels.js';
import type { DeadReason } from '../job/error-record.js';
import { Buckets } from './buckets.js';
import type { Distribution } from './buckets.js';

// Made for a library whose jobs start within milliseconds, and for handlers of any kind.
export const LATENESS_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 60, 300];
/** Upper ones, in seconds. */
export const BOUNDS = {
  lateness: LATENESS_BOUNDS,
  duration: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
  step: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
};

export type DistributionName = keyof typeof BOUNDS;
export type StepKind = StepMessage['kind'];
/** Whose seconds a distribution takes. */
export interface DistributionPlace {
  readonly instance: string;
  readonly queue: string;
  readonly kind?: StepKind;
}

/** For whoever reads the counts later. */
export const inBuckets = (of: DistributionName): Buckets => new Buckets(BOUNDS[of]);

/**
 * Names of queues may come from anywhere, and each has about a hundred series. Queues beyond this number are counted
 * together.
 */
const MOST_QUEUES = 1_000;
/** No queue has such a name. */
const OTHERS = '{others}';

/** What happened to the jobs of one queue in this process. All begin at 0: a first dead letter is an increase. */
export class QueueTally<Seconds extends Distribution = Buckets> {
  claimed = 0;
  completed = 0;
  failed = 0;
  retried = 0;
  snoozed = 0;
  expired = 0;
  leasesLost = 0;
  readonly skipped: Record<OccurrencesSkippedMessage['reason'], number> = { missed: 0, overlap: 0 };
  readonly enqueued: Record<EnqueuedMessage['outcome'], number> = { created: 0, kept: 0, replaced: 0, rescheduled: 0 };
  readonly deadLettered: Record<DeadReason, number> = {
    exhausted: 0,
    discarded: 0,
    leaseLost: 0,
    undecodable: 0,
    invalid: 0,
    expired: 0,
  };
  readonly lateness: Seconds;
  readonly duration: Seconds;
  readonly step: Record<StepKind, Seconds>;

  constructor(make: (of: DistributionName, kind?: StepKind) => Seconds) {
    this.lateness = make('lateness');
    this.duration = make('duration');
    this.step = { claim: make('step', 'claim'), settle: make('step', 'settle'), heartbeat: make('step', 'heartbeat') };
  }
}

/** Counts the events of the library in plain numbers, because this runs for every job. */
export class Tally<Seconds extends Distribution = Buckets> {
  readonly #instances = new Map<string, Map<string, QueueTally<Seconds>>>();
  readonly #outages = new Map<string, number>();
  #size = 0;
  // Jobs come in runs of one queue, whose tally is found without hashing names.
  #last: { readonly instance: string; readonly queue: string; readonly tally: QueueTally<Seconds> } | undefined;
  #undo: (() => void)[] = [];

  constructor(private readonly make: (of: DistributionName, place: DistributionPlace) => Seconds) {}

  /**
   * The tally of a queue, made when it is asked for first, so that counters begin at 0 and not at their first event.
   */
  of(instance: string, queue: string): QueueTally<Seconds> {
    const last = this.#last;
    if (last?.queue === queue && last.instance === instance) return last.tally;
    const tally = this.#find(instance, queue);
    this.#last = { instance, queue, tally };
    return tally;
  }

  #find(instance: string, queue: string): QueueTally<Seconds> {
    let queues = this.#instances.get(instance);
    if (!queues) this.#instances.set(instance, (queues = new Map()));
    let tally = queues.get(queue);
    if (!tally && this.#size >= MOST_QUEUES && queue !== OTHERS) return this.#find(instance, OTHERS);
    if (!tally) {
      queues.set(queue, (tally = new QueueTally((of, kind) => this.make(of, { instance, queue, kind }))));
      this.#size++;
    }
    return tally;
  }

  *all(): Iterable<{ instance: string; queue: string; tally: QueueTally<Seconds> }> {
    for (const [instance, queues] of this.#instances) {
      for (const [queue, tally] of queues) yield { instance, queue, tally };
    }
  }

  outages(instance: string): number {
    return this.#outages.get(instance) ?? 0;
  }

  clear(): void {
    this.#instances.clear();
    this.#outages.clear();
    this.#size = 0;
    this.#last = undefined;
  }

  /** @param withSteps also counts round trips of workers */
  begin(withSteps = true): void {
    this.#hear('enqueued', ({ instance, queue, outcome }) => this.of(instance, queue).enqueued[outcome]++);
    this.#hear('claimed', ({ instance, queue, latenessMs }) => {
      const tally = this.of(instance, queue);
      tally.claimed++;
      tally.lateness.observe(latenessMs / 1_000);
    });
    this.#hear('completed', ({ instance, queue, durationMs }) => {
      const tally = this.of(instance, queue);
      tally.completed++;
      if (durationMs !== undefined) tally.duration.observe(durationMs / 1_000);
    });
    this.#hear('failed', ({ instance, queue, durationMs }) => {
      const tally = this.of(instance, queue);
      tally.failed++;
      if (durationMs !== undefined) tally.duration.observe(durationMs / 1_000);
    });
    this.#hear('retried', ({ instance, queue }) => this.of(instance, queue).retried++);
    this.#hear('snoozed', ({ instance, queue, durationMs }) => {
      const tally = this.of(instance, queue);
      tally.snoozed++;
      if (durationMs !== undefined) tally.duration.observe(durationMs / 1_000);
    });
    this.#hear('deadLettered', ({ instance, queue, reason }) => this.of(instance, queue).deadLettered[reason]++);
    this.#hear('expired', ({ instance, queue }) => this.of(instance, queue).expired++);
    this.#hear('occurrencesSkipped', ({ instance, queue, reason, count }) => {
      this.of(instance, queue).skipped[reason] += count;
    });
    this.#hear('leaseLost', ({ instance, queue }) => this.of(instance, queue).leasesLost++);
    this.#hear('connectionLost', ({ instance }) => this.#outages.set(instance, this.outages(instance) + 1));
    if (!withSteps) return;
    this.#hear('step', ({ instance, queue, kind, durationMs }) =>
      this.of(instance, queue).step[kind].observe(durationMs / 1_000),
    );
  }

  end(): void {
    for (const undo of this.#undo.splice(0)) undo();
  }

  #hear<Name extends keyof DelayQueueMessages>(type: Name, tell: (message: DelayQueueMessages[Name]) => void): void {
    const name = channelName(type);
    const listener = (message: unknown) => tell(message as DelayQueueMessages[Name]);
    subscribe(name, listener);
    this.#undo.push(() => unsubscribe(name, listener));
  }
}
