import type { DeadReason, JobState, OnDuplicate } from '../../lib/index.js';
import { HOUR } from './system.js';
import { Turns } from './turns.js';

/**
 * What a queue does, in plain maps: sections 3.1, 3.2 and 3.4 of the design brief as a program. It knows nothing of Redis, scripts or promises.
 *
 * Time is counted in hours since the sequence began, and every moment that somebody asks for is a whole number of them,
 * while deadlines (leases, expiry, windows) end half an hour later: so the milliseconds that really pass never decide
 * anything. Only the order of what happens within one hour does, so `exact` keeps the moment that was seen in the store.
 */
export class Model {
  now = 0;
  paused = false;
  /** How many commands there were, this one included. */
  command = 0;
  readonly jobs = new Map<string, Job>();
  /** Until when no second job is made under an id. */
  readonly windows = new Map<string, number>();
  readonly leases = new Map<number, Lease>();
  readonly totals = { enqueued: 0, completed: 0, failed: 0, retried: 0, dead: 0, expired: 0, skipped: 0 };
  /** Payloads that came too late. */
  readonly expired = new Set<number>();
  /** What happened to jobs without being anybody's answer, for the statistics. */
  readonly events: string[] = [];
  /** Of a queue that uses groups, priorities or limits. */
  readonly turns: Turns | undefined;
  #claims = 0;

  /** `clockStands`: every moment is a whole hour to the ms, so what happens at one moment is in the order of the ids. */
  constructor(
    private readonly clockStands = false,
    withLimits = false,
  ) {
    this.turns = withLimits ? new Turns(this) : undefined;
  }

  // --- Looking ------------------------------------------------------------------------------------------------------------

  state(job: Job): JobState {
    if (job.state === 'waiting') return job.due <= this.now ? 'due' : 'delayed';
    return job.state === 'quarantined' ? 'due' : job.state;
  }

  /** In the order in which they are claimed. */
  get due(): Job[] {
    return this.#in('waiting', ({ due }) => due <= this.now).sort(byTime((job) => this.#exact(job)));
  }

  get delayed(): Job[] {
    return this.#in('waiting', ({ due }) => due > this.now).sort(byTime((job) => this.#exact(job)));
  }

