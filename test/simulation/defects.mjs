// The table of the deliberate defects that the simulator finds: defects.json as data, defects.md to be read.
import { readFileSync, writeFileSync } from 'node:fs';
import prettier from 'prettier';
import { at } from '../../tools/project.mjs';
import { readMutants } from '../mutants/mutants.mjs';

const DATA = at('test', 'simulation', 'defects.json');
const PAGE = at('test', 'simulation', 'defects.md');

/** @param effort the profile, the rule that was broken, how many seeds and seconds of CPU it took */
export function recordDefect({ name }, effort) {
  const data = readDefects();
  data.found[name] = effort;
  delete data.notFound[name];
  const known = readMutants();
  const found = known.filter((one) => data.found[one.name]);
  data.found = Object.fromEntries(found.map((one) => [one.name, data.found[one.name]]));
  writeFileSync(DATA, `${JSON.stringify(data, undefined, 2)}\n`);
}

export function readDefects() {
  return JSON.parse(readFileSync(DATA, 'utf8'));
}

export async function writePage() {
  const { found, notFound } = readDefects();
  const breaks = new Map(readMutants().map((mutant) => [mutant.name, mutant.breaks]));
  const efforts = Object.entries(found);
  const seconds = median(efforts.map(([, effort]) => effort.seconds));
  const most = Math.max(...efforts.map(([, effort]) => effort.seeds));
  const rows = efforts.map(([name, { profile, rule, seeds, seconds: cpu }]) => `| ${name} | ${breaks.get(name)} | \`${rule}\` | ${profile} | ${seeds} | ${cpu} |`); // prettier-ignore
  const misses = Object.entries(notFound).map(([name, why]) => `| ${name} | ${breaks.get(name)} | ${why} |`);
  const text = `# Deliberate defects that the simulator finds

Each defect of [test/mutants](../mutants/README.md) breaks one guarantee on purpose. \`node test/simulation/mutants.mjs --record NAME\` makes
it in a copy of the built package and runs seeds until one breaks a rule; profiles.mjs says under which faults. **${efforts.length} are found**, by at
most ${most} seeds, half of them within ${seconds} s of CPU. This page is made from defects.json by that command.

| defect | what it breaks | found by | profile | seeds | CPU, s |
| --- | --- | --- | --- | --- | --- |
${rows.join('\n')}

Not found, although they are about what the simulator looks at:

| defect | what it breaks | why not |
| --- | --- | --- |
${misses.join('\n')}
`;
  const options = await prettier.resolveConfig(PAGE);
  writeFileSync(PAGE, await prettier.format(text, { ...options, filepath: PAGE }));
}

function median(numbers) {
  const sorted = numbers.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
