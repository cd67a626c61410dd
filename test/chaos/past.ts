import { nameOf, occurrenceIn, versionOf } from './history.js';
import type { Asked, GroupIndexes, HistoryEvent, Indexes, LimitsOfRun, ScheduleOfRun } from './history.js';

/** So long a process answers the repeat of a call in doubt by the answer of that call, from when it was given up. */
const REPEAT_MS = 60_000;

/** A call of a producer about one job. */
export interface Op {
  readonly what: Asked;
  /** The process. */
  readonly by: string;
  readonly asked: number;
  /** When it, or the call in doubt that it repeats, was asked for. */
  readonly since: number;
  /** When it was given up without an answer. */
  doubtfulAt: number | undefined;
  readonly version: string | undefined;
  readonly due: number;
  /** Infinity while nobody knows. */
  answered: number;
  fate: 'accepted' | 'void' | 'unknown';
  outcome: string | undefined;
  /** It found the job running: it takes effect when that run ends. */
  foundRunning: boolean;
}

export interface Settle {
  readonly verb: string;
  readonly value: number;
  readonly sent: number;
  /** Infinity without an answer. */
  answered: number;
  lost: boolean;
}

/** One lease of one job. */
export interface Claim {
  readonly p: string;
  readonly token: number;
  /** Server time. */
  readonly at: number;
  readonly due: number;
  /** How it came: with a lease that a worker was given, and after so many losses; undefined for one that followed by `extend()`. */
  readonly losses: number | undefined;
  /** No sooner does the lease end, as far as its owner was told. */
  until: number;
  lastRenewal: number;
  /** It went over into another lease of the same run. */
  movedAt: number;
  readonly settles: Settle[];
  /** The claim that the run began with. */
  root: Claim;
  start:
    | { readonly at: number; readonly version: string; readonly attempt: number; readonly maxAttempts: number }
    | undefined;
  readonly effects: { readonly how: string; readonly at: number }[];
}

export interface JobPast {
  readonly id: string;
  group: string | undefined;
  readonly ops: Op[];
  /** In the order of their tokens. */
  readonly claims: Claim[];
}

export interface SchedulePast extends ScheduleOfRun {
  /** Its first time; undefined when nobody made it. */
  first: number | undefined;
  /** What it says of itself at the end. */
  counts: { readonly made: number; readonly missed: number; readonly overlapped: number } | undefined;
  readonly occurrences: JobPast[];
}

/** Something that disturbs a process, or all of them (`redis`). */
export interface Disturbance {
  readonly kind: string;
  readonly target: string;
  readonly begin: number;
  readonly end: number;
}

export interface Fault extends Disturbance {
  readonly effect: boolean;
}

/** `ending`: a running job was told to end after this run. */
const TAKES_EFFECT = new Set(['created', 'replaced', 'rescheduled', 'cancelled', 'ending']);

/** A history, put together by job. Events of one process must come in their order; that of the processes is of no matter. */
export class Past {
  readonly jobs = new Map<string, JobPast>();
  readonly schedules = new Map<string, SchedulePast>();
  readonly faults: Fault[] = [];
  readonly disturbances: Disturbance[] = [];
  readonly exits: { readonly of: string; readonly how: string; readonly asked: boolean }[] = [];
  readonly stores: {
    readonly at: number;
    readonly final: boolean;
    readonly indexes: Indexes;
    readonly groups: GroupIndexes | undefined;
  }[] = [];
  readonly planned: Record<string, number> = {};
  /** Session key -> process. */
  readonly sessions = new Map<string, string>();
  keys: readonly (readonly [name: string, ttlMs: number])[] = [];
  limits: LimitsOfRun | undefined;
  /** Jobs that one claim had twice. */
  readonly twice: string[] = [];
  /** What processes told that cannot be: a settle of a claim that they never had. */
  readonly absurd: string[] = [];
  readonly #ops = new Map<string, Op>();
  /** Claims of a process by token. */
  readonly #claims = new Map<string, Map<string, Claim>>();
  readonly #steps = new Map<string, { readonly id: string; readonly settle: Settle; readonly claim: Claim }[]>();
  /** The run of a job that a process began last. */
  readonly #runs = new Map<string, Claim>();

