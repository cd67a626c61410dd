import type { Reply } from '../../lib/memory/memory.replies.js';
import type { ScheduleRecord } from '../../lib/recurring/schedule-record.js';
import type { Member } from './fleet.js';
import type { Oracle } from './oracle.js';
import type { RunPlan } from './plan.js';
import type { SimulatedProcess } from './process.js';
import { baseOf, queueOf, RECURRING } from './queues.js';
import type { RunningScript, ScriptRules } from './script-rules.js';
import type { Simulation } from './simulation.js';
import { SHARD_KEYS } from './step-arguments.js';
import type { Concerns } from './witness.js';

/** A script knows whole ms; a worker asks a little later than it claims. */
const ROUNDING_MS = 2;
const FIRST_OCCURRENCE = 11;
/** See lib/recurring/occurrence-gate.ts. */
const ASK_AGAIN_MS = 1_000;
/** What has numbered calls and counts occurrences as missed. */
const COUNTS_MISSED = new Set(['tick', 'unschedule', 'withdrawOccurrences']);
const NUMBER = /"n":(\d+)/;

/** The times of a schedule, epoch ms. */
export interface Grid {
  readonly everyMs: number;
  readonly anchor: number;
  /** None of its times is before that. */
  readonly begin: number;
}

/** What a script has written, and what had been written before it, which is there again where a server has lost this. */
interface Written<Value> {
  readonly value: Value;
  readonly shard: string;
  readonly length: number;
  readonly before: Written<Value> | undefined;
}

interface ScheduleHistory {
  /** How often something was asked that changes it, or takes back what it made. */
  changes: number;
  /** When it was removed for the last time, simulated ms: it has forgotten who began before. */
  removedAt: number;
  /** How many it has left out since it was made, and when that was looked at. */
  counted: number;
  countedAt: number;
  grid: Written<Grid> | undefined;
  /** Occurrences that ticks stored and that may neither be missed nor beside another one but by its policy, by their ids. */
  readonly made: Map<string, Written<ScheduleRecord['definition']>>;
  /** Nominal times for which somebody has asked beside those that it makes. */
  readonly extras: Set<string>;
  /** Occurrences that were left out, and when: simulated ms. */
  readonly skipped: Map<string, number>;
}

interface GrantedOccurrence {
  readonly member: string | undefined;
  /** Simulated ms. */
  readonly at: number;
  readonly hasPlace: boolean;
  /** By the claim for which it was first noted that it begins: if no answer to that comes, it stands for the next claim, too. */
  readonly claimed: ClaimedOccurrence | undefined;
}

interface ClaimedOccurrence {
  readonly due: number;
  /** When that was by the clock of the server, and in simulated ms. */
  readonly clock: number;
  readonly at: number;
}

/**
 * A schedule makes an occurrence for each of its times, once, or counts it as missed; and what its policies give up does not run, and is
 * counted as well.
 */
export class ScheduleRules implements ScriptRules {
  readonly #schedules = new Map<string, ScheduleHistory>();
  readonly #claimed = new Map<string, ClaimedOccurrence>();
  readonly #begun = new Map<string, { readonly changes: number; readonly at: number }>();
  /** Occurrences that may begin: in which process, when that was answered, and whether there was a place to note it. */
  readonly #granted = new Map<string, GrantedOccurrence>();
  /** Occurrences that were told to wait, since an earlier one of their schedule is alive: the claims by which they asked last. */
  readonly #toldToWait = new Map<string, string>();
  #isResent = false;
  /** Of an occurrence that asks whether it may begin: it was cancelled, or left out, before, and ends with its run in any case. */
  #isOver = false;
  /** Of such an occurrence: it is noted as the one that began last. */
  #hasFloor = false;

  constructor(
    private readonly simulation: Simulation,
    private readonly oracle: Oracle,
  ) {}

  // --- What the application asks ----------------------------------------------------------------------------------------

