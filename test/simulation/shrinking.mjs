// node test/simulation/shrinking.mjs --help: to how much a violation shrinks, and by how many seconds of CPU. Each defect is one that a rule
// of its own finds; its plan has eight kinds of faults beside its own, one in 100 ms for 30 s.
import { readArguments, readNumber, refuseArguments } from '../../tools/arguments.mjs';
import { at } from '../../tools/project.mjs';
import { readMutants } from '../mutants/mutants.mjs';
import { checkPlan } from './arguments.mjs';
import { folderForDefects, makeDefect } from './broken-package.mjs';
import { buildAll } from './build.mjs';
import { readDefects } from './defects.mjs';
import { profileNamed } from './profiles.mjs';

const USAGE = `Usage: node test/simulation/shrinking.mjs [part of a name ...]    to how much violations by these defects of test/mutants shrink
  --seconds 120   at most so long for each
  --seeds 8       at most so many, until one breaks a rule
  --plan NAME     shrinks that kept plan by the one defect that is named, and keeps what is left

Without a name one defect for each rule. Those that it knows are in test/simulation/defects.md.`;
const { values, positionals: wanted } = readArguments(USAGE, {
  options: {
    seconds: { type: 'string', default: '120' },
    seeds: { type: 'string', default: '8' },
    plan: { type: 'string' },
  },
  allowPositionals: true,
});
/** Beside those that the profile of the defect has. */
const KINDS = ['crash', 'freeze', 'reset', 'lostReply', 'requestHeld', 'slow', 'inPieces', 'scriptsForgotten'];
const FEW_FAULTS = 3;
const FEW_OPERATIONS = 10;

const seeds = readNumber(USAGE, '--seeds', values.seeds);
const seconds = readNumber(USAGE, '--seconds', values.seconds);
if (values.plan !== undefined) checkPlan(USAGE, values.plan);
const mutants = readMutants();
const names = chosen();
await buildAll();
const { planOf } = await import('../../dist-simulation/plan.js');
const { runPlan } = await import('../../dist-simulation/run-seed.js');
const { shrink } = await import('../../dist-simulation/shrink.js');
const { keepPlan, readPlan } = await import('../../dist-simulation/kept-plans.js');

let count = 0;
let reached = 0;
console.log('| defect | rule | faults | operations | faults left | operations left | runs | CPU, s |');
console.log('| --- | --- | --- | --- | --- | --- | --- | --- |');
for (const name of names) {
  // A folder of its own: this process remembers the modules of the one before.
  const copy = folderForDefects();
  const mutant = mutants.find((one) => one.name === name);
  makeDefect(mutant, copy);
  const found = values.plan
    ? await broken(readPlan(at(), values.plan).plan, copy)
    : await firstBroken(profileNamed(readDefects().found[name].profile).given, copy);
  if (!found) {
    console.log(`| ${name} | not found |`);
    continue;
  }
  const { plan, rule } = found;
  const began = process.cpuUsage();
  const { plan: least, tries } = await shrink(plan, rule, copy, seconds * 1_000);
  const { user, system } = process.cpuUsage(began);
  const row = [
    name,
    `\`${rule}\``,
    plan.faults.length,
    plan.operations.length,
    least.faults.length,
    least.operations.length,
  ];
  console.log(`| ${[...row, tries, ((user + system) / 1e6).toFixed(0)].join(' | ')} |`);
  if (values.plan) keepPlan(at(), values.plan, { ...readPlan(at(), values.plan), plan: least });
  count++;
  if (least.faults.length <= FEW_FAULTS && least.operations.length <= FEW_OPERATIONS) reached++;
}
console.log(`${reached} of ${count} have at most ${FEW_FAULTS} faults and ${FEW_OPERATIONS} operations left.`);
process.exitCode = reached < count ? 1 : 0;

/** Those that are named, or one for each rule. */
function chosen() {
  const { found } = readDefects();
  if (values.plan !== undefined) {
    if (wanted.length === 1 && mutants.some(({ name }) => name === wanted[0])) return wanted;
    refuseArguments(USAGE, '--plan needs the whole name of the defect that it finds.');
  }
  const names = Object.keys(found).filter((name) => wanted.length === 0 || wanted.some((part) => name.includes(part)));
  if (names.length === 0) refuseArguments(USAGE, `No defect that is found has ${wanted.join(' or ')} in its name.`);
  if (wanted.length > 0) return names;
  const byRule = new Map(names.map((name) => [found[name].rule, name]));
  return [...byRule.values()];
}

/** A plan that is as large as seeds draw them, and breaks a rule. */
async function firstBroken(given, project) {
  const others = Object.fromEntries(Object.entries(given).filter(([key]) => key !== 'weather'));
  const kinds = [...new Set([...(given.kinds ?? []), ...KINDS])];
  for (let seed = 1; seed <= seeds; seed++) {
    const plan = planOf(seed, { ...others, kinds, faultsMs: 30_000, faultEveryMs: 100 });
    const found = await broken(plan, project);
    if (found) return found;
  }
  return undefined;
}

async function broken(plan, project) {
  const { violations } = await runPlan(plan, { project, stop: true });
  return violations.length > 0 ? { plan, rule: violations[0].rule } : undefined;
}
