import {
  BulkEnqueueError,
  ClosedError,
  InvalidOptionError,
  PublishingPausedError,
  QueueFullError,
  UnavailableError,
} from '../delay-queue.errors.js';
import type { DelayQueueError } from '../delay-queue.errors.js';
import type { TraceCarrier } from '../delay-queue.tracer.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { parseDurability } from '../job/durability.js';
import type { Durability } from '../job/durability.js';
import { parseDuration } from '../job/duration.js';
import type { Duration } from '../job/duration.js';
import type { EnqueueOptions } from '../job/enqueue-options.js';
import type { EnqueueResult } from '../job/enqueue-result.js';
import { readOptions } from '../job/option-rules.js';
import type { OptionRules } from '../job/option-rules.js';
import type { QueueRef } from '../job/queue-definition.js';
import { bytesOf, MAX_BYTES, MAX_JOBS } from '../redis/enqueue.protocol.js';
import type { EnqueueReply } from '../redis/enqueue.protocol.js';
import { noteZones } from '../recurring/zone-notes.js';
import type { EnqueueBatcher } from './enqueue-batcher.js';
import type { JobPlanner, PlannedJob } from './job-planner.js';

export interface BulkOptions {
  /** What must be true of the jobs before the call resolves, for those that do not say it themselves. */
  durability?: Durability;
  /** Fans the jobs out evenly over this time. Default 0: as their own options say. */
  spread?: Duration;
}

interface BulkDraft {
  spreadMs: number;
  durability: Durability | undefined;
}

const BULK_RULES: OptionRules<BulkOptions, BulkDraft> = {
  durability: (draft, value, field) => {
    parseDurability(value, field);
    draft.durability = value as Durability;
  },
  spread: (draft, value, field) => {
    draft.spreadMs = parseDuration(value, field);
  },
};

/** Jobs of one batch that wait to be sent at a time: enough to keep all sessions busy. */
const WINDOW = 5_000;
/** Well below the memory that calls to one shard may hold. */
const WINDOW_BYTES = 16 * 1024 * 1024;

type BulkOutcome = EnqueueResult | { id: string; error: DelayQueueError };

/** Jobs for one batcher, and where they stand in the batch. */
interface Chunk {
  readonly batcher: EnqueueBatcher;
  readonly jobs: PlannedJob[];
  readonly places: number[];
  bytes: number;
}

/**
 * What `enqueueMany()` does: all jobs are checked before the first is sent, and each of them gets a result of its own.
 */
export class BulkEnqueue {
  constructor(
    private readonly context: InstanceContext,
    private readonly planner: JobPlanner,
    private readonly toResult: (job: PlannedJob, reply: EnqueueReply) => EnqueueResult,
  ) {}

  /** @throws BulkEnqueueError when some were not accepted */
  async enqueue(
    queue: QueueRef,
    items: readonly ({ payload: unknown } & EnqueueOptions)[],
    options: BulkOptions,
    trace?: TraceCarrier,
  ): Promise<EnqueueResult[]> {
    if (!Array.isArray(items))
      throw new InvalidOptionError('enqueueMany(): items must be an array of { payload, ...options }.');
    const draft: BulkDraft = { spreadMs: 0, durability: undefined };
    const { spreadMs, durability } = readOptions(options, BULK_RULES, draft, (option) => `enqueueMany({ ${option} })`);
    // All are read before anything is waited for: the array is the caller's, who may empty it. Only an asynchronous schema is asked later,
    // about one after the other.
    const plans: (PlannedJob | Promise<PlannedJob>)[] = [];
    let turn: Promise<unknown> | undefined;
    for (let index = 0; index < items.length; index++) {
      const delayMs = Math.floor((spreadMs * index) / items.length);
      const planned = this.planner.planItem(queue, items[index], index, delayMs, durability, trace, turn);
      if (planned instanceof Promise) (turn = planned).catch(ignored);
      plans.push(planned);
    }
    if (plans.length === 0) return [];
    const jobs: PlannedJob[] = [];
    for (const planned of plans) jobs.push(planned instanceof Promise ? await planned : planned);
    const demanding = jobs.find(({ demand }) => demand?.replicas === 0) ?? jobs.find(({ demand }) => demand);
    if (demanding) await this.context.durable.assertPossible(demanding.demand!);
    const results = await this.#sendAll(jobs);
    const failure = results.find((result) => 'error' in result);
    if (failure) throw new BulkEnqueueError(jobs[0]!.queue, results, (failure as { error: DelayQueueError }).error);
    return results as EnqueueResult[];
  }

