import { isJunk } from './damage.js';
import type { Reply } from '../../lib/memory/memory.replies.js';
import { Backlogs } from './backlogs.js';
import { CallRules } from './call-rules.js';
import { ChargeRules } from './charge-rules.js';
import { IsolationRules } from './isolation-rules.js';
import { EndingRules } from './ending-rules.js';
import type { Member } from './fleet.js';
import { newJob, newVersion } from './history.js';
import type { ClaimHistory, JobHistory, VersionHistory } from './history.js';
import { KeptRules } from './kept-rules.js';
import { LeaseRules } from './lease-rules.js';
import { LimitRules } from './limit-rules.js';
import { scheduleOf, ScheduleRules } from './schedule-rules.js';
import { MoveRules } from './move-rules.js';
import { MOVED, queueOf, TAKEN } from './queues.js';
import { CLOSE_RULES, storedAttempts } from './script-rules.js';
import type { RunningScript, ScriptRules, StoredJob } from './script-rules.js';
import { Sessions } from './sessions.js';
import type { Simulation } from './simulation.js';
import { SlowLeader } from './slow-leader.js';
import { SHARD_KEYS, readStep } from './step-arguments.js';
import type { StepArguments } from './step-arguments.js';
import { TakenSlots } from './taken-slots.js';
import { TimelineRules } from './timeline-rules.js';
import { WakeRules } from './wake-rules.js';
import { NOBODY } from './witness.js';
import type { Concerns, Rollback, ScriptCall, ServerWitness } from './witness.js';

export interface Violation {
  readonly rule: string;
  readonly at: number;
  readonly what: string;
}

const MOST_KEPT = 50;

/**
 * What must hold, whatever the plan does. It sits inside the server and hears the handlers, so it judges by the truth. Each rule that
 * has an excuse names the narrowest cause that makes a violation right.
 */
export class Oracle implements ServerWitness {
  readonly jobs = new Map<string, JobHistory>();
  /** By the `due` key of their shard and their number. */
  readonly claims = new Map<string, ClaimHistory>();
  readonly violations: Violation[] = [];
  readonly counts = { claimed: 0, completed: 0, dead: 0, takenBack: 0, resent: 0, late: 0, lost: 0 };
  lastRollbackAt = -1;
  worstLateMs = 0;
  readonly charges: ChargeRules;
  readonly timelines: TimelineRules;
  readonly calls: CallRules;
  readonly kept: KeptRules;
  readonly moves: MoveRules;
  readonly isolation: IsolationRules;
  readonly slowLeader: SlowLeader;
  readonly backlogs: Backlogs;
  readonly schedules: ScheduleRules;
  readonly limits: LimitRules;
  readonly leases: LeaseRules;
  readonly #rules: readonly ScriptRules[];
  /** Those of the rules that hear each command of each script. */
  readonly #hearing: readonly (ScriptRules & Required<Pick<ScriptRules, 'runs'>>)[];
  readonly #onClaim = new Map<Member, () => void>();
  readonly #once = new Set<string>();
  readonly sessions: Sessions;
  /** Of a master that was deposed: the rules do not hold for it, but a call that it answered is answered. */
  readonly ofDeposed: ServerWitness = {
    ...NOBODY,
    scriptBegins: ({ source, keys, args, connection }) => {
      const name = this.simulation.nameOfScript(source);
      this.#askedOfDeposed = { name, keys, args, connection };
      // Its process settles it under the lease of its own that only this master has given.
      const moved = name === 'extend' ? [{ claim: args[1]!, id: args[2]! }] : [];
      const step = name === 'step' ? readStep(args) : undefined;
      if (step) this.sessions.cameToDeposed(keys[SHARD_KEYS.session]!, step.call);
      for (const { claim, id } of step?.settled ?? moved) {
        const job = this.claimOf(keys[SHARD_KEYS.due]!, claim)?.jobs.get(id);
        if (job) job.isOutcomeLost = true;
      }
    },
    scriptEnds: (reply) => {
      const asked = this.#askedOfDeposed;
      if (asked?.name === 'beginOccurrence') this.schedules.answered(asked.args, reply);
      if (asked?.name === 'timeline') this.timelines.answered(asked.keys, reply);
    },
    commandRuns: (name, [key, ...fields]) => {
      const { now } = this.simulation.engine;
      if (name === 'HSET' && key!.endsWith(':jobs'))
        for (let i = 0; i < fields.length; i += 2) {
          this.job(fields[i]!).storedByDeposedAt = now;
          if (this.#askedOfDeposed) this.moves.takenOverByDeposed(this.#askedOfDeposed, key!, fields[i]!);
        }
      if (name === 'ZADD' && key!.endsWith(':running') && fields[0] !== 'XX')
        for (let i = 1; i < fields.length; i += 2) this.job(fields[i]!).claimedOfDeposedAt = now;
    },
  };
  /** Claims of moves to other queues, by their shards and numbers. */
  readonly #reservations = new Set<string>();
  #script: RunningScript | undefined;
  /** What a master that was deposed runs just now. */
  #askedOfDeposed: Pick<RunningScript, 'name' | 'keys' | 'args' | 'connection'> | undefined;

  constructor(private readonly simulation: Simulation) {
    this.sessions = new Sessions(simulation, this.counts);
    this.charges = new ChargeRules(simulation, this);
    this.isolation = new IsolationRules(simulation, this);
    this.leases = new LeaseRules(simulation, this);
    this.calls = new CallRules(simulation, this);
    this.kept = new KeptRules(simulation, this);
    this.#rules = [
      (this.slowLeader = new SlowLeader(simulation)),
      (this.backlogs = new Backlogs(simulation)),
      this.leases,
      this.charges,
      this.calls,
      this.kept,
      (this.moves = new MoveRules(simulation, this)),
      (this.schedules = new ScheduleRules(simulation, this)),
      (this.limits = new LimitRules(simulation, this)),
      new WakeRules(simulation, this),
      new EndingRules(simulation, this),
      new TakenSlots(simulation),
      (this.timelines = new TimelineRules(this)),
    ];
    this.#hearing = this.#rules.filter(hearsCommands);
  }

