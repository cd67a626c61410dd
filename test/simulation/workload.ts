import type { BatchJob } from '../../lib/handlers/batch-job.js';
import type { HandlerOptions } from '../../lib/handlers/handler.js';
import type { BatchOptions } from '../../lib/handlers/batch-options.js';
import type { HandlerFunction } from '../../lib/worker/delay-queue.registry.js';
import type { Instance } from '../../lib/instance/start-instance.js';
import type { DelayedJob } from '../../lib/job/delayed-job.js';
import type { EnqueueResult } from '../../lib/job/enqueue-result.js';
import { failTogether, settleInBatch, SNOOZE_MS } from './batch-endings.js';
import { isStored, optionsOf } from './enqueue-calls.js';
import { closeInstanceOf, crash } from './ending.js';
import type { Member, RunInProcess } from './fleet.js';
import { isMoveInDoubt, startKillsAnew, supersede } from './history.js';
import type { ClaimHistory, VersionHistory } from './history.js';
import { LimitCalls } from './limit-calls.js';
import { mistake } from './mistakes.js';
import { Operators } from './operators.js';
import type { BulkOperation, EnqueueOperation, Operation, RunPlan } from './plan.js';
import { Pullers } from './pullers.js';
import { ScheduleCalls } from './schedules.js';
import { isPlain, queueOf, RECURRING } from './queues.js';
import type { Simulation } from './simulation.js';
import { ALL } from './troubles.js';
import { unregister } from './unregistering.js';

const TRIES = 20;
const TRY_AGAIN_MS = 500;
/** How often an operator looks for a job in quarantine, and how long. */
const LOOK_AGAIN_MS = 50;
const LOOKS = 100;
/** Batches that run at a time in one process. */
const BATCHES = 2;
/** How long a run may go on after its time is over, until the library says so. */
const LATE_TIMEOUT_MS = 50;

type Outcomes = typeof import('../../lib/handlers/outcomes.js');

/** What the application does: it enqueues, operates, handles and pulls, as the plan says. */
export class Workload {
  readonly operators: Operators;
  readonly #pullers: Pullers;
  readonly #schedules: ScheduleCalls;
  readonly #limits: LimitCalls;

  constructor(private readonly simulation: Simulation) {
    this.operators = new Operators(simulation);
    this.#limits = new LimitCalls(simulation, (afterMs, call, done) => this.operators.untilDone(afterMs, call, done));
    this.#schedules = new ScheduleCalls(simulation, (afterMs, call) => this.operators.untilDone(afterMs, call));
    this.#pullers = new Pullers(simulation, (member, queue, id, run) => this.#begin(member, queue, id, run));
  }

  /** A process has started. */
  started(member: Member, instance: Instance): void {
    instance.context.tracer = member.application.tracer();
    member.application.refused = (n) => this.simulation.oracle.refusedBySchema(n);
    if (member.role === 'puller') return this.#pullers.started(member, instance);
    if (member.role !== 'worker') return;
    for (const queue of member.queues) {
      if (!isPlain(queue) || !member.application.has('handed')) this.#register(member, instance, queue);
    }
  }

  #register(member: Member, instance: Instance, queue: string): void {
    const { registry } = instance;
    if (isPlain(queue)) {
      return registry.register(member.application.ref(queue), this.#handlerOf(member, queue), this.#rules(member));
    }
    const { batchSize: size, batchWaitMs: wait } = this.simulation.configuration;
    const handleAll = (runs: readonly RunPlan[], jobs: readonly BatchJob[]) => this.#handleBatch(member, runs, jobs);
    const batch: BatchOptions = { size, wait };
    registry.register<string>(queue, handleAll as never, { batch, concurrency: BATCHES });
  }

