import type { InstanceContext } from '../instance/instance-context.js';
import { occurrenceId } from '../job/job-id.js';
import { groupNumberOf } from '../job/place.js';
import type { OptionNaming } from '../job/option-rules.js';
import type { QueueRef } from '../job/queue-definition.js';
import type { JobPlanner } from '../producer/job-planner.js';
import { typedError } from '../redis/redis.errors.js';
import type { ShardStore } from '../redis/shard-store.js';
import { Backfilling } from './backfilling.js';
import { assertOccurs, timesOf } from './occurrence-times.js';
import { madeUntil } from './occurrence-withdrawal.js';
import { GivenUp } from './given-up.js';
import { formerTimes } from './later-occurrences.js';
import { planGivenUp, planOverdue, reportMissed } from './overdue.js';
import { changeBy, changeInPlaceOf, changeSchedule, extraOccurrences, unreadable } from './schedule-change.js';
import type { Change, Changed } from './schedule-write.js';
import { ScheduleMove } from './schedule-move.js';
import type { MovingDecide } from './schedule-move.js';
import { readSchedule } from './schedule-search.js';
import { removeSchedule, withdrawAll } from './schedule-removal.js';
import { resolveSchedule } from './schedule-options.js';
import type { CronTimes } from './schedule-options.js';
import {
  aheadOf,
  isSameSchedule,
  madeBy,
  rhythmOf,
  triggeredNear,
  waitingAhead,
  withoutAhead,
} from './schedule-record.js';
import type { ScheduleRecord, ScheduleState } from './schedule-record.js';
import { mostAtOnce, MOST_OCCURRENCES, planTick } from './tick-plan.js';
import type { TickPlan } from './tick-plan.js';
import { jobsAhead, timesToCome } from './times-to-come.js';
import { waitingOf } from './waiting-occurrences.js';
import { warnOfZone } from './zone-warning.js';
import { ZONE_DATA } from './zone-data.js';

export interface ScheduleResult {
  id: string;
  queue: string;
  /** `'kept'`: an equal one was there, and nothing changed. */
  outcome: 'created' | 'replaced' | 'kept';
  /** The next time, without jitter; undefined while the schedule is paused, and when it is over. */
  next: Date | undefined;
}

/** What a schedule is to be. */
export interface WantedSchedule {
  readonly queue: QueueRef;
  readonly id: string;
  readonly times: unknown;
  readonly payload: unknown;
  readonly options: unknown;
  readonly owner: ScheduleState['owner'];
  readonly naming: OptionNaming;
}

/** Makes, changes and removes schedules: each change is a compare and set of the record. */
export class ScheduleCalls {
  constructor(
    private readonly context: InstanceContext,
    private readonly planner: JobPlanner,
  ) {}

  /** Checks everything that can be checked without Redis. */
  async check({ queue, id, times, payload, options, owner, naming }: WantedSchedule): Promise<ScheduleRecord> {
    const { definition, jobOptions } = resolveSchedule(times, options, naming);
    const planned = await this.planner.plan(queue, payload, { ...jobOptions, id }, naming);
    const record: ScheduleRecord = {
      definition: {
        ...definition,
        expiresInMs: planned.expiresInMs ?? null,
        place: planned.place ?? null,
      },
      state: { ...FRESH, zoneData: ZONE_DATA, owner },
      content: planned.content,
    };
    const rhythm = await timesOf(rhythmOf(record), naming('cron, timeZone'));
    if (definition.cron !== null) {
      assertOccurs(rhythm, definition.from ?? Date.UTC(2020, 0), naming('cron'));
      if ((times as CronTimes).timeZone === undefined) warnOfZone(definition.cron, this.context, naming);
    }
    return record;
  }

