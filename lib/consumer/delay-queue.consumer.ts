import { madeByRoot } from '../instance/made-by-root.js';
import { ClosedError, InvalidOptionError, UnavailableError } from '../delay-queue.errors.js';
import { DelayQueueLogger } from '../delay-queue.logger.js';
import { MAX_TIMER_MS, parseDuration } from '../job/duration.js';
import type { Duration } from '../job/duration.js';
import { boolean, integer, readOptions } from '../job/option-rules.js';
import type { OptionRules } from '../job/option-rules.js';
import { LEASE_MS, queueNameOf } from '../job/queue-definition.js';
import type { HandledPayloadOf, QueueRef } from '../job/queue-definition.js';
import { Alarm } from '../worker/alarm.js';
import type { DelayQueueRunner } from '../worker/delay-queue.runner.js';
import type { ClaimedJob } from './claimed-job.js';
import { PullSource } from './pull-source.js';
import type { Puller } from './pull-source.js';
import { performance, setImmediate } from '../time-and-randomness.js';

export interface PullOptions {
  /** Most jobs to fetch: 1 to 1,000. Default 1. */
  max?: number;
  /** How long to wait for a first job. Waits by wake-up, not by busy polling. Default 0: answer at once. */
  wait?: Duration;
  /** How long the claim is valid. Default: the lease of the queue, else `'30s'`. */
  lease?: Duration;
  /** Sends heartbeats until the job is settled. False: the lease runs out unless `extend()` is called. Default true. */
  autoExtend?: boolean;
}

interface PullDraft {
  max: number;
  waitMs: number;
  leaseMs?: number;
  autoExtend: boolean;
}

const RULES: OptionRules<PullOptions, PullDraft> = {
  max: (draft, value, field) => {
    draft.max = integer(value, 1, 1000, field);
  },
  wait: (draft, value, field) => {
    draft.waitMs = parseDuration(value, field, { max: MAX_TIMER_MS });
  },
  lease: (draft, value, field) => {
    draft.leaseMs = parseDuration(value, field, LEASE_MS);
  },
  autoExtend: (draft, value, field) => {
    draft.autoExtend = boolean(value, field);
  },
};

/** A call waits no longer for a queue, or a shard of it, that is silent for so long: an answer takes a ms or a few. */
const SILENT_MS = 500;
/** How many workers in pull mode are kept while no call of `pull()` and no job needs them. */
const MOST_RESTING = 16;
/** Ids that one line of the log names. */
const MOST_NAMED = 20;

/** Pull mode: for code that fetches jobs itself, instead of a handler that is called. */
export class DelayQueueConsumer {
  readonly #sources = new Map<string, PullSource>();
  /** By their definitions, which may have a schema and settings that others of the name have not. */
  readonly #numbers = new WeakMap<object, number>();
  #definitions = 0;
  /** Workers that are not needed now, the latest one last, with their names. */
  readonly #resting = new Map<PullSource, string>();

  /** @internal */
  constructor(private readonly runner: () => DelayQueueRunner) {
    madeByRoot(runner, 'DelayQueueConsumer');
  }

  /**
   * Claims due jobs. With several queues, jobs of the first queue come first; a later queue is asked only for the
   * number that is still missing. A queue without an answer keeps neither the jobs of the others nor its own waiting for longer
   * than half a second. The caller must settle each job by its methods.
   *
   * @returns at most `max` jobs; none if none was due within `wait`, or before the application began to close
   * @throws InvalidOptionError, InvalidQueueError, InvalidDelayError; UnavailableError when Redis does not answer;
   *   ClosedError once the application closes
   */
  async pull<const Q extends QueueRef>(
    queues: Q | readonly Q[],
    options: PullOptions = {},
  ): Promise<ClaimedJob<HandledPayloadOf<Q>>[]> {
    return this.#pull('pull', queues, options);
  }

