import { MAX_BYTES } from '../redis/enqueue.protocol.js';
import { setImmediate } from '../time-and-randomness.js';
import type { Stretch } from './given-up.js';
import type { OccurrenceTimes } from './occurrence-times.js';
import { jitterOf } from './occurrence-times.js';
import type { ScheduleDefinition, ScheduleRecord, ScheduleState } from './schedule-record.js';

/** Occurrences are made so far ahead: nobody has to be there at the very moment. */
export const AHEAD_MS = 60_000;
/** A schedule needs more occurrences when less than this is left. */
export const SLACK_MS = 30_000;
/** The most of one tick. */
export const MOST_OCCURRENCES = 100;
/** What an occurrence adds to the payload that it repeats, about. */
const HEADER_BYTES = 300;
/** Nominal times that one tick looks at, at most: a backlog takes several. Those of the past that are given up do not count. */
const MOST_LOOKED_AT = 1_000;
/** After so many of them others have their turn. */
const AT_A_STRETCH = 20;
/** When a schedule needs nothing any more: it is paused, or over. */
export const NEVER = 8_640_000_000_000_000;

export interface PlannedOccurrence {
  /** Nominal time. */
  readonly at: number;
  readonly due: number;
  readonly next: number | undefined;
  readonly nextDue: number | undefined;
}

export interface TickPlan {
  readonly state: ScheduleState;
  readonly occurrences: readonly PlannedOccurrence[];
  /** Occurrences that the schedule's policy gives up, because their time is over. */
  readonly missed: Stretch | undefined;
  /** When the schedule needs more, server ms. */
  readonly tick: number;
}

/**
 * Which occurrences follow the last one that was made. It starts there, never from now or from a run: so none is left out, whoever
 * made the last one and however long ago. It reads nothing else, and gives way to others every few milliseconds.
 *
 * @param now server time
 * @param most occurrences of one write
 */
export async function planTick(
  id: string,
  record: ScheduleRecord,
  times: OccurrenceTimes,
  now: number,
  most = mostAtOnce(record),
): Promise<TickPlan> {
  if (record.state.paused) return { state: record.state, occurrences: [], missed: undefined, tick: NEVER };
  return new Planning(id, record, times, now, most).run();
}

/** How many occurrences one write takes: each has the whole payload, and Redis does nothing else meanwhile. */
export function mostAtOnce({ content }: ScheduleRecord): number {
  return Math.max(1, Math.min(MOST_OCCURRENCES, Math.floor(MAX_BYTES / (content.length + HEADER_BYTES))));
}

class Planning {
  readonly #definition: ScheduleDefinition;
  readonly #occurrences: PlannedOccurrence[] = [];
  /** Times that count as made. */
  readonly #times: number[] = [];
  readonly #over: ReadonlySet<number>;
  #last: number;
  #made: number;
  #missed: { count: number; first: number; last: number } | undefined;
  #tick = NEVER;

  constructor(
    private readonly id: string,
    private readonly record: ScheduleRecord,
    private readonly times: OccurrenceTimes,
    private readonly now: number,
    private readonly most: number,
  ) {
    this.#definition = record.definition;
    this.#over = new Set(record.state.over);
    this.#last = record.state.last;
    this.#made = record.state.made;
  }

