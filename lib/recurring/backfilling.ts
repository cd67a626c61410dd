import { DelayQueueError, UnavailableError } from '../delay-queue.errors.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { backfillTimes, MOST_BACKFILLED, tooMany } from './backfill-times.js';
import { planOverdue, reportMissed } from './overdue.js';
import { changeBy, changeSchedule, extraOccurrences, unreadable } from './schedule-change.js';
import type { Change } from './schedule-change.js';
import type { Backfill, ScheduleRecord } from './schedule-record.js';
import { MOST_OCCURRENCES } from './tick-plan.js';
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
  /** What was overdue is made first, as the schedule wants it. Of these times it is not made again, though they may have run by then. */
  readonly #caughtUp = new Set<number>();
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
          return this.#overdue ? changeBy(id, record, this.#overdue) : this.#next(record, found.tick, now);
        });
        if (!done) return undefined;
        if (this.#overdue) this.#noteCatchingUp(this.#overdue);
        else this.#stored = this.#part;
      }
      return this.#part.made;
    } catch (error) {
      throw this.#stored ? halfWay(error, this.#stored.made) : error;
    }
  }

  #noteCatchingUp(overdue: TickPlan): void {
    for (const { at } of overdue.occurrences) this.#caughtUp.add(at);
    reportMissed(this.context, this.queue, this.id, overdue);
  }

  /** The next part. */
  async #next(record: ScheduleRecord, tick: number, now: number): Promise<Change | ScheduleRecord> {
    const { from, to } = this;
    const { backfills = [] } = record.state;
    const isThis = (one: Backfill) => one.from === from && one.to === to;
    const noted = backfills.find(isThis);
    const before = this.#stored ?? noted ?? { from, to, reached: from - 1, made: 0 };
    const isFirst = before.made === 0;
    const most = isFirst ? MOST_BACKFILLED : MOST_OCCURRENCES;
    const found = await backfillTimes(record, before.reached, to, now, most + 1);
    if (isFirst && found.length > MOST_BACKFILLED) throw tooMany(this.queue, this.id);
    const times = found.slice(0, MOST_OCCURRENCES);
    this.#isOver = found.length === times.length;
    this.#part = { from, to, reached: times.at(-1) ?? to, made: before.made + times.length };
    if (times.length === 0 && !noted) return record;
    // What others have not made yet stays noted.
    const others = backfills.filter((one) => !isThis(one));
    const left = this.#isOver ? others : [...others, this.#part].slice(-MOST_REMEMBERED);
    const state = { ...record.state, backfills: left.length > 0 ? left : undefined };
    const occurrences = times.filter((at) => !this.#caughtUp.has(at)).map((at) => ({ at, due: now }));
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
