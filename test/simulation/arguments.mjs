// What the commands of the simulator are told. All of it is looked at before anything is built: that takes most of a minute.
import { execFileSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { readArguments, readNumber, readObject, refuseArguments } from '../../tools/arguments.mjs';
import { at } from '../../tools/project.mjs';

const TEXT = { type: 'string' };
const FLAG = { type: 'boolean' };

/** What can be asked for, by which options, and which others go with that. The first one is meant where nothing is said. */
const WAYS = [
  { by: ['seed'], takes: ['faults', 'print', 'stop', 'slow', 'set', 'older', 'project'] },
  { by: ['plan'], takes: ['faults', 'print', 'stop', 'slow', 'older', 'project'] },
  { by: ['plans'], takes: ['project'] },
  { by: ['shrink'], takes: ['keep', 'hours', 'set', 'older', 'project'] },
  {
    by: ['seeds', 'hours', 'goal', 'years', 'each'],
    takes: ['from', 'threads', 'report', 'go-on', 'twice', 'hashes', 'until-found', 'set', 'older', 'project'],
  },
];
const FLAGS = ['plans', 'print', 'stop', 'slow', 'go-on', 'twice', 'hashes', 'until-found'];
const options = Object.fromEntries(
  WAYS.flatMap(({ by, takes }) => [...by, ...takes]).map((name) => [name, FLAGS.includes(name) ? FLAG : TEXT]),
);

/**
 * Of `npm run test:simulation`. Ends the process where something is wrong.
 * @param {string} usage
 */
export function readSimulationArguments(usage) {
  const { values } = readArguments(usage, { options });
  const said = Object.keys(values);
  const way = WAYS.find(({ by }) => by.some((name) => said.includes(name))) ?? WAYS[0];
  const unfit = said.find((name) => !way.by.includes(name) && !way.takes.includes(name));
  if (unfit !== undefined) {
    const other = said.find((name) => way.by.includes(name));
    refuseArguments(usage, `--${unfit} ${other ? `does not go with --${other}` : `needs ${neededFor(unfit)}`}.`);
  }
  if (values['go-on'] && values.report === undefined)
    refuseArguments(usage, '--go-on needs --report FILE: the file that an earlier campaign has written.');
  if (values.plan !== undefined) checkPlan(usage, values.plan);
  if (values.report !== undefined) checkReport(usage, values.report);
  if (values.older !== undefined) checkCommit(usage, values.older);
  if (values.keep !== undefined && !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(values.keep))
    refuseArguments(usage, `--keep takes a name as paused-queue, and not ${JSON.stringify(values.keep)}.`);
  const number = (name, bounds) => readNumber(usage, `--${name}`, values[name], bounds);
  return {
    ...values,
    set: readObject(usage, '--set', values.set ?? '{}'),
    faults: values.faults?.split(',').map((text) => readNumber(usage, '--faults', text, { least: 0 })),
    seed: number('seed', { least: 0 }),
    shrink: number('shrink', { least: 0 }),
    from: number('from', { least: 0 }),
    seeds: number('seeds'),
    threads: number('threads'),
    hours: number('hours', { least: 0.001, isWhole: false }),
    goal: number('goal'),
    years: number('years', { least: 0, isWhole: false }),
    each: number('each', { least: 0 }),
  };
}

function neededFor(option) {
  return WAYS.filter(({ takes }) => takes.includes(option))
    .map(({ by }) => `--${by[0]}`)
    .join(' or ');
}

/**
 * @param {string} usage
 * @param {string} plan the name of one that is kept, or a file that ends with `.json`
 */
export function checkPlan(usage, plan) {
  const file = plan.endsWith('.json') ? plan : at('test', 'simulation', 'plans', `${plan}.json`);
  if (existsSync(file)) return;
  const problem = plan.endsWith('.json')
    ? `There is no file ${plan}.`
    : `No plan ${JSON.stringify(plan)} is kept in test/simulation/plans; a file is told by its ending, .json.`;
  refuseArguments(usage, problem);
}

/** After hours it is too late to find out. */
function checkReport(usage, report) {
  if (!existsSync(dirname(report))) refuseArguments(usage, `There is no folder ${dirname(report)} for --report.`);
  if (existsSync(report) && statSync(report).isDirectory())
    refuseArguments(usage, `--report takes a file, and ${report} is a folder.`);
}

function checkCommit(usage, commit) {
  try {
    execFileSync('git', ['rev-parse', '--verify', '--quiet', `${commit}^{commit}`], { cwd: at(), stdio: 'ignore' });
  } catch {
    refuseArguments(usage, `git knows no commit ${JSON.stringify(commit)}.`);
  }
}
