import { FREE_LOSSES } from './charge-rules.js';
import type { Member, RunInProcess } from './fleet.js';
import type { ClaimHistory } from './history.js';
import type { Oracle } from './oracle.js';
import type { Simulation } from './simulation.js';

/** Half of all that a job in quarantine may wait before it starts among others; see lib/worker/isolation/quarantine-turn.ts. */
const OVERDUE_MS = 45_000;
/**
 * A part of the time for which a job from the quarantine has its process for itself; see isolation-gate.ts. That begins when the process
 * asks for it: where the answer is late, what is asked for after that time joins at once, or due jobs would wait as long as the network.
 */
const ALONE_MS = 2_000;
/** A part of the time for which nothing from the quarantine joins a job that lost many leases: its mark must be its own. */
const WATCHED_MS = 2_400;

/** A job that lost a lease may have ended its process: it runs alone, so that it harms no other, and so that the culprit is found. */
export class IsolationRules {
  constructor(
    private readonly simulation: Simulation,
    private readonly oracle: Oracle,
  ) {}

  claimed(claim: ClaimHistory, id: string): void {
    const { losses, quarantinedMs } = claim.jobs.get(id)!;
    if (losses > 0 && quarantinedMs === undefined) {
      this.oracle.report('apart', `${id} has lost ${losses} leases, and is claimed with due jobs (${claim.number})`);
    }
    // Those with one loss may start a few at a time.
    if (claim.jobs.size > 1 && [...claim.jobs.values()].some((job) => job.losses > 1)) {
      this.oracle.report('apart', `${claim.number} has ${claim.jobs.size} jobs; one of them lost more than one lease`);
    }
  }

  /** A handler begins. A run whose lease was lost has left its slot: the library waits for it no more. */
  begins(member: Member, id: string): void {
    const claim = this.#claimOf(member, id);
    if (!claim || member.role !== 'worker') return;
    const now = this.simulation.engine.now;
    const isIsolated = this.#isIsolated(claim, id);
    for (const run of member.unfinished) {
      const other = run.id;
      if (other === id || run.isZombie) continue;
      const others = run.claim;
      if (!others || others === claim) continue;
      this.#judgeWatched(claim, id, run);
      const isAlone = now < run.startedAt + ALONE_MS && claim.sentAt < others.sentAt + ALONE_MS;
      const joins = this.#isIsolated(others, other) && claim.at > others.at && isAlone;
      if (!joins && !(isIsolated && hasBegun(run, claim))) continue;
      const who = isIsolated ? `${id} comes from the quarantine` : `${other} came from the quarantine`;
      this.oracle.report('apart', `${id} starts on ${member.id} beside ${other}, though ${who}`);
    }
  }

  /** It may be what ended its process each time, and is charged only until another one from the quarantine starts. */
  #judgeWatched(claim: ClaimHistory, id: string, { id: watched, claim: others, startedAt }: RunInProcess): void {
    if (claim.jobs.get(id)?.quarantinedMs === undefined || claim.at < startedAt) return;
    const { losses, quarantinedMs } = others?.jobs.get(watched) ?? {};
    if (losses === undefined || losses < FREE_LOSSES || quarantinedMs === undefined) return;
    const after = this.simulation.engine.now - startedAt;
    if (after >= WATCHED_MS) return;
    const lost = `which lost ${losses} leases in a row`;
    this.oracle.report('apart', `${id} comes from the quarantine ${Math.round(after)} ms after ${watched}, ${lost}`);
  }

  #isIsolated(claim: ClaimHistory, id: string): boolean {
    const quarantinedMs = claim.jobs.get(id)?.quarantinedMs;
    return quarantinedMs !== undefined && quarantinedMs < OVERDUE_MS;
  }

  #claimOf(member: Member, id: string): ClaimHistory | undefined {
    const { claim } = this.oracle.job(id);
    return claim?.member === member ? claim : undefined;
  }
}

/** Before the claim that brought the other one. */
function hasBegun(run: RunInProcess, claim: ClaimHistory): boolean {
  return run.startedAt < claim.at;
}