  get quarantined(): Job[] {
    return this.#in('quarantined').sort(
      byTime(({ since }) => since ?? (this.clockStands ? this.now * HOUR : undefined)),
    );
  }

  get dead(): Job[] {
    return this.#in('dead').sort(byTime(({ since }) => since));
  }

  /** ms; as exact as it is known. */
  timeOf(job: Job): number {
    return this.#exact(job) ?? job.due * HOUR;
  }

  #exact({ exact, due }: Job): number | undefined {
    return exact ?? (this.clockStands ? due * HOUR : undefined);
  }

  get running(): Job[] {
    return this.#in('running').sort(byTime(({ claim }) => claim));
  }

  heldBy(claim: number): Job[] {
    return this.running.filter((job) => job.claim === claim);
  }

  #in(state: Job['state'], which: (job: Job) => boolean = () => true): Job[] {
    return [...this.jobs.values()].filter((job) => job.state === state && which(job));
  }

  // --- The producer -------------------------------------------------------------------------------------------------------

  enqueue(wish: Wish): EnqueueAnswer {
    const { id, mode, maxWait, uniqueFor } = wish;
    const job = this.jobs.get(id);
    const state = job ? this.state(job) : (this.windows.get(id) ?? -1) > this.now ? 'completed' : undefined;
    const asked = wish.at ?? this.now + wish.delay;
    const burst = job?.burst ?? this.now;
    // Calls put off what waits, and only for so long; a first call is due when it asks.
    const waits = maxWait === undefined ? undefined : waitingDue(job);
    const bounded = waits ? Math.min(asked, Math.max(waits.due, burst + maxWait!)) : asked;
    const kept = wish.keepsDue ? waitingDue(job) : undefined;
    const due = kept?.due ?? bounded;
    if (state === 'completed') this.events.push('not made: still in its window');
    if (state && mode === 'reject') return { outcome: 'rejected', state, due: 0 };
    if (state === 'completed') return { outcome: 'kept', state, due };
    const ending = job?.next === 'cancelled';
    const raises = job?.state === 'dead' && mode === 'keep' && !wish.onDeadKeep;
    const instead = raises || (ending && mode !== 'reject');
    if (job && mode === 'keep' && !instead)
      return { outcome: 'kept', state: state!, due: job.state === 'waiting' ? job.due : job.version.due };

    const fresh: Version = {
      payload: wish.payload,
      due,
      exact: kept?.exact,
      made: this.now,
      expiry: wish.expiresIn === undefined ? undefined : due + wish.expiresIn,
      keepExpired: wish.keepExpired,
      maxAttempts: wish.attempts,
      group: wish.group,
      priority: wish.priority,
    };
    if (!job) {
      this.totals.enqueued++;
      if (uniqueFor !== undefined) this.windows.set(id, this.now + uniqueFor);
      const made: Job = { id, state: 'waiting', version: fresh, due, ...NO_ATTEMPTS };
      if (maxWait !== undefined) made.burst = burst;
      this.jobs.set(id, made);
      return { outcome: 'created', state: this.state(made), due, version: fresh };
    }
    const replaces = mode === 'replace' || instead;
    const version = replaces ? fresh : movedTo(newest(job), due);
    if ((job.state === 'dead' || ending) && uniqueFor !== undefined) this.windows.set(id, this.now + uniqueFor);
    if (maxWait !== undefined) job.burst = burst;
    if (job.state === 'running') {
      job.next = version; // What is asked for last wins; the present run goes on.
    } else {
      if (replaces || job.state === 'dead') this.#forget(job);
      this.#wait(job, version, due);
    }
    return { outcome: replaces ? 'replaced' : 'rescheduled', state: state!, due, version };
  }

  cancel(id: string, evenRunning: boolean): Answer<'cancelled' | 'running' | 'dead' | 'notFound'> {
    const job = this.jobs.get(id);
    if (!job) return { outcome: 'notFound', state: undefined };
    const state = this.state(job);
    if (state === 'running') {
      if (evenRunning) {
        job.next = 'cancelled';
        job.burst = undefined;
        this.windows.delete(id);
      }
      return { outcome: 'running', state };
    }
    if (state === 'dead') return { outcome: 'dead', state };
    this.remove(job);
    return { outcome: 'cancelled', state };
  }

  update(id: string, payload: number): Answer<'updated' | 'running' | 'dead' | 'notFound'> {
    const job = this.jobs.get(id);
    if (!job) return { outcome: 'notFound', state: undefined };
    const state = this.state(job);
    if (state === 'running' || state === 'dead') return { outcome: state, state };
    job.version = { ...job.version, payload };
    job.lostTo = 0;
    return { outcome: 'updated', state };
  }

  /** Both or none: what would only have been moved runs with the old payload, at the time of the event. */
  signal(id: string, payload: number): Answer<'signalled' | 'running' | 'dead' | 'notFound'> {
    const { outcome, state } = this.update(id, payload);
    if (outcome !== 'updated') return { outcome, state };
    this.move(id, this.now, true);
    return { outcome: 'signalled', state };
  }

  /** @param onlySooner runNow: what is due already keeps its place */
  move(id: string, due: number, onlySooner: boolean): Answer<'rescheduled' | 'running' | 'dead' | 'notFound'> {
    const job = this.jobs.get(id);
    if (!job) return { outcome: 'notFound', state: undefined };
    const state = this.state(job);
    if (state === 'running' || state === 'dead') return { outcome: state, state };
    if (!onlySooner || state === 'delayed') this.#wait(job, movedTo(job.version, due), due);
    return { outcome: 'rescheduled', state };
  }

  // --- The inspector ------------------------------------------------------------------------------------------------------

  requeue(job: Job, delay: number, forget: boolean): void {
    if (forget) Object.assign(job, NO_ATTEMPTS, { error: job.error, errors: job.errors });
    else job.limit = job.charged + 1;
    this.#wait(job, movedTo(job.version, this.now + delay), this.now + delay);
  }

  /** For good, with whatever is known of it. */
  remove(job: Job): void {
    this.jobs.delete(job.id);
    this.windows.delete(job.id);
  }

  // --- Workers ------------------------------------------------------------------------------------------------------------

  /** @returns the claim's number: the token. Later ones are greater. */
  claim(jobs: readonly Job[], lease: Omit<Lease, 'command'>): number {
    const claim = ++this.#claims;
    if (jobs.length > 0) this.leases.set(claim, { ...lease, command: this.command });
    for (const job of jobs) Object.assign(job, { state: 'running', claim, burst: undefined, keepsPlace: false });
    return claim;
  }

  /** A lease of its own for one job of a claim, which ends no sooner. */
  reclaim(job: Job, deadline: number): number {
    const old = job.claim!;
    const lease = this.leases.get(old)!;
    const alone = lease.alone && this.heldBy(old).length === 1;
    job.claim = ++this.#claims;
    const ends = Math.max(lease.deadline, deadline);
    this.leases.set(job.claim, { deadline: ends, alone, command: this.command });
    this.#release(old);
    return job.claim;
  }

  mark(claim: number, alone: boolean): void {
    const lease = this.leases.get(claim);
    if (lease) lease.alone = alone;
  }

  /** The token decides, not the clock: whoever lost the job may still end it while nobody has started or moved it. */
  owns(id: string, claim: number): boolean {
    const job = this.jobs.get(id);
    if (!job || job.state === 'dead') return false;
    return job.state === 'running' ? job.claim === claim : job.lostTo === claim;
  }

  /** @returns false when the lease was lost: nothing has changed */
  settle(id: string, claim: number, ending: Ending): boolean {
    if (!this.owns(id, claim)) return false;
    const job = this.jobs.get(id)!;
    const { totals } = this;
    if (ending.verb === 'complete') totals.completed++;
    if (ending.verb === 'retry' || (ending.verb === 'dead' && ending.charge)) totals.failed++;
    if (ending.verb === 'expired') {
      totals.expired++;
      this.expired.add(job.version.payload);
    }
    if (job.next) this.#follow(job);
    else this.#end(job, ending);
    this.#release(claim);
    return true;
  }

  /**
   * What workers do about leases that are over. Only a job that was alone in its process is charged, or lost too many leases.
   *
   * @param which all, unless some may have been renewed just before
   */
  takeBack(which: (claim: number) => boolean = () => true): void {
    for (const [claim, { deadline, alone }] of this.leases) {
      if (deadline > this.now || !which(claim)) continue;
      const jobs = this.heldBy(claim);
      for (const job of jobs) {
        if (job.next) {
          this.events.push(`taken back with ${job.next === 'cancelled' ? 'a tombstone' : 'a replacement'}`);
          this.#follow(job);
          continue;
        }
        const charged = alone && jobs.length === 1;
        this.events.push(charged ? 'taken back, charged' : 'taken back, uncharged');
        this.#quarantine(job);
        job.charged += charged ? 1 : 0;
        job.losses++;
        job.lostTo = claim;
      }
      this.leases.delete(claim);
    }
  }

  /** It lost leases before, so it must run alone, also when somebody gave it another due time. */
  divert(job: Job): void {
    this.events.push('moved by hand, still in quarantine');
    this.#quarantine(job);
  }

  get overdue(): [claim: number, lease: Lease][] {
    return [...this.leases].filter(([, { deadline }]) => deadline <= this.now);
  }

  #end(job: Job, ending: Ending): void {
    const { totals } = this;
    switch (ending.verb) {
      case 'complete':
      case 'expired':
        this.jobs.delete(job.id); // Its window goes on.
        return;
      case 'retry':
        totals.retried++;
        Object.assign(job, { charged: job.charged + 1, losses: 0, lostTo: 0, error: ending.error });
        job.errors = [...job.errors, ending.error].slice(-5);
        this.#due(job, this.now + ending.delay);
        return this.#keepPlace(job, 'a retry');
      case 'snooze':
        Object.assign(job, { snoozes: job.snoozes + 1, losses: 0, lostTo: 0 });
        this.#due(job, this.now + ending.delay);
        return this.#keepPlace(job, 'a snooze');
      case 'release':
        job.lostTo = 0;
        this.#due(job, ending.due, ending.exact);
        return this.#keepPlace(job, 'a release');
      case 'dead':
        totals.dead++;
        Object.assign(job, { state: 'dead', since: undefined, claim: undefined, losses: 0, lostTo: 0 });
        Object.assign(job, { charged: job.charged + (ending.charge ? 1 : 0) });
        Object.assign(job, { reason: ending.reason, error: ending.error });
        if (ending.charge) job.errors = [...job.errors, ending.error].slice(-5);
    }
  }

  /** Where retries block, whoever has started and waits again: nobody of its group passes it. */
  #keepPlace(job: Job, how: string): void {
    job.keepsPlace = this.turns?.blocks === true && job.version.group !== undefined;
    if (job.keepsPlace) this.events.push(`keeps the place of its group through ${how}`);
  }

  /** However a run ends: what was asked for meanwhile decides. */
  #follow(job: Job): void {
    const { next } = job;
    if (next === 'cancelled') return this.remove(job);
    this.#forget(job);
    this.#wait(job, next!, next!.due, next!.exact);
  }

  #wait(job: Job, version: Version, due: number, exact?: number): void {
    Object.assign(job, { version, lostTo: 0 });
    this.#due(job, due, exact);
  }

  #due(job: Job, due: number, exact?: number): void {
    Object.assign(job, { state: 'waiting', due, exact, since: undefined, claim: undefined, next: undefined });
    job.reason = undefined;
    job.keepsPlace = false;
  }

  #quarantine(job: Job): void {
    Object.assign(job, { state: 'quarantined', since: undefined, quarantinedAt: this.now, claim: undefined });
  }

  #forget(job: Job): void {
    Object.assign(job, NO_ATTEMPTS);
  }

  #release(claim: number): void {
    if (this.heldBy(claim).length === 0) this.leases.delete(claim);
  }
}