  report(rule: string, what: string): void {
    const { engine } = this.simulation;
    if (CLOSE_RULES.has(rule) && !this.simulation.isSimple) return;
    engine.trace('VIOLATION', rule, what);
    if (this.violations.length < MOST_KEPT) this.violations.push({ rule, at: Math.round(engine.now), what });
  }

  reportOnce(rule: string, about: string, what: string): void {
    const key = `${rule} ${about}`;
    if (this.#once.has(key)) return;
    this.#once.add(key);
    this.report(rule, what);
  }

  job(id: string): JobHistory {
    let job = this.jobs.get(id);
    if (!job) this.jobs.set(id, (job = newJob(id)));
    return job;
  }

  version(id: string, n: number): VersionHistory {
    const { versions } = this.job(id);
    let version = versions.get(n);
    if (!version) versions.set(n, (version = newVersion(n)));
    return version;
  }

  /** A worker's schema refuses the payload of this operation: its job is dead at once. */
  refusedBySchema(n: number): void {
    for (const job of this.jobs.values()) if (job.versions.has(n)) job.isDiscarded = true;
  }

  claimOf(dueKey: string, number: string): ClaimHistory | undefined {
    return this.claims.get(dueKey + number);
  }

  /** Calls once, inside the next script that claims a job for this process. */
  onClaim(member: Member, claims: () => void): void {
    this.#onClaim.set(member, claims);
  }

  /** Under this number jobs do not run, but move to another queue. */
  isReservation(dueKey: string, number: string): boolean {
    return this.#reservations.has(dueKey + number);
  }

  /** Reads the store without being heard. */
  peek(command: string, ...args: string[]): Reply {
    return this.simulation.server.peek(command, args);
  }

  // --- What the server tells --------------------------------------------------------------------------------------------

  scriptBegins(call: ScriptCall): void {
    const { source, keys, args, connection } = call;
    const name = this.simulation.nameOfScript(source);
    const step = name === 'step' ? readStep(args) : undefined;
    const member = step ? this.simulation.fleet.ofWorker(step.worker) : this.simulation.fleet.of(connection.process);
    const unheard = step && this.sessions.note(call, step);
    const before = (step?.settled ?? []).map(({ id }) => this.#stateOf(keys, id));
    if (member && step) {
      member.steps++;
      member.lastStepAt = this.simulation.engine.now;
      if (step.settled.length > 0) member.usefulSteps++;
    }
    this.#script = { ...call, name, step, member, unheard, takenBack: new Set(), before };
    if (isOfShard(keys)) for (const rules of this.#rules) rules.begins?.(this.#script);
  }

  scriptEnds(reply: Reply | undefined): void {
    const script = this.#script;
    this.#script = undefined;
    if (!script || reply === undefined) return;
    if (script.step) this.#judgeSettled(script, script.step);
    if (script.step && !(reply instanceof Error)) {
      script.member?.stepAnswered(script.keys[SHARD_KEYS.due]!);
      this.sessions.accepted(script, script.step);
    }
    if (isOfShard(script.keys)) for (const rules of this.#rules) rules.ends?.(script, reply);
  }

  looks(process: object): void {
    const member = this.simulation.fleet.of(process);
    if (member) member.lastStepAt = this.simulation.engine.now;
  }

  commandRuns(name: string, args: readonly string[]): void {
    const script = this.#script;
    if (!script) return;
    const { keys } = script;
    if (isOfShard(keys)) for (const rules of this.#hearing) rules.runs(script, name, args);
    if (name !== 'ZADD') return;
    switch (args[0]) {
      case keys[SHARD_KEYS.leases]:
        return this.#lease(script, args);
      case keys[SHARD_KEYS.running]:
        if (script.step && args[1] !== 'XX') this.#claimed(script, args);
        else if (script.name === 'reserve') this.#reservations.add(keys[SHARD_KEYS.due]! + args[1]!);
        return;
      case keys[SHARD_KEYS.due]:
        for (let i = 2; i < args.length; i += 2) this.#isDue(script, args[i]!);
        return;
      case keys[SHARD_KEYS.quarantine]:
        if (script.step && args[1] !== 'XX') this.#takenBack(script, args[2]!);
        return;
      case keys[SHARD_KEYS.dead]:
        return this.#died(script, args[2]!);
    }
  }

  #isDue({ name }: RunningScript, id: string): void {
    const job = this.job(id);
    job.dueSetAt = this.simulation.engine.now;
    if (name !== 'requeueDead') return;
    const madeAgainAt = this.simulation.server.disk.length + 1;
    for (const version of job.versions.values())
      if (version.overAt !== undefined) version.former = { overAt: version.overAt, madeAgainAt };
  }

  rolledBack(length: number, lost: number, why: Rollback, concerns: Concerns): void {
    if (lost === 0) return;
    this.lastRollbackAt = this.simulation.engine.now;
    this.limits.rolledBack(length, concerns);
    this.leases.rolledBack(length, concerns);
    this.sessions.rolledBack(length, concerns);
    this.schedules.rolledBack(length, concerns);
    for (const job of this.jobs.values()) {
      if (!concerns(job.queue) && !(job.wasMoved && concerns(MOVED))) continue;
      if (job.doneAt !== undefined && job.doneAt > length) job.doneAt = job.doneVersion = undefined;
      for (const version of job.versions.values()) {
        const isStored = version.storedAt !== undefined && version.storedAt <= length;
        const isSafe = version.isSafeFrom === why;
        // Where a call said that the disk must have what it enqueues, a move of it waits for no disk: only the module may say that for both.
        const isLost = this.moves.isLost(job, length, why, concerns) && !(isSafe && this.#movesWaitForDisk);
        if ((!isStored && !isSafe) || isLost) version.excuse = 'its enqueue was lost with the tail';
        else if ((version.overAt ?? 0) > length && concerns(job.queue, job.endedIn))
          version.overAt = endBefore(version, length);
      }
    }
    for (const claim of this.claims.values()) {
      if (claim.renewedLength > length) claim.isDoubtful = true;
      if (!concerns(claim.queue, claim.shard)) continue;
      claim.isLost ||= claim.length > length;
      for (const job of claim.jobs.values()) if ((job.outcomeAt ?? 0) > length) job.isOutcomeLost = true;
    }
    this.charges.rolledBack();
  }

  get #movesWaitForDisk(): boolean {
    return this.simulation.configuration.traits.includes('durable');
  }

  // --- Calls and claims -------------------------------------------------------------------------------------------------

  #lease(script: RunningScript, args: readonly string[]): void {
    const { keys, step, member } = script;
    const renews = args[1] === 'XX';
    const [deadline, number] = renews ? [Number(args[2]), args[3]!] : [Number(args[1]), args[2]!];
    const dueKey = keys[SHARD_KEYS.due]!;
    const claim = this.claimOf(dueKey, number);
    if (renews) {
      if (!claim) return;
      // A sweep cuts leases after a jump of the clock.
      if (member === claim.member && step?.renewed.has(number)) {
        if (claim.queue === 'pulled' && !claim.isHandedOut) claim.isKept = !step.staying.has(number);
        this.leases.renewed(claim, deadline);
        // Where nothing sends heartbeats it has told of the mark alone: the lease ends when it was to end.
        const { isKept, renewedAt } = claim;
        Object.assign(claim, this.#renewed(deadline), !isKept && { renewedAt });
      } else claim.deadline = deadline;
    } else if (step && !claim) {
      const isKept = member?.pullKeepsLease ?? true;
      const isHandedOut = false;
      this.#opened(script, number, deadline, { leaseMs: step.leaseMs, isExtended: false, isKept, isHandedOut, jobs: new Map() }); // prettier-ignore
    } else if (script.name === 'extend') {
      this.leases.extended(script, deadline);
      const [, old, id, leaseMs] = script.args as [string, string, string, string];
      const { isKept = true, jobs } = this.claimOf(dueKey, old) ?? {};
      const job = jobs?.get(id);
      const own = new Map(job ? [[id, job]] : []);
      const moved = this.#opened(script, number, deadline, {
        leaseMs: Number(leaseMs),
        isExtended: true,
        isKept,
        isHandedOut: true,
        jobs: own,
      });
      this.job(id).claim = moved;
    }
  }

  /** A `pull()` gave this job to whoever called it. What was claimed for it may have been asked for by the call before. */
  handedOut(member: Member, id: string, isKept: boolean): void {
    const { claim } = this.job(id);
    const claimed = claim?.jobs.get(id);
    // Another one under that id came by a claim that only a deposed master knows.
    if (claim?.queue !== 'pulled' || claim.member !== member || claimed?.isHandedOut) return;
    Object.assign(claim, { isKept, isHandedOut: true });
    if (claimed) claimed.isHandedOut = true;
  }

  #renewed(deadline: number): Pick<ClaimHistory, 'deadline' | 'renewedAt' | 'toldAt' | 'renewedLength' | 'isDoubtful'> {
    const { engine, server } = this.simulation;
    return {
      deadline,
      renewedAt: engine.now,
      toldAt: engine.now,
      renewedLength: server.disk.length,
      isDoubtful: false,
    };
  }

  #opened(
    { keys, step, member }: RunningScript,
    number: string,
    deadline: number,
    lease: Pick<ClaimHistory, 'leaseMs' | 'isExtended' | 'isKept' | 'isHandedOut' | 'jobs'>,
  ): ClaimHistory {
    const session = step ? keys[SHARD_KEYS.session]! : '';
    const { call = 0, before = 0 } = this.sessions.of(session) ?? {};
    const dueKey = keys[SHARD_KEYS.due]!;
    const of = {
      number,
      queue: queueOf(dueKey),
      shard: dueKey,
      member,
      session,
      call,
      before,
      sentAt: this.sessions.sentAt(session),
      at: this.simulation.engine.now,
      length: this.simulation.server.disk.length,
      isLost: false,
    };
    const claim = { ...of, ...lease, ...this.#renewed(deadline) };
    this.claims.set(dueKey + number, claim);
    return claim;
  }

  #claimed(script: RunningScript, args: readonly string[]): void {
    for (let i = 1; i < args.length; i += 2) {
      const [number, id] = [args[i]!, args[i + 1]!];
      if (!id.startsWith('{') || scheduleOf(id) !== undefined) this.#claimedJob(script, number, id);
    }
  }

