import type { MissedPolicy, OverlapPolicy } from '../../../lib/index.js';

// What docs/recurring.md says becomes of schedules, in maps. It knows nothing of how occurrences are computed or stored.

/** What `schedule()` is told. All times in ms. */
export interface Definition {
  /** Distance of its times. A cron expression's are multiples of it, those of a grid count from `from` or the first call. */
  readonly stepMs: number;
  readonly cron: string | undefined;
  readonly from: number | undefined;
  readonly until: number | undefined;
  readonly limit: number | undefined;
  readonly jitterMs: number;
  readonly missed: MissedPolicy;
  readonly graceMs: number;
  readonly most: number;
  readonly overlap: OverlapPolicy;
  readonly attempts: number;
  readonly backoffMs: number;
  readonly payload: number;
}

interface Schedule {
  readonly id: string;
  definition: Definition;
  /** Where its grid begins. Of a grid that begins with a call it is NaN until an answer tells a time of it. */
  anchor: number;
  /** When that call was made. */
  calledAt: number;
  /** When a schedule of this id was last made that was not there. */
  readonly createdAt: number;
  /** All its times until then were made or counted as missed. */
  reached: number;
  made: number;
  missed: number;
  overlapped: number;
  paused: boolean;
  /** Times that were ahead when it changed, and had begun or were cancelled: they do not come back, and count once. */
  readonly gone: Set<number>;
  /** Times of those that it has made ahead, some of which may be past by now. */
  ahead: number[];
  /** The occurrence that began last, of those to which `overlap` applies. */
  lastJob: string | undefined;
  /** It may just have made some that are ahead: so many more than are known. */
  planned: boolean;
}

export interface Job {
  readonly id: string;
  readonly schedule: string;
  readonly at: number;
  readonly next: number | undefined;
  readonly definition: Definition;
  /** Triggered ones and those of a backfill are never missed. */
  readonly isExtra: boolean;
  readonly overlap: OverlapPolicy;
  state: 'waiting' | 'running' | 'dead';
  /** Where its due time lies, and where it is once that was seen. */
  due: { min: number; max: number; seen?: number };
  /** When its schedule said that it is due. */
  givenDue: number | undefined;
  /** Somebody made it due at another time than its schedule. */
  isMoved: boolean;
  /** Somebody said when it is due, and that was not seen yet. */
  isToldDue: boolean;
  attempts: number;
  /** A run of it ended in a retry or was put off. */
  hasBegun: boolean;
  isCancelled: boolean;
  /** Its schedule was removed since. */
  isLeft: boolean;
}

export interface Skipped {
  readonly schedule: string;
  readonly reason: 'missed' | 'overlap';
  readonly count: number;
  readonly first: number;
  readonly last: number;
}

/** Those that are due within it are stored ahead, and at least one. */
const AHEAD_MS = 60_000;
/** Occurrences are made so long before they are due, or longer. */
const AT_LEAST_AHEAD_MS = 30_000;
/** One that waits asks again after it. */
const ASK_AGAIN_MS = 1_000;

export class ScheduleModel {
  readonly schedules = new Map<string, Schedule>();
  readonly jobs = new Map<string, Job>();
  readonly told: Skipped[] = [];
  skipped = 0;
  completed = 0;
  queuePaused = false;
  publishingPaused = false;
  /** What happened, for the tally. */
  readonly events: string[] = [];
  /** Ids that a schedule made by itself, and that were not taken back: none is made twice. */
  readonly #made = new Set<string>();
  readonly #backfilled = new Set<string>();
  readonly #jitters = new Map<string, number>();
  now = 0;

  constructor(
    /** By so much a moment may be another one than the model thinks. */
    readonly driftMs: number,
  ) {}

  // --- Calls ----------------------------------------------------------------------------------------------------------------