export interface Wish {
  id: string;
  payload: number;
  mode: OnDuplicate;
  onDeadKeep: boolean;
  /** Only with `replace`. */
  keepsDue: boolean;
  delay: number;
  at?: number;
  attempts: number;
  expiresIn?: number;
  keepExpired: boolean;
  uniqueFor?: number;
  maxWait?: number;
  group: string | undefined;
  priority: number;
}

/** What one `enqueue()` made of a job; a replacement is another one. */
export interface Version {
  readonly payload: number;
  readonly due: number;
  /** `due` to the millisecond, as it was answered or seen. */
  exact?: number;
  readonly made: number;
  readonly expiry: number | undefined;
  readonly keepExpired: boolean;
  readonly maxAttempts: number;
  readonly group: string | undefined;
  readonly priority: number;
}

export interface Job {
  readonly id: string;
  state: 'waiting' | 'quarantined' | 'running' | 'dead';
  version: Version;
  /** When it may start. Retries and snoozes move it, and not the version's. */
  due: number;
  exact?: number;
  /** When it died or was taken back, ms. */
  since?: number;
  /** When it came to the quarantine. */
  quarantinedAt?: number;
  claim?: number;
  charged: number;
  losses: number;
  snoozes: number;
  /** The claim that may still end it although its lease was lost. */
  lostTo: number;
  /** After so many attempts it is over, whatever was asked for: it is a dead letter that was given one more run. */
  limit?: number;
  error?: string;
  /** Of the last five attempts. */
  errors: readonly string[];
  reason?: DeadReason;
  /** What follows the present run. */
  next?: Version | 'cancelled';
  /** When the first of a burst was enqueued. */
  burst?: number;
  /** It has started and waits to run again, and its group waits with it. */
  keepsPlace?: boolean;
}

