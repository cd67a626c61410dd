import type { Member, RunInProcess } from './fleet.js';
import type { ClaimHistory, JobHistory } from './history.js';
import type { Oracle } from './oracle.js';
import { queueOf } from './queues.js';
import { storedAttempts } from './script-rules.js';
import type { RunningScript, ScriptRules, StoredAttempts } from './script-rules.js';
import { SESSION_MS } from './sessions.js';
import type { Simulation } from './simulation.js';
import { SHARD_KEYS } from './step-arguments.js';
import type { Settled } from './step-arguments.js';

/** Losses in a row after which a job is charged among others, too; see lib/lua/step/read.lua. */
export const FREE_LOSSES = 3;
/** What a killer may cost beyond its attempts; see docs/decisions/0005-quarantine.md. */
export const FREE_KILLS = 3;

interface TakenBack {
  readonly claim: ClaimHistory | undefined;
  readonly id: string;
  readonly before: StoredAttempts;
}

/** Who pays: each failure costs an attempt, and a lost lease does where the job was alone; nothing else does. */
export class ChargeRules implements ScriptRules {
  #takenBack: TakenBack[] = [];

  constructor(
    private readonly simulation: Simulation,
    private readonly oracle: Oracle,
  ) {}

  begins(script: RunningScript): void {
    this.#takenBack = [];
    for (const [i, settled] of (script.step?.settled ?? []).entries()) {
      if (script.before[i]!.held === settled.claim) this.#hearOfTimeout(script, settled);
    }
  }