  /** What is stored of it may go; what was asked of it before may come to nothing. */
  changes(id: string): void {
    this.#of(id).changes++;
    for (const job of this.oracle.jobs.values()) {
      if (scheduleOf(job.id) !== id) continue;
      for (const version of job.versions.values()) version.isSuperseded = true;
    }
  }

  changesOf(id: string): number {
    return this.#of(id).changes;
  }

  gridOf(id: string): Grid | undefined {
    return this.#of(id).grid?.value;
  }

  /** What was written last of a schedule is lost: it is again as it was before. */
  rolledBack(length: number, concerns: Concerns): void {
    const isLost = (one: Written<unknown>) => one.length > length && concerns(RECURRING, one.shard);
    for (const schedule of this.#schedules.values()) {
      const { made } = schedule;
      while (schedule.grid && isLost(schedule.grid)) schedule.grid = schedule.grid.before;
      for (let [id, one] of made) {
        // One that was made for the first time may have begun, and may be made again.
        while (one.before && isLost(one)) one = one.before;
        made.set(id, one);
      }
    }
  }

  /** Somebody asks for an occurrence now, or for these times, which may have had one. */
  addsTo(id: string, times: readonly number[] = []): void {
    const { extras } = this.#of(id);
    for (const at of times) {
      const occurrence = `{${id}}${at.toString(36)}`;
      extras.add(occurrence);
      // It may be made, and run, once more.
      for (const version of this.oracle.job(occurrence).versions.values()) version.calls++;
    }
  }

  /** It must run, unless something else was asked meanwhile, or its policy leaves it out. */
  acknowledged(process: SimulatedProcess, id: string, occurrence: string, changes: number): void {
    const schedule = this.#of(id);
    schedule.extras.add(occurrence);
    if (schedule.changes !== changes || schedule.skipped.has(occurrence)) return;
    for (const version of this.oracle.job(occurrence).versions.values()) {
      version.storedAt ??= this.simulation.server.disk.length;
      this.simulation.acknowledged(process, occurrence, version);
    }
  }

