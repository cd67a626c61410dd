import { availableParallelism } from 'node:os';
import { runSeeds } from './campaign-thread.js';
import type { Crash } from './campaign-thread.js';
import type { CampaignAnswer, CampaignSeed, CampaignWork } from './campaign-worker.js';
import { ALL_KINDS } from './fault-kinds.js';
import type { AnyKind } from './fault-kinds.js';
import { fillingFor } from './filling.js';
import { behind, faultsOf, hasEnough, isReached, shortOf, YEAR_MS } from './goal.js';
import type { Goal, Tally } from './goal.js';
import type { Result } from './simulation.js';

/** Of the seeds that broke a rule, so many are kept whole. */
const MOST_BAD_KEPT = 200;

export interface CampaignOptions extends CampaignWork {
  readonly from: number;
  /** At most so many seeds. */
  readonly seeds: number;
  /** At most so long, in real ms. */
  readonly limitMs: number;
  readonly threads: number | undefined;
  /** Ends at the first seed that breaks a rule. */
  readonly untilFound: boolean;
  /** Ends when all of this is reached. */
  readonly goal: Goal | undefined;
  /** What an earlier campaign of the same commit has counted: this one goes on with it. */
  readonly before: CampaignReport | undefined;
  /** Ends after the seeds that run. */
  readonly interrupted?: AbortSignal;
}

export interface CampaignReport extends Tally {
  /** The seed that comes next. */
  next: number;
  events: number;
  jobs: number;
  /** Of the seeds that were given nothing for the sake of kinds that are behind. */
  readonly plain: Tally;
  /** How many seeds broke a rule, and the first of them. */
  broken: number;
  readonly bad: (Result & Omit<CampaignSeed, 'seed'>)[];
  readonly crashes: Crash[];
  /** Seeds whose second run was another one. */
  readonly unequal: number[];
  wallMs: number;
  cpuMs: number;
}

/** After so many the campaign ends: it is not the seeds that go wrong. */
const MOST_CRASHES = 20;

export interface CampaignNews {
  /** An answer breaks a rule. */
  found?: (answer: CampaignAnswer) => void;
  /** After each seed, with what is counted so far. */
  counted?: (report: CampaignReport, answer: CampaignAnswer) => void;
  crashed?: (crash: Crash) => void;
}

/** Runs many seeds, as many at a time as there are cores. */
export async function campaign(options: CampaignOptions, news: CampaignNews = {}): Promise<CampaignReport> {
  const { seeds, limitMs, project, given, twice, untilFound, goal, before } = options;
  const began = performance.now();
  const cpu = process.cpuUsage();
  const report: CampaignReport = before ?? {
    ...nothing(),
    next: options.from,
    events: 0,
    jobs: 0,
    plain: nothing(),
    broken: 0,
    bad: [],
    crashes: [],
    unequal: [],
    wallMs: 0,
    cpuMs: 0,
  };
  const { next: from, wallMs, cpuMs } = report;
  let isFilling = false;
  const take = (): CampaignSeed | undefined => {
    const isOver =
      report.next >= from + seeds ||
      performance.now() - began > limitMs ||
      report.crashes.length >= MOST_CRASHES ||
      (untilFound && report.broken + report.crashes.length > 0) ||
      options.interrupted?.aborted === true ||
      (goal !== undefined && isReached(goal, report));
    if (isOver) return undefined;
    const seed = report.next++;
    // Each second one, until only such kinds are left.
    isFilling = goal !== undefined && (hasEnough(goal, report) || !isFilling);
    const kinds = isFilling ? behind(goal!, report, report.plain) : [];
    return kinds.length > 0 ? { seed, filling: fillingFor(seed, kinds) } : { seed };
  };
  const measure = () => {
    report.wallMs = wallMs + performance.now() - began;
    const { user, system } = process.cpuUsage(cpu);
    report.cpuMs = cpuMs + (user + system) / 1_000;
  };
  const note = (answer: CampaignAnswer) => {
    count(report, answer);
    measure();
    news.counted?.(report, answer);
    if (answer.result.violations.length > 0) news.found?.(answer);
  };
  const crashed = (crash: Crash) => {
    report.crashes.push(crash);
    news.crashed?.(crash);
  };
  const threads = Math.min(options.threads ?? availableParallelism(), seeds);
  const work = { project, given, twice };
  await Promise.all(Array.from({ length: threads }, () => runSeeds(work, { take, note, crashed })));
  measure();
  return report;
}

