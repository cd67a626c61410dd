import { groupProblems } from '../helpers/groups.js';
import type { Indexes, GroupIndexes, Rate } from './history.js';
import type { Claim, JobPast, Past } from './past.js';
import type { Rule } from './rules.js';

export interface LimitViolation {
  readonly rule: Rule;
  readonly id?: string;
  readonly what: string;
}

/** Of one kind: what is wrong once is wrong often. */
const MOST = 5;

/** The limits of a run, by the claims of all processes and by what was stored. */
export function judgeLimits(past: Past): LimitViolation[] {
  const found: LimitViolation[] = past.twice.map((id) => ({ rule: 'twice', id, what: 'one claim had it twice' }));
  for (const { indexes, groups } of past.stores) if (groups) found.push(...misindexed(indexes, groups));
  if (!past.limits) return found;
  const { concurrency, rate, groupConcurrency, groupRate } = past.limits;
  const jobs = [...past.jobs.values()];
  const report = (rule: Rule, who: string, all: readonly string[]) =>
    found.push(...all.slice(0, MOST).map((what) => ({ rule, what: `${who} ${what}` })));
  report('limits', 'the queue', beyond(jobs, concurrency));
  report('rates', 'the queue', faster(jobs, rate));
  for (const group of new Set(jobs.flatMap((job) => job.group ?? []))) {
    const of = jobs.filter((job) => job.group === group);
    report('limits', `group ${group}`, beyond(of, groupConcurrency));
    report('rates', `group ${group}`, faster(of, groupRate));
  }
  return found;
}

function misindexed({ running, quarantine }: Indexes, groups: GroupIndexes): LimitViolation[] {
  const named = (ids: readonly string[]) => Object.fromEntries(ids.map((id) => [id, 0]));
  const stored = {
    ...groups,
    running: named(running),
    quarantine: named(quarantine),
    attempts: named(groups.attempts),
    meta: { needs: groups.needs },
  };
  return groupProblems(stored, groups.now).map(({ index, what }) => ({ rule: index, what }));
}

/** Jobs that ran at once. Of a run only the time counts in which its lease cannot have ended. */
function beyond(jobs: readonly JobPast[], most: number): string[] {
  const changes: { at: number; by: number }[] = [];
  for (const { claims } of jobs) {
    for (const [n, claim] of claims.entries()) {
      const end = Math.min(freedAt(claim), claims[n + 1]?.at ?? Infinity);
      if (end > claim.at) changes.push({ at: claim.at, by: 1 }, { at: end, by: -1 });
    }
  }
  changes.sort((a, b) => a.at - b.at || a.by - b.by);
  const found: string[] = [];
  let running = 0;
  for (const { at, by } of changes) {
    running += by;
    if (by > 0 && running > most) found.push(`ran ${running} jobs at ${at}, and may run ${most}`);
  }
  return found;
}

function freedAt({ until, movedAt, settles }: Claim): number {
  return Math.min(until, movedAt, ...settles.map(({ sent }) => sent));
}

/** Given back before its handler began, as an occurrence that may not run: the library counts it for no rate. */
function isUnbegun({ start, settles }: Claim): boolean {
  return !start && settles.some(({ verb }) => verb === 'release');
}

function faster(jobs: readonly JobPast[], { max, perMs }: Rate): string[] {
  const starts = jobs
    .flatMap(({ claims }) => claims)
    .filter((claim) => claim.losses !== undefined && !isUnbegun(claim))
    .map(({ at }) => at)
    .sort((a, b) => a - b);
  return starts.flatMap((at, n) => {
    const first = starts[n - max];
    return first !== undefined && at - first < perMs
      ? [`started ${max + 1} jobs within ${at - first} ms, at ${at}`]
      : [];
  });
}
