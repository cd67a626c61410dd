/** A claim whose lease a step renews. */
export interface RenewalRequest {
  readonly claim: {
    readonly number: number;
    /** Length of the renewed lease in whole ms; 0 for the worker's lease. */
    readonly ownMs: number;
  };
  /** How many of its jobs are still held after the settlements of this step. */
  readonly held: number;
  /** Its only job is the only one of its process. */
  readonly sole: boolean;
}

/** The outcomes that a step settles. */
export interface SettlementRequest {
  /** Claims of which jobs were completed. */
  readonly groups: number;
  /** Those of all other jobs. */
  readonly outcomes: number;
  /** What tells both, in this order. */
  readonly args: (string | number)[];
}

/** The request of one round trip of a worker to lib/lua/step.lua. */
export interface StepRequest {
  readonly limit: number;
  /** Of these only while no other worker waits for jobs. */
  readonly ahead: number;
  /** Jobs wanted from the quarantine instead. */
  readonly quarantineLimit: number;
  /** How long those must have waited there. */
  readonly quarantinedForMs: number;
  readonly leaseMs: number;
  readonly idleForMs: number;
  readonly renewals: readonly RenewalRequest[];
  readonly settle: SettlementRequest;
  /** Nothing else runs in this process and nothing else was asked for. */
  readonly isSole: boolean;
  readonly hasFreeSlots: boolean;
  /** The claim of the other session asks for all free slots; only its answer shows whether one is free. */
  readonly claimInFlight: boolean;
  readonly refreshIdle: boolean;
  /** It does not wait for jobs, so it is neither woken nor the leader. */
  readonly looksOnce: boolean;
  readonly sweep: boolean;
  readonly asksIsolation: boolean;
  readonly deadLetters: { readonly max: number; readonly maxAgeMs: number };
  readonly keepCompleted: { readonly count: number; readonly ageMs: number } | undefined;
}

/** A claimed job as stored. */
export interface ClaimedRecord {
  readonly id: string;
  /** Server time in ms; NaN when the index held no usable number. */
  readonly dueAt: number;
  readonly attempts: AttemptsRecord;
  readonly envelope: string;
}

export interface AttemptsRecord {
  readonly charged: number;
  readonly losses: number;
  readonly snoozes: number;
  /** The limit of attempts that overrides header and handler; only for a job that was requeued for one more run. */
  readonly limit?: number;
}

export interface StepReply {
  /** Server time in whole ms, by which jobs are due. */
  readonly now: number;
  /** The same with its fraction. */
  readonly exactNow: number;
  /** The token of `jobs`; 0 without any. */
  readonly claim: number;
  /** Due time of the first job left, or undefined. */
  readonly head: number | undefined;
  /** When the first lease of anybody ends; undefined when not looked at, or none. */
  readonly firstLease: number | undefined;
  readonly isLeader: boolean;
  readonly mayIsolate: boolean;
  readonly paused: boolean;
  /** Nothing was stored of the shard before; or perhaps nothing, when a copy of the call may have come first. */
  readonly isNew: boolean;
  /** The claim left due jobs behind because of their size, or may have because it met damaged ones. */
  readonly isCut: boolean;
  /** Claims count for limits of the queue: no job is given for which no slot is free. */
  readonly isLimited: boolean;
  /** The queue runs as many jobs as its `globalConcurrency` allows: none comes before one ends. */
  readonly hasNoPlace: boolean;
  /** Sleepers; undefined when not looked at. */
  readonly idle: number | undefined;
  /** Jobs in quarantine. */
  readonly quarantined: number;
  /** Since when, in server time, the one that waits longest has been there. */
  readonly quarantinedSince: number | undefined;
  readonly lost: readonly string[];
  readonly aborted: readonly string[];
  /** Claims of which Redis holds more or fewer jobs than the worker, with the ids that it holds. */
  readonly left: ReadonlyMap<number, ReadonlySet<string>>;
  readonly jobs: readonly ClaimedRecord[];
  /** Ids whose outcome gave way to a replacement or a cancellation: neither retried nor dead. */
  readonly superseded: readonly string[];
  /** When nothing runs and nothing is due soon: what the key of changes held, and until when (server ms) nothing comes by itself. */
  readonly quiet: { readonly held: string; readonly until: number } | undefined;
}

/** A claim keeps the prefix of its jobs that fits: larger answers would hold up everybody else's. */
export const CLAIM_MAX_BYTES = 1024 * 1024;
export const STEP_MAX_JOBS = 200;
/** Where lib/lua/step.lua expects the sequence number. */
export const STEP_SEQUENCE_AT = 1;

/** A step that only lets what ended or died be seen. */
export const NOTHING_ASKED: StepRequest = Object.freeze({
  limit: 0,
  ahead: 0,
  quarantineLimit: 0,
  quarantinedForMs: 0,
  leaseMs: 30_000,
  idleForMs: 0,
  renewals: [],
  settle: { groups: 0, outcomes: 0, args: [] },
  isSole: false,
  hasFreeSlots: false,
  claimInFlight: false,
  refreshIdle: false,
  looksOnce: false,
  sweep: false,
  asksIsolation: false,
  keepCompleted: undefined,
  deadLetters: { max: Number.MAX_SAFE_INTEGER, maxAgeMs: Number.MAX_SAFE_INTEGER },
});

/** From the next loss on a job is charged for it among other jobs, too: see lib/lua/step.lua. */
const FREE_LOSSES = 3;

