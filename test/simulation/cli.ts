import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { campaign, summary } from './campaign.js';
import type { CampaignReport } from './campaign.js';
import type { CampaignAnswer } from './campaign-worker.js';
import type { Goal } from './goal.js';
import { keepPlan, keptNames, leavePlan, readPlan } from './kept-plans.js';
import { planOf } from './plan.js';
import type { Configuration, Plan } from './plan.js';
import { runPlan } from './run-seed.js';
import { shrink } from './shrink.js';
import type { Result } from './simulation.js';
import { WrongArgument } from './wrong-argument.js';

/** What arguments.mjs has read. */
export interface Arguments {
  readonly seed?: number;
  readonly plan?: string;
  readonly plans?: boolean;
  readonly shrink?: number;
  readonly seeds?: number;
  readonly from?: number;
  readonly hours?: number;
  readonly threads?: number;
  readonly goal?: number;
  readonly years?: number;
  readonly each?: number;
  readonly faults?: readonly number[];
  readonly set: Partial<Configuration>;
  readonly older?: string;
  readonly project?: string;
  readonly keep?: string;
  readonly report?: string;
  readonly 'go-on'?: boolean;
  readonly twice?: boolean;
  readonly hashes?: boolean;
  readonly 'until-found'?: boolean;
  readonly print?: boolean;
  readonly stop?: boolean;
  readonly slow?: boolean;
}

const MOST_SHOWN = 4;
const LAST_LINES = 40;
const HOUR_MS = 3_600_000;
/** How often a long campaign writes down what it has counted: it may be ended at any time. */
const REPORT_EVERY_MS = 30_000;
/** A campaign that breaks one rule in each seed leaves no more plans than this. */
const MOST_PLANS_LEFT = 20;

/** @returns the exit code: 1 when a rule was broken. @throws {WrongArgument} */
export async function command(values: Arguments, here: string): Promise<number> {
  const given = values.older === undefined ? values.set : { ...values.set, older: true };
  const project = values.project ?? here;
  if (values.shrink !== undefined) return shrunk(planOf(values.shrink, given), project, values);
  if (values.plans) return allPlans(project);
  const goal = goalOf(values);
  if (values.seeds !== undefined || values.hours !== undefined || goal) return many(values, given, project, goal);
  const plan = values.plan === undefined ? planOf(values.seed ?? 1, given) : readPlan(here, values.plan).plan;
  return one(plan, project, values);
}

async function one(plan: Plan, project: string, { faults, print, stop, slow }: Arguments): Promise<number> {
  const unknown = faults?.filter((wanted) => !plan.faults.some(({ n }) => n === wanted)) ?? [];
  if (unknown.length > 0) throw new WrongArgument(`The plan has no fault ${unknown.join(', ')}.`);
  console.log(`what the seed drew: ${JSON.stringify(plan.configuration)}`);
  const last: string[] = [];
  const result = await runPlan(plan, {
    project,
    faults,
    print: (line) => {
      if (print) console.log(line);
      else if (last.push(line) > LAST_LINES) last.shift();
    },
    stop: stop ?? false,
    slow: slow ?? false,
  });
  if (stop && !print && result.violations.length > 0) console.log(last.join('\n'));
  tell(result);
  return result.violations.length > 0 ? 1 : 0;
}

/** What matters to nobody is 0. */
function goalOf({ goal, years, each }: Arguments): Goal | undefined {
  if (goal === undefined && years === undefined && each === undefined) return undefined;
  return { faults: goal ?? 0, years: years ?? 0, each: each ?? 0 };
}

/** @returns undefined of a campaign that has not begun */
function reportedIn(file: string): CampaignReport | undefined {
  if (!existsSync(file)) return undefined;
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as CampaignReport;
  } catch {
    throw new WrongArgument(`${file} is no report of a campaign.`);
  }
}

