import type { Job, Model } from './model.js';

/** As of `inspector.setLimits()`; times are hours. */
export interface LimitsData {
  count?: number | undefined;
  rate?: Rate | undefined;
  groupCount?: number | undefined;
  groupRate?: Rate | undefined;
  /** Only with a `groupCount` of 1. */
  blocks?: boolean | undefined;
}

interface Rate {
  max: number;
  per: number;
}

interface Start {
  readonly at: number;
  readonly group: string | undefined;
  /** How often limits had been set. */
  readonly era: number;
}

/** Of the default. */
const STEP_MS = 60_000;

/**
 * What limits, groups and priorities let start. Which group has its turn is not predicted: the claim is looked at, and must keep every
 * limit, take the jobs of each group in their order, and leave nothing for which there was room.
 */
export class Turns {
  #limits: LimitsData = {};
  #era = 0;
  #starts: Start[] = [];
  /**
   * Groups that have left a start to a job in quarantine, and when. A second later they are looked at again, whatever has become of it: where it
   * was put off, or is gone, their jobs wait until then.
   */
  readonly #leaving = new Map<string, number>();

  constructor(private readonly model: Model) {}

  set(limits: LimitsData): void {
    this.#limits = limits;
    this.#era++;
    if (!this.blocks) for (const job of this.model.jobs.values()) job.keepsPlace = false;
  }

  get blocks(): boolean {
    return this.#limits.blocks === true && this.#limits.groupCount === 1;
  }

