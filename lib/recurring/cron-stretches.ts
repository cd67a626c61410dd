import type { Cron as CronClass } from 'croner';
import { offsetAt } from '../job/wall-clock.js';

/** How many times a stretch has. */
export interface Counted {
  readonly count: number;
  /** They are those until then; epoch ms. */
  readonly until: number;
  /** False when there may be more, which another call counts. */
  readonly isOver: boolean;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const UNITS = [DAY, HOUR, MINUTE];
/** A call computes so many times, or a few more: some milliseconds. */
const MOST_COMPUTED = 40;

type Next = (after: number) => number | undefined;

/**
 * Counts the times of a cron expression without visiting each: on a day on which the clocks of the zone do not change, their number
 * follows from its first three parts. Where clocks change it looks at hours, minutes and, last, the times themselves.
 */
export class CronStretches {
  readonly #next: Next;
  readonly #timeZone: string;
  readonly #day: TimesOfDay;

  private constructor(next: Next, timeZone: string, day: TimesOfDay) {
    this.#next = next;
    this.#timeZone = timeZone;
    this.#day = day;
  }

  /** @returns undefined for a nickname such as `@hourly`: it has so few times that they are visited */
  static of(Cron: typeof CronClass, expression: string, timeZone: string, next: Next): CronStretches | undefined {
    const parts = expression.trim().split(/\s+/);
    if (parts.length < 5) return undefined;
    const [second, minute, hour] = (parts.length === 5 ? ['0', ...parts] : parts) as [string, string, string];
    const day = new TimesOfDay(
      valuesOf(Cron, `${second} * * * * *`, SECOND, MINUTE),
      valuesOf(Cron, `0 ${minute} * * * *`, MINUTE, HOUR),
      valuesOf(Cron, `0 0 ${hour} * * *`, HOUR, DAY),
    );
    return new CronStretches(next, timeZone, day);
  }

  /** Of the times in (after, until] those that one call gets to, at most `most`. */
  count(after: number, until: number, most: number): Counted {
    let count = 0;
    let reached = after;
    for (let computed = 0; computed < MOST_COMPUTED; computed++) {
      const at = count < most ? this.#next(reached) : undefined;
      if (at === undefined || at > until) return { count, until: count < most ? until : reached, isOver: true };
      const unit = this.#unitFrom(at, until, most - count);
      count += unit?.count ?? 1;
      reached = unit?.until ?? at;
    }
    return { count, until: reached, isOver: false };
  }

  /** The rest of the day, hour or minute that begins with this time: the longest that has no change of clocks and no time too many. */
  #unitFrom(at: number, until: number, most: number): Omit<Counted, 'isOver'> | undefined {
    const offset = this.#offsetAt(at);
    const local = at + offset;
    for (const unit of UNITS) {
      const begin = Math.floor(local / unit) * unit - offset;
      const end = begin + unit;
      if (this.#offsetAt(begin) === offset && this.#offsetAt(end - 1) === offset) {
        const last = Math.min(end - 1, until);
        // The first one may have moved here from a time that the spring change leaves out: so it counts by itself.
        const count = this.#day.countUntil(last + offset) - this.#day.countUntil(local) + 1;
        if (count <= most) return { count, until: last };
      }
    }
    return undefined;
  }

  #offsetAt(ms: number): number {
    return this.#timeZone === 'UTC' ? 0 : offsetAt(ms, this.#timeZone);
  }
}

/** The times of each day on which an expression occurs, by the clock. */
class TimesOfDay {
  constructor(
    private readonly seconds: readonly number[],
    private readonly minutes: readonly number[],
    private readonly hours: readonly number[],
  ) {}

  /** How many are not later than this local time on its day. */
  countUntil(local: number): number {
    const { seconds, minutes, hours } = this;
    const hour = Math.floor(local / HOUR) % 24;
    const minute = Math.floor(local / MINUTE) % 60;
    const second = Math.floor(local / SECOND) % 60;
    let count = below(hours, hour) * minutes.length * seconds.length;
    if (!hours.includes(hour)) return count;
    count += below(minutes, minute) * seconds.length;
    return minutes.includes(minute) ? count + below(seconds, second + 1) : count;
  }
}

function below(values: readonly number[], end: number): number {
  return values.filter((value) => value < end).length;
}

/** Which seconds of a minute, minutes of an hour, or hours of a day an expression means; croner reads it. */
function valuesOf(Cron: typeof CronClass, expression: string, width: number, end: number): number[] {
  const cron = new Cron(expression, { timezone: 'UTC', paused: true, mode: '6-part' });
  const values: number[] = [];
  const begin = Date.UTC(2020, 0);
  const next = (after: number) => cron.nextRun(new Date(after))!.getTime();
  for (let at = next(begin - SECOND); at < begin + end; at = next(at)) values.push((at - begin) / width);
  return values;
}
