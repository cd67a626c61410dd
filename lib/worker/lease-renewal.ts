/** One claim: a batch of jobs under one lease. */
export interface Claim {
  readonly number: number;
  /** How long it lasts from `renewedAt` on. */
  readonly leaseMs: number;
  /** What each renewal gives it instead of the worker's lease; 0 for that, and below 0 nothing. In whole ms. */
  readonly ownMs: number;
  /** Jobs of it that Redis has not yet confirmed as settled. */
  unsettled: number;
  /** Redis charges its only job when the lease is lost: it is all that this process runs, or is `repeated`. */
  sole: boolean;
  /** Its job lost many leases in a row. It stays chargeable while it runs among jobs that never lost one. */
  repeated?: boolean;
  /** Monotonic ms of the last request known to have renewed it. Taken before sending: a lease is never thought longer than it is. */
  renewedAt: number;
  /** Monotonic ms of the last request that was to renew it, answered or not. */
  askedAt: number;
  /** Monotonic ms since when its end has been known to be past. */
  overdueSince: number | undefined;
  /** It was reported as overdue. */
  isReported: boolean;
}

/** A claim that a step renews. */
export interface Renewal {
  readonly claim: Claim;
  /** How many of its jobs are held here before the settlements of this step. */
  readonly held: number;
  /** The mark that the renewal writes. */
  readonly sole: boolean;
}

/** The longest pause between two heartbeats, whatever the lease: they also carry cancellations and prove that the loop lives. */
const HEARTBEAT_MAX_MS = 10_000;
/** Where nothing renews leases a step tells of marks and asks who was cancelled all the same: each lease ends when it was to end. */
const AS_IT_IS = -1;
const NONE: ReadonlySet<Claim> = new Set();

/**
 * The claims that one worker holds in one shard, and when they must be renewed. The claim whose renewal was requested
 * longest ago comes first, so that a step which cannot renew all claims renews those that need it most.
 */
export class LeaseRenewal {
  readonly heartbeatMs: number;
  /** In the order of `askedAt`, except where two sessions overlap. */
  #claims = new Map<number, Claim>();
  /** Those whose loss Redis may charge. */
  readonly #sole = new Set<Claim>();
  #newest = -Infinity;
  /** Monotonic ms before which no lease ends, and none that has ended must be reported. */
  #nextEnd = Infinity;

  /** @param heartbeats false: a lease ends when it was to end, also when Redis hears that its job is alone no longer */
  constructor(
    private readonly leaseMs: number,
    private readonly heartbeats = true,
  ) {
    this.heartbeatMs = Math.min(leaseMs / 3, HEARTBEAT_MAX_MS);
  }

  get size(): number {
    return this.#claims.size;
  }

  /** The claim whose renewal was requested longest ago comes first. */
  all(): Iterable<Claim> {
    return this.#claims.values();
  }