  constructor(readonly leaseMs: number) {}

  static async of(events: Iterable<HistoryEvent> | AsyncIterable<HistoryEvent>, leaseMs: number): Promise<Past> {
    const past = new Past(leaseMs);
    for await (const event of events) past.add(event);
    for (const job of past.jobs.values()) {
      job.claims.sort((a, b) => a.token - b.token);
      past.#askOccurrence(job);
    }
    return past;
  }

  add(event: HistoryEvent): void {
    const { p, at } = event;
    switch (event.ev) {
      case 'asked': {
        const { what, id, version, due = Infinity } = event;
        const op: Op = {
          what,
          by: p,
          asked: at,
          since: what === 'enqueue' ? this.#askedFirst(p, at, id, version) : at,
          doubtfulAt: undefined,
          version,
          due,
          answered: Infinity,
          fate: 'unknown',
          outcome: undefined,
          foundRunning: false,
        };
        this.#ops.set(`${p} ${event.op}`, op);
        const job = this.#job(id);
        job.ops.push(op);
        job.group ??= event.group;
        return;
      }
      case 'answered': {
        const op = this.#ops.get(`${p} ${event.op}`);
        if (!op) return void this.absurd.push(`${p} was answered a call ${event.op} that it never made`);
        op.answered = at;
        op.outcome = event.outcome;
        op.foundRunning = event.state === 'running';
        op.fate = TAKES_EFFECT.has(event.outcome) ? 'accepted' : 'void';
        this.#ops.delete(`${p} ${event.op}`); // Hours of them would fill the memory.
        return;
      }
      case 'failed': {
        const op = this.#ops.get(`${p} ${event.op}`);
        if (!op) return;
        if (event.maybe) op.doubtfulAt = at;
        else op.fate = 'void';
        return;
      }
      case 'claimed':
        for (const [n, [id, due, losses]] of event.jobs.entries()) {
          if (event.jobs.findIndex(([other]) => other === id) < n) this.twice.push(id);
          else this.#claim(p, id, event.token, event.now, due, this.leaseMs, losses);
        }
        return;
      case 'start': {
        const claim = this.#claimOf(p, event.id, event.token);
        if (!claim) return;
        claim.start = event;
        this.#runs.set(`${p} ${event.id}`, claim);
        return;
      }
      case 'effect':
        this.#claimOf(p, event.id, event.token)?.effects.push({ how: event.how, at });
        return;
      case 'settleSent':
        this.#steps.set(
          `${p} ${event.step}`,
          event.jobs.flatMap(([id, token, verb, value]) => {
            const claim = this.#claimOf(p, id, token);
            if (!claim) return [];
            const run = this.#runs.get(`${p} ${id}`);
            // Lost and got back: the handler went on under another token.
            if (!claim.start && claim.root === claim && run && run !== claim && verb !== 'release') claim.root = run;
            const settle: Settle = { verb, value, sent: at, answered: Infinity, lost: false };
            claim.settles.push(settle);
            return { id, settle, claim };
          }),
        );
        return;
      case 'settleAnswer':
        for (const { id, settle, claim } of this.#steps.get(`${p} ${event.step}`) ?? []) {
          settle.answered = at;
          settle.lost = event.lost.includes(id);
          const batch = this.#claims.get(`${p} ${claim.token}`);
          if (batch?.delete(id) && batch.size === 0) this.#claims.delete(`${p} ${claim.token}`);
        }
        this.#steps.delete(`${p} ${event.step}`);
        return;
      case 'renewed': {
        const left = new Map(event.left.map(([token, ids]) => [token, new Set(ids)]));
        for (const token of event.tokens) {
          for (const [id, claim] of this.#claims.get(`${p} ${token}`) ?? []) {
            if (claim.settles.length > 0 || left.get(token)?.has(id) === false) continue;
            claim.until = Math.max(claim.until, event.sent + this.leaseMs);
            claim.lastRenewal = Math.max(claim.lastRenewal, event.sent);
          }
        }
        return;
      }
      case 'extended': {
        const old = this.#claimOf(p, event.id, event.from);
        if (!old) return;
        old.movedAt = event.sent;
        this.#claim(p, event.id, event.to, event.sent, old.due, event.leaseMs).root = old.root;
        return;
      }
      case 'session':
        return void this.sessions.set(event.key, p);
      case 'stall':
        return void this.disturbances.push({
          kind: 'stall',
          target: nameOf(p),
          begin: event.from,
          end: event.to,
        });
      case 'schedules':
        for (const schedule of event.schedules)
          this.schedules.set(schedule.id, { ...schedule, first: undefined, counts: undefined, occurrences: [] });
        return;
      case 'scheduled': {
        const schedule = this.schedules.get(event.id);
        if (schedule && event.outcome === 'created') schedule.first = event.next;
        return;
      }
      case 'counted': {
        const schedule = this.schedules.get(event.id);
        if (schedule) schedule.counts = event;
        return;
      }
      case 'limits':
        this.limits = event;
        return;
      case 'planned':
        return void Object.assign(this.planned, event.faults);
      case 'fault':
        this.faults.push(event);
        this.disturbances.push(event);
        return;
      case 'exit':
        return void this.exits.push(event);
      case 'store':
        this.stores.push({ at, final: event.final, indexes: event.indexes, groups: event.groups });
        if (event.keys) this.keys = event.keys;
    }
  }

  /** Nobody enqueues an occurrence: as if somebody had when its schedule was made, if it is of a time of that. */
  #askOccurrence(job: JobPast): void {
    const { schedule: id = '', at = 0 } = occurrenceIn(job.id) ?? {};
    const schedule = this.schedules.get(id);
    if (schedule?.first === undefined) return;
    const { first, everyMs, until } = schedule;
    if (at < first || at > until || (at - first) % everyMs !== 0) return;
    schedule.occurrences.push(job);
    const made = first - everyMs;
    job.ops.push({
      what: 'enqueue',
      by: 'schedule',
      asked: made,
      since: made,
      doubtfulAt: undefined,
      version: versionOf(id),
      due: at,
      answered: made,
      // What has begun is neither missed nor left out any more.
      fate: job.claims.some(({ start }) => start) ? 'accepted' : 'unknown',
      outcome: 'made',
      foundRunning: false,
    });
  }

  /** The repeat of an enqueue in doubt gets the answer of the first call, whose job may have run and ended by then. */
  #askedFirst(p: string, at: number, id: string, version: string | undefined): number {
    const { ops = [] } = this.jobs.get(id) ?? {};
    // A cancellation by the same process ends the doubt.
    const first = ops.findLast((op) => op.what !== 'reschedule' && op.by === p);
    if (first?.what !== 'enqueue' || first.version !== version || first.doubtfulAt === undefined) return at;
    return at - first.doubtfulAt <= REPEAT_MS ? first.since : at;
  }

  #job(id: string): JobPast {
    let job = this.jobs.get(id);
    if (!job) this.jobs.set(id, (job = { id, group: undefined, ops: [], claims: [] }));
    return job;
  }

  #claim(p: string, id: string, token: number, at: number, due: number, leaseMs: number, losses?: number): Claim {
    const claim: Claim = {
      p,
      token,
      at,
      due,
      losses,
      until: at + leaseMs,
      lastRenewal: at,
      movedAt: Infinity,
      settles: [],
      root: undefined as unknown as Claim,
      start: undefined,
      effects: [],
    };
    claim.root = claim;
    this.#job(id).claims.push(claim);
    const key = `${p} ${token}`;
    const batch = this.#claims.get(key) ?? new Map<string, Claim>();
    this.#claims.set(key, batch.set(id, claim));
    return claim;
  }

  #claimOf(p: string, id: string, token: number): Claim | undefined {
    const claim = this.#claims.get(`${p} ${token}`)?.get(id) ?? this.#settledClaim(p, id, token);
    if (!claim) this.absurd.push(`${p} speaks of job ${id} under the token ${token}, which it never got`);
    return claim;
  }

  /** A handler that ran on after its timeout, or an ending that is told again. */
  #settledClaim(p: string, id: string, token: number): Claim | undefined {
    return this.jobs.get(id)?.claims.find((claim) => claim.p === p && claim.token === token);
  }
}