  #claimedJob(script: RunningScript, number: string, id: string): void {
    const { keys, member, unheard } = script;
    this.counts.claimed++;
    if (member) {
      member.usefulSteps++;
      this.#onClaim.get(member)?.();
      this.#onClaim.delete(member);
    }
    const who = member?.id ?? 'nobody known';
    if (unheard) this.report('claimForNobody', `${id} is claimed under ${number} for ${who} by ${unheard}`);
    const held = this.peek('ZSCORE', keys[SHARD_KEYS.running]!, id) as string | null;
    if (held !== null) this.report('overlap', `${id} is claimed under ${number} while ${held} holds it`);
    const [due, since] = [SHARD_KEYS.due, SHARD_KEYS.quarantine].map((index) => {
      const score = this.peek('ZSCORE', keys[index]!, id) as string | null;
      return score === null ? undefined : Number(score);
    });
    if (member && since !== undefined) member.fromQuarantine++;
    this.schedules.claimed(id, due);
    const claim = this.claimOf(keys[SHARD_KEYS.due]!, number);
    if (claim) {
      const { losses } = storedAttempts(this.peek('HGET', keys[SHARD_KEYS.attempts]!, id) as string | null);
      const quarantinedMs = since === undefined ? undefined : this.simulation.clockMs(keys[SHARD_KEYS.due]!) - since;
      claim.jobs.set(id, { due, quarantinedMs, losses });
      this.job(id).claim = claim;
      this.isolation.claimed(claim, id);
    }
    if (due !== undefined) this.#judgeTime(keys[SHARD_KEYS.due]!, id, due);
  }

  #judgeTime(dueKey: string, id: string, due: number): void {
    const { punctuality } = this.simulation;
    const now = this.simulation.clockMs(dueKey);
    const lateMs = now - due;
    this.simulation.weather?.claimed(due, now);
    // TIME has whole ms in a script.
    if (Math.floor(now) < due) this.report('early', `${id} is claimed ${-lateMs} ms before it is due`);
    const { waitedMs, allowedMs } = punctuality.waitOf(dueKey, this.job(id), lateMs);
    this.worstLateMs = Math.max(this.worstLateMs, waitedMs);
    if (waitedMs <= allowedMs) return;
    this.report('late', `${id} waited ${Math.round(waitedMs)} ms, of ${allowedMs} allowed, while a worker was free`);
  }

  #takenBack(script: RunningScript, id: string): void {
    const { keys, takenBack, member } = script;
    // It may run, with a process for itself, before the patrol looks again.
    this.simulation.punctuality.quarantineAt = this.simulation.engine.now;
    const number = this.peek('ZSCORE', keys[SHARD_KEYS.running]!, id) as string | null;
    if (number === null) return; // It waited in `due` with losses, and goes to the quarantine only now.
    if (member && takenBack.size === 0) member.usefulSteps++;
    takenBack.add(id);
    this.counts.takenBack++;
    this.job(id).isLosing = true;
    const claim = this.claimOf(keys[SHARD_KEYS.due]!, number);
    this.charges.takenBack(script, claim, id);
    const job = claim?.jobs.get(id);
    if (job) job.outcomeAt = this.simulation.server.disk.length;
    if (claim) this.leases.takenBack(claim, id, script);
  }

  /** Its handler discards it. What was removed while it ran has ended before that, which a rollback of now does not undo. */
  discarded(id: string, version: VersionHistory): void {
    const { shardBases, server } = this.simulation;
    const isStored = shardBases.some((base) => this.peek('HEXISTS', `${base}jobs`, id) === 1);
    if (isStored || version.overAt === undefined) version.overAt = server.disk.length;
    this.job(id).isDiscarded = true;
  }

  #died(script: RunningScript, id: string): void {
    if (isJunk(id)) return;
    const job = this.job(id);
    // A dead letter goes to another shard.
    if (script.name === 'moveIn' && job.isDead) return;
    this.counts.dead++;
    job.isDead = true;
    job.endedIn = script.keys[SHARD_KEYS.due]!;
    for (const version of job.versions.values()) version.overAt ??= this.simulation.server.disk.length;
    this.charges.died(script, id);
  }

  #judgeSettled({ keys, member, takenBack, before }: RunningScript, step: StepArguments): void {
    for (const [i, { claim, id, verb }] of step.settled.entries()) {
      const { held, isStored: wasStored, isFollowed } = before[i]!;
      const after = this.#stateOf(keys, id);
      // One step may also settle the same job under the claim that does hold it.
      const isHolders = step.settled.some((other) => other.id === id && other.claim === held);
      if (held !== null && !isHolders && after.held !== held && !takenBack.has(id)) {
        this.report('stale', `${id} was settled (${verb}) under ${claim}, though ${held} held it`);
      }
      if (held === claim && after.held !== held) this.#hasOutcome(keys, claim, id);
      if (held === claim && isFollowed && after.isStored && verb === 'complete') this.job(id).followedRuns++;
      if ((held === claim && after.held !== held) || (wasStored && !after.isStored)) {
        this.#ended(keys, id, verb, after.isStored, member);
      }
    }
  }

  #hasOutcome(keys: readonly string[], claim: string, id: string): void {
    const job = this.claimOf(keys[SHARD_KEYS.due]!, claim)?.jobs.get(id);
    if (job) job.outcomeAt = this.simulation.server.disk.length;
  }

  #stateOf(keys: readonly string[], id: string): StoredJob {
    const has = (key: keyof typeof SHARD_KEYS) => this.peek('HEXISTS', keys[SHARD_KEYS[key]]!, id) === 1;
    return {
      held: this.peek('ZSCORE', keys[SHARD_KEYS.running]!, id) as string | null,
      isQuarantined: this.peek('ZSCORE', keys[SHARD_KEYS.quarantine]!, id) !== null,
      isStored: has('jobs'),
      isFollowed: has('followups'),
      attempts: storedAttempts(this.peek('HGET', keys[SHARD_KEYS.attempts]!, id) as string | null),
    };
  }

  #ended(keys: readonly string[], id: string, verb: string, isStored: boolean, member: Member | undefined): void {
    const job = this.job(id);
    job.isLosing = false;
    if (isStored) return;
    const queue = queueOf(keys[SHARD_KEYS.due]!);
    job.endedIn = keys[SHARD_KEYS.due]!;
    const run = member?.runOf(queue, id);
    const version = run && job.versions.get(run.n);
    job.doneAt = this.simulation.server.disk.length;
    job.doneVersion = run?.n;
    if (verb === 'complete') {
      this.counts.completed++;
      // No handler runs what is taken.
      if ((!version || version.endedWell === 0) && queue !== TAKEN) {
        this.report(
          'unfinished',
          `${id} was completed by ${member?.id ?? 'nobody known'}, where no run of it ended well`,
        );
      }
    }
    // Expired: whichever version was stored. A run of this process may have been of an older one.
    if (verb !== 'complete') for (const one of job.versions.values()) one.overAt ??= this.simulation.server.disk.length;
  }
}

/** Nothing is left of the call that made it again: it is over as it was before. */
function endBefore({ former }: VersionHistory, length: number): number | undefined {
  return former && former.overAt <= length && former.madeAgainAt > length ? former.overAt : undefined;
}

/** Scripts that concern no shard know other keys. */
function hearsCommands(rules: ScriptRules): rules is ScriptRules & Required<Pick<ScriptRules, 'runs'>> {
  return rules.runs !== undefined;
}

function isOfShard(keys: readonly string[]): boolean {
  return keys.length > SHARD_KEYS.session;
}