  ends(script: RunningScript, reply: Reply): void {
    if (queueOf(script.keys[0]!) !== RECURRING) return;
    const [, id] = script.args as [string, string];
    if (script.name === 'tick' && typeof reply === 'string' && reply.startsWith('w') && !this.#isResent) {
      this.#ticked(script, reply);
    }
    if (script.name === 'beginOccurrence') {
      this.answered(script.args, reply);
      this.#asksToBegin(script, reply);
    }
    if (script.name === 'withdrawOccurrences' && typeof reply === 'string' && !this.#isResent)
      this.#withdrawn(script, reply);
    if (script.name === 'unschedule' && reply === 'w' && script.args[3] !== '' && !this.#isResent) {
      this.#of(id).counted += Number(script.args[5]);
    }
    if (script.name === 'unschedule' && typeof reply === 'string' && reply.startsWith('w') && script.args[3] === '') {
      this.#of(id).counted = 0;
      this.#of(id).removedAt = this.simulation.engine.now;
    }
  }

  begins({ name, keys, args }: RunningScript): void {
    if (name === 'beginOccurrence' && queueOf(keys[0]!) === RECURRING) {
      this.#isOver = this.oracle.peek('HEXISTS', keys[SHARD_KEYS.followups]!, args[1]!) === 1;
      this.#hasFloor = this.oracle.peek('HGET', `${this.#base}schedules`, `floor{${args[0]!}}`) === args[1];
    }
    if (!COUNTS_MISSED.has(name) || queueOf(keys[0]!) !== RECURRING) return;
    const remembered = this.oracle.peek('GET', keys[SHARD_KEYS.session]!) as string | null;
    this.#isResent = remembered?.startsWith(`${parseInt(args[0]!, 10)} `) ?? false;
  }

  /** A server says whether an occurrence may begin, be it one that has been deposed: its process goes by that all the same. */
  answered([, id, claim, asked]: readonly string[], reply: Reply | undefined): void {
    if (reply === 'b' && asked === 'w') this.#toldToWait.set(id!, claim!);
  }

  /** Whether it has asked by this claim, and was told to wait for an earlier one. */
  wasToldToWait(id: string, claim: string): boolean {
    return this.#toldToWait.get(id) === claim;
  }

  /**
   * It was handed back until the one before it has ended, or until the server says whether it has. Its process counts from the answer that told
   * it of the claim, which may be that to a resend.
   */
  waits(id: string, due: number): boolean {
    const claimed = this.#claimed.get(id);
    return claimed !== undefined && this.simulation.clocks.hasShown(baseOf(RECURRING), due - ASK_AGAIN_MS, claimed);
  }

  // --- What becomes of it -----------------------------------------------------------------------------------------------

  claimed(id: string, due: number | undefined): void {
    if (due === undefined) this.#claimed.delete(id);
    else {
      const clock = Math.floor(this.simulation.clockMs(baseOf(RECURRING)));
      this.#claimed.set(id, { due, clock, at: this.simulation.engine.now });
    }
  }

  /** A handler begins. */
  handlerBegins(member: Member, id: string, run: RunPlan): void {
    const schedule = this.#of(scheduleOf(id)!);
    const job = this.oracle.job(id);
    job.queue = RECURRING;
    const version = this.oracle.version(id, run.n);
    if (version.calls === 0) version.calls = schedule.extras.has(id) ? 2 : 1;
    const definition = schedule.made.get(id)?.value;
    if (!definition || schedule.extras.has(id)) return;
    const claimed = this.#granted.get(id)?.claimed ?? this.#claimed.get(id);
    const isFirst = !this.#begun.has(id);
    // What it began by may be a claim that only a deposed master knows, or that was lost with the tail, while somebody else has been given the
    // occurrence.
    const isDeceived = this.#isDeceived(member, id) || job.claim?.member !== member;
    const isNoted = this.#isNoted(member, id);
    this.#begun.set(id, { changes: isNoted ? schedule.changes : NaN, at: this.simulation.engine.now });
    if (isFirst && claimed && !isDeceived) this.#judgeMissed(member, id, definition, claimed);
    if (definition.overlap !== 'allow' && isNoted) this.#judgeOverlap(member, id, schedule);
  }

  /**
   * Whether the master has noted that it begins. Excused: a master said so that has been deposed, and the two do not know what begins by
   * the other one; or what was noted was lost with the tail, while the answer was on its way to a process that was frozen; or the schedule
   * was removed, also to be made anew, and what is left of it has no place where that is noted.
   */
  #isNoted(member: Member, id: string): boolean {
    const isDeceived = this.#isDeceived(member, id);
    const granted = this.#granted.get(id);
    this.#granted.delete(id);
    if (isDeceived || (granted && granted.at <= this.oracle.lastRollbackAt)) return false;
    return this.#hasPlace(id) && (granted?.hasPlace ?? true);
  }