  /** A window at a time, so that a large batch neither fills the memory nor meets its own back-pressure. */
  async #sendAll(jobs: readonly PlannedJob[]): Promise<BulkOutcome[]> {
    const outcomes: BulkOutcome[] = [];
    let broken: DelayQueueError | undefined;
    for (let at = 0, end; at < jobs.length; at = end) {
      end = endOfWindow(jobs, at);
      // Once Redis is gone or full, each further window would only take its time to fail as well.
      if (broken) for (let n = at; n < end; n++) outcomes[n] = { id: jobs[n]!.id, error: notSent(jobs[n]!.id, broken) };
      else await Promise.all(this.#chunks(jobs, at, end).map((chunk) => this.#sendChunk(chunk, outcomes)));
      broken ??= breaking(outcomes, at, end);
    }
    return outcomes;
  }

  /**
   * Each batcher gets its jobs in their order, as many at a time as go into one call: so the results of one call are
   * made while the next is under way.
   */
  #chunks(jobs: readonly PlannedJob[], from: number, end: number): Chunk[] {
    const chunks: Chunk[] = [];
    const open = new Map<EnqueueBatcher, Chunk>();
    for (let n = from; n < end; n++) {
      const job = jobs[n]!;
      const batcher = this.context.of(job);
      const bytes = bytesOf(job);
      let chunk = open.get(batcher);
      if (!chunk || chunk.jobs.length === MAX_JOBS || chunk.bytes + bytes > MAX_BYTES) {
        chunk = { batcher, jobs: [], places: [], bytes: 0 };
        chunks.push(chunk);
        open.set(batcher, chunk);
      }
      chunk.jobs.push(job);
      chunk.places.push(n);
      chunk.bytes += bytes;
    }
    return chunks;
  }

  async #sendChunk({ batcher, jobs, places }: Chunk, outcomes: BulkOutcome[]): Promise<void> {
    const failure = await noteZones(batcher, jobs);
    if (failure) {
      for (const [n, place] of places.entries()) {
        const { id } = jobs[n]!;
        outcomes[place] = { id, error: failure(id) as DelayQueueError };
      }
      return;
    }
    const replies = await batcher.enqueueMany(jobs);
    for (const [n, place] of places.entries()) outcomes[place] = this.#outcome(jobs[n]!, replies[n]!);
  }

  #outcome(job: PlannedJob, reply: EnqueueReply | Error): BulkOutcome {
    try {
      if (reply instanceof Error) throw reply;
      return this.toResult(job, reply);
    } catch (error) {
      return { id: job.id, error: error as DelayQueueError };
    }
  }
}

/** The call hears of it. */
function ignored(): void {}

/** At least one job, then as many as are few and small enough. */
function endOfWindow(jobs: readonly PlannedJob[], from: number): number {
  let end = from;
  for (let bytes = 0; end < jobs.length && end - from < WINDOW; end++) {
    bytes += bytesOf(jobs[end]!);
    if (bytes > WINDOW_BYTES && end > from) break;
  }
  return end;
}

/** Why it is in vain to send more. A full queue still takes what concerns jobs that it holds. */
function breaking(outcomes: readonly BulkOutcome[], from: number, end: number): DelayQueueError | undefined {
  for (let n = from; n < end; n++) {
    const outcome = outcomes[n]!;
    if ('error' in outcome && breaks(outcome.error)) return outcome.error;
  }
  return undefined;
}

function breaks(error: DelayQueueError): boolean {
  return error instanceof ClosedError || (error.retryable && !(error instanceof QueueFullError));
}

function notSent(id: string, broken: DelayQueueError): DelayQueueError {
  if (broken instanceof PublishingPausedError || broken instanceof ClosedError) return broken;
  return new UnavailableError(`Job "${id}" was not sent: ${broken.message}`, { cause: broken, ids: [id] });
}