  /** What it has before it is started: all plain queues, or none. */
  handlersOf(member: Member): Readonly<Record<string, HandlerFunction<any>>> {
    if (member.role !== 'worker' || !member.application.has('handed')) return {};
    const plain = member.queues.filter(isPlain);
    return Object.fromEntries(plain.map((queue) => [queue, this.#handlerOf(member, queue)]));
  }

  #handlerOf(member: Member, queue: string): HandlerFunction<any> {
    const handle = (run: RunPlan, job: DelayedJob) => this.#handle(member, queue, run, job);
    return handle as never;
  }

  #rules({ application }: Member): Pick<HandlerOptions, 'retryIf' | 'backoff'> {
    return application.handlerOptions(({ id, payload }) => {
      const { oracle } = this.simulation;
      oracle.discarded(id, oracle.version(id, payload.n));
    });
  }

  perform(member: Member, operation: Operation): void {
    const { instance } = member;
    if (!instance) return;
    const { calls } = this.simulation.oracle;
    switch (operation.kind) {
      case 'enqueue':
        return this.#enqueue(member, instance, operation);
      case 'bulk':
        return this.#enqueueMany(member, instance, operation);
      case 'cancel':
        this.simulation.oracle.job(operation.id).cancelAsked = true;
        return calls.unwaited(instance.producer.cancel(operation.queue, operation.id, { running: operation.running }));
      case 'reschedule':
        return calls.unwaited(instance.producer.reschedule(operation.queue, operation.id, { delay: operation.delay }));
      case 'requeueDead':
        for (const job of this.simulation.oracle.jobs.values()) startKillsAnew(job);
        return calls.unwaited(instance.inspector.requeueDead(operation.queue, 'all'));
      case 'moveQuarantined':
        return this.#moveQuarantined(member, instance, LOOKS);
      case 'drain': {
        const worker = this.simulation.fleet.members.get(`worker${operation.worker}`);
        if (worker?.isAlive && !worker.isStopping) closeInstanceOf(this.simulation, worker, 500);
        return;
      }
      case 'unregister':
        return unregister(this.simulation, operation, (by, its) => this.#register(by, its, operation.queue));
      case 'mistake':
        return mistake(this.simulation, member, operation);
      case 'night':
        return; // It happens to all of them.
      case 'resize':
        return this.operators.resize(operation);
      case 'pause': {
        this.simulation.troubles.mark(ALL, operation.forMs + 5_000);
        const { queue, forMs } = operation;
        return this.operators.pauseFor(forMs, instance.inspector.pause(queue), (by) => by.inspector.resume(queue));
      }
      case 'setLimits':
      case 'lookAtLimits':
      case 'changeKept':
        return this.#limits.perform(member, instance, operation);
      case 'schedule':
      case 'unschedule':
      case 'pauseSchedule':
      case 'triggerSchedule':
      case 'backfillSchedule':
      case 'endSchedule':
        return this.#schedules.perform(member, instance, operation);
      default:
        return this.operators.perform(member, instance, operation);
    }
  }

  /** A person gives a job in quarantine another time: the first one that is there. */
  #moveQuarantined(member: Member, instance: Instance, looks: number): void {
    const { engine, oracle, shardBases } = this.simulation;
    const [id] = shardBases
      .filter((base) => queueOf(base) === 'jobs')
      .flatMap((base) => oracle.peek('ZRANGE', `${base}quarantine`, '0', '0') as string[]);
    if (id !== undefined) return oracle.calls.unwaited(instance.producer.reschedule('jobs', id, { delay: 0 }));
    if (looks > 0)
      engine.after(LOOK_AGAIN_MS, () => this.#moveQuarantined(member, instance, looks - 1), member.process);
  }

  // --- Enqueueing -------------------------------------------------------------------------------------------------------

  #enqueue(member: Member, instance: Instance, planned: EnqueueOperation): void {
    const { application } = member;
    const operation = application.defined(planned);
    this.#asked(operation, 0);
    const { queue, run } = operation;
    const options = { ...optionsOf(operation), ...application.stated(operation) };
    const payload = application.payload(run, operation.isByContent);
    this.#until(member, [operation], () =>
      instance.producer
        .enqueue(application.ref(queue), payload, options)
        .then((result) => this.#acknowledged(member, operation, result)),
    );
  }

  #enqueueMany(member: Member, instance: Instance, { queue, jobs, spread = 0 }: BulkOperation): void {
    for (const job of jobs) this.#asked(job, spread);
    const { application } = member;
    const items = jobs.map((job) => ({
      payload: application.payload(job.run, job.isByContent),
      ...optionsOf(job),
      ...application.stated(job),
    }));
    this.#until(member, jobs, async () => {
      const results = await instance.producer.enqueueMany(application.ref(queue), items, { spread });
      results.forEach((result, i) => this.#acknowledged(member, jobs[i]!, result));
    });
  }

  /** A call that failed is made again: the application wants its jobs. */
  #until(member: Member, jobs: readonly EnqueueOperation[], call: () => Promise<void>): void {
    const { engine, oracle } = this.simulation;
    const attempt = (left: number) => {
      for (const { id, run } of jobs) oracle.version(id, run.n).calls++;
      call().catch((error: Error) => {
        engine.trace('refused', member.id, `${jobs[0]!.id} ${error.name}`);
        oracle.calls.refused(error, jobs);
        if (isStored(error)) return this.#stored(member, jobs);
        if (left > 0 && error.name !== 'DuplicateJobError')
          engine.after(TRY_AGAIN_MS, () => attempt(left - 1), member.process);
      });
    };
    attempt(TRIES);
  }

  /** The jobs are there, though not as durable in time as it was asked for. */
  #stored({ process }: Member, jobs: readonly EnqueueOperation[]): void {
    for (const { id, run } of jobs) {
      const version = this.simulation.oracle.version(id, run.n);
      version.storedAt ??= this.simulation.server.disk.length;
      if (!jobs.some((job) => job.onDuplicate)) this.simulation.acknowledged(process, id, version);
      // The error does not say whether the job was made, or one was kept that has another payload.
      if (version.tries === 0 && this.simulation.oracle.job(id).versions.size > 1) version.isSuperseded = true;
    }
  }

  #asked(operation: EnqueueOperation, spread: number): void {
    const { id, queue, run, onDuplicate, keepExpired } = operation;
    const { oracle } = this.simulation;
    oracle.calls.asked(operation, spread);
    const job = oracle.job(id);
    job.queue = queue;
    if (keepExpired) job.keepsExpired = true;
    // What is repeated may give the job a new life, or a new payload.
    if (onDuplicate || oracle.calls.replaces(operation)) supersede(job);
    const version = oracle.version(id, run.n);
    if (onDuplicate === 'reschedule' || job.versions.size > 2) version.isSuperseded = true;
  }

  #acknowledged({ process }: Member, operation: EnqueueOperation, result: EnqueueResult): void {
    const { id, run } = operation;
    const { oracle, server, engine } = this.simulation;
    oracle.calls.acknowledged(operation, result);
    engine.trace('acknowledged', id, result.outcome);
    const version = oracle.version(id, run.n);
    version.storedAt ??= server.disk.length;
    if (result.durability) version.isSafeFrom ??= 'fsync' in result.durability ? 'restart' : 'failover';
    const isMade = result.outcome === 'created' || result.outcome === 'replaced';
    if (isMade && version.overAt !== undefined) {
      version.former = { overAt: version.overAt, madeAgainAt: server.disk.length };
    }
    if (isMade) this.simulation.acknowledged(process, id, version);
    else if (version.tries === 0) version.isSuperseded = oracle.job(id).versions.size > 1;
  }

  // --- Handling ---------------------------------------------------------------------------------------------------------

  async #handle(member: Member, queue: string, run: RunPlan, job: DelayedJob): Promise<void> {
    const begun = this.#begin(member, queue, job.id, run);
    this.simulation.oracle.limits.handlerBegins(job, run);
    if (run.kills) return this.#kill(member, job.id, run);
    const limit = this.#limit(member, job, run, begun);
    try {
      if (run.extend) {
        await this.#sleep(member, run.work / 3);
        await job.extend(run.extend).catch((error: Error) => this.simulation.oracle.calls.refused(error));
      }
      await this.#sleep(member, limit.hangs ? 2 * run.timeout! + LATE_TIMEOUT_MS : run.work);
    } finally {
      member.runEnds(queue, begun);
    }
    if (limit.ended()) return;
    this.#decide(member, job.id, run);
  }

  /** As a crash of native code: nobody hears how it ends. */
  async #kill(member: Member, id: string, run: RunPlan): Promise<never> {
    await this.#sleep(member, run.work);
    this.simulation.oracle.charges.killed(this.simulation.oracle.job(id));
    crash(this.simulation, member, 200);
    return new Promise(() => {});
  }

  /** Each job of a batch fails or ends for itself. */
  async #handleBatch(member: Member, runs: readonly RunPlan[], jobs: readonly BatchJob[]): Promise<void> {
    const { configuration, oracle } = this.simulation;
    if (jobs.length > configuration.batchSize) {
      oracle.report('concurrency', `a batch of ${member.id} has ${jobs.length} jobs`);
    }
    const begun = jobs.map((job, i) => this.#begin(member, 'batched', job.id, runs[i]!));
    await this.#sleep(member, Math.max(...runs.map(({ work }) => work)));
    for (const one of begun) member.runEnds('batched', one);
    if (member.application.has('failingBatches') && runs[0]!.n % 4 === 1) failTogether(oracle, runs, jobs);
    for (const [i, job] of jobs.entries()) {
      try {
        this.#decide(member, job.id, runs[i]!);
        job.complete();
      } catch (outcome) {
        settleInBatch(job, outcome as Error);
      }
    }
  }

  /** The library ends a run when its time is over: not before, and not much later. */
  #limit(member: Member, job: DelayedJob, run: RunPlan, begun: RunInProcess): Limit {
    const { timeout } = run;
    if (timeout === undefined) return NO_LIMIT;
    const { oracle, engine } = this.simulation;
    const startedAt = member.application.runningSince(job.id);
    const version = oracle.version(job.id, run.n);
    const hangs = version.tries < (run.hangs ?? 0);
    let isOver = false;
    // Cancelled, or without its lease as far as its process knows: the timeout ends it as any run, but its handler, whose signal was
    // aborted before, is not told.
    const endUntold = () => {
      isOver = true;
      member.ranOut(job.queue, begun);
    };
    job.signal.addEventListener('abort', () => {
      const { name } = job.signal.reason as Error;
      if (name === 'JobCancelledError' || name === 'LeaseLostError') {
        begun.unheardTimeoutAt = startedAt + timeout * 0.999 - 1;
        engine.at(startedAt + timeout * 0.999, endUntold, member.process);
      }
      if (name !== 'HandlerTimeoutError') return;
      isOver = true;
      const after = engine.now - startedAt;
      if (after < timeout * 0.999 - 1) oracle.report('timeout', `${job.id} was ended ${after} ms after it began`);
      member.ranOut(job.queue, begun);
      version.tries++;
      oracle.job(job.id).failures++;
    });
    const ended = () => {
      const ran = engine.now - begun.startedAt;
      const wasStill = member.process.busyUntil >= begun.startedAt;
      if (
        !job.signal.aborted &&
        !begun.isZombie &&
        !wasStill &&
        !member.isStopping &&
        ran > timeout + LATE_TIMEOUT_MS
      ) {
        oracle.report('timeout', `${job.id} ran ${Math.round(ran)} ms on ${member.id} and was not ended`);
      }
      return isOver;
    };
    return { hangs, ended };
  }

  #begin(member: Member, queue: string, id: string, run: RunPlan): RunInProcess {
    const { oracle, engine } = this.simulation;
    engine.trace('run', member.id, `${id} ${run.n}`);
    const before = member.runOf(queue, id);
    const begun = member.runBegins(queue, id, run.n, oracle.job(id).claim);
    const running = member.running(queue);
    // Older builds let two shards take the same slot.
    const isKnown = member.process.build === 'older' && member.shards > 1;
    if (isPlain(queue) && running > member.mostRunning(queue, this.#claimOf(member, begun)) && !isKnown) {
      oracle.report('concurrency', `${member.id} runs ${running} jobs at a time`);
    }
    oracle.isolation.begins(member, id);
    const job = oracle.job(id);
    if (queue === RECURRING) oracle.schedules.handlerBegins(member, id, run);
    if (!job.versions.has(run.n)) oracle.report('unexpected', `${id} runs with a payload that nobody enqueued`);
    // Calls that the application made again, under the same id, may make the job again; a move of unknown end has it twice.
    const isAskedAgain = oracle.version(job.id, run.n).calls !== 1;
    const mayBeAgain = isAskedAgain || isMoveInDoubt(job) || this.simulation.isDeceived(member.process);
    const isDone = job.doneAt !== undefined && job.doneVersion === run.n;
    const mayRunToo = oracle.moves.mayRunToo(id, queue) || oracle.leases.hasLostUnknown(member, queue, id, before);
    if (isDone && !mayBeAgain && !mayRunToo) {
      oracle.report('settled', `${id} runs again on ${member.id}, though it was completed`);
    }
    return begun;
  }

  /** Undefined when it is not known: the rules hear of no claim of a master that was deposed, and know an older one of the job, or none. */
  #claimOf(member: Member, { id, claim }: RunInProcess): ClaimHistory | undefined {
    const isOlder = claim && claim.at < this.simulation.oracle.job(id).claimedOfDeposedAt;
    return isOlder || claim?.member !== member ? undefined : claim;
  }

  /** @throws what the plan says */
  #decide(member: Member, id: string, run: RunPlan): void {
    const { oracle } = this.simulation;
    const version = oracle.version(id, run.n);
    version.tries++;
    if (version.tries <= (run.fails ?? 0)) {
      oracle.job(id).failures++;
      throw new Error('planned');
    }
    const { SnoozeJob, DiscardJob } = member.process.loader.library<Outcomes>('handlers/outcomes');
    if (run.becomes) {
      this.#becomes(id, version, run.becomes);
      throw new SnoozeJob(SNOOZE_MS, { payload: run.becomes });
    }
    if (run.ending === 'snooze' && version.tries === (run.fails ?? 0) + 1) throw new SnoozeJob(SNOOZE_MS);
    if (run.ending === 'discard') {
      oracle.discarded(id, version);
      throw new DiscardJob('planned');
    }
    version.endedWell++;
  }

  /** From now on the job has another payload, if the server hears of it; if not, the same happens once more. */
  #becomes(id: string, old: VersionHistory, run: RunPlan): void {
    const next = this.simulation.oracle.version(id, run.n);
    next.isAcknowledged ||= old.isAcknowledged;
    next.storedAt ??= old.storedAt;
    next.excuse ??= old.excuse;
    next.calls = Math.max(next.calls, old.calls);
    next.isSuperseded ||= old.isSuperseded;
    // An operator had removed it while it ran.
    next.overAt ??= old.overAt;
    old.isSuperseded = true;
  }

  #sleep({ process }: Member, ms: number): Promise<void> {
    return new Promise((done) => this.simulation.engine.after(ms, done, process));
  }
}

interface Limit {
  /** This run outlasts its timeout. */
  readonly hangs: boolean;
  /** At the end of the handler: whether the library had ended the run by then. */
  readonly ended: () => boolean;
}

const NO_LIMIT: Limit = { hangs: false, ended: () => false };
