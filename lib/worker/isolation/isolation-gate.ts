import { performance } from '../../time-and-randomness.js';
import { Alarm } from '../alarm.js';

/** A worker of this process. Another copy of the library, of another version perhaps, may have made it. */
export interface IsolationMember {
  /** Jobs in quarantine that it knows of. */
  readonly quarantined: number;
  /** Handlers that still run although their run is over. */
  readonly zombies: number;
  /** It has left, and no further handler of it will go on after its run. */
  readonly hasEnded?: boolean;
  /** Monotonic ms of the last request whose answer left nothing due behind; Infinity while it takes no jobs at all. */
  readonly caughtUpAt: number;
  /** Claiming may go on: poll soon, but not at once. */
  resume(): void;
  /** Plan again: a step may have to leave. */
  reconsider(): void;
  /**
   * The job whose loss would be charged shares the process now: tell Redis.
   *
   * @param withQuarantined the job that joins it comes from the quarantine, too
   */
  markAccompanied(withQuarantined: boolean): void;
}

/** How a claim is marked in Redis: whether the loss of its lease costs its only job an attempt. */
export type Charge =
  | 'no'
  /** Its job is the only one in this process. */
  | 'alone'
  /** It lost its lease again and again, and no other job in quarantine was started here after it. */
  | 'repeated';

/** The jobs of an answered step. */
export interface Brought {
  readonly jobs: number;
  readonly quarantined: boolean;
  readonly charge: Charge;
}

/** Longest pause in claiming to make a process empty. */
export const CLEARING_MS = 1_500;
/** Longest pause in claiming, once the process is empty, for one claim from the quarantine. Together with `CLEARING_MS`: 4 s. */
export const ISOLATED_MS = 2_500;
/** A process that did not become empty needs not try again at once. */
const AFTER_FAILURE_MS = 10_000;
/** How long a claim from the quarantine that is not answered keeps others from claiming there. */
const UNANSWERED_MS = 5_000;
/**
 * How long a job that lost many leases runs before another one from the quarantine joins it, and takes its mark. Else those that waited
 * for too long would all start at once, and the last of them would be charged for what the first of them does.
 */
export const WATCHED_MS = ISOLATED_MS;

type State<Member> =
  /** All workers may claim. */
  | { readonly name: 'open' }
  /** No worker claims, so that the process becomes empty. */
  | { readonly name: 'clearing'; readonly by: Member; readonly since: number }
  /** It is empty, and a claim from the quarantine is on its way. */
  | { readonly name: 'claiming'; readonly by: Member; readonly since: number }
  /** The jobs of that claim run. The gate opens when they have ended, or when their time is over. */
  | { readonly name: 'isolated'; readonly by: Member; readonly since: number };

/**
 * Which jobs share this OS process, over all queues, instances and applications in it, and when claiming pauses so that a
 * job in quarantine may be the only one. No due job waits through two pauses: before the next one, every worker must
 * have seen its queue without due jobs.
 *
 * Its methods and those of `IsolationMember` are a protocol between copies of this library: see process-gate.ts.
 */
