import type { Ending, Job, Model } from './model.js';

/** Hours that a claim is valid without renewal. */
export const LEASE = 2.5;
/** Hours until the next attempt after `fail()`. */
export const BACKOFF = 1;
/** After so many losses in a row the next one is charged among other jobs, too. */
const FREE_LOSSES = 3;

/** A job in somebody's hands, as its process knows it. */
export interface Run {
  readonly id: string;
  readonly payload: number;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly snoozes: number;
  readonly worker: Worker;
  /** It was claimed from the quarantine. */
  readonly fromQuarantine: boolean;
  /** Since when it has run alone, claimed from the quarantine: for less than an hour nothing comes beside it. */
  readonly isolatedAt: number | undefined;
  claim: number;
  /** Where `release()` puts it back. */
  due: number;
  exact: number | undefined;
  /** The process was told that it has lost the lease. */
  lost: boolean;
  /** By a heartbeat, whose answer may still be on its way: what ends the run can be sooner. */
  lostByHeartbeat?: boolean;
}

interface Due {
  due: number;
  exact: number | undefined;
}

/** Claimed, and not to be started. Told with the worker's next step. */
interface Dropped {
  readonly id: string;
  readonly claim: number;
  readonly ending: Ending;
}

/** One process: who is in it decides who is alone. */
export class Process {
  readonly workers: Worker[] = [];
  /** Whose job would be charged, as the store has it. */
  marked: { readonly worker: Worker; readonly repeated: boolean } | undefined;

  constructor(readonly number: number) {}

  get runs(): Run[] {
    return this.workers.flatMap(({ runs }) => [...runs]);
  }

  /** Runs beside which nothing is claimed for the time being. */
  isolated(now: number): Run[] {
    return this.runs.filter(({ isolatedAt }) => isolatedAt === now);
  }
}

/** What was seen of a pull that the contract leaves open. */
export interface Witness {
  /** Its first step looked for leases that are over. */
  swept: boolean;
  /** This job is no longer where it was. */
  readonly took: (job: Job) => boolean;
  /** The store was not told that this claim, which was alone in its process, no longer is. */
  readonly silent: (claim: number) => boolean;
  /** The process was told that this run has lost its lease. */
  readonly knowsLoss: (run: Run) => boolean;
  /** The token that this job runs with, unless it does not run. */
  readonly tokenOf: (job: Job) => number | undefined;
}

interface Belief {
  unsettled: number;
  /** The loss would be charged. */
  alone: boolean;
  /** Whatever runs beside it, unless that is in quarantine, too. */
  repeated: boolean;
}

/** One worker of a process: it pulls with a lease of its own. */
export class Worker {
  readonly runs = new Set<Run>();
  /** So its last step was answered. */
  #knowsQuarantine = false;
  /** What it believes to hold. */
  readonly #claims = new Map<number, Belief>();

  constructor(
    private readonly model: Model,
    readonly process: Process,
    /** Makes the lease, and so the worker, another one. */
    readonly tag: number,
  ) {
    process.workers.push(this);
  }