function nothing(): Tally {
  return { seeds: 0, simulatedMs: 0, effects: {} };
}

function count(report: CampaignReport, { result, filling, secondHash }: CampaignAnswer): void {
  add(report, result);
  if (!filling) add(report.plain, result);
  report.events += result.events;
  report.jobs += result.jobs;
  if (secondHash !== undefined && secondHash !== result.hash) report.unequal.push(result.seed);
  if (result.violations.length === 0) return;
  report.broken++;
  if (report.bad.length < MOST_BAD_KEPT) report.bad.push(filling ? { ...result, filling } : result);
}

function add(tally: Tally, { simulatedMs, effects }: Result): void {
  tally.seeds++;
  tally.simulatedMs += simulatedMs;
  for (const [kind, times] of Object.entries(effects) as [AnyKind, number][]) {
    tally.effects[kind] = (tally.effects[kind] ?? 0) + times;
  }
}

/** For a person, and for docs/reliability.md. */
export function summary(report: CampaignReport, goal?: Goal): string {
  const { seeds, broken, bad, crashes, unequal, effects, simulatedMs, wallMs, cpuMs, jobs } = report;
  const faults = faultsOf(report);
  const days = simulatedMs / 86_400_000;
  const rules = new Map<string, number[]>();
  for (const { seed, violations } of bad) {
    for (const rule of new Set(violations.map((violation) => violation.rule))) {
      rules.set(rule, [...(rules.get(rule) ?? []), seed]);
    }
  }
  const shown = (kind: AnyKind) => `${kind} ${effects[kind] ?? 0}`;
  const kinds = ALL_KINDS.map(shown).join(', ');
  return [
    `${seeds} seeds, ${broken} of them broke a rule; ${jobs} jobs, ${faults} faults that took effect, ${days.toFixed(2)} simulated days`,
    `${(wallMs / 1_000).toFixed(1)} s, ${(cpuMs / 1_000).toFixed(1)} s of CPU: ${(seeds / (cpuMs / 1_000)).toFixed(2)} seeds and ${(simulatedMs / cpuMs).toFixed(0)} simulated s per CPU second, ${Math.round((faults / cpuMs) * 3_600_000)} faults per core-hour`,
    kinds,
    ...(goal ? progress(goal, report, shown) : []),
    ...Array.from(rules, ([rule, found]) => `broken: ${rule} by seeds ${found.slice(0, 20).join(', ')}`),
    ...crashes.map(({ seed, why }) => `crashed: seed ${seed}: ${why}`),
    ...(unequal.length > 0 ? [`unequal when run twice: ${unequal.join(', ')}`] : []),
  ].join('\n');
}

/** What is reached of the goal. */
function progress(goal: Goal, report: CampaignReport, shown: (kind: AnyKind) => string): string[] {
  const years = (report.simulatedMs / YEAR_MS).toFixed(2);
  const filled = report.seeds - report.plain.seeds;
  const short = shortOf(goal.each, report.effects).map(shown);
  return [
    `${isReached(goal, report) ? 'the goal is reached' : 'the goal is not reached'}: ${faultsOf(report)} of ${goal.faults} faults, ${years} of ${goal.years} years, ` +
      `${ALL_KINDS.length - short.length} of ${ALL_KINDS.length} kinds ${goal.each} times; ${filled} seeds were for kinds that were behind`,
    ...(short.length > 0 ? [`short of ${goal.each}: ${short.join(', ')}`] : []),
  ];
}