  schedule(id: string, definition: Definition): 'created' | 'replaced' | 'kept' {
    const there = this.schedules.get(id);
    if (!there) {
      const created: Schedule = {
        id,
        definition,
        anchor: definition.from ?? NaN,
        calledAt: this.now,
        createdAt: this.now,
        ahead: [],
        gone: new Set(),
        reached: this.now,
        made: 0,
        missed: 0,
        overlapped: 0,
        paused: false,
        lastJob: undefined,
        planned: true,
      };
      this.schedules.set(id, created);
      return 'created';
    }
    if (JSON.stringify(there.definition) === JSON.stringify(definition)) return 'kept';
    // What is due by then, and what an outage has missed, still belongs to what it was.
    if (!there.paused) this.#catchUp(there);
    this.#takeBackAhead(there);
    const before = there.definition;
    const isSameGrid = !before.cron && before.stepMs === definition.stepMs && before.from === definition.from;
    if (!isSameGrid) [there.anchor, there.calledAt] = [definition.from ?? NaN, this.now];
    there.definition = definition;
    if (!there.paused) there.reached = this.now;
    there.planned = !there.paused;
    return 'replaced';
  }

  unschedule(id: string, running: boolean): number | undefined {
    const schedule = this.schedules.get(id);
    if (!schedule) return undefined;
    const waiting = this.#ofSchedule(id).filter(notBegun);
    this.#giveUp(schedule, waiting);
    this.schedules.delete(id);
    for (const job of waiting) this.#takeBack(job);
    for (const job of running ? this.#ofSchedule(id) : []) {
      if (job.state === 'running') job.isCancelled = true;
      if (job.state === 'waiting') this.cancel(job.id);
    }
    for (const job of this.#ofSchedule(id)) job.isLeft = true;
    for (const set of [this.#made, this.#backfilled])
      for (const made of set) if (made.startsWith(`{${id}}`)) set.delete(made);
    return waiting.length;
  }

  pause(id: string): 'paused' | 'kept' | 'notFound' {
    const schedule = this.schedules.get(id);
    if (!schedule) return 'notFound';
    // Who repeats it does not take back what was triggered since.
    if (schedule.paused) return 'kept';
    this.#giveUp(schedule, this.#ofSchedule(id).filter(notBegun));
    this.#takeBackAhead(schedule);
    for (const job of this.#ofSchedule(id).filter(notBegun)) this.#takeBack(job);
    schedule.paused = true;
    return 'paused';
  }

  resume(id: string): 'resumed' | 'kept' | 'notFound' {
    const schedule = this.schedules.get(id);
    if (!schedule) return 'notFound';
    if (!schedule.paused) return 'kept';
    schedule.paused = false;
    schedule.reached = this.now;
    schedule.planned = true;
    return 'resumed';
  }

  /** @param id that the library gave it */
  trigger(schedule: string, id: string, at: number): void {
    if (this.jobs.has(id)) throw new Error(`${id} was triggered, and is there already`);
    const { definition } = this.schedules.get(schedule)!;
    this.#create(schedule, id, at, definition, { isExtra: true, overlap: definition.overlap, next: undefined });
  }

  /** Is a job there that a removed schedule of this id has left, of this moment? */
  hasLeft(id: string): boolean {
    return this.#ofSchedule(id).some(({ isLeft, at }) => isLeft && at >= this.now && at <= this.now + 100);
  }

  /** @returns how many times the stretch has */
  backfill(id: string, from: number, to: number): number | undefined {
    const schedule = this.schedules.get(id);
    if (!schedule) return undefined;
    // What an outage has missed is first dealt with as `missed` says; what that makes runs once.
    if (!schedule.paused) this.#catchUp(schedule);
    schedule.planned = !schedule.paused;
    const times = between(schedule, from - 1, Math.min(to, this.now));
    for (const at of times) {
      const job = occurrenceIdOf(id, at);
      if (!isCall(schedule, at)) this.#backfilled.add(job);
      if (this.jobs.has(job)) this.events.push('backfill: was there');
      else this.#create(id, job, at, schedule.definition, { isExtra: true, overlap: 'allow', next: undefined });
    }
    return times.length;
  }

  /** A process looks whether schedules need more occurrences. */
  tick(): void {
    if (this.queuePaused || this.publishingPaused) return;
    for (const schedule of this.schedules.values()) {
      if (schedule.paused) continue;
      this.#catchUp(schedule);
      schedule.planned = true;
    }
  }

  /** @returns ids of what begins */
  pull(max: number): string[] {
    const begun: string[] = [];
    if (this.queuePaused) return begun;
    for (const job of this.due) {
      if (begun.length === max) break;
      const becomes = this.#begin(job);
      if (becomes === 'runs') {
        job.state = 'running';
        begun.push(job.id);
      } else if (becomes === 'waits') {
        this.events.push('occurrence waits');
        job.due = this.#about(this.now + ASK_AGAIN_MS);
      } else {
        this.jobs.delete(job.id);
        this.#skip(job.schedule, becomes, [job.at]);
      }
    }
    return begun;
  }

  settle(id: string, how: 'complete' | 'fail' | 'discard' | 'snooze'): void {
    const job = this.jobs.get(id)!;
    // Who completes one that was cancelled meanwhile has done its work all the same.
    if (how === 'complete') this.completed++;
    if (how === 'complete' || job.isCancelled) {
      this.jobs.delete(id);
      return;
    }
    if (how === 'fail') job.attempts++;
    if (how === 'discard' || (how === 'fail' && job.attempts >= job.definition.attempts)) {
      job.state = 'dead';
      return;
    }
    job.state = 'waiting';
    job.hasBegun = true;
    job.due = this.#about(this.now + job.definition.backoffMs);
  }

  /** Of a job that waits. */
  cancel(id: string): void {
    this.jobs.delete(id);
  }

  /** Of a job that waits. */
  runNow(id: string): void {
    if (this.jobs.get(id)!.due.seen! > this.now) this.reschedule(id, this.now);
  }

  /** Of a job that waits. @param due now or later */
  reschedule(id: string, due: number): void {
    const job = this.jobs.get(id)!;
    job.due = this.#about(due);
    job.isToldDue = true;
  }

  // --- What there is --------------------------------------------------------------------------------------------------------

  get due(): Job[] {
    return this.waiting
      .filter(({ due }) => due.seen! <= this.now)
      .sort((a, b) => a.due.seen! - b.due.seen! || (a.id < b.id ? -1 : 1));
  }

  get waiting(): Job[] {
    return this.#inState('waiting');
  }

  get running(): Job[] {
    return this.#inState('running');
  }

  get dead(): Job[] {
    return this.#inState('dead');
  }

  /**
   * Its next time: not that of one that was cancelled, has begun, or was made due before its time. Undefined while it is paused or over.
   *
   * @param waiting when the jobs that wait are due
   */
  nextOf(schedule: Schedule, waiting: ReadonlyMap<string, number>): number | undefined {
    if (schedule.paused) return undefined;
    const next = schedule.ahead.find((at) => {
      const id = occurrenceIdOf(schedule.id, at);
      const job = this.jobs.get(id);
      return at > this.now && job?.state === 'waiting' && !job.hasBegun && (waiting.get(id) ?? at) >= at;
    });
    if (next !== undefined) return next;
    const { definition, reached, gone } = schedule;
    const missed = notGone(schedule, reached, this.now).length;
    if (schedule.made + missed >= (definition.limit ?? Infinity)) return undefined;
    const behind = Math.max(reached, this.now);
    const far = Math.max(behind, definition.from ?? behind) + (gone.size + 2) * definition.stepMs;
    return notGone(schedule, behind, far)[0];
  }

  // --- What the model learns ------------------------------------------------------------------------------------------------

  /** @param next a time that it tells */
  learnGrid(id: string, next: number | undefined): void {
    const schedule = this.schedules.get(id)!;
    const { definition, calledAt, anchor } = schedule;
    if (definition.cron || !Number.isNaN(anchor)) return;
    const { stepMs } = definition;
    if (next !== undefined) schedule.anchor = next - Math.max(1, Math.round((next - calledAt) / stepMs)) * stepMs;
    else if (this.driftMs === 0) schedule.anchor = calledAt;
    if (Math.abs(schedule.anchor - calledAt) > this.driftMs) {
      throw new Error(`the grid of ${id} begins ${schedule.anchor - calledAt} ms after the call`);
    }
    // The moment of the call is no time of it.
    schedule.reached = Math.max(schedule.reached, schedule.anchor || -Infinity);
  }

  /**
   * How many occurrences a schedule has made ahead is its own matter, within bounds: all within half a minute, none that is later than
   * a minute but the first one behind.
   *
   * @param made so many there are by what it tells
   */
  learnAhead(schedule: Schedule, made: number): void {
    const mayMake = schedule.planned;
    schedule.planned = false;
    const { gone } = schedule;
    const wanted = made - schedule.made;
    if (wanted !== 0 && !mayMake) throw new Error(`${schedule.id} made ${wanted} more, without being asked`);
    if (wanted < 0) throw new Error(`${schedule.id} made ${-wanted} fewer than its times say`);
    while (schedule.made < made) {
      const at = this.#next(schedule, schedule.reached);
      if (at === undefined) throw new Error(`${schedule.id} made ${made - schedule.made} more than it has times`);
      if (schedule.reached > this.now + AHEAD_MS) throw new Error(`${schedule.id} made ${at} too far ahead`);
      this.#make(schedule, at);
    }
    // What is gone counts already, so nothing tells that it was passed.
    const isPassed = (at: number) => at <= this.now + AHEAD_MS || schedule.reached <= this.now + AT_LEAST_AHEAD_MS;
    for (let at; mayMake && (at = this.#next(schedule, schedule.reached)) !== undefined;) {
      if (!gone.has(at) || !isPassed(at)) break;
      this.#make(schedule, at);
    }
    const next = mayMake ? this.#next(schedule, schedule.reached) : undefined;
    if (next !== undefined && Math.min(next - AT_LEAST_AHEAD_MS, schedule.reached) <= this.now) {
      throw new Error(`${schedule.id} did not make ${next}, though it is ${this.now}`);
    }
  }

  /** @returns what is wrong with this due time, or undefined */
  learnDue(job: Job, due: number): string | undefined {
    const { min, max } = job.due;
    if (due < min || due > max) return `${job.id} is due at ${due}, not in ${min} .. ${max}`;
    job.due.seen = due;
    // Who gives it its own time back has put nothing off.
    if (job.isToldDue) job.isMoved = due !== job.givenDue;
    job.isToldDue = false;
    if (job.givenDue !== undefined) return undefined;
    job.givenDue = due;
    if (job.isExtra) return undefined;
    // Of one occurrence it is always the same, and before the next one.
    const { jitterMs, stepMs } = job.definition;
    const key = `${job.id} ${Math.min(jitterMs, stepMs)}`;
    const before = this.#jitters.get(key) ?? due - job.at;
    this.#jitters.set(key, due - job.at);
    return before === due - job.at ? undefined : `${job.id} has a jitter of ${due - job.at}, and had ${before}`;
  }

  // --- Occurrences ----------------------------------------------------------------------------------------------------------

  /** What has become due and was not made yet: the policy says which of it runs. */
  #catchUp(schedule: Schedule): void {
    const { definition } = schedule;
    const { missed, most } = definition;
    const left = Math.max(0, (definition.limit ?? Infinity) - schedule.made);
    const over = notGone(schedule, schedule.reached, this.now).slice(0, left);
    const isMissed = (at: number, n: number) => {
      // A newer time takes its place, unless that is gone.
      if (missed === 'once') return n < over.length - 1;
      if (missed === 'all') return n < over.length - most;
      const isLast = n + 1 === left;
      return at + this.#graceMs(schedule, at, isLast) < this.now;
    };
    const gone = over.filter(isMissed);
    for (const [n, at] of over.entries()) {
      if (!isMissed(at, n)) {
        this.#make(schedule, at);
        this.events.push(`made up for: ${missed}`);
      } else {
        schedule.made++;
        schedule.reached = at;
      }
    }
    if (gone.length > 0) this.#skip(schedule.id, 'missed', gone);
  }

  /** What has become due does not run any more: all of it is missed, whatever the policy says. */
  #giveUp(schedule: Schedule, waiting: readonly Job[]): void {
    const left = Math.max(0, (schedule.definition.limit ?? Infinity) - schedule.made);
    const over = schedule.paused ? [] : notGone(schedule, schedule.reached, this.now).slice(0, left);
    schedule.made += over.length;
    schedule.reached = over.at(-1) ?? schedule.reached;
    const due = waiting.filter(({ at, isExtra }) => isExtra || at <= this.now).map(({ at }) => at);
    const all = [...over, ...due].sort((a, b) => a - b);
    if (all.length > 0) this.#skip(schedule.id, 'missed', all);
  }

  #graceMs(schedule: Schedule, at: number, isLast: boolean): number {
    const next = isLast ? undefined : between(schedule, at, at + schedule.definition.stepMs)[0];
    return Math.min(schedule.definition.graceMs, next === undefined ? Infinity : next - at);
  }

  #next(schedule: Schedule, after: number): number | undefined {
    const { limit, stepMs, from } = schedule.definition;
    if (limit !== undefined && schedule.made >= limit) return undefined;
    return between(schedule, after, Math.max(after, from ?? after) + 2 * stepMs)[0];
  }

  #make(schedule: Schedule, at: number): void {
    const isGone = schedule.gone.has(at);
    if (!isGone) schedule.made++;
    schedule.reached = at;
    const next = this.#next(schedule, at);
    const id = occurrenceIdOf(schedule.id, at);
    if (this.#made.has(id)) throw new Error(`${id} is made twice`);
    this.#made.add(id);
    if (at > this.now) schedule.ahead.push(at);
    if (this.jobs.has(id) || isGone) return;
    const { definition } = schedule;
    this.#create(schedule.id, id, at, definition, { isExtra: false, overlap: definition.overlap, next });
  }

  #create(
    schedule: string,
    id: string,
    at: number,
    definition: Definition,
    { isExtra, overlap, next }: Pick<Job, 'isExtra' | 'overlap' | 'next'>,
  ): void {
    const { jitterMs, stepMs } = definition;
    // Before the next one.
    const due = { min: at, max: at + Math.max(0, Math.min(jitterMs, stepMs) - 1) };
    this.jobs.set(id, {
      id,
      schedule,
      at,
      next,
      definition,
      isExtra,
      overlap,
      state: 'waiting',
      due: isExtra ? this.#about(this.now) : due,
      givenDue: undefined,
      isMoved: false,
      isToldDue: false,
      attempts: 0,
      hasBegun: false,
      isCancelled: false,
      isLeft: false,
    });
  }

