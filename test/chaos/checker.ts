import { occurrenceIn, OVER } from './history.js';
import { judgeLimits } from './limits.js';
import type { HistoryEvent, Indexes } from './history.js';
import { Past } from './past.js';
import type { Claim, Fault, JobPast } from './past.js';
import { judgeJob, troubleOf } from './rules.js';
import type { Rule } from './rules.js';
import { judgeSchedules } from './schedules.js';

export interface Violation {
  readonly rule: Rule;
  /** The job that it is about, if it is about one. */
  readonly id?: string;
  readonly what: string;
}

export interface Figures {
  readonly jobs: { asked: number; acknowledged: number; refused: number; doubtful: number };
  /** Of schedules; the jobs are without them. */
  readonly occurrences: { times: number; ran: number; missed: number; overlapped: number };
  readonly starts: number;
  readonly deadLetters: number;
  /** Why jobs ran again. */
  readonly secondRuns: Readonly<Record<string, number>>;
  readonly faults: Readonly<Record<string, { planned: number; tookEffect: number }>>;
  /** Of first runs, ms: all of them, and those that came due and were claimed while no fault was active. */
  readonly lateness: { p50: number; p99: number; worst: number; worstInPeace: number; inPeace: number };
}

export interface Verdict {
  readonly violations: readonly Violation[];
  readonly figures: Figures;
}

const FIXED =
  /^(?:queues|\{[^{}]+\}:(?:due|running|leases|jobs|followups|attempts|quarantine|dead|errors|unique|debounce|idle|meta|grouped|ring|held|rates|schedules|ticks|zoned|pending|changed))$/;
const LANE_TTL_MS = 600_000;
const ENOUGH = 0.8;
/** A job that has been due for longer than this at the end was forgotten. */
const LATE_MS = 1_000;
/** How long after a fault its traces may still make a job late: a lease must run out, and a connection come back. */
const PEACE_AFTER_MS = 5_000;

/** Judges a fault run by its history. */
export async function check(
  events: Iterable<HistoryEvent> | AsyncIterable<HistoryEvent>,
  { leaseMs }: { leaseMs: number },
): Promise<Verdict> {
  const past = await Past.of(events, leaseMs);
  const violations: Violation[] = past.absurd.map((what) => ({ rule: 'unexpected', what }));
  const end = past.stores.find(({ final }) => final);
  if (!end) violations.push({ rule: 'lost', what: 'nobody looked at what is stored at the end' });
  const stored = new Set(end ? idsOf(end.indexes) : []);
  const secondRuns: Record<string, number> = {};
  for (const job of past.jobs.values()) {
    const causes = judgeJob(job, past, stored, (rule, what) => violations.push({ rule, id: job.id, what }));
    for (const cause of causes) secondRuns[cause] = (secondRuns[cause] ?? 0) + 1;
  }
  if (end) violations.push(...stuckJobs(past, end));
  for (const { indexes } of past.stores) violations.push(...misplaced(indexes));
  violations.push(...wrongDeaths(past, end?.indexes.dead ?? []), ...foreignKeys(past), ...crashes(past));
  violations.push(...judgeLimits(past));
  violations.push(...judgeSchedules(past, new Set(end?.indexes.dead.map(([id]) => id))));
  const faults = countFaults(past);
  violations.push(...missingFaults(faults));
  return {
    violations,
    figures: {
      ...countJobs(past),
      occurrences: countOccurrences(past),
      deadLetters: end?.indexes.dead.length ?? 0,
      secondRuns,
      faults,
      lateness: latenessOf(past),
    },
  };
}

function idsOf({ due, running, quarantine, dead, jobs }: Indexes): string[] {
  return [...due, ...running, ...quarantine, ...dead.map(([id]) => id), ...jobs];
}

/** At the end nothing runs any more, and what waits has a reason to. */
function stuckJobs(past: Past, { at, indexes }: { at: number; indexes: Indexes }): Violation[] {
  const dueAt = (id: string) => {
    const { ops = [], claims = [] } = past.jobs.get(id) ?? {};
    const turns = claims.flatMap(({ settles }) => settles).map(({ sent, value }) => Math.max(value, sent + value));
    return Math.max(...ops.map(({ due }) => due).filter(Number.isFinite), ...turns.filter((due) => due < 2 * at));
  };
  const late = indexes.due.filter((id) => dueAt(id) < at - LATE_MS);
  return [...indexes.running, ...indexes.quarantine, ...late].map((id) => ({
    rule: 'stuck',
    id,
    what: 'it still waits',
  }));
}

function misplaced({ due, running, quarantine, dead, jobs, followups }: Indexes): Violation[] {
  const found: Violation[] = [];
  const places = new Map<string, string[]>();
  for (const [name, ids] of Object.entries({ due, running, quarantine, dead: dead.map(([id]) => id) }))
    for (const id of ids) places.set(id, [...(places.get(id) ?? []), name]);
  const records = new Set(jobs);
  for (const id of new Set([...places.keys(), ...records])) {
    const where = places.get(id) ?? [];
    if (where.length !== 1) found.push({ rule: 'index', id, what: `it is in ${where.join(' and ') || 'no index'}` });
    if (!records.has(id)) found.push({ rule: 'index', id, what: 'it has no record' });
  }
  const run = new Set(running);
  for (const id of followups)
    if (!run.has(id)) found.push({ rule: 'index', id, what: 'it has a followup and does not run' });
  return found;
}