  async run(): Promise<TickPlan> {
    const { now } = this;
    await this.#jump();
    let at = this.#next(this.#last);
    for (let looked = 0; at !== undefined; looked++) {
      if (at > now + AHEAD_MS && this.#last > now + SLACK_MS) break;
      if (looked >= MOST_LOOKED_AT || this.#times.length >= this.most) {
        this.#tick = now;
        break;
      }
      if (looked % AT_A_STRETCH === AT_A_STRETCH - 1) await turn();
      const isOver = this.#over.has(at);
      if (!isOver) this.#made++;
      const next = this.#next(at);
      if (!isOver && this.#isMissed(at, next)) this.#miss(at, 1, at);
      else {
        this.#times.push(at);
        if (!isOver) this.#occurrences.push({ at, due: this.#dueOf(at), next, nextDue: next && this.#dueOf(next) });
      }
      this.#last = at;
      at = next;
    }
    if (at !== undefined && this.#tick === NEVER) this.#tick = this.#last - SLACK_MS;
    return {
      state: this.#state(),
      occurrences: this.#occurrences,
      missed: this.#missed,
      tick: this.#tick,
    };
  }

  #next(after: number): number | undefined {
    const { from, until, limit } = this.#definition;
    if (limit !== null && this.#made >= limit) return undefined;
    const next = this.times.next(from === null ? after : Math.max(after, from - 1));
    return next === undefined || (until !== null && next > until) ? undefined : next;
  }

  /** Always before the next nominal time, or two of them would change places. */
  #dueOf(at: number): number {
    const { jitterMs } = this.#definition;
    if (jitterMs === 0) return at;
    const gap = (this.times.next(at) ?? Infinity) - at;
    return at + jitterOf(this.id, at, Math.min(jitterMs, gap));
  }

  /** Counts what the policy gives up, without a look at each. The rest it leaves to `#isMissed()`. */
  async #jump(): Promise<void> {
    const { missed, most, until, limit, jitterMs, graceMs } = this.#definition;
    const end = Math.min(this.now, until ?? Infinity);
    if (this.#last >= end) return;
    const left = limit === null ? Infinity : limit - this.#made;
    if (missed === 'all') {
      const { count } = await this.#count(end, left);
      if (count > most) await this.#giveUp(end, count - most);
      return;
    }
    // Those before one for which the policy decides so, whatever part of their jitter they have: it ends before the next time.
    const sure = missed === 'once' ? await this.#latestThatRuns(end) : this.now - Math.min(jitterMs, graceMs);
    const newest = sure === undefined ? undefined : await this.#latest(Math.min(sure - 1, end));
    if (newest !== undefined) await this.#giveUp(newest - 1, left - 1);
  }

  async #latest(until: number): Promise<number | undefined> {
    await turn();
    return this.times.latest(this.#after, until);
  }

  /** One that is over gives way to the one before it, which is the latest that is still there. */
  async #latestThatRuns(until: number): Promise<number | undefined> {
    let at = await this.#latest(until);
    while (at !== undefined && this.#over.has(at)) at = await this.#latest(at - 1);
    return at;
  }

  /** Later than that is what was not made yet. */
  get #after(): number {
    const { from } = this.#definition;
    return from === null ? this.#last : Math.max(this.#last, from - 1);
  }

  async #giveUp(until: number, most: number): Promise<void> {
    const { count, reached } = await this.#count(until, most);
    if (count === 0) return;
    let first = this.times.next(this.#after)!;
    while (this.#over.has(first)) first = this.times.next(first)!;
    let last = (await this.#latest(reached))!;
    while (this.#over.has(last)) last = (await this.#latest(last - 1))!;
    this.#miss(first, count, last);
    this.#made += count;
    this.#last = last;
  }

  /** Without those that are over, which count already. */
  async #count(until: number, most: number): Promise<{ count: number; reached: number }> {
    let counted = { count: 0, reached: this.#after };
    for (const at of this.#overWithin(until)) {
      counted = await this.#countOn(counted, at - 1, most);
      if (counted.count >= most) return counted;
      counted.reached = at;
    }
    return this.#countOn(counted, until, most);
  }

  async #countOn({ count, reached }: { count: number; reached: number }, until: number, most: number) {
    for (;;) {
      await turn();
      const part = this.times.count(reached, until, most - count);
      count += part.count;
      reached = part.until;
      if (part.isOver) return { count, reached };
    }
  }

  /** Times of the schedule as it is now, the earliest first. */
  #overWithin(until: number): number[] {
    const isOwn = (at: number) => at > this.#after && at <= until && this.times.next(at - 1) === at;
    return [...this.#over].filter(isOwn).sort((a, b) => a - b);
  }

  #isMissed(at: number, next: number | undefined): boolean {
    const { missed } = this.#definition;
    if (missed === 'once') {
      let instead = next;
      while (instead !== undefined && this.#over.has(instead)) instead = this.#next(instead);
      return instead !== undefined && this.#dueOf(instead) <= this.now;
    }
    return missed === 'skip' && this.#dueOf(at) + this.#graceMs(next === undefined ? Infinity : next - at) < this.now;
  }

  #graceMs(intervalMs: number): number {
    return Math.min(this.#definition.graceMs, intervalMs);
  }

  #miss(first: number, count: number, last: number): void {
    this.#missed ??= { count: 0, first, last };
    this.#missed.count += count;
    this.#missed.last = last;
  }

  #state(): ScheduleState {
    const { state } = this.record;
    // Also those that it has made room for: a change begins anew from now.
    const over = [...this.#over].filter((at) => at >= Math.min(this.#last, this.now));
    return {
      ...state,
      revision: state.revision + 1,
      last: this.#last,
      made: this.#made,
      recent: remembered(state.recent, this.#times),
      over: over.length > 0 ? over : undefined,
    };
  }
}

const turn = () => new Promise<void>((resolve) => void setImmediate(resolve));

/**
 * The latest ones: those that are ahead are always among them, however many of the past were added. Also those of long ago, which costs a
 * kilobyte and a half: somebody may have put one off to a time at which a pause would not find it otherwise.
 */
export function remembered(recent: readonly number[], added: readonly number[]): number[] {
  return [...new Set([...recent, ...added])].sort((a, b) => a - b).slice(-MOST_OCCURRENCES);
}