export class IsolationGate<Member extends IsolationMember = IsolationMember> {
  readonly #members = new Set<Member>();
  /** Workers that take no jobs any more, and whose handlers may go on. */
  readonly #gone = new Set<Member>();
  readonly #alarm = new Alarm(() => this.#open());
  #state: State<Member> = { name: 'open' };
  /** When the pause is over, whatever runs; monotonic ms. */
  #until = Infinity;
  #openedAt = -Infinity;
  #clearAgainAt = -Infinity;
  /** Handlers running now. */
  #running = 0;
  #quarantinedRunning = 0;
  /** Jobs that steps on their way may bring. */
  #wanted = 0;
  /** The worker with the marked claim: at most one in the process, so that one death charges one job. */
  #marked: { readonly member: Member; readonly repeated: boolean } | undefined;
  /** Rises with every request for jobs, so that it shows whether another worker has asked meanwhile. */
  #requests = 0;
  #quarantineAskedAt = -Infinity;
  /** Until when nothing from the quarantine joins a job that lost many leases; monotonic ms. */
  #watchedUntil = -Infinity;
  readonly #watch = new Alarm(() => {
    this.#watchedUntil = -Infinity;
    this.#reconsider();
  });

  join(member: Member): void {
    this.#members.add(member);
  }

  /** @param goesOn handlers of this worker may go on after it has left: they share the process for as long as they do */
  leave(member: Member, goesOn = false): void {
    this.#members.delete(member);
    for (const one of this.#gone) if (one.hasEnded && one.zombies === 0) this.#gone.delete(one);
    if (goesOn) this.#gone.add(member);
    if (this.#members.size === 0) this.#watch.clear();
    const { name } = this.#state;
    // What the claim has brought runs on beside the workers that stay.
    if ((name === 'clearing' || name === 'claiming') && this.#state.by === member) this.#open();
  }

  /** No job runs here, and no step on its way may bring one. */
  get isEmpty(): boolean {
    return this.#running === 0 && this.#wanted === 0 && !this.#hasZombies;
  }

  get isOpen(): boolean {
    return this.#state.name === 'open';
  }

  get runsQuarantined(): boolean {
    return this.#quarantinedRunning > 0;
  }

  /** Monotonic ms before which no worker clears this process. */
  get clearAgainAt(): number {
    return this.#clearAgainAt;
  }

  /**
   * A claim from the quarantine is on its way: a second one could not know which job it marks. Or what the last one brought has to show
   * first whether it ends the process.
   */
  asksQuarantine(now: number): boolean {
    return now < this.#quarantineAskedAt + UNANSWERED_MS || now < this.#watchedUntil;
  }

  /** May `member` claim from the quarantine now for a job that runs alone, the process being empty? */
  mayIsolate(member: Member): boolean {
    const state = this.#state;
    if (state.name === 'open') return this.#members.has(member) && this.#haveCaughtUp;
    return state.name === 'clearing' && state.by === member;
  }

  /** Can the process become empty if claiming pauses? */
  get canBeCleared(): boolean {
    return this.isOpen && this.#quarantinedRunning === 0 && !this.#hasZombies && this.#haveCaughtUp;
  }

  /** Stops claiming in this process until it is empty, for a limited time. */
  clear(member: Member): void {
    const since = performance.now();
    if (!this.#members.has(member) || !this.canBeCleared || since < this.#clearAgainAt) return;
    this.#state = { name: 'clearing', by: member, since };
    this.#endAt(since + CLEARING_MS);
  }

  /** A claim from the quarantine leaves an empty process: nothing else may be claimed here. */
  claims(member: Member): void {
    const now = performance.now();
    const state = this.#state;
    if (!this.mayIsolate(member)) return;
    this.#state = { name: 'claiming', by: member, since: state.name === 'open' ? now : state.since };
    this.#endAt(now + ISOLATED_MS);
  }

  /** That claim was answered, or failed. `jobs` run by now, unless they have ended. */
  claimed(member: Member, jobs: number): void {
    const state = this.#state;
    if (state.name !== 'claiming' || state.by !== member) return;
    if (jobs > 0 && this.#running > 0) this.#state = { name: 'isolated', by: member, since: state.since };
    else this.#open();
  }

  /** `member` has no use for an empty process any more. */
  release(member: Member): void {
    if (this.#state.name === 'clearing' && this.#state.by === member) this.#open();
  }

  /** A step of `member` leaves that may bring `jobs`, from the quarantine or due ones. @returns a mark for `brought` */
  asking(member: Member, jobs: number, quarantined: boolean): number {
    this.#wanted += jobs;
    const request = ++this.#requests; // First: the worker that hears that it is not alone may ask in the same moment, later than this one.
    if (quarantined) this.#quarantineAskedAt = performance.now();
    const marked = this.#marked;
    // A job that lost many leases is a likelier killer than one that never lost any, but less likely than one that starts after it.
    if (marked && (quarantined || !marked.repeated)) {
      this.#marked = undefined;
      if (marked.member !== member) marked.member.markAccompanied(quarantined); // Its own step tells that by itself.
    }
    return request;
  }

  /** That step was answered, or failed. */
  brought(member: Member, mark: number, wanted: number, { jobs, quarantined, charge }: Brought): void {
    this.#wanted -= wanted;
    this.#running += jobs;
    if (quarantined) {
      this.#quarantineAskedAt = -Infinity;
      this.#quarantinedRunning += jobs;
    }
    if (charge === 'repeated') {
      this.#marked = { member, repeated: true };
      this.#watchUntil(performance.now() + WATCHED_MS);
    } else if (charge === 'alone') {
      if (mark === this.#requests) this.#marked = { member, repeated: false };
      else member.markAccompanied(false);
    }
    if (quarantined || this.isEmpty) this.#reconsider();
  }

  ended(quarantined: boolean): void {
    this.#running--;
    if (quarantined && --this.#quarantinedRunning === 0) this.#watchUntil(-Infinity);
    if (this.#state.name === 'isolated' && this.#running === 0) this.#open();
    else if (quarantined || this.isEmpty) this.#reconsider();
  }

  /** For the test kit, which moves the time of jobs by hand: shortens a pause by `ms`. */
  fastForward(ms: number): void {
    this.#clearAgainAt -= ms;
    if (this.#watchedUntil > -Infinity) this.#watchUntil(this.#watchedUntil - ms);
    if (!this.isOpen) this.#endAt(this.#until - ms);
  }

  #watchUntil(at: number): void {
    this.#watchedUntil = at;
    if (at === -Infinity) this.#watch.clear();
    else this.#watch.set(at);
  }

  #endAt(at: number): void {
    this.#until = at;
    if (performance.now() >= at) this.#open();
    else this.#alarm.set(at);
  }

  get #haveCaughtUp(): boolean {
    for (const { caughtUpAt } of this.#members) if (caughtUpAt < this.#openedAt) return false;
    return true;
  }

  get #hasZombies(): boolean {
    for (const { zombies } of this.#members) if (zombies > 0) return true;
    for (const { zombies } of this.#gone) if (zombies > 0) return true;
    return false;
  }

  #open(): void {
    const state = this.#state;
    if (state.name === 'open') return;
    this.#alarm.clear();
    const now = performance.now();
    this.#state = { name: 'open' };
    this.#openedAt = now;
    // Queues that are always busy get as much time as they lost.
    this.#clearAgainAt = now + (state.name === 'clearing' ? AFTER_FAILURE_MS : now - state.since);
    for (const member of this.#members) member.resume();
  }

  #reconsider(): void {
    for (const member of this.#members) if (member.quarantined > 0) member.reconsider();
  }
}
