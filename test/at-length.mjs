// npm run test:wall-clock, test:limits, test:races, test:import: tests of npm test at their full size.
import { spawn } from 'node:child_process';
import { readArguments, readNumber } from '../tools/arguments.mjs';
import { at } from '../tools/project.mjs';

const TESTS = {
  'wall-clock': {
    specs: 'test/integration/features/wall-clock',
    variable: 'WALL_CLOCK_JOBS',
    size: '10000',
    what: 'jobs at local times of thirty zones that run while zone data change',
  },
  limits: {
    specs: 'test/integration/faults/limits-kills',
    variable: 'LIMITS_KILLS',
    size: '40',
    what: 'kills of one of four processes that share limits',
  },
  races: {
    specs: 'test/integration/features/recipes',
    variable: 'SIGNAL_RACES',
    size: '100000',
    what: 'events that race the deadlines of their jobs',
  },
  import: {
    specs: 'test/integration/command-line/import-bullmq',
    variable: 'IMPORTED_JOBS',
    size: '100000',
    what: 'jobs that come from BullMQ while workers of both sides go on',
  },
};

const name = process.argv.splice(2, 1)[0];
const { specs, variable, size, what } = TESTS[name];
const usage = `Usage: npm run test:${name} [-- --count ${size}]     ${what}
  --count ${size}    how many`;

const { values } = readArguments(usage, { options: { count: { type: 'string' } } });
const count = values.count ?? size;
readNumber(usage, '--count', count);

const tests = spawn(process.execPath, [at('tools/test.mjs'), specs], {
  cwd: at(),
  stdio: ['ignore', 'inherit', 'inherit'],
  env: { ...process.env, [variable]: count },
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => tests.kill(signal));
tests.on('exit', (code) => (process.exitCode = code ?? 1));