  /** A master that has been deposed said that it may begin. */
  #isDeceived({ id: member, process }: Member, id: string): boolean {
    return this.simulation.isDeceived(process) && this.#granted.get(id)?.member !== member;
  }

  /**
   * Who holds it by a claim of that time has asked, or is about to ask, whether it may begin, and was told nothing yet: it has not begun since.
   * What the server has answered since may still be on its way.
   */
  isHeldBack(id: string, claimedAt: number): boolean {
    const schedule = scheduleOf(id);
    if (schedule === undefined) return false;
    const { made, extras } = this.#of(schedule);
    return (made.has(id) || extras.has(id)) && (this.#begun.get(id)?.at ?? -Infinity) < claimedAt;
  }

  #judgeMissed(
    member: Member,
    id: string,
    { missed, graceMs, everyMs, cron }: ScheduleRecord['definition'],
    { due, clock, at }: ClaimedOccurrence,
  ): void {
    const width = everyMs ?? widthOf(cron!);
    // A clock that was set back since it was claimed has not come to that time, and the process goes by it.
    const lateMs = clock - due - this.simulation.clocks.setBackSince(this.#base, at);
    const most = missed === 'skip' ? Math.min(graceMs, width) : missed === 'once' ? width - 1 : Infinity;
    // A job that was handed back has another due time than its own.
    if (due !== timeOf(id) || lateMs <= most + ROUNDING_MS) return;
    // It gives way to a later one, if there is one: the next one may have been cancelled.
    const next = `{${scheduleOf(id)!}}${(due + width).toString(36)}`;
    if (missed === 'once' && this.oracle.peek('HEXISTS', `${this.#base}jobs`, next) === 0) return;
    this.oracle.report(
      'missed',
      `${id} begins on ${member.id} ${lateMs} ms late, though it is missed after ${most} ms`,
    );
  }

  /**
   * One that has begun is alive until it has ended, also while it waits for a retry. Excused: something else was asked of the schedule
   * since, or it was removed.
   */
  #judgeOverlap(member: Member, id: string, { made, extras, changes, removedAt }: ScheduleHistory): void {
    const base = this.#base;
    if (this.oracle.peek('ZSCORE', `${base}running`, id) === null) return;
    for (const [other, begun] of this.#begun) {
      if (other === id || scheduleOf(other) !== scheduleOf(id) || begun.changes !== changes) continue;
      if (extras.has(other) || made.get(other)?.value.overlap !== made.get(id)!.value.overlap) continue;
      if (begun.at <= Math.max(removedAt, this.oracle.lastRollbackAt)) continue;
      if (this.oracle.peek('HEXISTS', `${base}jobs`, other) === 0) continue;
      if (this.oracle.peek('ZSCORE', `${base}dead`, other) !== null) continue;
      this.oracle.report('overlapping', `${id} begins on ${member.id}, though ${other} has begun and not ended`);
    }
  }

  // --- At the server ----------------------------------------------------------------------------------------------------

  /** Between the last time before and the last one now each one is made, or counted as missed. */
  #ticked({ keys, args }: RunningScript, reply: string): void {
    const [, id, read, follows, , missed, , gone] = args as string[];
    const after = decoded(follows)!;
    const schedule = this.#of(id);
    const written = <Value>(value: Value, before: Written<Value> | undefined): Written<Value> => {
      return { value, shard: keys[SHARD_KEYS.due]!, length: this.simulation.server.disk.length, before };
    };
    const makes = (occurrence: string) => {
      schedule.made.set(occurrence, written(after.definition, schedule.made.get(occurrence)));
    };
    const present = gridOf(after);
    if (JSON.stringify(present) !== JSON.stringify(schedule.grid?.value))
      schedule.grid = written(present, schedule.grid);
    // Those that a pause takes back were due: `w0110` says which of them it found.
    schedule.counted += Number(missed) + reply.split('1').length - 1;
    this.#judgeCount(id, schedule);
    const first = FIRST_OCCURRENCE + Number(gone);
    const n = numberOf(after.content);
    const stored: string[] = [];
    for (let i = first; i < args.length; i += 4) stored.push(args[i]!);
    for (const occurrence of stored) {
      const job = this.oracle.job(occurrence);
      job.queue = RECURRING;
      job.dueSetAt = this.simulation.engine.now;
      // Also a clock that was set back makes times come again.
      const isAgain = schedule.extras.has(occurrence) || schedule.made.has(occurrence);
      const version = this.oracle.version(occurrence, n);
      if (isAgain || version.calls === 0) version.calls = isAgain ? 2 : 1;
    }
    const before = read === '' ? undefined : decoded(read);
    const isTick = before && isSame(before, after) && !before.state.paused;
    if (!isTick || after.state.paused || after.state.last === before.state.last) {
      // Made beside the others, or anew.
      const isExtra = before && after.state.last === before.state.last;
      for (const occurrence of stored) {
        if (isExtra) schedule.extras.add(occurrence);
        else makes(occurrence);
      }
      return;
    }
    const grid = gridOf(after);
    const over = new Set(before.state.over);
    const isOver = (at: number) => over.has(at) && this.#hadItsLife(`{${id}}${at.toString(36)}`);
    const times = gridTimes(grid, before.state.last + 1, after.state.last).filter((at) => !isOver(at));
    const isRight = stored.every((occurrence) => times.includes(timeOf(occurrence)!));
    if (times.length !== stored.length + Number(missed) || !isRight) {
      const what = `${times.length} times since ${before.state.last}, made ${stored.length} occurrences, and counted ${missed}`;
      this.oracle.report('occurrence', `${id} of ${keys[SHARD_KEYS.due]!} has ${what} as missed`);
    }
    for (const occurrence of stored) makes(occurrence);
  }

  /**
   * Excused: a clock that was ahead had it run, or be left out, long before its time, and was set right. A change of its schedule then names it
   * as over, and nobody makes it again when its time comes. What nobody has begun or left out, and what is not stored, would be lost.
   */
  #hadItsLife(occurrence: string): boolean {
    const { made, extras, skipped } = this.#of(scheduleOf(occurrence)!);
    if (!made.has(occurrence) && !extras.has(occurrence)) return false;
    if (this.#begun.has(occurrence) || skipped.has(occurrence)) return true;
    const { versions } = this.oracle.job(occurrence);
    if ([...versions.values()].some(({ tries, overAt }) => tries > 0 || overAt !== undefined)) return true;
    return this.oracle.peek('HEXISTS', `${this.#base}jobs`, occurrence) === 1;
  }

  /** What was due and is taken back counts as missed. */
  #withdrawn({ args }: RunningScript, reply: string): void {
    const counts = reply.split(' ')[0]!.split(',');
    for (const [n, found] of counts.entries()) {
      const id = args[5 + 4 * n]!;
      const schedule = this.#of(id);
      if (this.#isStored(id)) schedule.counted += Number(found.split(':')[1]);
      this.#judgeCount(id, schedule);
    }
  }

  #asksToBegin({ keys, args, member }: RunningScript, reply: Reply): void {
    const [id, occurrence, , asked] = args as [string, string, string, string];
    const { now } = this.simulation.engine;
    if (reply === 'g') {
      const before = this.#granted.get(occurrence);
      // What was lost with a tail need not be that.
      const isKept = before !== undefined && (before.at > this.oracle.lastRollbackAt || this.#hasFloor);
      const claimed = isKept ? before.claimed : this.#claimed.get(occurrence);
      this.#granted.set(occurrence, { member: member?.id, at: now, hasPlace: this.#hasPlace(occurrence), claimed });
    }
    if (reply !== 'm' && !(reply === 'b' && asked === 's')) return;
    const schedule = this.#of(id);
    const before = schedule.skipped.get(occurrence);
    // One that is made again, because a clock was set back, is left out once more.
    if (this.#isStored(id) && !this.#isOver) schedule.counted++;
    schedule.skipped.set(occurrence, this.simulation.engine.now);
    this.#judgeCount(id, schedule, before);
    // Or it would be counted once more when it asks again.
    if (this.oracle.peek('HEXISTS', keys[SHARD_KEYS.followups]!, occurrence) === 0) {
      this.oracle.report('occurrence', `${occurrence} is left out, and its run does not end it`);
    }
    for (const version of this.oracle.job(occurrence).versions.values()) {
      version.overAt ??= this.simulation.server.disk.length;
    }
  }

  /**
   * Excused: what was counted was lost with the tail.
   *
   * @param since of an occurrence that is left out once more: when that happened before
   */
  #judgeCount(id: string, schedule: ScheduleHistory, since = schedule.countedAt): void {
    const fields = [`missed{${id}}`, `overlapped{${id}}`];
    const found = this.oracle.peek('HMGET', `${this.#base}schedules`, ...fields) as (string | null)[];
    const counted = found.reduce((sum, count) => sum + Number(count ?? 0), 0);
    const isLost = Math.min(since, schedule.countedAt) <= this.oracle.lastRollbackAt;
    schedule.countedAt = this.simulation.engine.now;
    if (counted !== schedule.counted && !isLost) {
      this.oracle.report('occurrence', `${id} has left out ${schedule.counted} occurrences, and counts ${counted}`);
    }
    schedule.counted = counted;
  }

  #isStored(id: string): boolean {
    return this.oracle.peek('HEXISTS', `${this.#base}schedules`, `{${id}}`) === 1;
  }

  /** Its schedule is stored, and is the one that made it. */
  #hasPlace(occurrence: string): boolean {
    const id = scheduleOf(occurrence)!;
    const since = Number(this.oracle.peek('HGET', `${this.#base}schedules`, `since{${id}}`) ?? 0);
    return this.#isStored(id) && (timeOf(occurrence) ?? Infinity) >= since;
  }

  get #base(): string {
    return `dq:{${RECURRING}}:`;
  }

  #of(id: string): ScheduleHistory {
    let schedule = this.#schedules.get(id);
    if (!schedule) {
      schedule = {
        changes: 0,
        removedAt: -1,
        counted: 0,
        countedAt: -1,
        grid: undefined,
        made: new Map(),
        extras: new Set(),
        skipped: new Map(),
      };
      this.#schedules.set(id, schedule);
    }
    return schedule;
  }
}

