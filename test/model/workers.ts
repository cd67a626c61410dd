import type { Ending, Job, Model } from './model.js';

/** Hours that a claim is valid without renewal. */
export const LEASE = 2.5;
/** Hours until the next attempt after `fail()`. */
export const BACKOFF = 1;

/** A job in somebody's hands, as its process knows it. */
export interface Run {
  readonly id: string;
  readonly payload: number;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly snoozes: number;
  readonly worker: Worker;
  /** A suspect that was taken because nothing else ran here. */
  readonly solo: boolean;
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
  /** Whose only job is marked as alone in the store. */
  marked: Worker | undefined;

  constructor(readonly number: number) {}

  get runs(): Run[] {
    return this.workers.flatMap(({ runs }) => [...runs]);
  }

  get runsSuspect(): boolean {
    return this.runs.some(({ solo }) => solo);
  }
}

/** What was seen of a pull that the contract leaves open. */
export interface Witness {
  /** Its first step looked for leases that are over. */
  swept: boolean;
  /** This job is no longer where it was. Suspects it may take before or after due ones, while its process holds nothing. */
  readonly took: (job: Job) => boolean;
  /** The store was not told that this claim, which was alone in its process, no longer is. */
  readonly silent: (claim: number) => boolean;
  /** The process was told that this run has lost its lease. */
  readonly told: (run: Run) => boolean;
}

/** One worker of a process: it pulls with a lease of its own. */
export class Worker {
  readonly runs = new Set<Run>();
  /** So its last step was answered. */
  #knowsSuspects = false;
  /** What it believes to hold. */
  readonly #claims = new Map<number, { unsettled: number; alone: boolean }>();

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
      const barred = process.runsSuspect || this.#stepsAside(witness, mustSweep);
      if (!barred) this.#announceCompany();
      for (const { id, claim, ending } of dropped.splice(0)) this.#settle(id, claim, ending);
      if (!barred) this.#renew(({ alone }) => alone);
      if (mustSweep) model.takeBack();
      mustSweep = false;
      if (barred) break;