export function isRepeated({ losses }: AttemptsRecord): boolean {
  return losses >= FREE_LOSSES;
}

const NO_RECORD: AttemptsRecord = Object.freeze({ charged: 0, losses: 0, snoozes: 0 });

export function parseAttempts(text: string): AttemptsRecord {
  if (text === '') return NO_RECORD;
  const [charged, losses, snoozes, , limit] = text.split(' ').map(Number);
  const record = { charged: countOf(charged), losses: countOf(losses), snoozes: countOf(snoozes) };
  return countOf(limit) > 0 ? { ...record, limit: limit! } : record;
}

function countOf(stored: number | undefined): number {
  return Number.isSafeInteger(stored) && stored! > 0 ? stored! : 0;
}

export function stepArgs(request: StepRequest, worker: string): (string | number)[] {
  const flags =
    (request.isSole ? 'a' : '') +
    (request.claimInFlight ? 'b' : '') +
    (request.hasFreeSlots ? 'f' : '') +
    (request.refreshIdle ? 'i' : '') +
    (request.looksOnce ? 'o' : '') +
    (request.sweep ? 's' : '') +
    (request.asksIsolation ? 'v' : '') +
    (request.keepCompleted ? 'k' : '');
  const { settle, renewals, deadLetters, keepCompleted } = request;
  const args: (string | number)[] = [
    worker,
    0,
    request.leaseMs,
    request.ahead > 0 ? `${request.limit} ${request.ahead}` : request.limit,
    CLAIM_MAX_BYTES,
    flags,
    request.quarantinedForMs > 0 ? `${request.quarantineLimit} ${request.quarantinedForMs}` : request.quarantineLimit,
    request.idleForMs,
    deadLetters.max,
    deadLetters.maxAgeMs,
    renewals.length,
    settle.groups,
    settle.outcomes,
  ];
  for (const { claim, held, sole } of renewals) {
    args.push(claim.number, held, sole ? claim.ownMs + 0.5 : claim.ownMs);
  }
  // Not push(...): a batch of endings may be long.
  const all = settle.args.length === 0 ? args : args.concat(settle.args);
  if (keepCompleted) all.push(keepCompleted.count, keepCompleted.ageMs);
  return all;
}

export function parseStep(raw: unknown): StepReply {
  const [
    micros,
    claim,
    head,
    firstLease,
    roles,
    idle,
    quarantined,
    lost,
    aborted,
    left,
    batch,
    superseded,
    oldest,
    quiet,
  ] = raw as [
    number,
    number,
    number,
    number,
    string,
    number,
    number,
    string[],
    string[],
    (string | number)[],
    string | string[],
    string[],
    number,
    string,
  ];
  return {
    now: Math.floor(micros / 1_000),
    exactNow: micros / 1_000,
    claim,
    head: head < 0 ? undefined : head,
    firstLease: firstLease < 0 ? undefined : firstLease,
    isLeader: roles.includes('w'),
    mayIsolate: roles.includes('v'),
    paused: roles.includes('p'),
    isNew: roles.includes('n'),
    isCut: roles.includes('c'),
    isLimited: roles.includes('l'),
    hasNoPlace: roles.includes('f'),
    idle: idle < 0 ? undefined : idle,
    quarantined,
    quarantinedSince: oldest < 0 ? undefined : oldest,
    lost,
    aborted,
    left: left.length === 0 ? NOTHING_LEFT : parseLeft(left),
    jobs: parseJobs(batch),
    superseded,
    quiet: parseQuiet(quiet),
  };
}

function parseQuiet(text = ''): StepReply['quiet'] {
  const blank = text.indexOf(' ');
  return blank < 0 ? undefined : { held: text.slice(0, blank), until: Number(text.slice(blank + 1)) };
}

/** The `\30` of the script. */
const BETWEEN = '\x1e';

function parseJobs(batch: string | string[]): ClaimedRecord[] {
  if (batch.length === 0) return [];
  const texts = typeof batch === 'string' ? batch.split(BETWEEN) : batch;
  const jobs: ClaimedRecord[] = [];
  for (let at = 0; at < texts.length; at += 3) {
    const due = texts[at]!;
    const blank = due.indexOf(' ');
    jobs.push({
      id: detached(texts[at + 1]!),
      dueAt: Number(blank < 0 ? due : due.slice(0, blank)),
      attempts: blank < 0 ? NO_RECORD : parseAttempts(due.slice(blank + 1)),
      // A codec may keep the text that it gets; JSON.parse makes texts of its own.
      envelope: texts[at + 2]!.startsWith('2') ? detached(texts[at + 2]!) : texts[at + 2]!,
    });
  }
  return jobs;
}

/** A part of a text keeps all of it in memory (V8 makes slices, not copies), and a handler may keep its id for long. */
function detached(part: string): string {
  return ` ${part}`.slice(1);
}

const NOTHING_LEFT: ReadonlyMap<number, ReadonlySet<string>> = new Map();

function parseLeft(list: (string | number)[]): Map<number, ReadonlySet<string>> {
  const left = new Map<number, ReadonlySet<string>>();
  for (let i = 0; i < list.length;) {
    const count = Number(list[i + 1]);
    left.set(Number(list[i]), new Set(list.slice(i + 2, i + 2 + count).map(String)));
    i += 2 + count;
  }
  return left;
}
