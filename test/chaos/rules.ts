import { nameOf } from './history.js';
import type { Claim, Disturbance, JobPast, Op, Past, Settle } from './past.js';

/** What a run promises. A violation names one of these. */
export const RULES = {
  lost: 'no acknowledged job is lost: it was completed, is a dead letter or is still stored',
  unexpected: 'nothing runs that nobody enqueued',
  early: 'no run begins before its due time',
  overlap: 'two leases of one job never overlap',
  uncaused: 'every further run of a job has a cause',
  healthyDead: 'no healthy job is a dead letter',
  stale: 'a token that was replaced changes nothing',
  stuck: 'when all faults are over, what is due is done',
  index: 'each job is in exactly one index',
  grouped: 'what is due stands in the index of its group, at its due time, and nothing else does',
  ring: 'each group with jobs is in line, at its limit, or waits no longer than its first job',
  held: 'only what runs or is in quarantine has a place of its group',
  twice: 'no claim has a job twice',
  limits: 'no more jobs run at a time than the limits permit',
  rates: 'within no window do more jobs start than the rates permit',
  accounted: 'each time of a schedule has run, is a dead letter, or is counted as missed or overlapped',
  alongside: 'with overlap skip or queue no occurrence begins while an earlier one is alive',
  keys: 'only the fixed keys are left',
  crash: 'no process ends that nobody ended',
  faults: 'four fifths of the planned faults of the run took effect',
} as const;

export type Rule = keyof typeof RULES;
export type Report = (rule: Rule, what: string) => void;

/** How long what a fault broke may take to mend: a connection is found dead at its next deadline, then made anew. */
const AFTERMATH_MS = 5_000;

/** Who suffers, everybody suffers: all connections lead through the director of the run. */
const EVERYBODY = new Set(['redis', 'director']);

/** What happened to one job, under each rule about it. @returns why it ran again, one cause per further run */
export function judgeJob(job: JobPast, past: Past, stored: ReadonlySet<string>, report: Report): string[] {
  judgeLost(job, stored, report);
  judgeUnexpected(job, report);
  judgeEarly(job, report);
  judgeOverlap(job, report);
  judgeStale(job, report);
  return judgeCauses(job, past, report);
}

const isAccepted = (op: Op) => op.fate === 'accepted';
const mayCount = (op: Op) => op.fate !== 'void';

function judgeLost({ id, ops, claims }: JobPast, stored: ReadonlySet<string>, report: Report): void {
  if (stored.has(id)) return;
  const kept = ops.filter((op) => isAccepted(op) && op.what !== 'cancel');
  const last = kept.reduce<Op | undefined>((a, b) => (a && a.answered > b.answered ? a : b), undefined);
  if (!last) return;
  if (ops.some((op) => op.what === 'cancel' && mayCount(op) && op.answered > last.asked)) return;
  // The version that must have come to an end: that of `last`, or one that a doubtful call may have put in its place.
  const versions = new Set(
    ops
      .filter((op) => op.what === 'enqueue' && mayCount(op) && op.answered >= last.since)
      .map(({ version }) => version),
  );
  if (last.what === 'reschedule') for (const op of kept) versions.add(op.version);
  const ended = claims.some((claim) =>
    claim.settles.some(
      ({ verb, lost, sent }) =>
        ['complete', 'expired'].includes(verb) && !lost && sent >= last.since && didRun(claim, verb, sent, versions),
    ),
  );
  if (!ended) report('lost', `it was ${last.outcome} (${last.version ?? 'same payload'}) and is nowhere`);
}

/** A completion counts for the version that ran, once its handler did its work. */
function didRun({ root }: Claim, verb: string, sent: number, versions: ReadonlySet<string | undefined>): boolean {
  if (verb === 'expired') return true;
  return versions.has(root.start?.version) && root.effects.some(({ how, at }) => how === 'ok' && at <= sent);
}

function judgeUnexpected({ ops, claims }: JobPast, report: Report): void {
  for (const { start, at, p } of claims) {
    if (!start) continue;
    const asked = ops.some((op) => op.version === start.version && mayCount(op) && op.asked <= at);
    if (!asked) report('unexpected', `${p} ran version ${start.version}, which was not accepted by then`);
  }
}

/** Something that gave the job another due time; Infinity: that ended it. */
interface Turn {
  readonly asked: number;
  readonly answered: number;
  readonly due: number;
}

/**
 * The job must not start before the due time of its last turn. Which one was last is known up to the time between
 * question and answer, so the earliest of those that it can have been counts.
 */
function judgeEarly({ ops, claims }: JobPast, report: Report): void {
  const turns: Turn[] = [
    ...ops.filter(mayCount),
    ...claims.flatMap((claim) => claim.settles.filter(({ lost }) => !lost).map((settle) => turnOf(claim, settle, ops))),
  ];
  for (const { at, p, start } of claims) {
    if (!start) continue;
    const before = turns.filter(({ asked }) => asked <= at);
    const done = before.filter(({ answered }) => answered < at);
    const latest = Math.max(...done.map(({ asked }) => asked));
    const due = Math.min(...before.filter(({ answered }) => answered >= Math.min(latest, at)).map((turn) => turn.due));
    if (before.length === 0) continue; // Nobody asked for it: that is another rule's.
    if (due === Infinity) report('uncaused', `${p} ran it after it had certainly ended`);
    else if (at < due) report('early', `${p} started it ${due - at} ms before it was due`);
  }
}