  open(number: number, jobs: number, sentAt: number, sole: boolean, leaseMs = this.leaseMs, ownMs = 0): Claim {
    const claim = {
      number,
      leaseMs,
      ownMs: this.heartbeats ? ownMs : AS_IT_IS,
      unsettled: jobs,
      sole,
      renewedAt: sentAt,
      askedAt: sentAt,
      overdueSince: undefined,
      isReported: false,
    };
    this.#claims.set(number, claim);
    if (sole) this.#sole.add(claim);
    this.#nextEnd = Math.min(this.#nextEnd, sentAt + leaseMs);
    // Only after an answer that took this long: rarely enough to put all in order again.
    if (sentAt < this.#newest - this.heartbeatMs / 4) this.#sort();
    else this.#newest = Math.max(this.#newest, sentAt);
    return claim;
  }

  /** `jobs` of the claim are settled, lost or moved to another claim. */
  close(claim: Claim, jobs = 1): void {
    if (this.#claims.get(claim.number) !== claim) return;
    claim.unsettled -= jobs;
    if (claim.unsettled > 0) return;
    this.#claims.delete(claim.number);
    this.#sole.delete(claim);
  }

  /** Monotonic ms at which the next heartbeat is due; Infinity without claims. */
  get nextHeartbeat(): number {
    for (const { askedAt } of this.#claims.values()) return askedAt + this.heartbeatMs;
    return Infinity;
  }

  /** Monotonic ms before which `overdue` finds nothing. */
  get nextEnd(): number {
    return this.#claims.size > 0 ? this.#nextEnd : Infinity;
  }

  /** See `ActiveRuns`. */
  markAccompanied(withQuarantined: boolean): void {
    for (const claim of this.#sole) if (withQuarantined || !claim.repeated) claim.sole = false;
  }

  /** A claim has lost its mark, and Redis does not know it yet. */
  get hasNews(): boolean {
    for (const claim of this.#sole) if (!claim.sole) return true;
    return false;
  }

  /**
   * Claims for one step to renew.
   *
   * @param most 0 for a step that is no heartbeat: it only renews claims that lost their mark
   * @param ending jobs that the same step settles, by claim
   */
  ask(most: number, ending: ReadonlyMap<Claim, number>, now: number): Renewal[] {
    const renewals: Renewal[] = [];
    const asked: Claim[] = [];
    const speakFor = (claim: Claim) => {
      const held = claim.unsettled;
      if (held > (ending.get(claim) ?? 0)) renewals.push({ claim, held, sole: claim.sole });
      asked.push(claim);
    };
    for (const claim of this.#sole) if (!claim.sole) speakFor(claim);
    for (const claim of this.#claims.values()) {
      if (renewals.length >= most) break;
      if (claim.sole || !this.#sole.has(claim)) speakFor(claim);
    }
    for (const claim of asked) {
      claim.askedAt = now;
      this.#claims.delete(claim.number);
      this.#claims.set(claim.number, claim);
    }
    if (asked.length > 0) this.#newest = Math.max(this.#newest, now);
    return renewals;
  }

  renewed(renewals: readonly Renewal[], sentAt: number): void {
    for (const { claim, sole } of renewals) {
      if (!sole) this.#sole.delete(claim);
      if (!this.heartbeats) continue;
      claim.renewedAt = Math.max(claim.renewedAt, sentAt);
      claim.overdueSince = undefined;
      claim.isReported = false;
      this.#nextEnd = Math.min(this.#nextEnd, claim.renewedAt + claim.leaseMs);
    }
  }

  /** The step that should renew them was refused: they are as due as before. */
  notRenewed(renewals: readonly Renewal[]): void {
    for (const { claim } of renewals) claim.askedAt = claim.renewedAt;
    if (renewals.length > 0) this.#sort();
  }

  /**
   * Claims whose lease has ended, and whose renewal had no answer for `graceMs` since that was noticed; each is
   * returned once. A process that was frozen notices late and must have the chance to renew first, because its jobs may
   * not have been claimed by others.
   */
  overdue(now: number, graceMs: number): ReadonlySet<Claim> {
    if (now < this.#nextEnd) return NONE;
    const found = new Set<Claim>();
    this.#nextEnd = Infinity;
    for (const claim of this.#claims.values()) {
      if (claim.isReported) continue;
      let at = claim.renewedAt + claim.leaseMs;
      if (now >= at) {
        claim.overdueSince ??= now;
        at = claim.overdueSince + graceMs;
        if (now >= at) {
          claim.isReported = true;
          found.add(claim);
          continue;
        }
      }
      this.#nextEnd = Math.min(this.#nextEnd, at);
    }
    return found;
  }

  /** For the test kit, which moves the time of jobs by hand: shortens all leases by `ms`. */
  fastForward(ms: number): void {
    for (const claim of this.#claims.values()) claim.renewedAt -= ms;
    this.#nextEnd -= ms;
  }

  #sort(): void {
    this.#claims = new Map(Array.from(this.#claims).sort(([, a], [, b]) => a.askedAt - b.askedAt));
  }
}