  async put(queue: string, id: string, wanted: ScheduleRecord): Promise<ScheduleResult> {
    let outcome: ScheduleResult['outcome'] = 'kept';
    let overdue = undefined as TickPlan | undefined;
    let missed: TickPlan['missed'];
    const home = await this.#homeOf(queue, id, wanted);
    const move = new ScheduleMove(this.context, queue, id, home);
    const decide: MovingDecide = async (before, stored, there, now) => {
      const record = there ?? before;
      overdue = undefined;
      if (stored && !there) throw unreadable(queue, id);
      const isSame = there && isSameSchedule(there, wanted) && there.state.owner === wanted.state.owner;
      if (there && isSame && stored?.isIndexed) {
        // One that this call has brought here, or that comes alive by it, is none that was kept.
        outcome = move.hasChanged ? 'replaced' : 'kept';
        if (!move.hasRevived || aheadOf(there.state, now).length > 0) return there;
      }
      overdue = there && (await planOverdue(id, there, now));
      if (there && overdue) return changeBy(id, there, overdue);
      outcome = record ? 'replaced' : 'created';
      const { from, everyMs } = wanted.definition;
      const isSameGrid = record && record.definition.everyMs === everyMs && record.definition.from === from;
      const begun: ScheduleState = {
        ...wanted.state,
        revision: record?.state.revision ?? 0,
        anchor: from ?? (isSameGrid ? record.state.anchor : now),
        // Who repeats a pause takes back what was made before it, and not what was triggered since.
        // And what became due while it was on its way from another shard is not left out.
        last: record?.state.paused || (record && !there) ? record.state.last : now,
        made: record?.state.made ?? 0,
        paused: record?.state.paused ?? false,
        pausedAt: record?.state.pausedAt,
        triggered: record?.state.triggered,
        over: record?.state.over,
        backfills: record?.state.backfills,
        elsewhere: record?.state.elsewhere,
      };
      const recent = record?.state.recent ?? [];
      const follows = { ...wanted, state: { ...begun, recent } };
      const former = there && (await formerTimes(there, follows, now));
      // What is due already belongs to what the schedule was. In another shard it was taken back before.
      const gone = there ? waitingAhead(there.state, now) : [];
      const change = { record: { ...follows, state: { ...follows.state, former } }, gone, was: there };
      const { plan, ...anew } = await this.#anew(id, now, change);
      missed = plan.missed;
      return anew;
    };
    for (;;) {
      const done = await move.run(decide);
      if (!overdue) {
        if (outcome !== 'kept') {
          reportMissed(this.context, queue, id, { missed });
          await this.#fill('schedule', queue, id, done!.record, done!.now);
        }
        return { id, queue, outcome, next: await this.#nextOf('schedule', queue, id, done!, outcome === 'kept') };
      }
      reportMissed(this.context, queue, id, overdue);
    }
  }

  /** @returns the state after the change, or undefined without such a schedule */
  async pause(
    queue: string,
    id: string,
    paused: boolean,
  ): Promise<{ changed: boolean; next: Date | undefined } | undefined> {
    const call = paused ? 'pauseSchedule' : 'resumeSchedule';
    let changed = false;
    let overdue: Pick<TickPlan, 'missed'> = { missed: undefined };
    const done = await changeSchedule(this.context, call, queue, id, async (stored, record, now) => {
      if (!stored) return undefined;
      if (!record) throw unreadable(queue, id);
      changed = record.state.paused !== paused || record.state.removing === true;
      overdue = { missed: undefined };
      if (!changed) return record;
      if (paused) overdue = await planGivenUp(id, record, now);
      const missed = overdue.missed?.count ?? 0;
      const made = record.state.made + missed;
      const toCome = waitingAhead(record.state, now);
      const due = record.state.recent.filter((at) => !toCome.includes(at));
      // What was triggered while it was paused stays.
      const gone = paused ? [...due, ...toCome] : [];
      const last = paused ? madeBy(record.state, now) : now;
      // Pausing takes back all that the record names: so what it names later was asked for since.
      const recent = paused ? aheadOf(record.state, now) : record.state.recent;
      const since = { paused, pausedAt: paused && now < last ? now : undefined };
      const after = { ...record, state: { ...record.state, ...since, made, removing: undefined, last, recent } };
      const goneDue = paused ? due.length : 0;
      // Whoever resumes it in the millisecond of the pause may ask for an occurrence in it.
      const pausedAt = paused ? last : Math.min(record.state.last, now - 1);
      const { plan: _, ...anew } = await this.#anew(id, now, { record: after, gone, was: record });
      return { ...anew, missed, goneDue, pausedAt };
    });
    if (!done) return undefined;
    const givenUp = new GivenUp();
    givenUp.add(overdue.missed);
    givenUp.addTimes(done.gone);
    const { state } = done.record;
    // Also when it was paused before: the process that did it may have died on the way. What was triggered since then stays, and what a
    // backfill has made since: that is due from the pause on.
    const withdrawn = { ...madeUntil(done.record, done.now, state.last), named: [] };
    if (state.recent.length > 0) withdrawn.dueBy = (state.pausedAt ?? state.last) - 1;
    try {
      if (paused) await withdrawAll(this.context, call, queue, id, done.shard, withdrawn, givenUp);
      else if (changed) await this.#fill(call, queue, id, done.record, done.now);
    } finally {
      givenUp.report(this.context, queue, id);
    }
    return { changed, next: await this.#nextOf(call, queue, id, done, !changed) };
  }

  /** One more occurrence, now. @returns the id of its job; undefined without such a schedule */
  async trigger(queue: string, id: string): Promise<string | undefined> {
    let at = 0;
    const done = await changeSchedule(this.context, 'triggerSchedule', queue, id, async (stored, record, now) => {
      if (!stored) return undefined;
      if (!record) throw unreadable(queue, id);
      const { paused, last, recent, over = [] } = record.state;
      const triggered = triggeredNear(record.state, now);
      const taken = new Set([...recent, ...over]);
      const times = await timesOf(rhythmOf(record), 'triggerSchedule').catch(() => undefined);
      // A time of the schedule itself is left to it, made or not: two jobs would have one id. Where this process cannot compute them, as
      // in a zone that it does not know, only those that the record names are left.
      const isOwn = (time: number) => taken.has(time) || times?.next(time - 1) === time;
      // Of many at once, `recent` forgets the first. Pausing takes back what is of its own moment or before, also when it is repeated.
      for (at = Math.max(now, triggered + 1, paused ? last + 1 : 0); isOwn(at);) at++;
      const after = { ...record, state: { ...record.state, triggered: at } };
      return extraOccurrences(id, after, stored.tick, [{ at, due: now }], record.definition.overlap);
    });
    return done && occurrenceId(id, at);
  }

  /**
   * Occurrences for all times of the schedule in a stretch of the past, due now. They may run beside each other.
   *
   * @returns how many times the stretch has; undefined without such a schedule
   * @throws InvalidOptionError when they are more than 1,000
   */
  backfill(queue: string, id: string, from: number, to: number): Promise<number | undefined> {
    return new Backfilling(this.context, queue, id, from, to).run();
  }

  /** @returns how many occurrences that had not begun went with it; undefined without such a schedule */
  async remove(queue: string, id: string, running: boolean): Promise<number | undefined> {
    const call = 'unschedule';
    return removeSchedule(this.context, call, queue, id, { running });
  }

  /**
   * @param asks whether its jobs may have gone since the record was written
   * @returns undefined while it is paused, and when it is over
   */
  async #nextOf(
    call: string,
    queue: string,
    id: string,
    { record, now, shard }: Changed,
    asks: boolean,
  ): Promise<Date | undefined> {
    const ahead = asks ? jobsAhead(id, record, now) : [];
    const store = this.context.stores(queue)[shard]!;
    const waiting = ahead.length > 0 ? await waitingOf(store, ahead, { call, id }) : undefined;
    const [next] = await timesToCome(id, record, now, 1, waiting);
    return next === undefined ? undefined : new Date(next);
  }

  /** The shard in which a schedule and its occurrences are to be: that of their group, or of its id. */
  async #homeOf(queue: string, id: string, { definition }: ScheduleRecord): Promise<number> {
    const group = groupNumberOf(definition.place);
    const home = this.context.shardOf(queue, id, group);
    const store = this.context.stores(queue)[home]!;
    if (group === 0 || store.isWhole) return home;
    await readSchedule(this.context, 'schedule', queue, id, home);
    // Also when no occurrence is made now, or nobody would look for it outside the shard of its id.
    if (!store.isLimited) await this.#begin(queue, store);
    return home;
  }

