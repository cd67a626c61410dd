import { channels } from '../delay-queue.channels.js';
import {
  DuplicateJobError,
  InvalidOptionError,
  NotDurableError,
  PublishingPausedError,
  QueueFullError,
} from '../delay-queue.errors.js';
import { DelayQueueLogger } from '../delay-queue.logger.js';
import type { TraceCarrier } from '../delay-queue.tracer.js';
import { parseDuration, parseInstant } from '../job/duration.js';
import type { Duration } from '../job/duration.js';
import { AT_TAKES_IT, jobNames } from '../job/enqueue-options.js';
import type { EnqueueOptions } from '../job/enqueue-options.js';
import type { EnqueueResult } from '../job/enqueue-result.js';
import { assertStoredId } from '../job/job-id.js';
import type { Given } from '../job/payload-types.js';
import type { PayloadOf, QueueRef } from '../job/queue-definition.js';
import type { JobSnapshot } from '../redis/job-snapshot.js';
import { parseSnapshot } from '../redis/job-snapshot.js';
import { parseCancel, parseReschedule, parseSignal, parseUpdate } from '../redis/change.protocol.js';
import type { ChangeReply } from '../redis/change.protocol.js';
import type { DurabilityRequirement } from '../redis/replication-barrier.js';
import { typedError } from '../redis/redis.errors.js';
import { askShardOf, onlyGroup, readJob, takeGroup } from '../instance/job-shards.js';
import type { GroupOption } from '../instance/job-shards.js';
import { isNotFound } from './change-results.js';
import type { CancelResult, RescheduleResult, SignalResult, UpdateResult } from './change-results.js';
import { changePayload } from './payload-change.js';
import { BulkEnqueue } from './bulk-enqueue.js';
import type { BulkOptions } from './bulk-enqueue.js';
import { JobPlanner } from './job-planner.js';
import { OwnJob } from './own-job.js';
import { rescheduleLocally } from '../recurring/local-reschedule.js';
import { noteZone } from '../recurring/zone-notes.js';
import { isPlainObject, reading } from '../job/option-rules.js';
import type { LocalTime } from '../job/wall-clock.js';
import { ScheduleProducer } from './schedule.producer.js';
import type { PlannedJob } from './job-planner.js';
import type { EnqueueReply } from '../redis/enqueue.protocol.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { madeByRoot } from '../instance/made-by-root.js';

/** Names of queues may come from data, and this set lives as long as the process, so it is bounded. */
const MOST_QUEUES_NAMED = 1_000;

/** Enqueues, changes and cancels jobs. Injectable wherever `DelayQueueModule.forRoot()` is global. */
export class DelayQueueProducer extends ScheduleProducer {
  readonly #planner: JobPlanner;
  readonly #bulk: BulkEnqueue;
  readonly #logger: DelayQueueLogger;
  /** Queues for which the log has the line that a dead letter held back a job. */
  readonly #heldBack = new Set<string>();
  readonly #own: OwnJob;

  /** @internal */
  constructor(private readonly shards: InstanceContext) {
    const { name } = madeByRoot(shards, 'DelayQueueProducer').options;
    const planner = new JobPlanner(shards.options, shards);
    super(shards, planner);
    this.#planner = planner;
    this.#bulk = new BulkEnqueue(shards, this.#planner, (job, reply) => this.#toResult(job, reply));
    this.#logger = DelayQueueLogger.of(name);
    this.#own = new OwnJob(name);
  }