function turnOf(claim: Claim, { verb, value, sent, answered }: Settle, ops: readonly Op[]): Turn {
  let due = Infinity;
  if (verb === 'retry' || verb === 'snooze') due = sent + value;
  if (verb === 'release') due = value;
  // What was put in its place while it ran comes next, however the run ended.
  for (const op of ops) {
    const followed = mayCount(op) && (op.foundRunning || op.fate === 'unknown');
    if (followed && op.asked <= answered && op.answered >= claim.root.at) due = Math.min(due, op.due);
  }
  return { asked: sent, answered, due };
}

function judgeOverlap({ claims }: JobPast, report: Report): void {
  for (const [i, next] of claims.entries()) {
    const claim = claims[i - 1];
    if (!claim) continue;
    const settled = Math.min(...claim.settles.map(({ sent }) => sent));
    const freed = Math.min(claim.until, settled, claim.movedAt);
    if (next.at < freed) {
      const whose = `${next.p} got a lease ${freed - next.at} ms before that of ${claim.p} could end`;
      report('overlap', `${whose} (tokens ${next.token} and ${claim.token})`);
    }
  }
}

function judgeStale({ claims }: JobPast, report: Report): void {
  for (const [i, claim] of claims.entries()) {
    const next = claims[i + 1];
    if (!next) continue;
    for (const { verb, sent, answered, lost } of claim.settles) {
      if (sent > next.at && answered < Infinity && !lost)
        report('stale', `${claim.p} settled it (${verb}) under token ${claim.token}, though ${next.token} was given`);
    }
    if (claim.settles.length === 0 && claim.movedAt === Infinity && claim.lastRenewal > next.at)
      report('stale', `${claim.p} renewed token ${claim.token}, though ${next.token} was given`);
  }
}

function judgeCauses(job: JobPast, past: Past, report: Report): string[] {
  const starts = job.claims.filter(({ start }) => start);
  const causes: string[] = [];
  for (const [i, next] of starts.entries()) {
    const former = starts[i - 1];
    if (!former) continue;
    const cause = causeOf(job, former, next, past);
    if (cause) causes.push(cause);
    else report('uncaused', `${next.p} ran it again after ${former.p}, and nothing tells why`);
  }
  return causes;
}

/** Why a job ran again: how its run ended, what was asked for meanwhile, or what cost the former owner its lease. */
function causeOf({ ops, claims }: JobPast, former: Claim, next: Claim, past: Past): string | undefined {
  const run = claims.filter(({ root }) => root === former.root);
  const settles = run.flatMap((claim) => claim.settles).filter(({ sent, lost }) => !lost && sent <= next.at);
  if (settles.some(({ verb }) => verb === 'snooze')) return 'snooze';
  if (settles.some(({ verb }) => verb === 'release')) return 'hand-over at shutdown';
  if (settles.some(({ verb }) => verb === 'retry'))
    return former.effects.some(({ how }) => how === 'hung') ? 'timeout' : 'failure';
  // Not the call that the former run came from, whose answer may have arrived after that run began.
  const origin = ops.find((op) => op.version === former.start!.version && op.what === 'enqueue' && mayCount(op));
  const again = ops.filter((op) => op.what !== 'cancel' && mayCount(op) && op !== origin);
  if (again.some((op) => op.asked <= next.at && op.answered >= former.at)) return 'asked for again';
  const ended = settles.some(({ verb, answered }) => verb === 'complete' && answered < Infinity);
  if (ended || next.at < Math.max(...run.map(({ until }) => until))) return undefined;
  return disturbanceBetween(past.disturbances, nameOf(former.p), former.at, next.at)?.kind;
}

function disturbanceBetween(
  disturbances: readonly Disturbance[],
  name: string,
  from: number,
  to: number,
): Disturbance | undefined {
  const there = disturbances.filter(
    ({ target, begin, end }) => (target === name || EVERYBODY.has(target)) && begin <= to && end + AFTERMATH_MS >= from,
  );
  // What was done to the process itself says more than what all of them suffered.
  return there.find(({ target }) => target === name) ?? there[0];
}

/** Of the version that ran last: how many runs cost an attempt at most, and whether its handler ever ended badly. */
export function troubleOf({ claims }: JobPast): Trouble {
  const all = claims.filter(({ start }) => start);
  const last = all.at(-1)?.start;
  const runs = all.filter(({ start }) => start!.version === last!.version);
  const how = (claim: Claim) => claim.effects.map((effect) => effect.how);
  const isGood = (claim: Claim) => how(claim).includes('ok') || how(claim).includes('snoozed');
  return {
    attempts: runs.filter((claim) => !isGood(claim)).length,
    maxAttempts: last?.maxAttempts ?? 0,
    bad: runs.some((claim) => how(claim).some((one) => one === 'failed' || one === 'hung')),
    discarded: runs.some((claim) => how(claim).includes('discarded')),
  };
}

export interface Trouble {
  readonly attempts: number;
  readonly maxAttempts: number;
  readonly bad: boolean;
  readonly discarded: boolean;
}