      const [suspect] = model.paused || !this.#mayTakeSuspects ? [] : model.suspects;
      const [head] = model.due;
      // A suspect that starts ends the pull: what was taken of the due ones was taken before.
      const dueFirst = suspect && head && took(head) && this.#whyNot(suspect) === undefined;
      const solo = suspect !== undefined && took(suspect) && !dueFirst;
      const want = max - given.length;
      const jobs = solo ? [suspect] : this.#nextDue(want);
      for (const started of this.#open(jobs, solo)) {
        if ('ending' in started) dropped.push(started);
        else given.push(started);
      }
      over = solo ? given.length > 0 : jobs.length < want || given.length === max;
      this.#answered();
    }
    for (const { id, claim, ending } of dropped) this.#settle(id, claim, ending);
    this.#answered();
    return given;
  }

  /**
   * A busy process that knows of suspects stops claiming for a while now and then, to become empty. So it did when nothing
   * of what was due was taken, what becomes due by taking back included. Where nothing was due, it shows in that nobody
   * here was told of company: neither its lease nor, when that was taken back before, the run itself.
   */
  #stepsAside({ took, silent, told }: Witness, sweeps: boolean): boolean {
    const { model, process } = this;
    const knows = model.suspects.length > 0 || process.workers.some((worker) => worker.#knowsSuspects);
    if (process.runs.length === 0 || !knows || model.paused) return false;
    const lost = sweeps ? model.overdue.flatMap(([claim]) => model.heldBy(claim)) : [];
    const followed = lost.filter(({ next }) => next && next !== 'cancelled' && next.due <= model.now);
    const first = [...model.due.slice(0, 1), ...followed];
    if (first.length > 0) return !first.some(took);
    const alone = process.workers.flatMap((worker) => [...worker.#claims].filter(([, belief]) => belief.alone));
    const lostBefore = (claim: number) => process.runs.filter((run) => run.claim === claim && !run.lost);
    return alone.some(([claim]) =>
      model.leases.has(claim) ? silent(claim) : lostBefore(claim).some((run) => !told(run)),
    );
  }

  get #mayTakeSuspects(): boolean {
    return this.#knowsSuspects && this.process.runs.length === 0;
  }

  #nextDue(want: number): Job[] {
    const { model } = this;
    const due = model.paused ? [] : model.due.slice(0, want);
    for (const job of due) if (job.losses > 0) model.divert(job);
    return due.filter(({ state }) => state === 'waiting');
  }

  /** Before it claims, whoever is marked as alone here is told that it no longer is. */
  #announceCompany(): void {
    const { process } = this;
    if (process.marked === this) return;
    if (process.marked) process.marked.#speak();
    process.marked = undefined;
  }

  #open(jobs: readonly Job[], solo: boolean): (Run | Dropped)[] {
    const { model, process } = this;
    const alone = process.runs.length === 0 && jobs.length === 1;
    if (alone) process.marked = this;
    const dueBefore = jobs.map(({ due, exact, version }) =>
      solo ? { due: version.due, exact: version.exact } : { due, exact },
    );
    const claim = model.claim(jobs, { deadline: model.now + LEASE, alone });
    if (jobs.length > 0) this.#claims.set(claim, { unsettled: jobs.length, alone });
    return jobs.map((job, n) => this.#start(job, claim, solo, dueBefore[n]!));
  }

  /** A run of it that goes on here has lost it: nobody renews what was pulled, so that it need never end. */
  #start(job: Job, claim: number, solo: boolean, { due, exact }: Due): Run | Dropped {
    const { model } = this;
    const { id, version, charged, snoozes } = job;
    const { payload } = version;
    const maxAttempts = limitOf(job);
    const present = [...this.runs].find((run) => run.id === id);
    if (present) {
      model.events.push('claimed by the worker that still runs it');
      if (!present.lost) this.#close(present.claim);
      present.lost = true;
      this.runs.delete(present);
    }
    const ending = this.#whyNot(job);
    if (ending) {
      model.events.push(`claimed, ${ending.verb === 'dead' ? `dead (${ending.reason})` : 'expired'}`);
      return { id, claim, ending };
    }
    const attempt = charged + 1;
    const run: Run = { id, payload, attempt, maxAttempts, snoozes, worker: this, solo, claim, due, exact, lost: false };
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

  /** @returns false: leaseLost */
  end(run: Run, how: HowToEnd): boolean {
    this.runs.delete(run);
    const { id, claim, solo, lost } = run;
    const counted = !lost && this.#settle(id, claim, endingOf(run, how));
    if (!lost || solo) this.#answered();
    return counted;
  }

  /** @returns false: leaseLost */
  extend(run: Run, hours: number): boolean {
    const { model } = this;
    const job = model.jobs.get(run.id);
    if (run.lost) return false;
    const old = this.#claims.get(run.claim);
    const alone = old?.alone === true && old.unsettled === 1;
    this.#close(run.claim);
    run.lost = job?.state !== 'running' || job.claim !== run.claim;
    if (run.lost) return false;
    run.claim = model.reclaim(job!, model.now + hours);
    this.#claims.set(run.claim, { unsettled: 1, alone });
    return true;
  }

  /** Its only job has got company in another worker of the process. */
  #speak(): void {
    for (const claim of this.#claims.values()) claim.alone = false;
    if (this.#claims.size === 0) return; // It has nothing to say.
    this.#renew(() => true);
    this.#answered();
  }

  #answered(): void {
    this.#knowsSuspects = this.model.suspects.length > 0;
  }

  #renew(which: (claim: { alone: boolean }) => boolean): void {
    const { model } = this;
    for (const [claim, belief] of this.#claims) {
      if (!which(belief)) continue;
      belief.alone = false;
      model.renew(claim, model.now + LEASE);
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