  /** True or false where the queue is at a limit of its own or is not; undefined where that depends on windows from before limits were set. */
  get isLimited(): boolean | undefined {
    if (this.#roomOfQueue(this.#era) <= 0) return true;
    return this.#roomOfQueue(0) > 0 ? false : undefined;
  }

  /** Has the rate of its group room for this job? Undefined where that depends on windows from before limits were set. */
  hasRate({ version: { group } }: Job): boolean | undefined {
    if (group === undefined) return true;
    const { groupRate } = this.#limits;
    if (this.#roomByRate(groupRate, this.#era, group) <= 0) return false;
    return this.#roomByRate(groupRate, 0, group) > 0 ? true : undefined;
  }

  /**
   * What is due and may start, one at a time.
   *
   * @param lost jobs that are taken back before: their runs leave room in the queue, and also in their groups when something follows them,
   *   which is then among what may start
   */
  claimable(lost: readonly Job[]): Job[] {
    if (this.#roomOfQueue(0, lost.length) - this.#reserved(this.#era) <= 0) return [];
    const ended = lost.filter(({ next }) => next !== undefined);
    const follows = ended.filter(({ next }) => next !== 'cancelled' && next!.due <= this.model.now);
    return [...this.model.due, ...follows].filter((job) => this.#hasRoom(job, ended));
  }

  #hasRoom(job: Job, ended: readonly Job[]): boolean {
    const { version, next } = job;
    const { group } = next && next !== 'cancelled' ? next : version;
    if (group === undefined) return true;
    if (this.#leaving.get(group) === this.model.now) return false;
    if (this.#roomByRate(this.#limits.groupRate, 0, group) - this.#reserved(this.#era, group) <= 0) return false;
    const { groupCount = Infinity } = this.#limits;
    const held = this.#held(group) - ended.filter(({ version: { group: its } }) => its === group).length;
    return held < groupCount || this.#goesOn(job, ended);
  }

  /** A job that keeps the place of its group has it for itself once all others that had started before there was one place have ended. */
  #goesOn({ version: { group }, keepsPlace }: Job, ended: readonly Job[] = []): boolean {
    if (!keepsPlace || this.#limits.groupCount !== 1) return false;
    const hasStarted = (job: Job) => (job.state === 'running' || job.state === 'quarantined') && !ended.includes(job);
    return ![...this.model.jobs.values()].some((job) => job.version.group === group && hasStarted(job));
  }

  /**
   * A claim of which something ends at once instead of starting is followed by another one: it leaves room in the limits. Of what
   * runs it is seen which claim took it; of the rest it is looked for.
   *
   * @param taken by all claims of one pull
   * @param ends what does not start is settled before the next claim
   * @returns what one claim of `want` jobs may have taken first; all, if it was the last one, or where nothing fits
   */
  oneClaim(taken: Job[], want: number, ends: (job: Job) => boolean, tokenOf: (job: Job) => number | undefined): Job[] {
    if (taken.length <= want && (!taken.some(ends) || this.#problem(taken, want) === undefined)) return taken;
    const token = Math.min(...taken.map((job) => tokenOf(job) ?? Infinity));
    const first = taken.filter((job) => tokenOf(job) === token);
    const isFull = (jobs: readonly Job[]) =>
      jobs.some(ends) && jobs.every((job) => job.losses === 0 && (ends(job) || first.includes(job)));
    const isWhole = (jobs: readonly Job[]) => {
      const runs = jobs.filter((job) => first.includes(job)).length;
      return runs === 0 || runs === first.length;
    };
    const fits = (jobs: readonly Job[]) => isFull(jobs) && isWhole(jobs) && this.#problem(jobs, want) === undefined;
    for (let size = Math.min(want, taken.length); size > 0; size--) {
      const found = choices(taken, size).find(fits);
      if (found) return found;
    }
    return taken;
  }

  #problem(taken: readonly Job[], want: number): unknown {
    try {
      return this.check(taken, want);
    } catch (error) {
      return error;
    }
  }

  /** @param taken by one claim of at most `want` jobs, which the model has not started yet */
  check(taken: readonly Job[], want: number): void {
    const starting = taken.filter(({ losses }) => losses === 0);
    must(taken.length <= want, `${taken.length} jobs were claimed, and ${want} were wanted`);
    const room = Math.max(0, this.#roomOfQueue(this.#era) - this.#reserved(0));
    must(starting.length <= room, `the queue started ${starting.length} jobs and had room for ${room}`);
    for (const group of new Set(taken.map(({ version }) => version.group))) this.#checkGroup(group, taken);
    if (taken.length >= want) return;
    const left = this.#leftOver(taken);
    const names = taken.map(({ id }) => id).join(', ');
    must(left.length === 0, `${left.join(', ')} may start and did not, of ${want} wanted, beside ${names || 'none'}`);
  }

  /** A claim has looked at what is due. */
  looked(): void {
    const { due, now } = this.model;
    for (const { version } of due)
      if (version.group !== undefined && this.#reserved(0, version.group) > 0) this.#leaving.set(version.group, now);
  }

  /** The same of a claim from the quarantine. */
  started(jobs: readonly Job[], fromQuarantine: boolean): void {
    const { now } = this.model;
    const { rate, groupRate } = this.#limits;
    if (fromQuarantine) must(jobs.length <= this.#roomOfQueue(this.#era), 'the queue had no room for the quarantine');
    for (const { id, version } of jobs) {
      const { group } = version;
      if (fromQuarantine && group !== undefined)
        must(
          this.#roomByRate(groupRate, this.#era, group) > 0,
          `${id} left the quarantine beyond the rate of ${group}`,
        );
      if (rate || groupRate) this.#starts.push({ at: now, group, era: this.#era });
    }
  }

  #checkGroup(group: string | undefined, taken: readonly Job[]): void {
    const of = (job: Job) => job.version.group === group;
    const mine = taken.filter(of);
    const others = this.model.due.filter((job) => of(job) && !taken.includes(job));
    for (const job of mine) {
      if (job.keepsPlace) {
        must(
          this.#goesOn(job) && mine.length === 1,
          `${job.id} was claimed beside others that have places of group ${group}`,
        );
        const before = others.find(({ keepsPlace, due }) => keepsPlace && due < job.due);
        must(!before, `${job.id}, which keeps the place of group ${group}, was claimed before ${before?.id}`);
        continue;
      }
      const sooner = others.find((other) => this.#order(other) < this.#order(job));
      must(!sooner, `${job.id} of group ${group} was claimed before ${sooner?.id}`);
    }
    if (group === undefined) return;
    const { groupCount = Infinity, groupRate } = this.#limits;
    const places = mine.filter(({ keepsPlace }) => !keepsPlace).length;
    must(places === 0 || this.#held(group) + places <= groupCount, `group ${group} has more than ${groupCount}`);
    const booked = mine.filter(({ losses }) => losses === 0).length;
    must(
      booked === 0 || booked <= this.#roomByRate(groupRate, this.#era, group) - this.#reserved(0, group),
      `group ${group} started more than its rate`,
    );
  }

  /** Due jobs for which there is room, after those that were taken. */
  #leftOver(taken: readonly Job[]): string[] {
    const { groupCount = Infinity, groupRate, count = Infinity, rate } = this.#limits;
    // One that goes to the quarantine instead has used its part of the claim.
    const reserved = this.#reserved(this.#era);
    if (this.model.running.length + taken.length + reserved >= count) return [];
    if (this.#roomByRate(rate, 0) - taken.length - reserved <= 0) return [];
    const left = this.model.due.filter((job) => !taken.includes(job));
    return left
      .filter((job) => {
        const { group } = job.version;
        if (group === undefined) return true;
        if (this.#leaving.get(group) === this.model.now) return false;
        const mine = taken.filter(({ version }) => version.group === group);
        if (this.#roomByRate(groupRate, 0, group) - mine.length - this.#reserved(this.#era, group) <= 0) return false;
        const held = this.#held(group) + mine.filter(({ keepsPlace }) => !keepsPlace).length;
        return held < groupCount || (mine.length === 0 && this.#goesOn(job));
      })
      .map(({ id }) => id);
  }

  /**
   * Due jobs leave one start to a job that has waited for long in quarantine and may start.
   *
   * @param era as of `#roomByRate`
   * @param group undefined for the queue
   */
  #reserved(era: number, group?: string): number {
    const waits = this.model.quarantined.filter(({ quarantinedAt = Infinity }) => quarantinedAt < this.model.now);
    const { groupRate } = this.#limits;
    if (group !== undefined) return waits.some(({ version }) => version.group === group) ? 1 : 0;
    const may = ({ version }: Job) =>
      version.group === undefined || this.#roomByRate(groupRate, era, version.group) > 0;
    return waits.some(may) ? 1 : 0;
  }

  #order(job: Job): number {
    return this.model.timeOf(job) - job.version.priority * STEP_MS;
  }

  /** Jobs that have a place of their group: they run, are in quarantine, or block it until their next attempt. */
  #held(group: string): number {
    const has = ({ state, version, keepsPlace }: Job) =>
      version.group === group && (state === 'running' || state === 'quarantined' || keepsPlace === true);
    return [...this.model.jobs.values()].filter(has).length;
  }

  #roomOfQueue(era: number, lost = 0): number {
    const { count = Infinity, rate } = this.#limits;
    return Math.min(count - this.model.running.length + lost, this.#roomByRate(rate, era));
  }

  /** @param era from when on starts count: those from before the limits were set may have been forgotten */
  #roomByRate(rate: Rate | undefined, era: number, group?: string): number {
    if (!rate) return Infinity;
    const counts = (start: Start) =>
      start.era >= era && start.at + rate.per > this.model.now && (group === undefined || start.group === group);
    return rate.max - this.#starts.filter(counts).length;
  }
}

/** Every way to take so many of them. */
function choices<T>(all: readonly T[], n: number): T[][] {
  if (n === 0) return [[]];
  return all.flatMap((one, at) => choices(all.slice(at + 1), n - 1).map((others) => [one, ...others]));
}

function must(holds: boolean, problem: string): void {
  if (!holds) throw new Error(`limits: ${problem}`);
}
