import type { ClaimedJob } from '../../lib/consumer/claimed-job.js';
import type { Instance } from '../../lib/instance/start-instance.js';
import { RETRY_AFTER_MS } from './application.js';
import type { Member, RunInProcess } from './fleet.js';
import type { JobHistory } from './history.js';
import type { Configuration, RunPlan } from './plan.js';
import { TAKEN } from './queues.js';
import { Random } from './random.js';
import type { Simulation } from './simulation.js';

const TRY_AGAIN_MS = 500;
const WAIT_MS = 2_000;
/** A run with leases of an hour or a day may last a day, in which nearly nothing happens: pullers have time then. */
const LONG_LEASE_MS = 3_600_000;
const LONG_WAIT_MS = 60_000;
const TAKES_IN_A_LEASE = 200;
/** As long as a failure of a handler waits: a call of retry() says so, one of fail() does not. */
const RETRY_MS = RETRY_AFTER_MS;
export const SNOOZE_OF_PULLED_MS = 200;

/** The longest time from the end of one `take()` to the next. */
export function longestBetweenTakesMs({ leaseMs }: Configuration): number {
  return leaseMs < LONG_LEASE_MS ? TRY_AGAIN_MS : leaseMs / TAKES_IN_A_LEASE;
}

/** Notes that a job begins to run. */
type Begin = (member: Member, queue: string, id: string, run: RunPlan) => RunInProcess;

interface Taken {
  times: number;
  /** When the last call began that took it, simulated ms. */
  at: number;
  /** A master that had been deposed answered that call, or may have. */
  isDeceived: boolean;
}

/** Code that fetches jobs itself, and settles them in every way that there is. */
export class Pullers {
  /** Payloads that were taken, by the numbers of their operations. */
  readonly #taken = new Map<number, Taken>();
  #forgotten = 0;

  constructor(
    private readonly simulation: Simulation,
    private readonly begin: Begin,
  ) {}

  started(member: Member, instance: Instance): void {
    const random = new Random(this.simulation.seed, `pulls ${member.id}`);
    void this.#pull(member, instance, random);
    void this.#take(member, instance, random);
  }

  /** Now and then without heartbeats; and some jobs are forgotten, as by a process that lost track of them. */
  async #pull(member: Member, instance: Instance, random: Random): Promise<void> {
    const { configuration, engine } = this.simulation;
    const wait = configuration.leaseMs < LONG_LEASE_MS ? WAIT_MS : LONG_WAIT_MS;
    for (;;) {
      member.pullKeepsLease = random.chance(0.5);
      const autoExtend = member.pullKeepsLease;
      const options = { wait, lease: configuration.leaseMs, autoExtend, max: configuration.pullMost };
      try {
        member.pullsSince = engine.now;
        const jobs = await instance.consumer.pull('pulled', options);
        member.pullsSince = Infinity;
        await Promise.all(jobs.map((job) => this.#work(member, job as ClaimedJob<RunPlan>, autoExtend)));
      } catch (error) {
        if (member.isStopping) return;
        this.simulation.oracle.calls.refused(error as Error);
        await this.#sleep(member, TRY_AGAIN_MS);
      }
    }
  }

  async #work(member: Member, job: ClaimedJob<RunPlan>, autoExtend: boolean): Promise<void> {
    const run = job.payload;
    this.simulation.oracle.handedOut(member, job.id, autoExtend);
    const begun = this.begin(member, 'pulled', job.id, run);
    const version = this.simulation.oracle.version(job.id, run.n);
    if (!autoExtend && run.forgotten && this.#mayForget() && version.tries++ === 0) return;
    if (run.extend) {
      await this.#sleep(member, run.work / 3);
      await job.extend(run.extend).catch((error: Error) => this.simulation.oracle.calls.refused(error));
    }
    await this.#sleep(member, run.work);
    member.runEnds('pulled', begun);
    this.simulation.oracle.calls.unwaited(this.#settle(job, run));
  }

  /** What is forgotten keeps its place of a limit for a whole lease: with long ones, several in one group would outlast the run. */
  #mayForget(): boolean {
    const { limited, leaseMs } = this.simulation.configuration;
    return leaseMs < LONG_LEASE_MS || limited.every(({ queue }) => queue !== 'pulled') || this.#forgotten++ === 0;
  }

  #settle(job: ClaimedJob<RunPlan>, run: RunPlan): Promise<void> {
    const { oracle } = this.simulation;
    const version = oracle.version(job.id, run.n);
    const fails = run.fails ?? 0;
    version.tries++;
    if (version.tries <= fails) {
      oracle.job(job.id).failures++;
      if (run.n % 2 === 0) return job.fail(new Error('planned'));
      return run.n % 4 === 1 ? job.retry() : job.retry({ delay: RETRY_MS });
    }
    const isFirst = version.tries === fails + 1;
    if (run.ending === 'snooze' && isFirst) return job.snooze(SNOOZE_OF_PULLED_MS);
    if (run.ending === 'release' && isFirst) return job.release();
    if (run.ending === 'discard') {
      oracle.discarded(job.id, version);
      return job.discard('planned');
    }
    version.endedWell++;
    return job.complete();
  }

  /** What is taken is deleted when it is read: nobody ever gets it again. It goes on while there may be more, and then looks now and then. */
  async #take(member: Member, instance: Instance, random: Random): Promise<void> {
    const { engine, oracle, configuration } = this.simulation;
    for (;;) {
      const began = engine.now;
      try {
        const runs = (await instance.consumer.take(TAKEN, configuration.pullMost)) as RunPlan[];
        const mayBeMore = runs.length === configuration.pullMost;
        member.takesSince = mayBeMore ? Infinity : Math.min(member.takesSince, engine.now);
        for (const { n } of runs) {
          engine.trace('taken', member.id, n);
          // The store may have forgotten meanwhile that it was.
          if (!this.#mayBeTaken(n) && oracle.lastRollbackAt < began && !this.#isAskedAgain(n)) {
            oracle.report('settled', `operation ${n} was taken by ${member.id}, and had been taken before`);
          }
          const times = (this.#taken.get(n)?.times ?? 0) + 1;
          this.#taken.set(n, { times, at: began, isDeceived: this.simulation.isDeceived(member.process) });
        }
        if (mayBeMore) continue;
      } catch {
        member.takesSince = Infinity;
        if (member.isStopping) return;
      }
      await this.#sleep(member, random.between(50, longestBetweenTakesMs(configuration)));
    }
  }

  /** Once; and once more for each call that came while it was being taken, and asked for another time. */
  #mayBeTaken(n: number): boolean {
    const times = this.#taken.get(n)?.times ?? 0;
    return times === 0 || times <= (this.#jobOf(n)?.followedRuns ?? 0);
  }

  /** Its caller enqueued it more than once, because of a failed call; or the store forgot that it was taken, as it may what came before. */
  #isAskedAgain(n: number): boolean {
    const { at = Infinity, isDeceived = false } = this.#taken.get(n) ?? {};
    if (isDeceived || this.simulation.oracle.lastRollbackAt >= at) return true;
    return (this.#jobOf(n)?.versions.get(n)?.calls ?? 0) > 1;
  }

  #jobOf(n: number): JobHistory | undefined {
    return [...this.simulation.oracle.jobs.values()].find(({ versions }) => versions.has(n));
  }

  #sleep({ process }: Member, ms: number): Promise<void> {
    return new Promise((done) => this.simulation.engine.after(ms, done, process));
  }
}
