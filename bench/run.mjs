// npm run bench: throughput of the drain and lateness, through decorated handlers of a Nest application.
// Uses REDIS_URL, else starts a Redis of its own; prints the machine and the medians of three runs.
import { execFileSync } from 'node:child_process';
import { cpus } from 'node:os';
import { buildIfStale, LIBRARY } from '../tools/compile.mjs';
import { installDependencies } from '../tools/dependencies.mjs';
import { findRedis, START_ORDER } from '../tools/find-redis.mjs';
import { Tether } from '../tools/tether.mjs';

const RUNS = 3;
const SCENARIOS = [
  {
    name: 'drain 100,000 due jobs, concurrency 200',
    unit: 'jobs/s',
    goal: '>= 60,000',
    script: 'drain',
    args: [100_000, 200],
    pick: 'jobsPerSecond',
  },
  {
    name: 'drain 100,000 due jobs, concurrency 100',
    unit: 'jobs/s',
    script: 'drain',
    args: [100_000, 100],
    pick: 'jobsPerSecond',
  },
  {
    name: 'drain 50,000 due jobs, concurrency 10',
    unit: 'jobs/s',
    script: 'drain',
    args: [50_000, 10],
    pick: 'jobsPerSecond',
  },
  { name: 'enqueueMany, 5,000 each', unit: 'jobs/s', script: 'drain', args: [100_000, 200], pick: 'enqueuedPerSecond' },
  { name: 'lateness p50 at 200 jobs/s', unit: 'ms', script: 'lateness', args: [200, 10], pick: 'p50' },
  { name: 'lateness p99 at 200 jobs/s', unit: 'ms', goal: '<= 5', script: 'lateness', args: [200, 10], pick: 'p99' },
];

await installDependencies();
await buildIfStale([LIBRARY]);
const tether = await Tether.open();
const redis = await findRedis({ tether, order: START_ORDER });
console.log(`${cpus().length} x ${cpus()[0].model.trim()}, Node ${process.version}, ${redis.description}`);
const measured = new Map();
try {
  for (const { name, unit, goal = '', script, args, pick } of SCENARIOS) {
    const key = `${script} ${args.join(' ')}`;
    if (!measured.has(key))
      measured.set(
        key,
        Array.from({ length: RUNS }, () => run(script, args)),
      );
    const values = measured
      .get(key)
      .map((result) => result[pick])
      .sort((a, b) => a - b);
    const spread = `${number(values[0])} to ${number(values.at(-1))}`;
    console.log(`${name.padEnd(42)} ${number(values[1]).padStart(8)} ${unit.padEnd(7)} ${goal.padEnd(10)} (${spread})`);
  }
} finally {
  await tether.close();
}

/** Each run in a process of its own: a warm or bloated heap would help or hurt the next. */
function run(script, args) {
  const file = new URL(`./${script}.mjs`, import.meta.url).pathname;
  const output = execFileSync(process.execPath, [file, ...args.map(String)], {
    env: { ...process.env, REDIS_URL: redis.url },
    encoding: 'utf8',
  });
  return JSON.parse(output);
}

function number(value) {
  return value >= 1000 ? Math.round(value).toLocaleString('en') : String(value);
}