  /** @param call for messages */
  async #pull<const Q extends QueueRef>(
    call: string,
    queues: Q | readonly Q[],
    options: PullOptions,
  ): Promise<ClaimedJob<HandledPayloadOf<Q>>[]> {
    const draft: PullDraft = { max: 1, waitMs: 0, autoExtend: true };
    const rules = readOptions(options, RULES, draft, (option) =>
      call === 'take' ? 'take(queue, max)' : `pull({ ${option} })`,
    );
    const list = (Array.isArray(queues) ? queues : [queues]) as readonly QueueRef[];
    if (list.length === 0) throw new InvalidOptionError(`${call}(queues): give at least one queue.`);
    const runner = this.runner();
    if (runner.draining) {
      const name = queueNameOf(list[0]!, `${call}(queue)`);
      throw new ClosedError(`${call}("${name}"): the application is being closed. Nothing was claimed.`);
    }
    const sources = this.#use(call, list, rules);
    const pull = new Pull(call, sources, rules.max, rules.waitMs, runner.options.commandTimeoutMs);
    // Jobs that it has by then are drained like all others.
    const closing = runner.onDrain(() => pull.end());
    const over = () => {
      closing();
      for (const source of sources) source.done();
    };
    return pull.jobs.finally(over) as Promise<ClaimedJob<HandledPayloadOf<Q>>[]>;
  }

  /**
   * Claims up to `max` due jobs, completes them, and returns their payloads. If the caller then fails, nothing is
   * retried. A job that lost its lease before it was completed is left out, because it will run again, here or
   * elsewhere; a warning names it. During an outage the call waits until it knows which jobs were completed: a payload
   * that is neither returned nor stored would be lost.
   *
   * @throws LeaseLostError when there were jobs and all of them lost their leases; also all errors of `pull()`
   */
  async take<const Q extends QueueRef>(queue: Q, max = 1): Promise<HandledPayloadOf<Q>[]> {
    const jobs = await this.#pull('take', queue, { max });
    const endings = await Promise.allSettled(jobs.map((job) => job.completeForSure()));
    const taken: HandledPayloadOf<Q>[] = [];
    const lost: string[] = [];
    for (const [index, { status }] of endings.entries()) {
      const { id, payload } = jobs[index]!;
      if (status === 'fulfilled') taken.push(payload);
      else lost.push(id);
    }
    if (lost.length > 0) this.#warnOfLost(jobs[0]!.queue, lost, jobs.length);
    const failure = endings.find((ending) => ending.status === 'rejected');
    if (failure && taken.length === 0) throw failure.reason;
    return taken;
  }

  #warnOfLost(queue: string, lost: readonly string[], claimed: number): void {
    const named = lost.slice(0, MOST_NAMED).map((id) => `"${id}"`);
    const more = lost.length > named.length ? ` and ${lost.length - named.length} more` : '';
    DelayQueueLogger.of(this.runner().options.name).warn(
      `take("${queue}"): ${lost.length} of ${claimed} jobs lost their lease before they were completed, and will be ` +
        `given again: ${named.join(', ')}${more}.`,
      { queue },
    );
  }

  /** @throws InvalidQueueError and others: then what was made for the queues before rests */
  #use(call: string, queues: readonly QueueRef[], rules: PullDraft): readonly PullSource[] {
    const used = new Set<PullSource>();
    try {
      for (const queue of queues) {
        const source = this.#source(call, queue, rules);
        if (used.has(source)) continue;
        used.add(source);
        source.use();
        this.#resting.delete(source);
      }
    } catch (error) {
      for (const source of used) source.done();
      throw error;
    }
    return [...used];
  }

  #source(call: string, queue: QueueRef, { leaseMs, autoExtend }: PullDraft): PullSource {
    const name = queueNameOf(queue, `${call}(queue)`);
    this.runner().notePull(name);
    const key = `${name}\n${leaseMs}\n${autoExtend}\n${this.#numberOf(queue)}`;
    const known = this.#sources.get(key);
    if (known) return known;
    const { commandTimeoutMs } = this.runner().options;
    const source = new PullSource(name, commandTimeoutMs, () => this.#rests(key, source));
    const definition = typeof queue === 'string' ? undefined : queue;
    const options = { concurrency: 1, lease: leaseMs };
    const handler = { queue: name, name: `pull("${name}")`, options, definition, invoke: source.invoke };
    this.runner().addPuller(handler, autoExtend, (worker) => source.workWith(worker));
    this.#sources.set(key, source);
    return source;
  }

  #numberOf(queue: QueueRef): number {
    if (typeof queue === 'string') return 0;
    const known = this.#numbers.get(queue);
    if (known !== undefined) return known;
    this.#numbers.set(queue, ++this.#definitions);
    return this.#definitions;
  }

  /** Each lease needs a worker of its own: code that computes its leases would make more and more workers. */
  #rests(key: string, source: PullSource): void {
    if (this.#sources.get(key) !== source) return; // It is just being made, or was forgotten.
    this.#resting.delete(source);
    this.#resting.set(source, key);
    if (this.#resting.size <= MOST_RESTING) return;
    const [oldest, its] = this.#resting.entries().next().value!;
    this.#resting.delete(oldest);
    this.#sources.delete(its);
    this.runner().removePuller(oldest.worker!);
  }
}