export interface Lease {
  deadline: number;
  /** Its loss is charged: its job is known to be the only one of its process, or lost too many leases in a row. */
  alone: boolean;
  /** Which command made it. */
  readonly command: number;
  /** The number that the store gave to the claim. */
  token?: number;
}

export interface Answer<Outcome> {
  outcome: Outcome;
  state: JobState | undefined;
}

export interface EnqueueAnswer extends Answer<'created' | 'kept' | 'replaced' | 'rescheduled' | 'rejected'> {
  due: number;
  /** What will run, when that was changed. */
  version?: Version;
}

export type Ending =
  | { verb: 'complete' }
  | { verb: 'expired' }
  | { verb: 'retry'; delay: number; error: string }
  | { verb: 'snooze'; delay: number }
  | { verb: 'release'; due: number; exact: number | undefined }
  | { verb: 'dead'; reason: DeadReason; error: string; charge: boolean };

const NO_ATTEMPTS = { charged: 0, losses: 0, snoozes: 0, lostTo: 0, limit: undefined, error: undefined, errors: [] };

function newest({ next, version }: Job): Version {
  return next && next !== 'cancelled' ? next : version;
}

/** When that is due which waits under the id, for itself or for the end of a run. */
function waitingDue(job: Job | undefined): { due: number; exact: number | undefined } | undefined {
  if (!job || job.state === 'dead') return undefined;
  if (job.state === 'running') return job.next && job.next !== 'cancelled' ? { due: job.next.due, exact: job.next.exact } : undefined; // prettier-ignore
  return job.state === 'quarantined'
    ? { due: job.version.due, exact: job.version.exact }
    : { due: job.due, exact: job.exact };
}

/** The expiry moves along. */
function movedTo(version: Version, due: number): Version {
  const { expiry } = version;
  return { ...version, due, exact: undefined, expiry: expiry === undefined ? undefined : expiry + due - version.due };
}

function byTime(time: (job: Job) => number | undefined): (a: Job, b: Job) => number {
  return (a, b) => (time(a) ?? Infinity) - (time(b) ?? Infinity) || (a.id < b.id ? -1 : 1);
}
