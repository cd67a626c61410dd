// npm run chaos -- --help
// The fault run of npm test (chaos.spec.ts) for as long as asked. Writes its report as Markdown, for docs/reliability.md.
import { spawn } from 'node:child_process';
import { readArguments, refuseArguments } from '../../tools/arguments.mjs';
import { buildIfStale, LIBRARY } from '../../tools/compile.mjs';
import { at } from '../../tools/project.mjs';

const USAGE = `Usage: npm run chaos [-- options]              kills and freezes processes and cuts connections, for two minutes
  --minutes 60          how long
  --seed 7              which faults, and when
  --rate 100            jobs per second
  --every 2500          ms from fault to fault
  --lease 2000          ms
  --workers 4           processes
  --fsync everysec      appendfsync of the server
  --limits yes          or no: groups, priorities and limits; by default those of the seeds that are odd
  --report FILE         the report as Markdown; chaos-report.md by default
       npm run chaos -- --history FOLDER       judges once more what a run with violations kept`;

const text = { type: 'string' };
const { values } = readArguments(USAGE, {
  options: {
    minutes: text,
    seed: text,
    rate: text,
    every: text,
    lease: text,
    workers: text,
    fsync: text,
    limits: text,
    report: text,
    history: text,
  },
});
const number = (name, fallback) => {
  const value = values[name] === undefined ? fallback : Number(values[name]);
  if (value !== undefined && !(value > 0)) refuseArguments(USAGE, `--${name} must be a number above 0.`);
  return value;
};
const settings = {
  durationMs: number('minutes', 2) * 60_000,
  seed: number('seed'),
  rate: number('rate'),
  everyMs: number('every'),
  leaseMs: number('lease'),
  workers: number('workers'),
  appendfsync: values.fsync,
  limits: values.limits === undefined ? undefined : values.limits === 'yes',
};

await buildIfStale([LIBRARY]);
// The checker holds a history of hours in memory.
const flags = ['--max-old-space-size=8192', '--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
const jest = ['node_modules/jest/bin/jest.js', 'test/chaos/chaos.spec.ts', '--runInBand', '--reporters=default'];
const child = spawn(process.execPath, [...flags, ...jest], {
  cwd: at(),
  stdio: ['ignore', 'inherit', 'inherit'],
  env: {
    ...process.env,
    CHAOS_SETTINGS: JSON.stringify(settings),
    CHAOS_HISTORY: values.history ?? '',
    CHAOS_REPORT: values.report ?? at('chaos-report.md'),
  },
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('exit', (code) => (process.exitCode = code ?? 1));