/** One call of `pull()` or `take()`. */
class Pull {
  readonly jobs: Promise<ClaimedJob[]>;
  readonly #claimed: ClaimedJob[][];
  readonly #pullers: (Puller & { readonly source: PullSource })[] = [];
  readonly #alarm = new Alarm(() => this.#timeOut());
  /** A turn later: after a time in which this process was stopped, or busy, the answers that lie there are read first. */
  readonly #silence = new Alarm(() => setImmediate(() => this.#goOn()));
  /** Monotonic ms. */
  #silentAt = 0;
  /** Places of the queues that had nothing left to give. */
  readonly #answered = new Set<number>();
  /** What Redis had refused to each queue before: it may have been mended since. */
  readonly #refused: readonly (Error | undefined)[];
  #missing: number;
  #asked = 0;
  /** The first job ends the wait. */
  #takesFirst = false;
  /** All queues have answered, and none had a job. */
  #isWaiting = false;
  #done!: (jobs: ClaimedJob[]) => void;
  #fail!: (error: Error) => void;

  constructor(
    private readonly call: string,
    private readonly sources: readonly PullSource[],
    max: number,
    private readonly waitMs: number,
    private readonly answerMs: number,
  ) {
    this.#missing = max;
    this.#claimed = sources.map(() => []);
    this.#refused = sources.map(({ fault }) => fault);
    this.jobs = new Promise((resolve, reject) => {
      this.#done = resolve;
      this.#fail = reject;
    });
    // The session repeats its call for ever; `pull()` must not wait that long.
    this.#alarm.set(performance.now() + waitMs + answerMs);
    this.#askNext();
  }

  /** Asks the next queue for the number of jobs that the queues before it did not have. */
  #askNext(): void {
    const index = this.#asked++;
    const source = this.sources[index]!;
    const puller = {
      source,
      wanted: this.#missing,
      waits: this.waitMs > 0,
      give: (job: ClaimedJob) => {
        this.#claimed[index]!.push(job);
        this.#missing--;
        // The other queues need to give that many fewer.
        for (const other of this.#pullers) other.wanted = Math.min(other.wanted, this.#missing);
        if (this.#missing === 0) this.end();
        // Further jobs of the same answer are returned with it.
        else if (this.#takesFirst) queueMicrotask(() => this.end());
      },
      empty: () => this.#foundNothing(index),
    };
    this.#pullers.push(puller);
    this.#listen();
    source.add(puller);
  }

  get #hasJobs(): boolean {
    return this.#claimed.some((jobs) => jobs.length > 0);
  }

  #listen(since = performance.now()): void {
    this.#silentAt = since + this.#patienceMs;
    this.#silence.set(this.#silentAt);
  }

  get #patienceMs(): number {
    return Math.min(SILENT_MS, this.answerMs / 2);
  }

  /** A queue, or one of its shards, is silent. What it brings later comes to this call as long as that lasts, or goes back. */
  #goOn(): void {
    const now = performance.now();
    if (this.#pullers.length === 0 || now < this.#silentAt) return; // It is over, or has asked another one meanwhile.
    // What is claimed is not given up for a schema that takes long.
    if (this.#pullers.some(({ source }) => source.isBringing)) return this.#listen();
    // Nor is a queue silent that has many occurrences to leave out: each is claimed and asked for before the next one comes.
    const heardAt = Math.max(...this.#pullers.map(({ source }) => source.broughtAt));
    if (now < heardAt + this.#patienceMs) return this.#listen(heardAt);
    if (this.#asked < this.sources.length) return this.#askNext();
    if (this.#hasJobs) return this.end();
    this.#takesFirst = true;
  }

  #foundNothing(index: number): void {
    this.#answered.add(index);
    const isLast = index === this.#asked - 1;
    if (this.#asked < this.sources.length) return isLast ? this.#askNext() : undefined;
    const isComplete = this.#answered.size === this.sources.length;
    if (this.#hasJobs ? isLast || isComplete : isComplete && this.waitMs === 0) return this.end();
    if (this.#isWaiting || !isComplete) return;
    this.#isWaiting = this.#takesFirst = true;
    this.#alarm.set(performance.now() + this.waitMs);
  }

  #timeOut(): void {
    const index = this.sources.findIndex((_, at) => !this.#answered.has(at));
    const silent = this.sources[index];
    if (silent && !this.#hasJobs) {
      const { fault } = silent;
      const why = fault && fault !== this.#refused[index] ? `: ${fault.message}` : '.';
      this.#fail(new UnavailableError(`${this.call}("${silent.queue}"): Redis did not answer${why}`));
    }
    this.end();
  }

  /** Resolves with the jobs that it has so far. */
  end(): void {
    this.#alarm.clear();
    this.#silence.clear();
    for (const puller of this.#pullers) puller.source.remove(puller);
    this.#pullers.length = 0;
    this.#done(this.#claimed.flat());
  }
}
