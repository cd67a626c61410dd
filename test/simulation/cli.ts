import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
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

const TEXT = { type: 'string' } as const;
const FLAG = { type: 'boolean' } as const;
const OPTIONS = {
  seed: TEXT,
  seeds: TEXT,
  from: TEXT,
  hours: TEXT,
  threads: TEXT,
  faults: TEXT,
  plan: TEXT,
  plans: FLAG,
  set: TEXT,
  older: TEXT,
  project: TEXT,
  shrink: TEXT,
  keep: TEXT,
  report: TEXT,
  goal: TEXT,
  years: TEXT,
  each: TEXT,
  'go-on': FLAG,
  twice: FLAG,
  hashes: FLAG,
  'until-found': FLAG,
  print: FLAG,
  stop: FLAG,
  slow: FLAG,
} as const;
type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>['values'];

const MOST_SHOWN = 4;
const LAST_LINES = 40;
const HOUR_MS = 3_600_000;
/** How often a long campaign writes down what it has counted: it may be ended at any time. */
const REPORT_EVERY_MS = 30_000;
/** A campaign that breaks one rule in each seed leaves no more plans than this. */
const MOST_PLANS_LEFT = 20;

/** @returns the exit code: 1 when a rule was broken */
export async function command(args: string[], here: string): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const own = JSON.parse(values.set ?? '{}') as Partial<Configuration>;
  const given = values.older === undefined ? own : { ...own, older: true };
  const project = values.project ?? here;
  if (values.shrink !== undefined) return shrunk(planOf(Number(values.shrink), given), project, values);
  if (values.plans) return allPlans(project);
  const goal = goalOf(values);
  if (values.seeds !== undefined || values.hours !== undefined || goal) return many(values, given, project, goal);
  const plan = values.plan === undefined ? planOf(Number(values.seed ?? 1), given) : readPlan(here, values.plan).plan;
  return one(plan, project, values);
}

async function one(plan: Plan, project: string, { faults, print, stop, slow }: Values): Promise<number> {
  console.log(`what the seed drew: ${JSON.stringify(plan.configuration)}`);
  const last: string[] = [];
  const result = await runPlan(plan, {
    project,
    faults: faults?.split(',').filter(Boolean).map(Number),
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
function goalOf({ goal, years, each }: Values): Goal | undefined {
  if (goal === undefined && years === undefined && each === undefined) return undefined;
  return { faults: Number(goal ?? 0), years: Number(years ?? 0), each: Number(each ?? 0) };
}

/** @returns undefined of a campaign that has not begun */
function reportedIn(file: string | undefined): CampaignReport | undefined {
  if (file === undefined)
    throw new Error('--go-on needs --report FILE: the file that an earlier campaign has written.');
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as CampaignReport) : undefined;
}

async function many(
  values: Values,
  given: Partial<Configuration>,
  project: string,
  goal: Goal | undefined,
): Promise<number> {
  const hours = Number(values.hours ?? Infinity);
  let plansLeft = 0;
  const found = ({ result, filling }: CampaignAnswer) => {
    tell(result);
    const set = { ...given, ...filling };
    console.log(`   again: ${commandFor(result.seed, set)}`);
    if (plansLeft++ >= MOST_PLANS_LEFT) return;
    console.log(`   its plan: ${leavePlan(project, planOf(result.seed, set), result.violations[0]!)}`);
  };
  const before = values['go-on'] ? reportedIn(values.report) : undefined;
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
    from: Number(values.from ?? 1),
    seeds: Number(values.seeds ?? Infinity),
    limitMs: hours * HOUR_MS,
    threads: values.threads === undefined ? undefined : Number(values.threads),
    untilFound: values['until-found'] ?? false,
    goal,
    before,
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

async function shrunk(plan: Plan, project: string, { keep, hours }: Values): Promise<number> {
  const { violations } = await runPlan(plan, { project, stop: true });
  const [first] = violations;
  if (!first) {
    console.log('No rule was broken.');
    return 0;
  }
  const limitMs = hours === undefined ? undefined : Number(hours) * HOUR_MS;
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