/** All times from one to another, both included. */
export function gridTimes({ everyMs, anchor, begin }: Grid, from: number, to: number): number[] {
  const times: number[] = [];
  const since = Math.max(from, begin) - anchor;
  const first = anchor + Math.max(anchor === 0 ? -Infinity : 0, Math.ceil(since / everyMs)) * everyMs;
  for (let at = first; at <= to; at += everyMs) times.push(at);
  return times;
}

function gridOf({ definition, state }: ScheduleRecord): Grid {
  const { everyMs, cron, from } = definition;
  const begin = from ?? -Infinity;
  return everyMs === null ? { everyMs: widthOf(cron!), anchor: 0, begin } : { everyMs, anchor: state.anchor, begin };
}

function widthOf(cron: string): number {
  return Number(/^\*\/(\d+) /.exec(cron)![1]) * 1_000;
}

function isSame(one: ScheduleRecord, other: ScheduleRecord): boolean {
  return JSON.stringify(one.definition) === JSON.stringify(other.definition) && one.content === other.content;
}

/** The id of the schedule that has made this job; undefined for an ordinary one. */
export function scheduleOf(id: string): string | undefined {
  return /^\{([^{}]+)\}[0-9a-z]{1,9}$/.exec(id)?.[1];
}

function timeOf(id: string): number | undefined {
  const [, time] = /^\{[^{}]+\}([0-9a-z]{1,9})$/.exec(id) ?? [];
  return time === undefined ? undefined : parseInt(time, 36);
}

/** The number of its payload, which a codec of the application may have written as bytes. NaN of a damaged one. */
export function numberOf(content: string): number {
  const body = content.slice(content.indexOf('\n') + 1);
  const [, n] = NUMBER.exec(body) ?? NUMBER.exec(Buffer.from(body, 'base64').toString('latin1')) ?? [];
  return Number(n);
}

/** As lib/recurring/schedule-record.ts writes it. */
function decoded(text: string): ScheduleRecord | undefined {
  const [definition, state] = text.split('\n', 2);
  if (!definition || !state) return undefined;
  return {
    definition: JSON.parse(definition.slice(1)) as ScheduleRecord['definition'],
    state: JSON.parse(state) as ScheduleRecord['state'],
    content: text.slice(definition.length + state.length + 2),
  };
}
