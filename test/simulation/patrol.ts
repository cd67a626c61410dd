import { FREE_LOSSES } from './charge-rules.js';
import type { Member } from './fleet.js';
import type { ClaimHistory } from './history.js';
import type { Simulation } from './simulation.js';
import { MOVED, queueOf, RECURRING, TAKEN } from './queues.js';
import { ALL } from './troubles.js';

/** How often the rules look at what is stored. */
export const LOOK_EVERY_MS = 500;
/** After trouble: how long until the fleet must be as punctual as ever. */
const RECOVERED_MS = 5_000;
/** Steps between two looks that neither claim nor settle nor take back. */
const MOST_USELESS_STEPS = 60;
/** Where a place is free, a job starts by then; see lib/worker/poll-schedule.ts. */
const STARTS_WITHIN_MS = 6_000;
/** By then a job starts among others; see lib/worker/isolation/quarantine-turn.ts. */
const LONGEST_IN_QUARANTINE_MS = 60_000;
/** Within this time after one that has lost three leases the next one starts: 2.5 s, and what a call takes. */
const APART_MS = 3_500;
/** After a restart no lease counts as over for the time of one more, and then some worker sweeps. */
const GRACE_LEASES = 2;
const SWEPT_MS = 10_000;
/** A worker's longest silence: its heartbeats and polls come more often. */
const LONGEST_SILENCE_MS = 12_000;

/** Looks at the store and the fleet from time to time, and at the end. It judges only where nothing has been wrong for long enough. */
export class Patrol {
  constructor(private readonly simulation: Simulation) {}

  look(): void {
    for (const member of this.simulation.fleet.living) this.#lookAtMember(member);
    // Where somebody else has written, the keys do not agree.
    for (const base of this.simulation.shardBases) if (!this.simulation.damages.isIn(base)) this.#lookAtShard(base);
  }

  /** Everything that was accepted has ended, so the run may end. */
  get isDone(): boolean {
    const { server, troubles, engine, oracle } = this.simulation;
    if (!server.isListening || troubles.calmSince() + RECOVERED_MS > engine.now) return false;
    return this.simulation.shardBases.every(
      (base) => oracle.peek('HLEN', `${base}jobs`) === oracle.peek('ZCARD', `${base}dead`),
    );
  }

  /**
   * A process that has drained in time holds no job: each one was settled or handed back.
   *
   * @param queue that it has given up; undefined where it has given up all
   * @param isWell false: something was wrong with it meanwhile, which may be over
   */
  afterDrain(member: Member, queue?: string, isWell = true): void {
    const { oracle, engine, shardBases, troubles } = this.simulation;
    if (member.role === 'puller') return;
    // What happened to all of them while it drained happened to it as well.
    const isCalm = isWell && troubles.calmSince(ALL) < engine.now;
    for (const base of shardBases) {
      if (queue !== undefined && queueOf(base) !== queue) continue;
      for (const [id, number] of this.#running(base)) {
        const claim = oracle.claimOf(`${base}due`, number);
        if (claim?.member !== member) continue;
        const job = claim.jobs.get(id);
        if (!isCalm && job) job.isLeft = true;
        // It was settled, or taken back, and that was lost with the tail.
        if (!isCalm || job?.isLeft || job?.isOutcomeLost) continue;
        oracle.report('drain', `${id} is still held for ${member.id}, which has drained`);
      }
    }
  }

  atEnd(): void {
    this.#judgeLost();
    for (const base of this.simulation.shardBases) {
      this.#judgeStuck(base);
      this.simulation.oracle.limits.atEnd(base);
    }
  }