  async #begin(queue: string, store: ShardStore): Promise<void> {
    try {
      await store.beginGroups();
    } catch (error) {
      throw typedError(error, `schedule of queue "${queue}"`);
    }
  }

  /**
   * The occurrences ahead make room for those of the record as it is now.
   *
   * @param gone which ones go: those that are due unless they have begun
   * @param was as it stands in the same shard
   */
  async #anew(
    id: string,
    now: number,
    { record, gone, was }: { record: ScheduleRecord; gone: readonly number[]; was: ScheduleRecord | undefined },
  ): Promise<Change & { plan: TickPlan }> {
    const times = await timesOf(rhythmOf(record), 'schedule');
    const begun = { ...record, state: withoutAhead(record.state, now) };
    // All that goes does so in one write: only that tells which of them were cancelled, and the record remembers it. What comes in its
    // place and is too large for that write follows it.
    const plan = await planTick(id, begun, times, now);
    return { ...changeInPlaceOf(gone, was?.state, now, id, record, plan), plan };
  }

  /**
   * Makes the rest of what is to be ahead, where payloads are too large for one write: a ticker may look only when these times are over. What
   * fails here is left to it, for the schedule stands.
   */
  async #fill(call: string, queue: string, id: string, record: ScheduleRecord, now: number): Promise<void> {
    if (mostAtOnce(record) === MOST_OCCURRENCES) return;
    const times = await timesOf(rhythmOf(record), 'schedule');
    let plan = await planTick(id, record, times, now);
    try {
      while (plan.occurrences.length > 0) {
        const done = await changeSchedule(this.context, call, queue, id, async (_, there, later) => {
          if (!there || !isSameSchedule(there, record)) return undefined;
          plan = await planTick(id, there, times, later);
          return plan.occurrences.length > 0 ? changeBy(id, there, plan) : there;
        });
        if (!done) return;
        if (plan.occurrences.length > 0) reportMissed(this.context, queue, id, plan);
      }
    } catch {
      // The connection has said why.
    }
  }
}

const FRESH = { revision: 0, anchor: 0, last: 0, made: 0, recent: [], paused: false } as const;
