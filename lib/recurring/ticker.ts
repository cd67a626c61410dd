import type { DelayQueueLogger } from '../delay-queue.logger.js';
import { quoted } from '../job/duration.js';
import { summarizeError } from '../job/error-record.js';
import { occurrenceId } from '../job/job-id.js';
import { Rest } from '../redis/rest.js';
import type { RestWatch } from '../redis/rest-watch.js';
import { overOfTick, parseSchedules, parseTicks, tickArgs, tickScript } from '../redis/schedule.protocol.js';
import type { TickRequest } from '../redis/schedule.protocol.js';
import { forget } from '../redis/session.js';
import type { Session } from '../redis/session.js';
import type { ShardStore } from '../redis/shard-store.js';
import { clearTimeout, performance, random, setTimeout } from '../time-and-randomness.js';
import { GoneNotes, SWEEP_EVERY_MS } from './gone-notes.js';
import { occurrenceItems } from './occurrence-items.js';
import { timesOf } from './occurrence-times.js';
import { withOver } from './over-occurrences.js';
import { decodeRecord, encodeRecord, rhythmOf, waitingAhead } from './schedule-record.js';
import type { ScheduleDefinition, ScheduleRecord } from './schedule-record.js';
import { adoptZoneData } from './rezoning.js';
import { passes, ScheduleFaults } from './schedule-faults.js';
import { CODE_SCHEDULE } from './schedule-options.js';
import { reportSkipped } from './skipped.js';
import { NEVER, planTick } from './tick-plan.js';
import type { TickPlan } from './tick-plan.js';
import { ZONE_DATA } from './zone-data.js';
import { planByNewerZones } from './zone-shift.js';

/** How often a process asks. It is far less than the time for which occurrences are made ahead. */
const ASK_EVERY_MS = 5_000;
/** Where there is no schedule, unless no shard has changed. The first occurrences of a new one are made with it. */
const ASK_RARELY_MS = 20_000;
/** Also where no shard has changed: there may be notes to sweep. */
const ASK_IN_ANY_CASE_MS = SWEEP_EVERY_MS;
const MOST_SCHEDULES = 20;
/** If a schedule of newer zone data is left with no more than this ahead, no process with those is alive. */
const ALONE_MS = 10_000;
/** For how long other processes are not told of a schedule that this one looks at. */
const MINE_FOR_MS = 2_000;
const PAGE = 50;

/**
 * Makes the occurrences of one queue's schedules. There is no leader: every process asks now and then which schedules need more
 * occurrences, computes them from the record, and writes both in one compare and set. So a process may die at any point, and two that
 * do the same write the same once.
 */
export class Ticker {
  readonly #sessions: readonly Session[];
  readonly #notes: readonly GoneNotes[];
  readonly #faults: readonly ScheduleFaults[];
  /** Of each shard that has no schedule. */
  readonly #rests: readonly Rest[];
  /** When it last asked; monotonic ms. */
  #askedAt = -Infinity;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  #hasBegun = false;
  #hasAdopted = false;
  /** Of one that this process can make no occurrences of. */
  #hasTold = false;
  /** Of each shard since when it is there. */
  readonly #firstSeen: (number | undefined)[] = [];
  #wasLost = false;
  #ticking: Promise<boolean> | undefined;

