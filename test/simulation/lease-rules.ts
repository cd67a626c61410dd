import type { ClockJump } from './node-clocks.js';
import type { Member, RunInProcess } from './fleet.js';
import type { ClaimHistory } from './history.js';
import type { Oracle } from './oracle.js';
import { queueOf } from './queues.js';
import type { RunningScript, ScriptRules } from './script-rules.js';
import type { Simulation } from './simulation.js';
import { SHARD_KEYS } from './step-arguments.js';
import type { Concerns } from './witness.js';

/** The script knows whole ms only. */
const ROUNDING_MS = 2;
/** How long a process has been well before its last heartbeat counts as one of many. */
const WELL_FOR_MS = 2_000;

/** Of a jump of a clock: the step that was the first to be done after it. */
interface Witness {
  /** Its process could know of the jump. */
  knows: boolean;
  /** A time of grace lasted by the clock before that jump: a pause may have begun it. */
  readonly isInGrace: boolean;
  /** Simulated ms. */
  readonly at: number;
  /** Length of the log. */
  readonly notedAt: number;
}

interface LateNote {
  /** Its `due` key. */
  readonly shard: string;
  /** Simulated ms. */
  readonly at: number;
  /** Of the log, behind it. */
  readonly length: number;
  isLost: boolean;
}

/** A lease lasts as long as it was given for, and whoever sends heartbeats keeps it. */
export class LeaseRules implements ScriptRules {
  /** By shards and jumps of their clocks. */
  readonly #witnesses = new Map<string, Map<ClockJump, Witness>>();
  /** That a step was refused as late, as after a jump of the clock. */
  readonly #lateNotes: LateNote[] = [];
  /** Until when the time of grace lasted as the present step began, by its shard's clock; only known after a jump. */
  #graceUntil = 0;

  constructor(
    private readonly simulation: Simulation,
    private readonly oracle: Oracle,
  ) {}

  /**
   * Excused: the last renewal was lost with the tail of the log; or the first witness of a second jump of the clock is a step of a process that
   * had no answer of this shard when it sent the step, or none from before that jump: what happened to this clock it cannot know, although
   * the process works elsewhere by then. Or Redis lost with the tail what the first witness had noted, or that it had refused a step as late.
   * Then the time of grace becomes longer by half a lease, whoever takes the jobs back after it.
   */
  takenBack(claim: ClaimHistory, id: string, script: RunningScript): void {
    if (claim.isDoubtful) return;
    const witnesses = this.#witnesses.get(script.keys[SHARD_KEYS.due]!);
    const isUnknown = (jump: ClockJump) =>
      !(witnesses?.get(jump)?.knows ?? knows(script, jump)) || this.#hasLostNoteOf(jump, claim.shard);
    if (script.member && this.#secondJumpsOf(claim).some(isUnknown)) return;
    const hiddenMs = this.#hiddenJumpsMs(claim);
    this.#judgeTooSoon(claim, id, hiddenMs);
    if (hiddenMs === 0) this.#judgeLoss(claim, id);
  }

  begins(script: RunningScript): void {
    const { due, meta } = SHARD_KEYS;
    if (!script.step || !this.#hasNewJump(script.keys[due]!)) return;
    this.#graceUntil = Number(this.oracle.peek('HGET', script.keys[meta]!, 'graceUntil'));
  }

  #hasNewJump(shard: string): boolean {
    return (this.#witnesses.get(shard)?.size ?? 0) < this.simulation.clocks.jumpsOf(shard).length;
  }

  runs({ keys, step }: RunningScript, name: string, args: readonly string[]): void {
    if (!step || name !== 'HSET' || args[0] !== keys[SHARD_KEYS.meta] || args[1] !== 'lateAt') return;
    const { engine, server } = this.simulation;
    this.#lateNotes.push({
      shard: keys[SHARD_KEYS.due]!,
      at: engine.now,
      length: server.disk.length + 1,
      isLost: false,
    });
  }