function wrongDeaths(past: Past, dead: Indexes['dead']): Violation[] {
  return dead.flatMap(([id, reason]): Violation[] => {
    const job: JobPast | undefined = past.jobs.get(id);
    const trouble = job && troubleOf(job);
    const deserved =
      trouble !== undefined &&
      ((reason === 'discarded' && trouble.discarded) ||
        (['exhausted', 'leaseLost'].includes(reason) && trouble.bad && trouble.attempts >= trouble.maxAttempts));
    return deserved
      ? []
      : [{ rule: 'healthyDead', id, what: `it died (${reason}), and nothing in its runs tells why` }];
  });
}

function foreignKeys({ keys, sessions, exits }: Past): Violation[] {
  const killed = new Set(exits.filter(({ how }) => how === 'SIGKILL').map(({ of }) => of));
  return keys.flatMap(([name, ttlMs]): Violation[] => {
    if (FIXED.test(name)) return ttlMs === -1 ? [] : [{ rule: 'keys', what: `${name} goes away in ${ttlMs} ms` }];
    const own = name.replace(OVER, '');
    const session = /^\{[^{}]+\}:session:/.test(own) && [...sessions].find(([key]) => key.endsWith(own));
    if (!session) return [{ rule: 'keys', what: `${name} is left` }];
    if (ttlMs <= 0 || ttlMs > LANE_TTL_MS) return [{ rule: 'keys', what: `${name} stays for ${ttlMs} ms` }];
    if (killed.has(session[1]) || own !== name) return [];
    return [{ rule: 'keys', what: `${name} is left by ${session[1]}, which was not killed` }];
  });
}

function crashes({ exits }: Past): Violation[] {
  return exits
    .filter(({ asked }) => !asked)
    .map(({ of, how }) => ({ rule: 'crash', what: `${of} ended by itself (${how})` }));
}

function countFaults({ planned, faults }: Past): Figures['faults'] {
  const kinds = new Set([...Object.keys(planned), ...faults.map(({ kind }) => kind)]);
  const count = (kind: string) => faults.filter((fault: Fault) => fault.kind === kind && fault.effect).length;
  return Object.fromEntries(
    [...kinds].map((kind) => [kind, { planned: planned[kind] ?? 0, tookEffect: count(kind) }] as const),
  );
}

function missingFaults(faults: Figures['faults']): Violation[] {
  const all = Object.values(faults);
  const planned = all.reduce((sum, fault) => sum + fault.planned, 0);
  const tookEffect = all.reduce((sum, fault) => sum + Math.min(fault.planned, fault.tookEffect), 0);
  const never = Object.entries(faults).filter(([, fault]) => fault.planned > 0 && fault.tookEffect === 0);
  const found: Violation[] = never.map(([kind]) => ({ rule: 'faults', what: `no fault of kind ${kind} took effect` }));
  if (planned === 0 || tookEffect < ENOUGH * planned)
    found.push({ rule: 'faults', what: `${tookEffect} of ${planned} planned faults took effect` });
  return found;
}

function countJobs({ jobs }: Past): Pick<Figures, 'jobs' | 'starts'> {
  const counted = { asked: 0, acknowledged: 0, refused: 0, doubtful: 0 };
  let starts = 0;
  for (const { id, ops, claims } of jobs.values()) {
    starts += claims.filter(({ start }) => start).length;
    if (occurrenceIn(id)) continue;
    const fates = new Set(ops.filter(({ what }) => what === 'enqueue').map(({ fate }) => fate));
    counted.asked++;
    if (fates.has('accepted')) counted.acknowledged++;
    else if (fates.has('unknown')) counted.doubtful++;
    else counted.refused++;
  }
  return { jobs: counted, starts };
}

function countOccurrences({ schedules }: Past): Figures['occurrences'] {
  const sum = { times: 0, ran: 0, missed: 0, overlapped: 0 };
  for (const { counts, occurrences } of schedules.values()) {
    sum.times += counts?.made ?? 0;
    sum.ran += occurrences.filter(({ claims }) => claims.some(({ start }) => start)).length;
    sum.missed += counts?.missed ?? 0;
    sum.overlapped += counts?.overlapped ?? 0;
  }
  return sum;
}

function latenessOf({ jobs, disturbances }: Past): Figures['lateness'] {
  const first = [...jobs.values()].flatMap(({ claims }) => claims.find(({ start }) => start) ?? []);
  const late = (claim: Claim) => Math.max(0, claim.at - claim.due);
  const all = first.map(late).sort((a, b) => a - b);
  const inPeace = first.filter(
    ({ at, due }) => !disturbances.some(({ begin, end }) => begin <= at && end + PEACE_AFTER_MS >= due),
  );
  const part = (share: number) => all[Math.min(all.length - 1, Math.floor(all.length * share))] ?? 0;
  const worstInPeace = inPeace.reduce((worst, claim) => Math.max(worst, late(claim)), 0);
  return { p50: part(0.5), p99: part(0.99), worst: all.at(-1) ?? 0, worstInPeace, inPeace: inPeace.length };
}