  /** A run that had no lease any more, as far as its process knew, and outlasted its timeout: that is a failure as any other. */
  #hearOfTimeout({ keys, member }: RunningScript, { id, error }: Settled): void {
    const run = member?.runOf(queueOf(keys[SHARD_KEYS.due]!), id);
    if (!run?.unheardTimeoutAt || run.unheardTimeoutAt > this.simulation.engine.now) return;
    if (!error.includes('"HandlerTimeoutError"')) return;
    run.unheardTimeoutAt = undefined;
    this.oracle.version(id, run.n).tries++;
    this.oracle.job(id).failures++;
  }

  /** Its lease is over, and it goes to the quarantine. */
  takenBack({ keys }: RunningScript, claim: ClaimHistory | undefined, id: string): void {
    this.#takenBack.push({ claim, id, before: this.#attemptsOf(keys, id) });
  }

  ends(script: RunningScript): void {
    for (const taken of this.#takenBack) this.#judgeLoss(taken, this.#attemptsOf(script.keys, taken.id));
    for (const [i, settled] of (script.step?.settled ?? []).entries()) {
      const { held, isFollowed, attempts } = script.before[i]!;
      if (held === settled.claim && !isFollowed) this.#judgeSettled(script, settled, attempts);
    }
  }

  died({ step }: RunningScript, id: string): void {
    const job = this.oracle.job(id);
    const reason = step?.settled.find((one) => one.id === id && one.verb === 'd')?.reason ?? 'no settlement';
    const { attempts } = this.simulation.configuration;
    const used = `${job.failures} failures and ${job.chargedLosses} losses of its process`;
    // One that an operator requeued may have had one run only.
    const isUsedUp = job.mayDie || job.failures + job.chargedLosses >= attempts;
    const isRight =
      ((reason === 'discarded' || reason === 'invalid') && job.isDiscarded) ||
      (reason === 'expired' && job.keepsExpired) ||
      (['exhausted', 'leaseLost'].includes(reason) && isUsedUp);
    if (!isRight) this.oracle.report('healthyDead', `${id} died (${reason}) after ${used} of ${attempts} attempts`);
  }

  /** Its handler ends its process. Such a job becomes a dead letter, or it would do so for ever. */
  killed(job: JobHistory): void {
    if (job.claim?.isLost) return; // See rolledBack().
    job.kills++;
    if (job.claim) job.killedUnder.add(job.claim);
    const most = this.simulation.configuration.attempts + FREE_KILLS;
    if (job.kills > most) {
      this.oracle.reportOnce(
        'killer',
        job.id,
        `${job.id} ends its process for the ${job.kills}th time; ${most} are too many`,
      );
    }
  }

  /** Nobody is charged for the process that a job has ended under a claim that was lost with the tail. */
  rolledBack(): void {
    for (const job of this.oracle.jobs.values()) {
      for (const claim of job.killedUnder) {
        if (!claim.isLost) continue;
        job.killedUnder.delete(claim);
        job.kills--;
      }
    }
  }

  #judgeLoss({ claim, id, before }: TakenBack, after: StoredAttempts): void {
    const job = this.oracle.job(id);
    const rise = after.charged - before.charged;
    job.chargedLosses += rise;
    const isRight = (rise === 0 || rise === 1) && after.losses === before.losses + 1;
    if (!isRight) {
      this.oracle.report('charge', `${id} lost a lease and has ${shown(after)}; it had ${shown(before)}`);
    }
    // What Redis holds is older than what it told: it may have marked the claim meanwhile, or have taken the mark away.
    if (!claim || claim.isDoubtful) return;
    if (rise === 0) this.#judgeUncharged(claim, id);
    else {
      this.#judgeTogether(claim, id, before);
      this.#judgeForNobody(claim, id);
    }
  }

  /**
   * A loss is charged where the lease says that the job was alone; and with one slot each job is. Excused: a handler that had run out of
   * time went on beside it, or others were claimed before there was a slot for them; or its own had ended, which could not be told, and its
   * process asked for the next one: the lease was renewed without its mark.
   */
  #judgeUncharged(claim: ClaimHistory, id: string): void {
    if (claim.jobs.size > 1) return;
    const { concurrency, resizes, shards } = this.simulation.configuration;
    const isOneQueue = claim.member?.role === 'worker' && claim.member.queues.length === 1;
    const hasOneSlot = concurrency === 1 && resizes === 0 && shards === 1 && isOneQueue;
    const goesOn = ({ isZombie, endedAt = Infinity }: RunInProcess) => isZombie && endedAt > claim.at;
    const isBeside = (other: ClaimHistory) =>
      other !== claim && other.member === claim.member && other.renewedAt + other.leaseMs >= claim.at;
    const isAlone = ![...this.oracle.claims.values()].some(isBeside);
    const own = claim.member?.runOf(claim.queue, id);
    const hadEnded = (own?.endedAt ?? Infinity) < claim.renewedAt;
    const wasSole = hasOneSlot && isAlone && own && !hadEnded && ![...claim.member.runs].some(goesOn);
    if (claim.deadline % 1 === 0 && !wasSole) return;
    this.oracle.report('uncharged', `${id} was not charged for the loss of ${claim.number}, though it ran alone in ${claim.member?.id ?? 'its process'}`); // prettier-ignore
  }

  /**
   * Where several jobs ran, any of them may have ended the process. Excused: it was settled, which was lost with the tail; or its process
   * was frozen and never started it; or the other ones began when its claim, which says that it is alone, had left, and had not come or was
   * never answered: until then the process does not know what to take the mark from; or they began when its lease, which nothing renews,
   * was over for its process, or for Redis; or they began when its own had ended, or its process was broken for good: neither could be
   * told, nor that it was not alone any more; or its process died, was broken for good, or was frozen until its lease was over, while the
   * step was on its way that tells that.
   */
  #judgeTogether(claim: ClaimHistory, id: string, { losses }: StoredAttempts): void {
    const { member, number, queue } = claim;
    if (!member || losses >= FREE_LOSSES) return;
    const own = member.runOf(queue, id);
    if (own ? claim.jobs.get(id)?.isOutcomeLost : wasFrozen(claim)) return;
    const cannotTell = !member.isAlive || member.brokenAt < Infinity || wasFrozen(claim);
    for (const run of member.unfinished) {
      const other = run.id;
      if (other === id || this.#isForgotten(run)) continue;
      if (claim.sentAt < run.startedAt && (run.startedAt < claim.at || !own)) continue;
      if (!claim.isKept && isOver(claim, member, run.startedAt)) continue;
      const untoldFrom = Math.min(own?.endedAt ?? Infinity, member.brokenAt);
      if (Math.max(untoldFrom, claim.toldAt) < run.startedAt) continue;
      // Jobs that wait for their batch are known before they begin, and are told as well.
      const knownAt = Math.min(run.startedAt, Math.max(claim.at, run.claim?.at ?? Infinity));
      if (cannotTell && this.oracle.sessions.isOnItsWay(claim.session, knownAt)) continue;
      this.oracle.report('chargedTogether', `${id} was charged the loss of ${number} of ${member.id}, where ${other} ran as well`); // prettier-ignore
      return;
    }
  }

  /** Nobody renewed its lease, so that it counts as over. */
  #isForgotten({ claim }: RunInProcess): boolean {
    return claim?.isKept === false && claim.renewedAt + claim.leaseMs < this.simulation.engine.now;
  }

  /**
   * Nobody is charged for a job that its process never started, as far as the process could tell: its session went on, and was not
   * refused. Excused: it was frozen, so that the answer came when the lease was over; or it has handed the job back, or another one took
   * it back, which it was told, and that was lost with the tail, or told to a master that had been deposed; or it asks whether an
   * occurrence may begin, and was cut off before it was told, or before it could hand back what does not; or the call came again ten
   * minutes later, when Redis had forgotten its session, and ran anew, or sooner, where the session was lost, and claimed anew, or came to
   * a master that had been deposed: its process heard of that run only.
   */
  #judgeForNobody(claim: ClaimHistory, id: string): void {
    const { member, number, queue, at, session, call, jobs } = claim;
    if (!member || jobs.get(id)?.isOutcomeLost) return;
    const run = member.runOf(queue, id);
    if (run && run.startedAt >= at) return;
    const last = this.oracle.sessions.of(session)?.accepted;
    if (wasFrozen(claim) || last === undefined || last <= call) return;
    if (this.oracle.sessions.hasComeToDeposed(session, call)) return;
    if ((this.oracle.sessions.cameAgainAt(session, call) ?? 0) - at >= SESSION_MS) return;
    if ([...this.oracle.claims.values()].some((one) => one.session === session && one.call === call && one.at > at))
      return;
    if (this.oracle.schedules.isHeldBack(id, at) && this.simulation.troubles.wellSince(member.process.name) > at)
      return;
    this.oracle.report('chargedForNobody', `${id} was charged a loss under ${number} of ${member.id}, which never started it and went on`); // prettier-ignore
  }

  #judgeSettled({ keys }: RunningScript, { id, verb, claim }: Settled, before: StoredAttempts): void {
    if (verb !== 'r' && verb !== 's' && verb !== 'l') return;
    const after = this.#attemptsOf(keys, id);
    if (after.charged - before.charged !== (verb === 'r' ? 1 : 0)) {
      this.oracle.report('charge', `${id} has ${shown(after)} after its outcome "${verb}"; it had ${shown(before)}`);
    }
    if (verb !== 'r') return;
    const job = this.oracle.job(id);
    job.chargedRuns.add(claim);
    if (job.chargedRuns.size > job.failures) {
      this.oracle.report(
        'charge',
        `${id} was charged ${job.chargedRuns.size} failures; its handler failed ${job.failures} times`,
      );
    }
  }

  #attemptsOf(keys: readonly string[], id: string): StoredAttempts {
    return storedAttempts(this.oracle.peek('HGET', keys[SHARD_KEYS.attempts]!, id) as string | null);
  }
}

/**
 * A lease that nothing renews was by then. Its process counts it by its own clock, from when it asked for the jobs; Redis does from when that
 * came: in between, the process takes what it claims to be alone. And where the clock of Redis was ahead, it has the lease for longer.
 */
function isOver({ sentAt, renewedAt, leaseMs }: ClaimHistory, { process }: Member, at: number): boolean {
  return renewedAt + leaseMs < at || process.ownMs(at - sentAt) >= leaseMs;
}

/** Its process was, until the lease was over. */
function wasFrozen({ member, at, leaseMs }: ClaimHistory): boolean {
  return !!member?.process.freezes.some(({ from, until }) => from < at + leaseMs && until >= at + 0.9 * leaseMs);
}

function shown({ charged, losses }: StoredAttempts): string {
  return `${charged} attempts used and ${losses} losses in a row`;
}