  /** Without that note a step after the jump looks like one after a pause. */
  #hasLostNoteOf(jump: ClockJump, of: string): boolean {
    return this.#lateNotes.some(({ shard, at, isLost }) => isLost && shard === of && at > jump.at);
  }

  /** A step was done, which sees by how much the clock went on since the one before. */
  ends(script: RunningScript): void {
    if (!script.step) return;
    const shard = script.keys[SHARD_KEYS.due]!;
    if (!this.#hasNewJump(shard)) return;
    const witnesses = this.#witnesses.get(shard) ?? new Map<ClockJump, Witness>();
    const news = this.simulation.clocks.jumpsOf(shard).filter((jump) => !witnesses.has(jump));
    const before = this.simulation.clockMs(shard) - news.reduce((sum, { ms }) => sum + ms, 0);
    const isInGrace = this.#graceUntil > before;
    const at = this.simulation.engine.now;
    const notedAt = this.simulation.server.disk.length;
    for (const jump of news) witnesses.set(jump, { knows: knows(script, jump), isInGrace, at, notedAt });
    this.#witnesses.set(shard, witnesses);
  }

  /** What was noted of a jump is lost, and whoever saw it goes by the new clock. */
  rolledBack(length: number, concerns: Concerns): void {
    for (const note of this.#lateNotes)
      if (note.length > length && concerns(queueOf(note.shard), note.shard)) note.isLost = true;
    for (const [due, witnesses] of this.#witnesses) {
      if (!concerns(queueOf(due), due)) continue;
      for (const witness of witnesses.values()) if (witness.notedAt > length) witness.knows = false;
    }
  }

  /**
   * Whether Redis had taken from a process what begins there, so that another one may have done it by now, and the process could not know:
   * the answer that brought the job was on its way to it, as when it is frozen, and by its own clock the lease lasted. The claim was
   * lost with the tail; or the clock jumped ahead, by which leases are shorter, and the job was taken back.
   *
   * @param before the last run of the job there before this one
   */
  hasLostUnknown(member: Member, queue: string, id: string, before: RunInProcess | undefined): boolean {
    const isIts = (one: ClaimHistory) => one.member === member && one.queue === queue && one.jobs.has(id);
    const claim = [...this.oracle.claims.values()].findLast(isIts);
    if (!claim || (before && before.startedAt >= claim.at)) return false;
    const isShorter = this.simulation.clocks.jumpsOf(claim.shard).some(({ at, ms }) => ms > 0 && at > claim.at);
    return claim.isLost || (isShorter && claim.jobs.get(id)!.outcomeAt !== undefined);
  }

  /**
   * Jumps since its renewal, during which the time of grace may have lasted that another one or a pause had begun: the last one, or any
   * larger one.
   */
  #secondJumpsOf({ shard, renewedAt }: ClaimHistory): readonly ClockJump[] {
    const { leaseMs } = this.simulation.configuration;
    const all = this.simulation.clocks.jumpsOf(shard);
    const since = all.filter(({ at }) => at > renewedAt);
    const isDuringGrace = ({ at }: ClockJump) => all.some((other) => other.at < at && other.at > at - 2 * leaseMs);
    const witnesses = this.#witnesses.get(shard);
    const fellIntoGrace = (jump: ClockJump) => isDuringGrace(jump) || witnesses?.get(jump)?.isInGrace === true;
    const larger = since.filter((jump) => Math.abs(jump.ms) > leaseMs / 2 && fellIntoGrace(jump));
    return since.length > 1 ? [...larger, since.at(-1)!] : larger;
  }

  /**
   * A heartbeat gives the whole lease anew, also one that `extend()` has asked for. Where nothing sends heartbeats, a renewal only tells
   * that the job is not alone any more, and takes nothing away.
   */
  renewed(
    { number, shard, leaseMs, member, isKept, deadline: before, renewedAt }: ClaimHistory,
    deadline: number,
  ): void {
    const given = deadline - this.simulation.clockMs(shard);
    if (given >= leaseMs - ROUNDING_MS) return;
    const hasJumped = this.simulation.clocks.jumpsOf(shard).some(({ at }) => at > renewedAt);
    if (!isKept && (hasJumped || deadline >= before - this.#roundingMs)) return;
    const of = `${number} of ${member?.id ?? 'nobody known'}`;
    this.oracle.report(
      'lostLease',
      `a heartbeat gave ${of} ${Math.round(given)} ms, though its lease is ${leaseMs} ms`,
    );
  }

  /** `extend()` under a number that does not hold the job changes nothing; else it only adds. */
  extended({ keys, args }: RunningScript, deadline: number): void {
    const [number, id] = [args[1]!, args[2]!];
    const held = this.oracle.peek('ZSCORE', keys[SHARD_KEYS.running]!, id) as string | null;
    if (held !== number) {
      this.oracle.report(
        'stale',
        `${id} got another lease by extend() under ${number}, though ${held ?? 'nobody'} held it`,
      );
    }
    const old = this.oracle.claimOf(keys[SHARD_KEYS.due]!, number);
    const jumped = old && this.simulation.clocks.jumpsOf(old.shard).some(({ at }) => at > old.renewedAt);
    if (!old || old.isDoubtful || jumped || deadline >= old.deadline - this.#roundingMs) return;
    const ms = Math.round(old.deadline - deadline);
    this.oracle.report('lostLease', `extend() of ${id} by ${args[3]!} ms took ${ms} ms from its lease`);
  }

  /**
   * A jump of the server's clock by less than half a lease looks like a pause between two steps, and shortens each lease by as much.
   * No other one may.
   */
  #hiddenJumpsMs(claim: ClaimHistory): number {
    const hidden = this.#seenJumpsMs(claim).filter((ms) => ms > 0 && ms <= this.simulation.configuration.leaseMs / 2);
    return hidden.reduce((sum, ms) => sum + ms, 0);
  }

  /** By how much the clock jumped since its renewal, from step to step: of several jumps between two steps only the sum is seen. */
  #seenJumpsMs({ shard, renewedAt }: ClaimHistory): readonly number[] {
    const witnesses = this.#witnesses.get(shard);
    const sums = new Map<number | undefined, number>();
    for (const jump of this.simulation.clocks.jumpsOf(shard)) {
      if (jump.at <= renewedAt) continue;
      const seenAt = witnesses?.get(jump)?.at;
      sums.set(seenAt, (sums.get(seenAt) ?? 0) + jump.ms);
    }
    return [...sums.values()];
  }

  #judgeTooSoon(claim: ClaimHistory, id: string, hiddenMs: number): void {
    const { engine, configuration } = this.simulation;
    const since = this.#seenJumpsMs(claim);
    // After a jump that is noticed nothing is taken back for one lease of the queue, whatever extend() had asked for.
    const isNoticed = since.some((ms) => Math.abs(ms) > configuration.leaseMs / 2);
    const given = isNoticed ? Math.min(claim.leaseMs, configuration.leaseMs) : claim.leaseMs;
    const early = Math.round(given - hiddenMs - (engine.now - claim.renewedAt));
    // A sweep cuts one that is longer than others need by as much as the clock goes back.
    if (early <= this.#roundingMs * (claim.isExtended ? 2 : 1)) return;
    const after = since.length > 0 ? ` after the clock jumped by ${since.join(' and ')} ms` : '';
    this.oracle.report('overlap', `${id} was taken back ${early} ms before its lease of ${given} ms ended${after}`);
  }

  /**
   * A process that lives, is connected and sends heartbeats keeps its jobs, also while it drains. Excused: `extend()` had given the job a lease
   * of its own, and that was lost with the tail. The process looks for it under that one, and renews the old one for other jobs.
   */
  #judgeLoss(claim: ClaimHistory, id: string): void {
    const { member, queue } = claim;
    if (!claim.isKept || !member || !this.#isWell(member)) return;
    // It has ended there, and its lease was renewed for others of its claim.
    if (claim.jobs.get(id)?.isOutcomeLost) return;
    const last = this.oracle.job(id).claim;
    if (last?.isExtended && last.isLost && last.member === member && last.queue === queue && last.at > claim.at) return;
    const wellSince = Math.max(this.simulation.troubles.wellSince(member.process.name), member.bootedAt);
    if (wellSince + WELL_FOR_MS >= claim.renewedAt) return;
    const lease = `${claim.leaseMs} ms${claim.isExtended ? ' by extend()' : ''}`;
    const ago = Math.round(this.simulation.engine.now - claim.renewedAt);
    const who = `${member.id}, which lived and had no trouble`;
    this.oracle.report('lostLease', `${id} was taken from ${who} (lease ${lease}, renewed ${ago} ms ago)`);
  }

  /** A clock that slips is wrong by so much at the beginning, and as much the other way at the end. */
  get #roundingMs(): number {
    return ROUNDING_MS + 2 * (this.simulation.weather?.mostSlippedMs ?? 0);
  }

  #isWell(member: Member): boolean {
    return member.isAlive && !member.isClosed && !member.process.isFrozen;
  }
}

/** The process had an answer of this shard before that jump, and its step says what time it was by it. */
function knows({ keys, member, step }: RunningScript, { at }: ClockJump): boolean {
  return step?.leftAt !== undefined && member !== undefined && member.firstAnswerAt(keys[SHARD_KEYS.due]!) <= at;
}