  constructor(
    private readonly queue: string,
    private readonly stores: readonly ShardStore[],
    private readonly logger: DelayQueueLogger,
    watch: RestWatch,
    /** Runs before the first tick, and before others until it has succeeded once. */
    private readonly begin: (() => Promise<void>) | undefined,
    private readonly isUrgent: boolean,
    /** Called when a shard was lost, and is there anew. */
    private readonly madeAnew: () => void = () => undefined,
    /** Ends what a process that died on the way has left of a move to another shard. */
    private readonly settleMoves: (id: string) => Promise<void> = () => Promise.resolve(),
  ) {
    this.#sessions = stores.map((store) => store.session());
    this.#notes = stores.map((store) => new GoneNotes(store));
    this.#faults = stores.map((store) => new ScheduleFaults(queue, store, logger));
    this.#rests = stores.map(({ keys }) => {
      const rest: Rest = new Rest(watch, keys.changed, () => rest.end());
      return rest;
    });
  }

  /** At once when there is something to begin with. */
  start(): void {
    this.#next(this.isUrgent ? 0 : 200 + 800 * random());
  }

  /** Resolves when nothing is on its way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#ticking;
    for (const rest of this.#rests) rest.end();
    // Shard by shard: on a Cluster a command may not have keys of several slots.
    const forgotten = this.#sessions.flatMap((session, shard) =>
      session.isUsed ? [forget(this.stores[shard]!.connection, [session])] : [],
    );
    await Promise.allSettled(forgotten);
  }

  /** Whether what the handler declares stands in Redis. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Makes what is needed now. Never rejects. @returns whether the queue has schedules that may need more */
  tick(): Promise<boolean> {
    this.#ticking ??= this.#tick().finally(() => (this.#ticking = undefined));
    return this.#ticking;
  }

  #next(ms: number): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => void this.#turn(), ms);
    this.#timer.unref();
  }

  async #turn(): Promise<void> {
    const has = !this.#mayRest && (await this.tick());
    this.#next((has ? ASK_EVERY_MS : ASK_RARELY_MS) * (0.8 + 0.4 * random()));
  }

  /** Nothing is scheduled, and no shard has changed since this was read. */
  get #mayRest(): boolean {
    const since = performance.now() - this.#askedAt;
    return this.#hasBegun && since < ASK_IN_ANY_CASE_MS && this.#rests.every(({ hasBegun }) => hasBegun);
  }

  async #tick(): Promise<boolean> {
    if (!this.#hasBegun) await this.#begin();
    this.#askedAt = performance.now();
    // A shard that cannot be asked holds up none of the others.
    const shards = await Promise.all(this.stores.map((_, shard) => this.#tickOne(shard)));
    if (this.#wasLost) await this.#beginAnew();
    for (const [shard, notes] of this.#notes.entries()) await this.#try(shard, 'notes', () => notes.sweep());
    return !this.#hasBegun || shards.some((has) => has);
  }

  async #tickOne(shard: number): Promise<boolean> {
    let has = true;
    await this.#try(shard, 'schedules', async () => {
      has = await this.#tickShard(shard);
    });
    return has;
  }

  /** Never rejects. @returns whether it succeeded */
  #try(shard: number, what: Parameters<ScheduleFaults['try']>[0], act: () => Promise<void>): Promise<boolean> {
    return this.#faults[shard]!.try(what, async () => {
      try {
        await act();
      } catch (error) {
        if (!this.#stopped) throw error;
      }
    });
  }

  /** What cannot be declared, or is not yet, is tried again with each tick: the other schedules go on all the same. */
  async #begin(): Promise<void> {
    let hasDeclared = true;
    try {
      await this.begin?.();
    } catch (error) {
      hasDeclared = false;
      this.#tellOf(CODE_SCHEDULE, error);
    }
    this.#hasAdopted ||= await this.#adoptZoneData();
    this.#hasBegun = hasDeclared && this.#hasAdopted;
  }

  /** The queue was removed, or Redis came back without what it had: nothing stands there of what this process said of it at boot. */
  async #beginAnew(): Promise<void> {
    this.#wasLost = this.#hasBegun = false;
    this.madeAnew();
    await this.#begin();
  }

  /** Of many the first one. What passes is tried again, and the connection has logged it. */
  #tellOf(id: string, error: unknown): void {
    if (this.#hasTold || passes(error) || this.#stopped) return;
    this.#hasTold = true;
    this.logger.error(
      `Of schedule ${quoted(id)} of queue "${this.queue}" this process can make no occurrences: ${summarizeError(error)}. ` +
        'Said of the first one.',
      { queue: this.queue },
    );
  }

  async #tickShard(shard: number): Promise<boolean> {
    for (;;) {
      const reply = await this.stores[shard]!.call('ticks', [MOST_SCHEDULES, MINE_FOR_MS]);
      const { next, due, since, held, ...read } = parseTicks(reply as (string | number)[]);
      const arrivedAt = performance.now();
      this.#saw(shard, since);
      const now = read.now + this.stores[shard]!.connection.movedMs;
      let again = due.length === MOST_SCHEDULES;
      for (const { id, text } of due) {
        if (this.#stopped) return true;
        again = (await this.#advance(shard, id, text, now)) || again;
      }
      if (again) continue;
      const has = next !== undefined && next < NEVER;
      const rest = this.#rests[shard]!;
      if (has || held === undefined || !rest.isPossible || this.#stopped) rest.end();
      else rest.begin(held, read.now, arrivedAt);
      return has;
    }
  }

  #saw(shard: number, since: number | undefined): void {
    // The test kit moves what is stored.
    const first = since && since + this.stores[shard]!.connection.movedMs;
    const known = this.#firstSeen[shard];
    this.#wasLost ||= known !== undefined && known !== first;
    this.#firstSeen[shard] = first;
  }

  /** @returns whether the schedule needs more at once */
  async #advance(shard: number, id: string, text: string, now: number): Promise<boolean> {
    const record = decodeRecord(text);
    // Another process can read it.
    if (!record) return false;
    if (record.state.leaving) {
      await this.settleMoves(id);
      return true;
    }
    if (isLeftToNewerZones(record, now)) return false;
    if (isOfOlderZones(record)) return this.#computeAnew(shard, id, text, record, now);
    const plan = await this.#planned(id, record, now);
    return plan ? (await this.#write(shard, id, text, record, plan, now)) === 'w' && plan.tick <= now : false;
  }

  /** @returns undefined where this process cannot compute it, as in a time zone that it does not know: others wait behind it */
  async #planned(id: string, record: ScheduleRecord, now: number, plan = planTick): Promise<TickPlan | undefined> {
    try {
      return await plan(id, record, await timesOf(rhythmOf(record), `schedule ${quoted(id)}`), now);
    } catch (error) {
      this.#tellOf(id, error);
      return undefined;
    }
  }

  /** @returns what lib/lua/recurring/tick.lua answers */
  async #write(
    shard: number,
    id: string,
    text: string,
    record: ScheduleRecord,
    plan: TickPlan,
    now: number,
    gone: readonly number[] = [],
  ): Promise<unknown> {
    const { state, occurrences, missed, tick } = plan;
    const request: TickRequest = {
      id,
      read: text,
      follows: encodeRecord({ ...record, state: { ...state, zoneData: ZONE_DATA } }),
      tick,
      missed: missed?.count ?? 0,
      ahead: waitingAhead(state, now).length,
      gone: gone.map((at) => occurrenceId(id, at)),
      validBefore: gone[0],
      occurrences: occurrenceItems(id, record, occurrences),
    };
    const session = this.#sessions[shard]!;
    const args = [0, ...tickArgs(request, this.stores[shard]!.connection.movedMs)];
    const answer = await session.call({
      script: tickScript(request),
      args,
      sequenceAt: 0,
      giveUp: () => this.#stopped,
    });
    if (answer === 'w' && missed) {
      const { instance } = this.stores[shard]!.connection;
      reportSkipped(this.logger, { instance, queue: this.queue, schedule: id, reason: 'missed', ...missed });
    }
    return answer;
  }

  /** Occurrences that older zone data gave another time are made anew; those that have begun stay. @returns whether that is done */
  async #adoptZoneData(): Promise<boolean> {
    const isDone = await Promise.all(
      this.stores.map((store, shard) =>
        this.#try(shard, 'zones', async () => {
          await adoptZoneData(store, this.#sessions[shard]!, () => this.#stopped);
          for (let hasAll = false; !hasAll && !this.#stopped;) hasAll = await this.#computeAllAnew(shard, store);
        }),
      ),
    );
    return isDone.every((done) => done);
  }

  /** @returns false when a schedule has changed since it was read: it may have those times all the same */
  async #computeAllAnew(shard: number, store: ShardStore): Promise<boolean> {
    let hasAll = true;
    for (let cursor: [number | string, string] | undefined = ['', '']; cursor;) {
      const reply = await store.call('schedules', ['', PAGE, ...cursor]);
      const { schedules, ...read } = parseSchedules(reply as (string | number)[]);
      const now = read.now + store.connection.movedMs;
      for (const { id, text } of schedules) {
        const record = decodeRecord(text);
        if (record && isOfOlderZones(record))
          hasAll = (await this.#computeAnew(shard, id, text, record, now)) && hasAll;
      }
      const last = schedules.at(-1);
      cursor = last && schedules.length === PAGE ? [last.tick, last.id] : undefined;
    }
    return hasAll;
  }

  async #computeAnew(shard: number, id: string, text: string, record: ScheduleRecord, now: number): Promise<boolean> {
    const ahead = waitingAhead(record.state, now);
    // All that goes does so in this write: only that tells which of them were cancelled. What comes in its place and is too large for it
    // follows with the next ticks.
    const plan = await this.#planned(id, record, now, planByNewerZones);
    if (!plan) return true;
    const answer = await this.#write(shard, id, text, record, plan, now, ahead);
    const over = overOfTick(ahead, answer);
    return over ? this.#computeAnew(shard, id, text, withOver(record, over), now) : answer === 'w';
  }
}

function isOfOlderZones({ definition, state }: ScheduleRecord): boolean {
  return hasOwnZone(definition) && !state.paused && state.zoneData < ZONE_DATA;
}

/** By older data the same occurrence may have another time, and would happen twice. */
function isLeftToNewerZones({ definition, state }: ScheduleRecord, now: number): boolean {
  return hasOwnZone(definition) && state.zoneData > ZONE_DATA && now < state.last - ALONE_MS;
}

function hasOwnZone({ cron, timeZone }: ScheduleDefinition): boolean {
  return cron !== null && timeZone !== 'UTC';
}