  #lookAtMember(member: Member): void {
    const { oracle, engine, troubles, network } = this.simulation;
    const { steps, usefulSteps, fromQuarantine } = member;
    // Each shard of each queue is looked at for itself, by two sessions, which at first are refused until they have opened it.
    // And where a job of the quarantine has had the process for itself, or is about to, each of them asks again.
    // And where a connection has come back each worker looks, whether it is that of wake-ups or that of commands.
    const connections = network.connectionsOf(member.process);
    const back = connections - member.connections;
    member.connections = connections;
    const most = MOST_USELESS_STEPS + (4 + back + 2 * (fromQuarantine + 1)) * this.simulation.shardBases.length;
    // With fewer slots than shards it has none left again and again, and asks each shard when it has one.
    const { shards, concurrency } = this.simulation.configuration;
    const perUseful = 4 + (shards > concurrency ? shards : 0);
    if (steps > most + perUseful * usefulSteps) {
      oracle.reportOnce(
        'spin',
        member.id,
        `${member.id} sent ${steps} steps in half a second, of which at most ${usefulSteps} claimed, settled or took back`,
      );
    }
    member.steps = member.usefulSteps = member.fromQuarantine = 0;
    if (member.role !== 'worker' || member.isStopping || member.isBroken || member.process.isFrozen) return;
    const calm = Math.max(troubles.calmSince(), member.servesAllSince);
    if (calm + LONGEST_SILENCE_MS + 1_000 < engine.now && member.lastStepAt + LONGEST_SILENCE_MS < engine.now) {
      oracle.reportOnce(
        'mute',
        member.id,
        `${member.id} lives, and its last step or look was at ${Math.round(member.lastStepAt)}`,
      );
    }
  }

  #lookAtShard(base: string): void {
    const { oracle, engine, punctuality } = this.simulation;
    const size = (key: string) => Number(oracle.peek('ZCARD', base + key));
    const indexed = size('due') + size('running') + size('quarantine') + size('dead');
    const stored = Number(oracle.peek('HLEN', `${base}jobs`));
    if (indexed !== stored)
      oracle.reportOnce('index', base, `${base} stores ${stored} jobs and has ${indexed} in its indexes`);
    for (const number of oracle.peek('ZRANGE', `${base}leases`, '0', '-1') as string[]) {
      if (oracle.peek('ZCOUNT', `${base}running`, number, number) === 0) {
        oracle.reportOnce('ghostLease', number, `the lease ${number} of ${base} holds no job`);
      }
    }
    oracle.kept.look(base);
    if (size('quarantine') > 0) punctuality.quarantineAt = engine.now;
    this.#lookAtRunning(base);
    oracle.limits.look(base);
    for (const [head, due] of oracle.limits.heads(base) ?? this.#head(base)) {
      const { waitedMs, allowedMs } = punctuality.waitOf(
        `${base}due`,
        oracle.job(head),
        this.simulation.clockMs(base) - due,
      );
      if (waitedMs <= allowedMs) continue;
      const what = `${head} of ${base} waits for ${Math.round(waitedMs)} ms, though a worker is free`;
      oracle.reportOnce('idle', head, what);
    }
  }

  #head(base: string): readonly [id: string, due: number][] {
    const [head, due] = this.simulation.oracle.peek('ZRANGE', `${base}due`, '0', '0', 'WITHSCORES') as string[];
    return head === undefined ? [] : [[head, Number(due)]];
  }

  /** Jobs that are held, each with the number of its claim. */
  #running(base: string): (readonly [id: string, number: string])[] {
    const flat = this.simulation.oracle.peek('ZRANGE', `${base}running`, '0', '-1', 'WITHSCORES') as string[];
    return Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i]!, flat[2 * i + 1]!]);
  }

  /** Since when some worker of a queue has been well. */
  #sweptSince(queue: string): number {
    const { fleet, troubles } = this.simulation;
    const workers = fleet.living.filter((one) => !one.isBroken && one.queues.includes(queue));
    const since = (one: Member) => Math.max(troubles.calmSince(one.process.name), one.servesSince(queue));
    return Math.min(...workers.map(since));
  }

  /** A job that is held for a living process runs there. */
  #lookAtRunning(base: string): void {
    const { oracle, engine, troubles, configuration, punctuality } = this.simulation;
    for (const [id, number] of this.#running(base)) {
      if (oracle.job(id).isLosing) punctuality.quarantineAt = engine.now;
      const claim = oracle.claimOf(`${base}due`, number);
      const member = claim?.member;
      if (!claim || !member?.isAlive || member.isStopping) continue;
      const settled = 2 * configuration.commandTimeoutMs + 3_000;
      const calmSince = troubles.calmSince(member.process.name);
      if (engine.now < Math.max(claim.at, calmSince) + settled) continue;
      // Its worker stopped where it could not hand it back, its outcome was lost with the tail, or told to a master that had been deposed, or
      // its process was frozen for longer than Redis remembers what it has not told: nobody renews it, and it is taken back when its lease
      // is over, by somebody who is well.
      const { isLeft, isOutcomeLost } = claim.jobs.get(id) ?? {};
      const isUntold = isLeft || isOutcomeLost || claim.at < oracle.lastRollbackAt;
      const isForgotten = isUntold || claim.renewedAt + claim.leaseMs < calmSince;
      const since = Math.max(oracle.lastRollbackAt, this.#sweptSince(claim.queue));
      const leaseMs = this.#leaseLeft(claim);
      // A heartbeat for the others of its claim has told its process by then.
      const toldAt = Math.max(oracle.lastRollbackAt, calmSince, claim.at) + settled + claim.leaseMs;
      const isTold = claim.isKept && claim.renewedAt > toldAt && !configuration.older;
      if (isForgotten && !isTold && engine.now < since + leaseMs + GRACE_LEASES * configuration.leaseMs + SWEPT_MS)
        continue;
      const run = member.runOf(claim.queue, id);
      const isRun = run && (run.endedAt === undefined || run.endedAt + 5_000 > engine.now);
      if (!isRun) {
        const ago = Math.round(engine.now - claim.at);
        oracle.reportOnce(
          'orphan',
          `${id} ${number}`,
          `${id} is held for ${member.id} (claim of ${ago} ms ago), which lives and does not run it`,
        );
      }
    }
  }

  /** Where the clock has gone back, Redis takes no lease for longer than the longest one that it has given; see lib/lua/step/recover.lua. */
  #leaseLeft({ shard, at, leaseMs }: ClaimHistory): number {
    const { oracle, clocks } = this.simulation;
    if (!clocks.jumpsOf(shard).some((jump) => jump.ms < 0 && jump.at > at)) return leaseMs;
    const others = [...oracle.claims.values()].filter((one) => one.shard === shard);
    return Math.max(leaseMs, oracle.moves.leaseMs(shard), ...others.map((one) => one.leaseMs));
  }

  #judgeLost(): void {
    const { oracle } = this.simulation;
    for (const job of oracle.jobs.values()) {
      if (job.cancelAsked || this.#isStored(job.id)) continue;
      for (const version of job.versions.values()) {
        const { isAcknowledged, endedWell, overAt, isSuperseded, excuse } = version;
        if (isAcknowledged && endedWell === 0 && overAt === undefined && !isSuperseded && !excuse) {
          oracle.report('lost', `${job.id} was acknowledged (version ${version.n}), never ended, and is nowhere`);
        }
      }
    }
  }

  /** In its own queue, or in the one that it was moved to. */
  #isStored(id: string): boolean {
    const { oracle, shardBases } = this.simulation;
    return shardBases.some((base) => oracle.peek('HEXISTS', `${base}jobs`, id) === 1);
  }

  #judgeStuck(base: string): void {
    const { oracle } = this.simulation;
    const ids = oracle.peek('HKEYS', `${base}jobs`) as string[];
    for (const id of ids) {
      const found = ['due', 'running', 'quarantine', 'dead'].map((index) => ({
        index,
        score: oracle.peek('ZSCORE', base + index, id) as string | null,
      }));
      const places = found.filter(({ score }) => score !== null);
      if (places.length !== 1)
        oracle.report('index', `${id} is in ${places.map(({ index }) => index).join(' and ') || 'no index'}`);
      const [place] = places;
      if (!place || place.index === 'dead') continue;
      if (place.index === 'due' && Number(place.score) > this.simulation.clockMs(base) - 6_000) continue;
      if (place.index === 'due' && (this.#waitsInBacklog(base, id) || this.#waitsForMissed(base))) continue;
      if (place.index === 'due' && this.#waitsForTimeToComeAgain(base, id)) continue;
      if (place.index !== 'running' && this.#waitsForForgotten(base)) continue;
      if (place.index === 'running' && this.#stillRuns(base, id, place.score!)) continue;
      if (place.index === 'running' && this.#isOnItsWay(base, id, place.score!)) continue;
      if (place.index === 'running' && this.#hasJustDied(base, id, place.score!)) continue;
      if (place.index === 'quarantine' && this.#waitsItsTurn(base, Number(place.score))) continue;
      oracle.report('stuck', `${id} of ${base} is still in ${place.index} (${place.score!})`);
    }
  }

  /**
   * Others from the quarantine, which were first, run there for longer than a run of the simulator ends. After a minute only those count that
   * have just started and had lost three leases in a row: for a while no other one starts beside them.
   */
  #waitsItsTurn(base: string, since: number): boolean {
    const { oracle, engine } = this.simulation;
    const isLate = since + LONGEST_IN_QUARANTINE_MS < this.simulation.clockMs(base);
    return this.#running(base).some(([id, number]) => {
      const claim = oracle.claimOf(`${base}due`, number);
      const job = claim?.jobs.get(id);
      if (!claim || job?.quarantinedMs === undefined || !this.#stillRuns(base, id, number)) return false;
      return !isLate || (job.losses >= FREE_LOSSES && claim.at + APART_MS > engine.now);
    });
  }

  /**
   * More is due than a limit lets through before the run ends: a worker that is slow for good holds the few places, with a round trip for each
   * job; or who takes the jobs looks now and then, and may have few at a time; or the clock was set back, and jobs have gathered that waited for
   * their time to come again, or behind one that did; or they were moved from a queue where they need not be short. Jobs must still start, one
   * after the other, if with a gap where an answer has taken so long that the library gave up the connection, or while long ones run.
   */
  #waitsInBacklog(base: string, id: string): boolean {
    const { oracle, engine, configuration, clocks } = this.simulation;
    const hasGathered = oracle.limits.isLimited(`${base}due`) && clocks.setBackSince(base, 0) > STARTS_WITHIN_MS;
    const areTaken = queueOf(base) === TAKEN && oracle.limits.countOf(`${base}due`) < configuration.pullMost;
    const wereMoved = queueOf(base) === MOVED && oracle.limits.isLimited(`${base}due`);
    if (!configuration.forGood.includes('slowForGood') && !hasGathered && !areTaken && !wereMoved) return false;
    const lately = engine.now - STARTS_WITHIN_MS - 2 * configuration.commandTimeoutMs;
    if (oracle.limits.mayStartSince(`${base}due`, id) < lately) return false;
    return this.#startsSome(base, wereMoved ? lately - configuration.longestWorkMs : lately);
  }

  /** Occurrences that were missed, or filled up, have more work than those who run them get done by the end: all of them are full. */
  #waitsForMissed(base: string): boolean {
    const { engine, fleet } = this.simulation;
    if (queueOf(base) !== RECURRING || !this.#startsSome(base, engine.now - STARTS_WITHIN_MS)) return false;
    const workers = fleet.living.filter(({ queues }) => queues.includes(RECURRING));
    return workers.every((member) => member.freeSince(RECURRING) === Infinity);
  }

  #startsSome(base: string, since: number): boolean {
    return [...this.simulation.oracle.claims.values()].some(({ shard, at }) => shard === `${base}due` && at > since);
  }

  /**
   * Where retries block, its group waits for a job that has its place and was given back or is to be tried again. The clock was set back after
   * the due time of that one was written: it waits until this time comes again, and so do all behind it.
   */
  #waitsForTimeToComeAgain(base: string, id: string): boolean {
    const { oracle, clocks } = this.simulation;
    const now = this.simulation.clockMs(base);
    const first = oracle.limits.keptBefore(`${base}due`, id);
    const comesAgain = ([other, due]: readonly [string, number]) => {
      const setBackMs = clocks.setBackSince(base, oracle.job(other).dueSetAt);
      return setBackMs > 0 && due > now - STARTS_WITHIN_MS && due <= now + setBackMs;
    };
    return first.length > 0 && first.every(comesAgain);
  }

  /** All places of its queue are held by jobs that were pulled and that nobody settles, until their leases end. */
  #waitsForForgotten(base: string): boolean {
    const { oracle } = this.simulation;
    const isFull = oracle.limits.isLimited(`${base}due`) && oracle.limits.momentOf(`${base}due`) === undefined;
    if (!isFull || queueOf(base) !== 'pulled') return false;
    return this.#running(base).every(([id, number]) => this.#stillRuns(base, id, number));
  }

  /** It ends the processes that run it: the lease of the last one goes on, and workers look at leases each few seconds. */
  #hasJustDied(base: string, id: string, number: string): boolean {
    const claim = this.simulation.oracle.claimOf(`${base}due`, number);
    if (!claim || claim.member?.isAlive || !id.startsWith('killer')) return false;
    return claim.deadline + 6_000 > this.simulation.clockMs(base);
  }

  /**
   * The answer that brings it has not come yet, or what the handler made of it has not. A worker that is slow for good needs several connections
   * for that.
   */
  #isOnItsWay(base: string, id: string, number: string): boolean {
    const { oracle, engine, configuration } = this.simulation;
    const claim = oracle.claimOf(`${base}due`, number);
    if (!claim?.member?.isAlive) return false;
    const since = Math.max(claim.at, claim.member.runOf(claim.queue, id)?.endedAt ?? claim.at);
    const calls = configuration.forGood.includes('slowForGood') ? 4 : 1;
    return since + calls * configuration.commandTimeoutMs > engine.now;
  }

  #stillRuns(base: string, id: string, number: string): boolean {
    const claim = this.simulation.oracle.claimOf(`${base}due`, number);
    const run = claim?.member?.runOf(claim.queue, id);
    return Boolean(claim?.member?.isAlive && run && run.endedAt === undefined);
  }
}