  /** As if it had not been made, which `limit` does not count either. What has begun, or was cancelled, counts. */
  #takeBackAhead(schedule: Schedule): void {
    for (const at of schedule.ahead.splice(0)) {
      if (at <= this.now) continue;
      const id = occurrenceIdOf(schedule.id, at);
      this.#made.delete(id);
      const job = this.jobs.get(id);
      if (job && notBegun(job) && !schedule.gone.has(at)) {
        schedule.made--;
        this.jobs.delete(id);
      } else schedule.gone.add(at);
    }
  }

  #about(ms: number): Job['due'] {
    return { min: ms - this.driftMs, max: ms + this.driftMs };
  }

  #takeBack(job: Job): void {
    this.jobs.delete(job.id);
    this.#made.delete(job.id);
  }

  #begin(job: Job): 'runs' | 'waits' | 'missed' | 'overlap' {
    const schedule = this.schedules.get(job.schedule);
    const { overlap } = job;
    // Of another life of its schedule: nothing of the new one holds it up.
    if (
      overlap !== 'allow' &&
      job.isLeft &&
      job.hasBegun &&
      schedule &&
      job.at < schedule.createdAt &&
      schedule.lastJob !== job.id
    )
      return 'runs';
    const isOver = job.next !== undefined && job.next <= this.now;
    const isFirst = schedule?.lastJob !== job.id;
    if (!job.isMoved && !job.hasBegun && this.#isMissed(job) && isFirst) return 'missed';
    if (overlap === 'allow') return 'runs';
    const before = schedule?.lastJob === undefined ? undefined : this.jobs.get(schedule.lastJob);
    if (before && before !== job && before.state !== 'dead') {
      return job.isMoved || (overlap === 'queue' && !isOver) ? 'waits' : 'overlap';
    }
    if (schedule) schedule.lastJob = job.id;
    return 'runs';
  }

  #isMissed(job: Job): boolean {
    const { isExtra, definition, next, at, due } = job;
    if (isExtra) return false;
    const { missed, graceMs } = definition;
    if (missed === 'once') return next !== undefined && next <= this.now && this.#hasLater(job);
    return missed === 'skip' && due.seen! + Math.min(graceMs, next === undefined ? Infinity : next - at) < this.now;
  }

  /** Is one there, or to be made, that takes the place of this one? Where its schedule is gone nothing tells. */
  #hasLater({ schedule: id, at, next, overlap }: Job): boolean {
    const schedule = this.schedules.get(id);
    if (!schedule || this.jobs.has(occurrenceIdOf(id, next!))) return true;
    const times = between(schedule, at, this.now).filter((time) => !isCall(schedule, time));
    const own = [...new Set([...times, ...this.#namedSince(id, at)])];
    if (own.some((time) => schedule.lastJob === occurrenceIdOf(id, time))) return true;
    const isAtLimit = schedule.made >= (schedule.definition.limit ?? Infinity);
    const makesMore = !schedule.paused && !isAtLimit;
    if (makesMore && notGone(schedule, Math.max(at, schedule.reached), this.now).length > 0) return true;
    const isNamed = (occurrence: string) => this.#made.has(occurrence) || this.#backfilled.has(occurrence);
    return own
      .map((time) => occurrenceIdOf(id, time))
      .some((occurrence) => this.jobs.has(occurrence) || (overlap === 'allow' && isNamed(occurrence)));
  }

  /** Times that a schedule has made by itself or by a backfill: of the times that it had when it did so, whatever they are now. */
  #namedSince(id: string, after: number): number[] {
    const begin = `{${id}}`;
    const named = [...this.#made, ...this.#backfilled].filter((occurrence) => occurrence.startsWith(begin));
    const times = named.map((occurrence) => parseInt(occurrence.slice(begin.length), 36));
    return times.filter((at) => at > after && at <= this.now);
  }

  #skip(id: string, reason: 'missed' | 'overlap', times: readonly number[]): void {
    const schedule = this.schedules.get(id);
    if (schedule && reason === 'missed') schedule.missed += times.length;
    if (schedule && reason === 'overlap') schedule.overlapped += times.length;
    this.skipped += times.length;
    this.told.push({ schedule: id, reason, count: times.length, first: times[0]!, last: times.at(-1)! });
    this.events.push(times.length > 1 ? `skipped many: ${reason}` : `skipped: ${reason}`);
  }

  #ofSchedule(id: string): Job[] {
    return [...this.jobs.values()].filter(({ schedule }) => schedule === id);
  }

  #inState(state: Job['state']): Job[] {
    return [...this.jobs.values()].filter((job) => job.state === state);
  }
}

const notBegun = (job: Job) => job.state === 'waiting' && !job.hasBegun;

/** The times of a schedule in (after, end], but for those that were ahead when it changed, and are over. */
function notGone(schedule: Schedule, after: number, end: number): number[] {
  return between(schedule, after, end).filter((at) => !schedule.gone.has(at));
}

/** The times of a schedule in (after, end]. */
function between({ definition, anchor }: Schedule, after: number, end: number): number[] {
  const { stepMs, cron, from, until } = definition;
  const origin = cron ? 0 : anchor;
  const last = Math.min(end, until ?? Infinity);
  const found: number[] = [];
  const begin = Math.max(after + 1, from ?? -Infinity, cron ? -Infinity : anchor);
  for (let at = origin + Math.ceil((begin - origin) / stepMs) * stepMs; at <= last; at += stepMs) found.push(at);
  return found;
}

/** A grid counts from a call, which is no time of it: only a backfill makes one then. */
function isCall({ definition: { cron, from }, anchor }: Schedule, at: number): boolean {
  return !cron && from === undefined && at === anchor;
}

export function occurrenceIdOf(schedule: string, at: number): string {
  return `{${schedule}}${at.toString(36)}`;
}