  /** @returns what it was given */
  pull(max: number, witness: Witness): Run[] {
    const { swept, took } = witness;
    const { model, process } = this;
    const given: Run[] = [];
    let mustSweep = swept;
    let dropped: Dropped[] = [];
    let over = false;
    // What may not start is replaced by what comes next, as long as there is more.
    while (!over) {
      const barred = this.#stepsAside(witness, mustSweep);
      const knows = this.#knowsQuarantine && !model.paused;
      const asksThere = knows && [...model.quarantined, ...(mustSweep ? this.#nextLost() : [])].some(took);
      if (!barred) this.#announceOthers(asksThere);
      for (const { id, claim, ending } of dropped.splice(0)) this.#settle(id, claim, ending);
      if (!barred) this.#markNotSole(asksThere);
      if (mustSweep) model.takeBack();
      mustSweep = false;
      if (barred) break;

      // To have the process to itself, or because it has waited for that long enough.
      const mayLeave = (job: Job) => process.runs.length === 0 || isOverdue(job, model);
      const candidate = knows
        ? model.quarantined.find((job) => mayLeave(job) && isLetOut(job, witness, model))
        : undefined;
      const head = model.turns ? model.due.find(took) : model.due[0];
      const want = max - given.length;
      const starts = candidate !== undefined && this.#whyNot(candidate) === undefined;
      const unhurried = starts && !isOverdue(candidate, model);
      const dueFirst =
        head &&
        took(head) &&
        (unhurried || this.#tookMoreThan(starts ? want - 1 : want, took) || this.#cameBefore(candidate, witness));
      const fromQuarantine = candidate !== undefined && took(candidate) && !dueFirst;
      const jobs = fromQuarantine ? [candidate] : this.#nextDue(want, witness);
      for (const started of this.#open(jobs, fromQuarantine)) {
        if ('ending' in started) dropped.push(started);
        else given.push(started);
      }
      // What ends at once leaves room in the limits for others.
      const makesRoom = model.turns !== undefined && dropped.length > 0;
      over = given.length === max || (!fromQuarantine && jobs.length < want && !makesRoom);
      this.#answered();
    }
    for (const { id, claim, ending } of dropped) this.#settle(id, claim, ending);
    this.#answered();
    return given;
  }

  /**
   * A process that knows of jobs in quarantine stops claiming for a while now and then, to become empty and for one of them to run
   * alone. So it did when nothing of what was due was taken, what becomes due by taking back included. Where nothing was
   * due, it shows in that no claim here was marked as not alone: neither its lease nor, when that was taken back before, the
   * run itself. A pause ends it, but not before the worker that it stopped for has heard of the pause.
   */
  #stepsAside({ took, silent, knowsLoss }: Witness, sweeps: boolean): boolean {
    const { model, process } = this;
    const isolated = process.isolated(model.now);
    const knows = model.quarantined.length > 0 || process.workers.some((worker) => worker.#knowsQuarantine);
    if (isolated.length === 0 && (process.runs.length === 0 || !knows)) return false;
    const lost = sweeps ? this.#nextLost() : [];
    const followed = lost.filter(({ next }) => next && next !== 'cancelled' && next.due <= model.now);
    const heads = () => model.turns?.claimable(lost) ?? [...model.due.slice(0, 1), ...followed];
    const first = model.paused ? [] : heads();
    // By limits that depend on windows from before they were set, also others than those that surely may start.
    const others = model.turns && !model.paused ? [...model.due, ...followed] : [];
    if ([...first, ...others].some(took)) return false;
    if (this.#knowsQuarantine && model.quarantined.some(took)) return false;
    if (first.length > 0) return true;
    const alone = process.workers.flatMap((worker) =>
      [...worker.#claims].filter(([, belief]) => belief.alone && !belief.repeated),
    );
    const lostBefore = (claim: number) => process.runs.filter((run) => run.claim === claim && !run.lost);
    return alone.some(([claim]) =>
      model.leases.has(claim) ? silent(claim) : lostBefore(claim).some((run) => !knowsLoss(run)),
    );
  }

  /** What is lost when somebody looks. */
  #nextLost(): Job[] {
    return this.model.overdue.flatMap(([claim]) => this.model.heldBy(claim));
  }

  /**
   * Of what is due more was taken than there is room for beside a job from the quarantine that was claimed before: so it came after. How long
   * that has waited a process knows from its last answer, since when a sequence may have moved what is stored by hours.
   */
  #tookMoreThan(room: number, took: Witness['took']): boolean {
    if (this.model.turns) {
      const startable = (job: Job) => took(job) && job.losses === 0 && this.#whyNot(job) === undefined;
      return !this.model.paused && this.model.due.filter(startable).length > room;
    }
    let left = room;
    for (const job of this.model.paused ? [] : this.model.due) {
      if (left === 0) return took(job);
      // Others make room again at once: they end or go to the quarantine.
      if (job.losses === 0 && this.#whyNot(job) === undefined) left--;
    }
    return false;
  }

  /** What was due and may start has a lower claim number than the job from the quarantine. So it came before, however little it was. */
  #cameBefore(candidate: Job | undefined, { tokenOf }: Witness): boolean {
    const its = candidate && tokenOf(candidate);
    if (its === undefined || this.model.paused) return false;
    return this.model.due.some((job) => (tokenOf(job) ?? Infinity) < its);
  }

  #nextDue(want: number, { took, tokenOf }: Witness): Job[] {
    const { model } = this;
    if (model.paused) return [];
    const { turns } = model;
    const ends = (job: Job) => this.#whyNot(job) !== undefined;
    const due = turns ? turns.oneClaim(model.due.filter(took), want, ends, tokenOf) : model.due.slice(0, want);
    turns?.check(due, want);
    turns?.looked();
    for (const job of due) if (job.losses > 0) model.divert(job);
    return due.filter(({ state }) => state === 'waiting');
  }

  /** Before it claims, whoever would be charged here is told that it no longer is. */
  #announceOthers(withQuarantined: boolean): void {
    const { marked } = this.process;
    if (!marked || (marked.repeated && !withQuarantined)) return;
    this.process.marked = undefined;
    if (marked.worker !== this) marked.worker.#speak(withQuarantined);
  }

  /** The same of this worker, in the very step that claims. */
  #markNotSole(withQuarantined: boolean): void {
    const spares = (belief: Belief) => belief.alone && (withQuarantined || !belief.repeated);
    const spared = [...this.#claims.values()].filter(spares);
    for (const belief of spared) belief.alone = false;
    this.#tell((belief) => spared.includes(belief));
  }

  #open(jobs: readonly Job[], fromQuarantine: boolean): (Run | Dropped)[] {
    const { model, process } = this;
    const repeated = fromQuarantine && jobs.length === 1 && jobs[0]!.losses >= FREE_LOSSES;
    const alone = jobs.length === 1 && (repeated || process.runs.length === 0);
    if (alone) process.marked = { worker: this, repeated };
    const dueBefore = jobs.map(({ due, exact, version }) =>
      fromQuarantine ? { due: version.due, exact: version.exact } : { due, exact },
    );
    model.turns?.started(jobs, fromQuarantine);
    const claim = model.claim(jobs, { deadline: model.now + LEASE, alone });
    if (jobs.length > 0) this.#claims.set(claim, { unsettled: jobs.length, alone, repeated });
    const isolatedAt = fromQuarantine && process.runs.length === 0 ? model.now : undefined;
    return jobs.map((job, n) => this.#start(job, claim, { fromQuarantine, isolatedAt }, dueBefore[n]!));
  }

  /** A run of it that goes on here has lost it: nobody renews what was pulled, so that it need never end. */
  #start(
    job: Job,
    claim: number,
    from: Pick<Run, 'fromQuarantine' | 'isolatedAt'>,
    { due, exact }: Due,
  ): Run | Dropped {
    const { model } = this;
    const { id, version, charged, snoozes } = job;
    const { payload } = version;
    const maxAttempts = limitOf(job);
    const present = [...this.runs].find((run) => run.id === id);
    if (present) {
      model.events.push('claimed by the worker that still runs it');
      if (!present.lost) this.#close(present.claim);
      present.lost = true;
      present.lostByHeartbeat = false;
      this.runs.delete(present);
    }
    const ending = this.#whyNot(job);
    if (ending) {
      model.events.push(`claimed, ${ending.verb === 'dead' ? `dead (${ending.reason})` : 'expired'}`);
      return { id, claim, ending };
    }
    const attempt = charged + 1;
    const run: Run = {
      id,
      payload,
      attempt,
      maxAttempts,
      snoozes,
      worker: this,
      ...from,
      claim,
      due,
      exact,
      lost: false,
    };
    this.runs.add(run);
    return run;
  }