  /**
   * Makes a job. When the promise resolves, Redis has stored it.
   *
   * @param payload any value that JSON, or the `codec` of the module, keeps; in JSON Dates become ISO text
   * @throws InvalidQueueError, InvalidOptionError, InvalidDelayError, InvalidIdError, PayloadError,
   *   PayloadTooLargeError before anything is sent
   * @throws DuplicateJobError with `onDuplicate: 'reject'`
   * @throws PublishingPausedError after `pausePublishing()` of the inspector; nothing was stored
   * @throws QueueFullError when the queue has a `maxSize` and holds as many; nothing was stored
   * @throws ClosedError after `app.close()`; UnavailableError after `commandTimeout`, with `maybeAccepted` repeat the
   * call with the `id` of the error
   * @throws RedisFullError, BackPressureError
   * @throws NotDurableError when the job is stored, but not as durable in time as `durability` asks
   * @throws UnsafeServerError when the server cannot do what `durability` asks; nothing was sent
   */
  enqueue<const Q extends QueueRef>(
    queue: Q,
    payload: PayloadOf<Q>,
    options?: Given<EnqueueOptions>,
  ): Promise<EnqueueResult> {
    // The types refuse it. Without this a call as BullMQ has it would store the name as payload.
    if (arguments.length > 3) return Promise.reject(jobNames('enqueue(queue, payload, options)'));
    if (!this.shards.tracer) return this.#enqueue(queue, payload, options);
    return this.#traced(queue, undefined, (trace) => this.#enqueue(queue, payload, options, trace));
  }

