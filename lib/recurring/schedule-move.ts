import { AGAIN } from '../instance/compare-and-set.js';
import type { InstanceContext } from '../instance/instance-context.js';
import { GivenUp } from './given-up.js';
import { madeUntil } from './occurrence-withdrawal.js';
import { planGivenUp } from './overdue.js';
import { changeInPlaceOf, unreadable } from './schedule-change.js';
import { finishRemoval, withdrawAll } from './schedule-removal.js';
import { asItWas, countsOf, encodeRecord, madeNear, waitingAhead, withoutAhead } from './schedule-record.js';
import type { ScheduleRecord } from './schedule-record.js';
import {
  findElsewhere,
  findEverywhere,
  isLeaving,
  isLiving,
  isRemoving,
  isStored,
  readSchedule,
} from './schedule-search.js';
import type { FoundSchedule } from './schedule-search.js';
import { isHandedOver, leavingOf, removeLeft, settleMoves } from './schedule-settling.js';
import type { LeftSchedule } from './schedule-settling.js';
import { changeOfState, ScheduleWrite } from './schedule-write.js';
import type { Change, Changed, Decide } from './schedule-write.js';

/** After so long a ticker goes on with a schedule that was stopped for a move: taking back occurrences may last. */
const STOPPED_MS = 30_000;
/** So long nobody else goes on with one that is handed over. */
const HANDED_OVER_MS = 4_000;
/** And for so long it may be written in the other shard: never when somebody else may go on with it. By the clock of that shard. */
const WRITTEN_WITHIN_MS = HANDED_OVER_MS / 2;

/** @param before what it was in another shard */
export type MovingDecide = (before: ScheduleRecord | undefined, ...read: Parameters<Decide>) => ReturnType<Decide>;

interface HandedOver extends LeftSchedule {
  readonly before: ScheduleRecord;
  readonly writeBefore: number;
}

/**
 * Writes a schedule in the shard of its group. Where it is in another one, it is stopped there, what has not begun is taken back, it is
 * written here, and only then removed there. So there is a record at each moment: if the process dies on the way, a ticker of any other
 * one, or the next call for this schedule, goes on with it where it was, or removes the rest (schedule-settling.ts). Two live ones would make
 * everything twice: so whoever moves it may write it here only for a moment, in which nobody else goes on with it there.
 */
export class ScheduleMove {
  /** Whether this call has written here, or has brought it alive. */
  hasChanged = false;
  /** Whether it was stopped here, by a process that died on its way to another shard. */
  hasRevived = false;
  readonly #here: ScheduleWrite;
  readonly #there: ScheduleWrite;
  #left: HandedOver | undefined;

  constructor(
    private readonly context: InstanceContext,
    private readonly queue: string,
    private readonly id: string,
    private readonly home: number,
  ) {
    this.#here = new ScheduleWrite(context, 'schedule', queue, id);
    this.#there = new ScheduleWrite(context, 'schedule', queue, id);
  }

  run(decide: MovingDecide): Promise<Changed | undefined> {
    const { context, queue, id } = this;
    return context.changes.run({ call: 'schedule', queue, id }, async () => {
      const { isWhole } = context.stores(queue)[this.home]!;
      if (!isWhole && !(await this.#leaveOthers())) return AGAIN;
      const left = this.#left;
      const here = await this.#read(this.home);
      if (await this.#removed([here])) return AGAIN;
      if (isLeaving(here)) {
        // Somebody takes it away since the look above. Or its way has ended here: there is one shard since then.
        if (!isHandedOver(here)) await this.#revive();
        return AGAIN;
      }
      const done = await this.#here.run(here, (...read) => decide(left?.before, ...read), left?.writeBefore);
      if (done === AGAIN || isWhole) return done;
      if (left) {
        this.hasChanged = true;
        if (!(await removeLeft(context, 'schedule', queue, id, left, this.home))) return AGAIN;
      }
      // Shards are not read at one moment: one that another process took from shard to shard meanwhile was in none of them.
      const others = await findElsewhere(context, 'schedule', queue, id, this.home);
      if (others.length === 0) return done;
      this.hasChanged = true;
      return AGAIN;
    });
  }

  #read(shard: number): Promise<FoundSchedule> {
    return readSchedule(this.context, 'schedule', this.queue, this.id, shard);
  }

  /** Who was to remove it is on the way, or has died there: it is no longer the schedule that this call changes. @returns whether it was so */
  async #removed(all: readonly FoundSchedule[]): Promise<boolean> {
    const found = all.find(isRemoving);
    if (found) await finishRemoval(this.context, 'schedule', this.queue, this.id, found);
    return found !== undefined;
  }

  /** Ends its way to another shard, which began here. */
  async #revive(): Promise<void> {
    await settleMoves(this.context, 'schedule', this.queue, this.id);
    this.hasRevived = this.hasChanged = true;
  }