  /** Why a job may not start. */
  #whyNot(job: Job): Ending | undefined {
    const { version, charged, losses } = job;
    const { expiry, keepExpired } = version;
    const maxAttempts = limitOf(job);
    if (charged >= maxAttempts) {
      const error = `All ${maxAttempts} attempts were used${losses > 0 ? '; the last one lost its lease' : ''}.`;
      return { verb: 'dead', reason: losses > 0 ? 'leaseLost' : 'exhausted', error, charge: false };
    }
    if (expiry === undefined || this.model.now < expiry) return undefined;
    if (!keepExpired) return { verb: 'expired' };
    return { verb: 'dead', reason: 'expired', error: 'It expired before it could start.', charge: false };
  }

  /**
   * @param swept did leases that are over end meanwhile? So this worker was told, which is late enough in a sequence that takes a second
   * @returns false: leaseLost
   */
  end(run: Run, how: HowToEnd, swept: () => boolean): boolean {
    this.runs.delete(run);
    const { id, claim, lost } = run;
    const counted = !lost && this.#settle(id, claim, endingOf(run, how));
    if (swept()) this.model.takeBack();
    // Nobody renews what was pulled: who was told of a loss asks Redis all the same whether its end counts.
    if (!lost || run.lostByHeartbeat) this.#answered();
    return counted;
  }

  /** @returns false: leaseLost */
  extend(run: Run, hours: number): boolean {
    const { model } = this;
    const job = model.jobs.get(run.id);
    if (run.lost) {
      // Whoever asks Redis hears for good that it has lost it: its end asks no more.
      run.lostByHeartbeat = false;
      return false;
    }
    const old = this.#claims.get(run.claim);
    const alone = old?.alone === true && old.unsettled === 1;
    this.#close(run.claim);
    run.lost = job?.state !== 'running' || job.claim !== run.claim;
    if (run.lost) return false;
    run.claim = model.reclaim(job!, model.now + hours);
    this.#claims.set(run.claim, { unsettled: 1, alone, repeated: old?.repeated === true });
    return true;
  }

  /** Its job is not alone any more: another worker has one of the process. */
  #speak(withQuarantined: boolean): void {
    for (const claim of this.#claims.values()) if (withQuarantined || !claim.repeated) claim.alone = false;
    if (this.#claims.size === 0) return; // It has nothing to say.
    this.#tell(() => true);
    this.#answered();
  }

  #answered(): void {
    this.#knowsQuarantine = this.model.quarantined.length > 0;
  }

  #tell(which: (claim: Belief) => boolean): void {
    const { model } = this;
    for (const [claim, belief] of this.#claims) {
      if (!which(belief)) continue;
      // Nothing prolongs the leases of these jobs: what is told is the mark.
      model.mark(claim, belief.alone);
      for (const run of this.runs) {
        const job = model.jobs.get(run.id);
        if (run.claim !== claim || run.lost || (job?.state === 'running' && job.claim === claim)) continue;
        run.lost = run.lostByHeartbeat = true;
        this.#close(claim);
      }
    }
  }

  #settle(id: string, claim: number, ending: Ending): boolean {
    this.#close(claim);
    return this.model.settle(id, claim, ending);
  }

  #close(claim: number): void {
    const belief = this.#claims.get(claim);
    if (belief && --belief.unsettled === 0) this.#claims.delete(claim);
  }
}

