import { DelayQueueError, UnavailableError } from '../delay-queue.errors.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { backfillTimes, MOST_BACKFILLED, tooMany } from './backfill-times.js';
import { planOverdue, reportMissed } from './overdue.js';
import { changeBy, changeSchedule, extraOccurrences, unreadable } from './schedule-change.js';
import type { Change } from './schedule-write.js';
import type { Backfill, ScheduleRecord, ScheduleState } from './schedule-record.js';
import { mostAtOnce } from './tick-plan.js';
import type { TickPlan } from './tick-plan.js';

/** Of how many backfills that are not complete a record remembers how far they are: the latest ones. */
const MOST_REMEMBERED = 10;

/**
 * One call of `backfill()`. It goes part by part, and the record tells how far it is: so a repeat of one that failed goes on where that
 * stopped.
 */
export class Backfilling {
  /** What this call has stored, or knows to be stored; undefined before its first part. */
  #stored: Backfill | undefined;
  #part: Backfill;
  #isOver = false;
  #overdue: TickPlan | undefined;

  constructor(
    private readonly context: InstanceContext,
    private readonly queue: string,
    private readonly id: string,
    private readonly from: number,
    private readonly to: number,
  ) {
    this.#part = { from, to, reached: from - 1, made: 0 };
  }

  /**
   * @returns how many times the stretch has; undefined without such a schedule
   * @throws InvalidOptionError when they are more than 1,000
   */
  async run(): Promise<number | undefined> {
    const { context, queue, id } = this;
    try {
      while (!this.#isOver) {
        const done = await changeSchedule(context, 'backfillSchedule', queue, id, async (found, record, now) => {
          if (!found) return undefined;
          if (!record) throw unreadable(queue, id);
          this.#overdue = await planOverdue(id, record, now);
          return this.#overdue ? this.#catchUp(record, this.#overdue) : this.#next(record, found.tick, now);
        });
        if (!done) return undefined;
        if (this.#overdue) reportMissed(context, queue, id, this.#overdue);
        else this.#stored = this.#part;
      }
      return this.#part.made;
    } catch (error) {
      throw this.#stored ? halfWay(error, this.#stored.made) : error;
    }
  }

  /**
   * What was overdue is made first, as the schedule wants it. Of these times it is not made again, though they may have run by then: the same
   * write says so, for this process may die behind it, and the backfill be repeated.
   */
  #catchUp(record: ScheduleRecord, overdue: TickPlan): Change {
    const made = overdue.occurrences.map(({ at }) => at).filter((at) => at >= this.from && at <= this.to);
    if (made.length === 0) return changeBy(this.id, record, overdue);
    const { before } = this.#reached(overdue.state);
    const part = { ...before, caughtUp: [...(before.caughtUp ?? []), ...made].slice(-MOST_BACKFILLED) };
    return changeBy(this.id, record, { ...overdue, state: this.#noting(overdue.state, part) });
  }

  /** How far it is, by this call or by one that failed. */
  #reached({ backfills = [] }: ScheduleState): { noted: Backfill | undefined; before: Backfill } {
    const { from, to } = this;
    const noted = backfills.find((one) => this.#isThis(one));
    const before = this.#stored ?? noted ?? { from, to, reached: from - 1, made: 0 };
    return { noted, before: { ...before, caughtUp: noted?.caughtUp ?? before.caughtUp } };
  }

  /** What others have not made yet stays noted. @param part undefined once it is complete */
  #noting(state: ScheduleState, part: Backfill | undefined): ScheduleState {
    const others = (state.backfills ?? []).filter((one) => !this.#isThis(one));
    const left = part ? [...others, part].slice(-MOST_REMEMBERED) : others;
    return { ...state, backfills: left.length > 0 ? left : undefined };
  }

  #isThis({ from, to }: Backfill): boolean {
    return from === this.from && to === this.to;
  }

  /** The next part. */
  async #next(record: ScheduleRecord, tick: number, now: number): Promise<Change | ScheduleRecord> {
    const { from, to } = this;
    const { noted, before } = this.#reached(record.state);
    const isFirst = before.made === 0;
    const atOnce = mostAtOnce(record);
    const most = isFirst ? MOST_BACKFILLED : atOnce;
    const found = await backfillTimes(record, before.reached, to, now, most + 1);
    if (isFirst && found.length > MOST_BACKFILLED) throw tooMany(this.queue, this.id);
    const times = found.slice(0, atOnce);
    this.#isOver = found.length === times.length;
    const { caughtUp } = before;
    const reached = times.at(-1) ?? to;
    this.#part = { from, to, reached, made: before.made + times.length, caughtUp };
    if (times.length === 0 && !noted) return record;
    const state = this.#noting(record.state, this.#isOver ? undefined : this.#part);
    const occurrences = times.filter((at) => !caughtUp?.includes(at)).map((at) => ({ at, due: now }));
    return extraOccurrences(this.id, { ...record, state }, tick, occurrences, 'allow');
  }
}

/** What is stored of a backfill that failed, whatever the error says of the part that failed. */
function halfWay(error: unknown, made: number): unknown {
  if (!(error instanceof DelayQueueError)) return error;
  const message =
    `${error.message} Of this backfill ${made} occurrences were stored before that: repeat it with the same \`from\` and \`to\`, ` +
    'and it goes on behind them.';
  if (error instanceof UnavailableError)
    return new UnavailableError(message, { cause: error.cause, maybeAccepted: true, ids: error.ids });
  error.message = message;
  return error;
}
