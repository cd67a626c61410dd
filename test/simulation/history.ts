import type { Member } from './fleet.js';
import type { Rollback } from './witness.js';

/** What is known of one job: all that happened under its id. */
export interface JobHistory {
  readonly id: string;
  queue: string;
  /** Versions by the numbers of the operations that wrote them. */
  readonly versions: Map<number, VersionHistory>;
  /** Writes of the server when its last version was removed as done; undefined while it is not. */
  doneAt: number | undefined;
  /** Number of the version that was done then. */
  doneVersion: number | undefined;
  isDead: boolean;
  /** A cancellation was asked for: whether it came in time only its answer says, and that may be lost. */
  cancelAsked: boolean;
  /** Failed runs, as handlers count them, since a person or a call gave it a new life. */
  failures: number;
  /** Leases that it lost, and for which it was charged. */
  chargedLosses: number;
  /** Failures for which it was charged: the claims of those runs. */
  readonly chargedRuns: Set<string>;
  /** How often it has ended its process, as its plan says, since a person or a call gave it a new life. */
  kills: number;
  /** The claims of those runs. */
  readonly killedUnder: Set<ClaimHistory>;
  /** Its handler has discarded it. */
  isDiscarded: boolean;
  /** An operator gave it one more run only. */
  mayDie: boolean;
  /** When its due time was set for the last time, simulated ms. */
  dueSetAt: number;
  /** When a master that had been deposed stored it for the last time, simulated ms. */
  storedByDeposedAt: number;
  /** When a master that had been deposed gave it to a worker for the last time, simulated ms. */
  claimedOfDeposedAt: number;
  /** The `due` key of the shard in which it ended for the last time. */
  endedIn: string | undefined;
  /** When it expires it becomes a dead letter. */
  keepsExpired: boolean;
  /** It was asked to be moved to another queue. */
  wasMoved: boolean;
  /** Moves of it that are not answered yet: it may be in both queues. */
  openMoves: number;
  /** When a move of it failed, or one was lost with the tail, simulated ms: it may be in both queues until it has ended in both. */
  moveInDoubtAt: number | undefined;
  /** The `due` key of the shard that a move took it from. */
  reservedIn: string | undefined;
  /** Where a move put it last. */
  takenOver: TakenOver | undefined;
  /** It was rescheduled while it was moved; see MoveRules. */
  isInBothQueues: boolean;
  /** How often a run of it was completed and it was to run once more: a call had come while it ran. */
  followedRuns: number;
  /** It lost a lease, and has not been settled since. */
  isLosing: boolean;
  /** The last one. */
  claim: ClaimHistory | undefined;
}

export interface VersionHistory {
  readonly n: number;
  /** How often the application called for it. */
  calls: number;
  /** It was acknowledged as created or as replacing. */
  isAcknowledged: boolean;
  /** Writes of the server when it was acknowledged. */
  storedAt: number | undefined;
  /** Its call was answered that replicas have it, or the disk: what must not lose it any more. */
  isSafeFrom: Rollback | undefined;
  tries: number;
  endedWell: number;
  /** Writes of the server when it ended by what was planned or asked for: discarded, expired, dead. */
  overAt: number | undefined;
  /** It was over, and the same call made it again, or an operator requeued it: what is known of its life before that. */
  former: FormerLife | undefined;
  /** A later call under its id may have taken its place. */
  isSuperseded: boolean;
  /** Why it may be lost. */
  excuse: string | undefined;
}

interface TakenOver {
  readonly shard: string;
  /** Writes of the server then. */
  readonly at: number;
  /** No replica has it. */
  readonly isOnlyThere: boolean;
  /** By a move that goes on. */
  readonly isMoving: boolean;
}

interface FormerLife {
  /** Writes of the server when it ended. */
  readonly overAt: number;
  /** Writes of the server when the call was answered, or the requeueing made, that brought it back. */
  readonly madeAgainAt: number;
}

