import { availableParallelism } from 'node:os';
import { runSeeds } from './campaign-thread.js';
import type { Crash } from './campaign-thread.js';
import type { CampaignAnswer, CampaignWork } from './campaign-worker.js';
import { ALL_KINDS } from './fault-kinds.js';
import type { AnyKind } from './fault-kinds.js';
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
}

export interface CampaignReport {
  seeds: number;
  simulatedMs: number;
  events: number;
  jobs: number;
  readonly effects: Partial<Record<AnyKind, number>>;
  /** How many seeds broke a rule, and the first of them. */
  broken: number;
  readonly bad: Result[];
  readonly crashes: Crash[];
  /** Seeds whose second run was another one. */
  readonly unequal: number[];
  wallMs: number;
  cpuMs: number;
}

/**
 * Runs many seeds, as many at a time as there are cores.
 *
 * @param found called with each result that breaks a rule
 * @param counted called after each seed with what is counted so far
 */
export async function campaign(
  options: CampaignOptions,
  found: (result: Result) => void,
  counted: (report: CampaignReport, answer: CampaignAnswer) => void = () => {},
): Promise<CampaignReport> {
  const { from, seeds, limitMs, project, given, twice, untilFound } = options;
  const began = performance.now();
  const cpu = process.cpuUsage();
  const report: CampaignReport = {
    seeds: 0,
    simulatedMs: 0,
    events: 0,
    jobs: 0,
    effects: {},
    broken: 0,
    bad: [],
    crashes: [],
    unequal: [],
    wallMs: 0,
    cpuMs: 0,
  };
  let next = from;
  const take = () => {
    const isOver =
      next >= from + seeds ||
      performance.now() - began > limitMs ||
      (untilFound && report.broken + report.crashes.length > 0);
    return isOver ? undefined : next++;
  };
  const measure = () => {
    report.wallMs = performance.now() - began;
    const { user, system } = process.cpuUsage(cpu);
    report.cpuMs = (user + system) / 1_000;
  };
  const note = (answer: CampaignAnswer) => {
    count(report, answer);
    measure();
    counted(report, answer);
    if (answer.result.violations.length > 0) found(answer.result);
  };
  const crashed = (crash: Crash) => void report.crashes.push(crash);
  const threads = Math.min(options.threads ?? availableParallelism(), seeds);
  const work = { project, given, twice };
  await Promise.all(Array.from({ length: threads }, () => runSeeds(work, { take, note, crashed })));
  measure();
  return report;
}

function count(report: CampaignReport, { result, secondHash }: CampaignAnswer): void {
  report.seeds++;
  report.simulatedMs += result.simulatedMs;
  report.events += result.events;
  report.jobs += result.jobs;
  for (const [kind, times] of Object.entries(result.effects) as [AnyKind, number][]) {
    report.effects[kind] = (report.effects[kind] ?? 0) + times;
  }
  if (secondHash !== undefined && secondHash !== result.hash) report.unequal.push(result.seed);
  if (result.violations.length === 0) return;
  report.broken++;
  if (report.bad.length < MOST_BAD_KEPT) report.bad.push(result);
}

export function faultsOf(report: CampaignReport): number {
  return Object.values(report.effects).reduce((sum, count) => sum + count, 0);
}

/** For a person, and for docs/reliability.md. */
export function summary(report: CampaignReport): string {
  const { seeds, broken, bad, crashes, unequal, effects, simulatedMs, wallMs, cpuMs, jobs } = report;
  const faults = faultsOf(report);
  const days = simulatedMs / 86_400_000;
  const rules = new Map<string, number[]>();
  for (const { seed, violations } of bad) {
    for (const rule of new Set(violations.map((violation) => violation.rule))) {
      rules.set(rule, [...(rules.get(rule) ?? []), seed]);
    }
  }
  const kinds = ALL_KINDS.map((kind) => `${kind} ${effects[kind] ?? 0}`).join(', ');
  return [
    `${seeds} seeds, ${broken} of them broke a rule; ${jobs} jobs, ${faults} faults that took effect, ${days.toFixed(2)} simulated days`,
    `${(wallMs / 1_000).toFixed(1)} s, ${(cpuMs / 1_000).toFixed(1)} s of CPU: ${(seeds / (cpuMs / 1_000)).toFixed(2)} seeds and ${(simulatedMs / cpuMs).toFixed(0)} simulated s per CPU second, ${Math.round((faults / cpuMs) * 3_600_000)} faults per core-hour`,
    kinds,
    ...Array.from(rules, ([rule, found]) => `broken: ${rule} by seeds ${found.slice(0, 20).join(', ')}`),
    ...crashes.map(({ seed, why }) => `crashed: seed ${seed}: ${why}`),
    ...(unequal.length > 0 ? [`unequal when run twice: ${unequal.join(', ')}`] : []),
  ].join('\n');
}