/** It has waited for an empty process long enough: hours, where a minute is asked for. */
function isOverdue({ quarantinedAt }: Job, { now }: Model): boolean {
  return quarantinedAt !== undefined && quarantinedAt < now;
}

/**
 * One whose group is at its rate holds up no other one in quarantine: that rate is no limit of theirs. Where the rate depends on windows
 * from before limits were set, it is seen in what was taken.
 */
function isLetOut(job: Job, { took }: Witness, { turns }: Model): boolean {
  return turns?.hasRate(job) ?? (!turns || took(job));
}

export type HowToEnd =
  | { how: 'complete' }
  | { how: 'fail'; error: string }
  | { how: 'retry'; delay: number }
  | { how: 'snooze'; delay: number }
  | { how: 'discard'; reason: string }
  | { how: 'release' };

function endingOf(run: Run, end: HowToEnd): Ending {
  switch (end.how) {
    case 'complete':
      return { verb: 'complete' };
    case 'snooze':
      return { verb: 'snooze', delay: end.delay };
    case 'release':
      return { verb: 'release', due: run.due, exact: run.exact };
    case 'discard':
      return { verb: 'dead', reason: 'discarded', error: end.reason, charge: true };
    case 'fail':
      return failed(run, end.error, BACKOFF);
    case 'retry':
      return failed(run, 'retry() was asked for', end.delay);
  }
}

function limitOf({ limit, version }: Job): number {
  return limit ?? version.maxAttempts;
}

function failed({ attempt, maxAttempts }: Run, error: string, delay: number): Ending {
  if (attempt >= maxAttempts) return { verb: 'dead', reason: 'exhausted', error, charge: true };
  return { verb: 'retry', delay, error };
}
