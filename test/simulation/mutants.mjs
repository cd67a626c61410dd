// node test/simulation/mutants.mjs --help: which deliberate defects of test/mutants the simulator finds, and by how many seeds.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { readArguments, readNumber, refuseArguments } from '../../tools/arguments.mjs';
import { at } from '../../tools/project.mjs';
import { readMutants } from '../mutants/mutants.mjs';
import { checkPlan } from './arguments.mjs';
import { buildAll } from './build.mjs';
import { folderForDefects, makeDefect } from './broken-package.mjs';
import { recordDefect, writePage } from './defects.mjs';
import { profileNamed, profileNames, profileOf } from './profiles.mjs';

const USAGE = `Usage: node test/simulation/mutants.mjs [part of a name ...]    which defects of test/mutants the simulator finds
  --seeds 200       at most so many seeds for each
  --seconds 120     at most so long for each
  --profile NAME    under another profile of profiles.mjs
  --plan NAME       that kept plan in place of seeds: a plan that was kept for a defect must still find it
  --rule NAME       goes on until that rule is broken, also where another one was before: does it still find what it is there for?
  --record          writes what is found into defects.json and defects.md

What it cannot see at all (texts, boot, other servers) is not worth a try: give parts of names, as leases/ or resends/.`;
const { values, positionals: wanted } = readArguments(USAGE, {
  options: {
    seeds: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '120' },
    profile: { type: 'string' },
    plan: { type: 'string' },
    rule: { type: 'string' },
    record: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const SEEDS_AT_A_TIME = 5;
const seeds = readNumber(USAGE, '--seeds', values.seeds);
const limitMs = readNumber(USAGE, '--seconds', values.seconds) * 1_000;
if (values.plan !== undefined) checkPlan(USAGE, values.plan);
if (values.profile !== undefined && !profileNames().includes(values.profile))
  refuseArguments(USAGE, `There is no profile ${values.profile}: ${profileNames().join(', ')}.`);
const mutants = readMutants().filter(({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part)));
if (mutants.length === 0) refuseArguments(USAGE, `No defect has ${wanted.join(' or ')} in its name.`);

await buildAll();
const { campaign } = await import('../../dist-simulation/campaign.js');
const copy = folderForDefects();
let found = 0;
for (const mutant of mutants) {
  const verdict = await judge(mutant).catch((error) => `BROKEN ${error.message}`);
  if (verdict.startsWith('found')) found++;
  console.log(`${mutant.name.padEnd(50)} ${verdict}`);
}
if (values.record) await writePage();
console.log(`${found} of ${mutants.length} defects were found.`);

async function judge(mutant) {
  makeDefect(mutant, copy);
  if (values.plan) return judgeByPlan(values.plan);
  const began = process.cpuUsage();
  const { profile, given } = values.profile ? profileNamed(values.profile) : profileOf(mutant.name);
  const options = { project: copy, given, twice: false, from: 1, seeds, limitMs, threads: 1, untilFound: true };
  const { seeds: run, bad } = values.rule ? await untilBroken(values.rule, options) : await campaign(options);
  const { user, system } = process.cpuUsage(began);
  const seconds = (user + system) / 1e6;
  const effort = `${run} seeds of "${profile}", ${seconds.toFixed(1)} s of CPU`;
  const rule = values.rule ? bad.length > 0 && values.rule : bad[0]?.violations[0].rule;
  if (values.record && rule) recordDefect(mutant, { profile, rule, seeds: run, seconds: Number(seconds.toFixed(1)) });
  return rule ? `found by ${rule}: ${effort}` : `not found: ${effort}`;
}

/** Some seeds at a time. @returns how many there were, and those that broke this rule */
async function untilBroken(rule, options) {
  const began = performance.now();
  let run = 0;
  while (run < options.seeds && performance.now() - began < options.limitMs) {
    const some = { ...options, from: options.from + run, seeds: SEEDS_AT_A_TIME, untilFound: false };
    const { seeds, bad } = await campaign(some);
    run += seeds;
    const found = bad.filter(({ violations }) => violations.some((one) => one.rule === rule));
    if (found.length > 0) return { seeds: run, bad: found };
  }
  return { seeds: run, bad: [] };
}

async function judgeByPlan(plan) {
  const args = [at('test', 'simulation', 'simulation.mjs'), '--plan', plan, '--project', copy];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const end = () => child.kill('SIGKILL');
  process.on('exit', end);
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  process.off('exit', end);
  if (code !== 0 && code !== 1) throw new Error(`the plan could not be run: it ended with ${code}`);
  const [, rule] = /^ {3}(\w+) at /m.exec(output) ?? [];
  return rule ? `found by ${rule}: plan "${plan}"` : `not found: plan "${plan}"`;
}
