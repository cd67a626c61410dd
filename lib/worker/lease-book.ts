/** One claim: a batch of jobs under one lease. */
export interface Claim {
  readonly number: number;
  readonly leaseMs: number;
  /** Jobs of it that Redis has not yet confirmed as settled. */
  unsettled: number;
  /** Redis holds it for the only job that this process runs. */
  alone: boolean;
  /** Monotonic ms of the last request known to have renewed it. Taken before sending: a lease is never thought longer than it is. */
  renewedAt: number;
  /** Monotonic ms since when its end has been known to be past. */
  overdueSince: number | undefined;
}

/** The longest pause between two heartbeats, whatever the lease: they also carry cancellations and prove that the loop lives. */
const HEARTBEAT_MAX_MS = 10_000;

/** The claims that one worker holds in one shard, and when they must be renewed. */
export class LeaseBook {
  readonly heartbeatMs: number;
  readonly #claims = new Map<number, Claim>();

  constructor(private readonly leaseMs: number) {
    this.heartbeatMs = Math.min(leaseMs / 3, HEARTBEAT_MAX_MS);
  }

  get size(): number {
    return this.#claims.size;
  }

  get(number: number): Claim | undefined {
    return this.#claims.get(number);
  }

  all(): Iterable<Claim> {
    return this.#claims.values();
  }

  open(number: number, jobs: number, sentAt: number, alone: boolean, leaseMs = this.leaseMs): Claim {
    const claim = { number, leaseMs, unsettled: jobs, alone, renewedAt: sentAt, overdueSince: undefined };
    this.#claims.set(number, claim);
    return claim;
  }

  /** `jobs` of the claim are settled, lost or moved to another claim. */
  close(claim: Claim, jobs = 1): void {
    claim.unsettled -= jobs;
    if (claim.unsettled <= 0) this.#claims.delete(claim.number);
  }

  /** Monotonic ms at which the next heartbeat is due; Infinity without claims. */
  get nextHeartbeat(): number {
    let next = Infinity;
    for (const claim of this.#claims.values()) next = Math.min(next, claim.renewedAt + this.heartbeatMs);
    return next;
  }

  renewed(renewals: readonly { readonly claim: Claim }[], sentAt: number): void {
    for (const { claim } of renewals) {
      claim.renewedAt = Math.max(claim.renewedAt, sentAt);
      claim.overdueSince = undefined;
    }
  }

  /**
   * Claims whose lease ended without an answer to the renewal for `patienceMs` after that was noticed. A process that was
   * frozen notices late and must get the chance to renew first: nobody may have taken its jobs.
   */
  overdue(now: number, patienceMs: number): Claim[] {
    const found: Claim[] = [];
    for (const claim of this.#claims.values()) {
      if (now < claim.renewedAt + claim.leaseMs) continue;
      claim.overdueSince ??= now;
      if (now - claim.overdueSince >= patienceMs) found.push(claim);
    }
    return found;
  }
}
