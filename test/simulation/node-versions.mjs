// node test/simulation/node-versions.mjs [--seeds 100] [--from 1] [--set '{"rate":2}'] [22 24 ...]: the same seeds on other major versions
// of Node, from npm. Ends with 1 when a seed has another trace there.
import { execFileSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { at } from '../../tools/project.mjs';
import { buildAll } from './build.mjs';

const { values, positionals } = parseArgs({
  options: {
    seeds: { type: 'string', default: '100' },
    from: { type: 'string', default: '1' },
    set: { type: 'string', default: '{}' },
  },
  allowPositionals: true,
});
await buildAll();
const own = Number(process.versions.node.split('.')[0]);
const others = positionals.length > 0 ? positionals.map(Number) : [20, 22, 24].filter((major) => major !== own);
const expected = hashesOf(process.execPath, []);
let unequal = 0;
for (const major of others) {
  const found = hashesOf('npx', ['-y', `node@${major}`]);
  const wrong = [...expected].filter(([seed, hash]) => found.get(seed) !== hash).map(([seed]) => seed);
  unequal += wrong.length;
  const verdict = wrong.length === 0 ? 'all traces equal' : `other traces of seeds ${wrong.join(', ')}`;
  console.log(`Node ${major} and ${own}: ${expected.size} seeds, ${verdict}`);
}
process.exitCode = unequal > 0 || expected.size !== Number(values.seeds) ? 1 : 0;

function hashesOf(program, before) {
  const args = [...before, at('test', 'simulation', 'simulation.mjs'), '--hashes'];
  args.push('--seeds', values.seeds, '--from', values.from, '--set', values.set);
  const options = { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: 64 * 1024 ** 2 };
  let output;
  try {
    output = execFileSync(program, args, options);
  } catch (error) {
    output = error.stdout; // A seed may break a rule, and still have to be equal.
  }
  return new Map(Array.from(output.matchAll(/^hash (\d+) (\w+)$/gm), ([, seed, hash]) => [seed, hash]));
}