export interface ClaimHistory {
  readonly number: string;
  readonly queue: string;
  /** The `due` key of its shard. */
  readonly shard: string;
  readonly member: Member | undefined;
  /** The session that claimed it, and its call. */
  readonly session: string;
  readonly call: number;
  /** The call before that one. */
  readonly before: number;
  /** When the first copy of that call left its process, also one that never arrived, simulated ms. */
  readonly sentAt: number;
  readonly at: number;
  readonly leaseMs: number;
  readonly isExtended: boolean;
  /** Whether its process sends heartbeats for it. Until its job is handed out that is as its last renewal says, or as the present `pull()` does. */
  isKept: boolean;
  isHandedOut: boolean;
  /** What it claimed. */
  readonly jobs: Map<string, ClaimedJobHistory>;
  /** Writes of the server when it began, this one included. */
  readonly length: number;
  /** It was lost with the tail: its process does not know. */
  isLost: boolean;
  /** The present end of its lease was written by a call that was lost with the tail. */
  isDoubtful: boolean;
  deadline: number;
  renewedAt: number;
  /** When a renewal told last whether its job is alone, also one that leaves the end of the lease. */
  toldAt: number;
  /** Writes of the server when it was renewed. */
  renewedLength: number;
}

export interface ClaimedJobHistory {
  /** A `pull()` gave it to whoever called. It does so once under each claim. */
  isHandedOut?: boolean;
  /** When it was due; undefined of a job that came from the quarantine. */
  readonly due: number | undefined;
  /** How long it was in the quarantine, ms. */
  readonly quarantinedMs: number | undefined;
  /** Leases that it had lost in a row. */
  readonly losses: number;
  /** Writes of the server when an outcome took it out of the claim, or another process took it back. */
  outcomeAt?: number;
  /** That was lost with the tail, or told to a master that had been deposed: the claim holds the job still, or again. */
  isOutcomeLost?: boolean;
  /** Its worker stopped, and could not hand it back while its process went on: it waits for the end of its lease. */
  isLeft?: boolean;
}

export interface SessionHistory {
  call: number;
  /** The number of the call before; 0 without one. */
  readonly before: number;
  /** The last call that was not refused. */
  accepted: number;
  connection: unknown;
  /** Writes of the server before its last call. */
  readonly length: number;
}

export function newJob(id: string): JobHistory {
  return {
    id,
    queue: '',
    versions: new Map(),
    doneAt: undefined,
    doneVersion: undefined,
    isDead: false,
    cancelAsked: false,
    failures: 0,
    chargedLosses: 0,
    chargedRuns: new Set(),
    kills: 0,
    killedUnder: new Set(),
    isDiscarded: false,
    mayDie: false,
    dueSetAt: 0,
    storedByDeposedAt: -1,
    claimedOfDeposedAt: -1,
    endedIn: undefined,
    keepsExpired: false,
    wasMoved: false,
    openMoves: 0,
    moveInDoubtAt: undefined,
    reservedIn: undefined,
    takenOver: undefined,
    isInBothQueues: false,
    followedRuns: 0,
    isLosing: false,
    claim: undefined,
  };
}

/** It may end as many processes as a new one. @param running runs of it that go on, which end one more each */
export function startKillsAnew(job: JobHistory, running = 0): void {
  job.kills = -running;
  job.killedUnder.clear();
}

export function newVersion(n: number): VersionHistory {
  return {
    n,
    calls: 0,
    isAcknowledged: false,
    storedAt: undefined,
    isSafeFrom: undefined,
    tries: 0,
    endedWell: 0,
    overAt: undefined,
    former: undefined,
    isSuperseded: false,
    excuse: undefined,
  };
}

/** It may be in two queues, or come to the other one yet. */
export function isMoveInDoubt({ openMoves, moveInDoubtAt }: JobHistory): boolean {
  return openMoves > 0 || moveInDoubtAt !== undefined;
}

/** A call that writes another payload may have taken the place of all others that are known by now, or of all but one. */
export function supersede({ versions }: JobHistory, but?: number): void {
  for (const version of versions.values()) if (version.n !== but) version.isSuperseded = true;
}