  /** Not `async`, because that would hold some 200 bytes more for each call. */
  #enqueue(
    queue: QueueRef,
    payload: unknown,
    options: Given<EnqueueOptions> | undefined,
    trace?: TraceCarrier,
  ): Promise<EnqueueResult> {
    try {
      const planned = this.#planner.plan(queue, payload, options, undefined, 0, trace);
      return planned instanceof Promise ? planned.then((job) => this.#send(job)) : this.#send(planned);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #send(job: PlannedJob): Promise<EnqueueResult> {
    const { demand, zonedAt } = job;
    if (zonedAt !== undefined) {
      const noted = noteZone(this.shards.of({ ...job, demand: undefined }), job);
      return noted.then(() => this.#send({ ...job, zonedAt: undefined }));
    }
    const sent = demand
      ? this.shards.durable.assertPossible(demand).then(() => this.shards.of(job).enqueue(job))
      : this.shards.of(job).enqueue(job);
    return sent.then((reply) => this.#toResult(job, reply));
  }

  /**
   * Makes many jobs; at most 200 and 1 MiB travel together. All are checked before the first is sent.
   *
   * @param options spread: fans the jobs out evenly over this time, in their order, on top of their own delays
   * @returns one result per item, in their order
   * @throws BulkEnqueueError when some jobs were not accepted; its `results` says which
   */
  enqueueMany<const Q extends QueueRef>(
    queue: Q,
    items: readonly ({ payload: PayloadOf<Q> } & Given<EnqueueOptions>)[],
    options: BulkOptions = {},
  ): Promise<EnqueueResult[]> {
    if (!this.shards.tracer) return this.#bulk.enqueue(queue, items, options);
    return this.#traced(queue, items?.length, (trace) => this.#bulk.enqueue(queue, items, options, trace));
  }

  /**
   * Removes a waiting job. A running job goes on, unless `running` is set: then its signal aborts with the next
   * heartbeat (after a third of the lease, 10 s at most), and it is not run again, however it ends. Its id is free from then on: a job that is enqueued under it runs after
   * that run.
   */
  async cancel(queue: QueueRef, id: string, options: { running?: boolean } & GroupOption = {}): Promise<CancelResult> {
    const [group, { running = false, ...others }] = takeGroup<{ running?: boolean }>(options, 'cancel({ group })');
    if (typeof running !== 'boolean' || Object.keys(others).length > 0) {
      throw new InvalidOptionError('cancel(queue, id, options): the options are { running: boolean } and { group }.');
    }
    const name = this.shards.nameOf(queue, 'cancel(queue)');
    assertStoredId(id, 'cancel(queue, id)');
    this.shards.forgetDoubts(name, id);
    const { outcome, state } = await askShardOf(
      this.shards,
      { call: 'cancel', queue: name, id, group },
      async (shard) => parseCancel(await this.shards.ofShard(name, shard).run('cancel', id, [id, running ? 1 : 0])),
      isNotFound,
    );
    return { id, queue: name, outcome, state };
  }

  /** Gives a waiting job another due time: counted from now, absolute, or a local time. Its expiry moves by the same distance. */
  async reschedule(
    queue: QueueRef,
    id: string,
    to: { delay: Duration } | { at: Date | number | LocalTime },
    options: GroupOption = {},
  ): Promise<RescheduleResult> {
    const group = onlyGroup(options, 'reschedule(queue, id, to, options)');
    const read = () => {
      const { delay, at, ...others } = (to ?? {}) as { delay?: Duration; at?: Date | number | LocalTime };
      return { delay, at, isMore: Object.keys(others).length > 0 };
    };
    const { delay, at, isMore } = reading(() => 'reschedule(queue, id, to)', read);
    if ((delay === undefined) === (at === undefined) || isMore) {
      throw new InvalidOptionError('reschedule(queue, id, to): give either { delay } or { at }.');
    }
    if (isPlainObject(at)) {
      const name = this.shards.nameOf(queue, 'reschedule(queue)');
      const job = { call: 'reschedule', queue: name, id, group };
      return this.#own.changed('reschedule', name, id, await rescheduleLocally(this.shards, job, at));
    }
    const [kind, ms] =
      at === undefined
        ? ['d', parseDuration(delay, 'reschedule({ delay })', { moment: AT_TAKES_IT })]
        : ['a', parseInstant(at, 'reschedule({ at })')];
    return this.#move('reschedule', queue, id, group, [kind as string, ms as number, 0]);
  }

  /**
   * Gives a waiting job another payload, checked as `enqueue()` checks it. Everything else stays: due time, expiry,
   * attempts, context and options. A running or dead job is not changed; `enqueue()` with `onDuplicate: 'replace'`
   * replaces those.
   *
   * @throws the payload errors of `enqueue()`; RedisFullError, BackPressureError, UnavailableError
   * @throws StoredDataError, LayoutError when the stored job cannot be read
   */
  async update<const Q extends QueueRef>(
    queue: Q,
    id: string,
    payload: PayloadOf<Q>,
    options: GroupOption = {},
  ): Promise<UpdateResult> {
    return this.#changePayload('update', queue, id, payload, options, parseUpdate);
  }

  /**
   * An event before a deadline: gives a waiting job this payload and makes it due now, in one. So a job that waits for an
   * event and for a due time runs once, either with the payload of the event or, when its time came first, with its own;
   * then the answer is not `'signalled'`. Everything else stays, as with `update()`.
   *
   * @throws the payload errors of `enqueue()`; RedisFullError, BackPressureError, UnavailableError
   * @throws StoredDataError, LayoutError when the stored job cannot be read
   */
  async signal<const Q extends QueueRef>(
    queue: Q,
    id: string,
    payload: PayloadOf<Q>,
    options: GroupOption = {},
  ): Promise<SignalResult> {
    return this.#changePayload('signal', queue, id, payload, options, parseSignal);
  }

  /** Makes a delayed job due now. A job that is due already keeps its place. */
  async runNow(queue: QueueRef, id: string, options: GroupOption = {}): Promise<RescheduleResult> {
    return this.#move('runNow', queue, id, onlyGroup(options, 'runNow(queue, id, options)'), ['d', 0, 1]);
  }

  /** @returns the job, or undefined when there is none. A completed job is there only with `keepCompleted` */
  async get<const Q extends QueueRef>(
    queue: Q,
    id: string,
    options: GroupOption = {},
  ): Promise<JobSnapshot<PayloadOf<Q>> | undefined> {
    const group = onlyGroup(options, 'get(queue, id, options)');
    const name = this.shards.nameOf(queue, 'get(queue)');
    assertStoredId(id, 'get(queue, id)');
    try {
      const raw = await readJob(this.shards, { call: 'get', queue: name, id, group });
      return raw
        ? parseSnapshot<PayloadOf<Q>>(id, name, raw, this.shards.attemptsOf(queue), this.shards.payloads)
        : undefined;
    } catch (error) {
      throw typedError(error, `get("${name}", "${id}")`);
    }
  }

  async #traced<Result extends EnqueueResult | EnqueueResult[]>(
    queue: QueueRef,
    count: number | undefined,
    send: (trace: TraceCarrier | undefined) => Promise<Result>,
  ): Promise<Result> {
    const name = this.shards.nameOf(queue, 'enqueue(queue)');
    return this.shards.tracer!.publish({ instance: this.shards.options.name, queue: name, count }, send);
  }

  async #changePayload<const Q extends QueueRef, Outcome extends string>(
    call: 'update' | 'signal',
    queue: Q,
    id: string,
    payload: PayloadOf<Q>,
    options: GroupOption,
    parse: (answer: string) => ChangeReply<Outcome>,
  ) {
    const group = onlyGroup(options, `${call}(queue, id, payload, options)`);
    const name = this.shards.nameOf(queue, `${call}(queue)`);
    assertStoredId(id, `${call}(queue, id)`);
    const encoded = await this.#planner.planPayload(name, queue, payload);
    const change = (shard: number) => changePayload(this.shards.ofShard(name, shard), call, name, id, encoded);
    const ask = async (shard: number) => parse(await change(shard));
    const reply = await askShardOf(this.shards, { call, queue: name, id, group }, ask, isNotFound);
    return this.#own.changed(call, name, id, reply);
  }

  async #move(
    call: 'reschedule' | 'runNow',
    queue: QueueRef,
    id: string,
    group: string | undefined,
    args: (string | number)[],
  ): Promise<RescheduleResult> {
    const name = this.shards.nameOf(queue, 'reschedule(queue)');
    assertStoredId(id, 'reschedule(queue, id)');
    const ask = async (shard: number) =>
      parseReschedule(await this.shards.ofShard(name, shard).run('reschedule', id, [id, ...args]));
    const reply = await askShardOf(this.shards, { call, queue: name, id, group }, ask, isNotFound);
    return this.#own.changed(call, name, id, reply);
  }

  #toResult(job: PlannedJob, { now, outcome, state: found, dueAt, reached }: EnqueueReply): EnqueueResult {
    if (outcome === 'duplicate') throw new DuplicateJobError(job.queue, job.id, found!);
    if (outcome === 'publishingPaused') throw new PublishingPausedError(job.queue);
    if (outcome === 'queueFull') throw new QueueFullError(job.queue, job.maxSize!, dueAt);
    if (outcome === 'kept' && found === 'dead') this.#warnOfDead(job);
    if (outcome === 'kept' && found === 'running') this.#own.left('enqueue', job.queue, job.id);
    const state = found ?? (dueAt > now ? 'delayed' : 'due');
    const result: EnqueueResult = { id: job.id, queue: job.queue, dueAt: new Date(dueAt), outcome, state };
    if (channels.enqueued.hasSubscribers) {
      const { id, queue } = job;
      const instance = this.shards.options.name;
      const delayMs = Math.max(0, dueAt - now);
      channels.enqueued.publish({ instance, queue, id, outcome: result.outcome, state, dueAt, delayMs });
    }
    if (job.demand) result.durability = this.#durability(job, job.demand, reached ?? 0);
    return result;
  }

  /** Once per queue, or a throttle would fill the log. */
  #warnOfDead({ queue, id }: PlannedJob): void {
    if (this.#heldBack.has(queue)) return;
    if (this.#heldBack.size === MOST_QUEUES_NAMED) this.#heldBack.clear();
    this.#heldBack.add(queue);
    this.#logger.warn(
      `Queue "${queue}": job "${id}" was not made, because a dead letter has its id and onDead is 'keep'. Requeue or remove it ` +
        '(requeueDead, removeDead). Further jobs of this queue are held back without a line.',
      { queue, id },
    );
  }

  #durability({ queue, id }: PlannedJob, { replicas, timeoutMs }: DurabilityRequirement, reached: number) {
    const fsync = replicas === 0;
    if (reached >= (fsync ? 1 : replicas)) return fsync ? ({ fsync } as const) : { replicas: reached };
    const { problem } = this.shards.durable;
    const what = fsync ? 'it was not in the append-only file' : `${reached} of ${replicas} replicas had it`;
    const hint = fsync ? '' : ' Look whether as many are connected.';
    const why = problem ? `Redis could not tell whether it is durable: ${(problem as Error).message}.` : undefined;
    throw new NotDurableError(
      queue,
      id,
      fsync ? { fsync: false } : { replicas: reached },
      why ?? `${what} within ${timeoutMs} ms.${hint}`,
      problem,
    );
  }
}