async function many(
  values: Arguments,
  given: Partial<Configuration>,
  project: string,
  goal: Goal | undefined,
): Promise<number> {
  let plansLeft = 0;
  const found = ({ result, filling }: CampaignAnswer) => {
    tell(result);
    const set = { ...given, ...filling };
    console.log(`   again: ${commandFor(result.seed, set)}`);
    if (plansLeft++ >= MOST_PLANS_LEFT) return;
    console.log(`   its plan: ${leavePlan(project, planOf(result.seed, set), result.violations[0]!)}`);
  };
  const before = values['go-on'] ? reportedIn(values.report!) : undefined;
  let writtenAt = before?.wallMs ?? 0;
  const write = (report: CampaignReport, everyMs: number) => {
    if (values.report === undefined || report.wallMs < writtenAt + everyMs) return;
    writtenAt = report.wallMs;
    writeFileSync(values.report, `${JSON.stringify({ ...report, node: process.version, given }, undefined, 1)}\n`);
  };
  const options = {
    project,
    given,
    twice: values.twice ?? false,
    from: values.from ?? 1,
    seeds: values.seeds ?? Infinity,
    limitMs: (values.hours ?? Infinity) * HOUR_MS,
    threads: values.threads,
    untilFound: values['until-found'] ?? false,
    goal,
    before,
    interrupted: interruption(),
  };
  const report = await campaign(options, {
    found,
    counted: (sofar, { result: { seed, hash } }) => {
      if (values.hashes) console.log(`hash ${seed} ${hash}`);
      write(sofar, REPORT_EVERY_MS);
    },
    crashed: ({ seed, filling, why }) => {
      console.log(`seed ${seed} crashed: ${why}`);
      console.log(`   again: ${commandFor(seed, { ...given, ...filling })}`);
    },
  });
  write(report, 0);
  console.log(summary(report, goal));
  return report.broken + report.unequal.length + report.crashes.length > 0 ? 1 : 0;
}

/** The first Ctrl-C lets the seeds that run come to their ends, so that what was counted is told. */
function interruption(): AbortSignal {
  const controller = new AbortController();
  process.once('SIGINT', () => {
    console.error('Ends after the seeds that run; once more ends at once.');
    controller.abort();
  });
  return controller.signal;
}

/** A plan that still breaks its rule must break it, so that mending it is noticed. */
async function allPlans(project: string): Promise<number> {
  let wrong = 0;
  for (const name of keptNames(project)) {
    const { plan, breaks } = readPlan(project, name);
    const { violations } = await runPlan(plan, { project, stop: true });
    const rules = violations.map(({ rule }) => rule);
    const isRight = breaks === undefined ? rules.length === 0 : rules.includes(breaks);
    if (!isRight) wrong++;
    const found = rules.length > 0 ? `breaks ${rules.join(', ')}` : 'breaks no rule';
    console.log(`${isRight ? 'as kept' : 'NOT AS KEPT'}  ${name}: ${found}`);
  }
  return wrong > 0 ? 1 : 0;
}

async function shrunk(plan: Plan, project: string, { keep, hours }: Arguments): Promise<number> {
  const { violations } = await runPlan(plan, { project, stop: true });
  const [first] = violations;
  if (!first) {
    console.log('No rule was broken.');
    return 0;
  }
  const limitMs = hours === undefined ? undefined : hours * HOUR_MS;
  const found = await shrink(plan, first.rule, project, limitMs);
  const { faults, operations } = found.plan;
  console.log(`${found.tries} runs: ${faults.length} faults and ${operations.length} operations are left`);
  console.log(JSON.stringify(found.plan, undefined, 1));
  tell(found.result);
  if (keep !== undefined) keepPlan(project, keep, { what: first.what, breaks: first.rule, plan: found.plan });
  return 1;
}

/** What a campaign gives a seed is not drawn by it: without it the seed alone is another run. */
function commandFor(seed: number, set: Partial<Configuration>): string {
  const given = Object.keys(set).length > 0 ? ` --set '${JSON.stringify(set)}'` : '';
  return `npm run test:simulation -- --seed ${seed}${given}`;
}

function tell(result: Result): void {
  const { seed, hash, lines, jobs, simulatedMs, commands, effects, counts, worstLateMs, violations } = result;
  const faults = Object.entries(effects).map(([kind, count]) => `${kind} ${count}`);
  console.log(
    `seed ${seed}: ${hash}, ${lines} lines, ${jobs} jobs, ${Math.round(simulatedMs / 1_000)} simulated s, ${commands} commands; ` +
      `${faults.join(', ') || 'no fault'}; ${JSON.stringify(counts)}; at most ${worstLateMs} ms late`,
  );
  for (const { rule, at, what } of violations.slice(0, MOST_SHOWN)) console.log(`   ${rule} at ${at}: ${what}`);
}