  /** @returns whether it may be written here now */
  async #leaveOthers(): Promise<boolean> {
    const { context, queue, id, home } = this;
    const all = (await findEverywhere(context, 'schedule', queue, id, home)).filter(isStored);
    if (await this.#removed(all)) return false;
    const leaving = all.find(isLeaving);
    const isOwn = leaving !== undefined && leaving.stored.text === this.#left?.text;
    if (!isOwn) this.#left = undefined;
    const isHere = all.some((found) => found.shard === home);
    if (isOwn && isHere) return true;
    if (leaving && !isOwn) {
      if (isHandedOver(leaving)) return false;
      if (leaving.shard === home || all.some(isLiving)) {
        if (leaving.shard === home) await this.#revive();
        else await settleMoves(context, 'schedule', queue, id);
        return false;
      }
    }
    const other = leaving ?? all.find(({ shard }) => shard !== home);
    if (!other) return true;
    if (!isOwn && !(await this.#stop(other))) return false;
    return this.#handOver(other.shard);
  }

  /** Nothing more is made of it there, and what has not begun goes. @returns false when somebody has changed it since it was read */
  async #stop(found: FoundSchedule): Promise<boolean> {
    const { context, queue, id } = this;
    const givenUp = new GivenUp();
    let isLeft = isLeaving(found);
    try {
      const stopped = await this.#there.run(found, async (_, record, now) => {
        if (!record) throw unreadable(queue, id);
        return isLeft ? record : stopping(id, record, now, givenUp);
      });
      if (stopped === AGAIN || !stopped) return false;
      isLeft = true;
      givenUp.addTimes(stopped.gone);
      const withdrawn = madeUntil(stopped.record, stopped.now);
      await withdrawAll(context, 'schedule', queue, id, found.shard, withdrawn, givenUp);
      return true;
    } finally {
      if (isLeft) givenUp.report(context, queue, id);
    }
  }

  /** From now on it may be written here for a moment, with all that it has counted there. */
  async #handOver(shard: number): Promise<boolean> {
    const { now: here } = await this.#read(this.home);
    const found = await this.#read(shard);
    if (!isLeaving(found) || (isHandedOver(found) && found.stored!.text !== this.#left?.text)) return false;
    const { missed, overlapped } = found.stored!;
    const elsewhere = (record: ScheduleRecord) => countsOf(record.state, found.stored!);
    const until = found.now + HANDED_OVER_MS;
    const leaving = { ...leavingOf(found)!, until, counted: { missed, overlapped } };
    const handedOver = await this.#there.run(found, async (_, record) =>
      changeOfState(record!, { ...record!.state, leaving }, until),
    );
    if (handedOver === AGAIN || !handedOver) return false;
    const { record } = handedOver;
    const was = asItWas(record);
    const before = { ...was, state: { ...was.state, elsewhere: elsewhere(record) } };
    this.#left = { shard, text: encodeRecord(record), record, before, writeBefore: here + WRITTEN_WITHIN_MS };
    return true;
  }
}

/** As a pause does: which of those ahead are over is told by the write. */
async function stopping(id: string, record: ScheduleRecord, now: number, givenUp: GivenUp): Promise<Change> {
  const { state } = record;
  const tick = now + STOPPED_MS;
  if (state.paused) return changeOfState(record, { ...state, leaving: { wasPaused: true } }, tick);
  const { missed } = await planGivenUp(id, record, now);
  const toCome = waitingAhead(state, now);
  const due = state.recent.filter((at) => !toCome.includes(at));
  const last = madeNear(state, now);
  const made = state.made + (missed?.count ?? 0);
  const begun = {
    ...withoutAhead({ ...state, made }, now),
    paused: true,
    last,
    recent: [],
    leaving: { wasPaused: false },
  };
  const plan = { state: begun, occurrences: [], missed, tick };
  givenUp.add(missed);
  return { ...changeInPlaceOf([...due, ...toCome], state, now, id, record, plan), goneDue: due.length, pausedAt: last };
}
