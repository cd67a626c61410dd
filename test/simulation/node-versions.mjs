// node test/simulation/node-versions.mjs --help: whether the same seeds have the same traces on other major versions of Node, from npm.
import { execFileSync } from 'node:child_process';
import { readArguments, readNumber, readObject } from '../../tools/arguments.mjs';
import { at } from '../../tools/project.mjs';
import { buildAll } from './build.mjs';

const USAGE = `Usage: node test/simulation/node-versions.mjs [22 24 ...]    the same seeds on other major versions of Node, from npm
  --seeds 100   so many
  --from 1      the first one
  --set JSON    what no seed draws, as '{"rate":2}'

Ends with 1 when a seed has another trace there.`;
const { values, positionals } = readArguments(USAGE, {
  options: {
    seeds: { type: 'string', default: '100' },
    from: { type: 'string', default: '1' },
    set: { type: 'string', default: '{}' },
  },
  allowPositionals: true,
});
const seeds = readNumber(USAGE, '--seeds', values.seeds);
const from = readNumber(USAGE, '--from', values.from, { least: 0 });
readObject(USAGE, '--set', values.set);
const majors = positionals.map((text) => readNumber(USAGE, 'A version of Node', text, { least: 20 }));
await buildAll();
const own = Number(process.versions.node.split('.')[0]);
const others = majors.length > 0 ? majors : [20, 22, 24].filter((major) => major !== own);
const expected = hashesOf(process.execPath, []);
let unequal = 0;
for (const major of others) {
  const found = hashesOf('npx', ['-y', `node@${major}`]);
  const wrong = [...expected].filter(([seed, hash]) => found.get(seed) !== hash).map(([seed]) => seed);
  unequal += wrong.length;
  const verdict = wrong.length === 0 ? 'all traces equal' : `other traces of seeds ${wrong.join(', ')}`;
  console.log(`Node ${major} and ${own}: ${expected.size} seeds, ${verdict}`);
}
process.exitCode = unequal > 0 || expected.size !== seeds ? 1 : 0;

function hashesOf(program, before) {
  const args = [...before, at('test', 'simulation', 'simulation.mjs'), '--hashes'];
  args.push('--seeds', String(seeds), '--from', String(from), '--set', values.set);
  const options = { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: 64 * 1024 ** 2 };
  let output;
  try {
    output = execFileSync(program, args, options);
  } catch (error) {
    output = error.stdout; // A seed may break a rule, and still have to be equal.
  }
  return new Map(Array.from(output.matchAll(/^hash (\d+) (\w+)$/gm), ([, seed, hash]) => [seed, hash]));
}
