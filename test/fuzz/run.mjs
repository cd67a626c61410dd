// npm run fuzz -- --help: the fuzz tests of npm test with ten times as many inputs.
import { spawn } from 'node:child_process';
import { readArguments, readNumber } from '../../tools/arguments.mjs';
import { at } from '../../tools/project.mjs';

const USAGE = `Usage: npm run fuzz [-- options] [-- part of a path ...]     random input; with a part of a path some of the tests
  --runs 100000    how many inputs
  --seed N         which ones; a failure names its seed, and with that and as many runs the inputs are the same again`;

const text = { type: 'string' };
const { values, positionals } = readArguments(USAGE, { options: { runs: text, seed: text }, allowPositionals: true });
const runs = String(values.runs ?? process.env.FUZZ_RUNS ?? '100000');
const seed = String(values.seed ?? process.env.FUZZ_SEED ?? Date.now() % 1_000_000_000);
for (const [name, value] of Object.entries({ runs, seed })) readNumber(USAGE, `--${name}`, value, { least: 0 });
console.log(`fuzz: ${runs} inputs, seed ${seed}`);

const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
const specs = positionals.length > 0 ? positionals.map((part) => `test/fuzz/.*${part}`) : ['test/fuzz/'];
const jest = spawn(process.execPath, [...flags, at('node_modules/jest/bin/jest.js'), ...specs, '--reporters=default'], {
  cwd: at(),
  stdio: ['ignore', 'inherit', 'inherit'],
  env: { ...process.env, FUZZ_RUNS: runs, FUZZ_SEED: seed },
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => jest.kill(signal));
jest.on('exit', (code) => (process.exitCode = code ?? 1));
