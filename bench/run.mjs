// npm run bench -- --help: this library, BullMQ and bee-queue side by side on one Redis, with the same payloads and
// concurrency.
//
// Uses REDIS_URL, else starts a Redis of its own. Prints the table; writes latest.json, latest.md and charts to bench/results,
// or to bench/results/partial when only a part was run. A whole run also draws the picture of the README and writes the table of
// docs/performance.md that says what a Redis must be for so many jobs a day.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { readArguments, refuseArguments } from '../tools/arguments.mjs';
import { buildIfStale, LIBRARY } from '../tools/compile.mjs';
import { installDependencies } from '../tools/dependencies.mjs';
import { findRedis, START_ORDER } from '../tools/find-redis.mjs';
import { at } from '../tools/project.mjs';
import { Tether } from '../tools/tether.mjs';
import { writeCostTable } from './cost.mjs';
import { goalText, isMet } from './goals.mjs';
import { LIBRARIES, load, TITLES } from './libraries/index.mjs';
import { plan } from './plan/index.mjs';

const USAGE = `Usage: npm run bench [-- options]       everything; about an hour and a half
  --quick                   enqueue, drain, memory and lateness in under four minutes
  --only drain              scenarios with this in their name
  --libraries ours,bullmq   some of ${LIBRARIES.join(', ')}
  --runs 3                  how often each scenario runs
  --profile                 CPU profiles of this library
  --out FOLDER              where results go; bench/results, or bench/results/partial of a part
  --scale 0.01              smaller scenarios, to try the harness`;

const { values: options } = readArguments(USAGE, {
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    libraries: { type: 'string' },
    runs: { type: 'string' },
    profile: { type: 'boolean', default: false },
    out: { type: 'string' },
    scale: { type: 'string', default: '1' },
  },
});
const { quick, only } = options;
const libraries = options.libraries?.split(',');
const unknown = libraries?.find((library) => !LIBRARIES.includes(library));
if (unknown) refuseArguments(USAGE, `--libraries: "${unknown}" is none of ${LIBRARIES.join(', ')}.`);
const scale = Number(options.scale);
const scenarios = plan({ quick, only, scale, runs: options.runs && Number(options.runs) });
// What is published is one whole run: a part of it, or a shrunk one, must not take its place.
const isWhole = !only && !libraries && !options.runs && scale === 1;
const RESULTS = at('bench', 'results');
const PARTIAL = join(RESULTS, 'partial');
const out = resolve(options.out ?? (isWhole ? RESULTS : PARTIAL));
if (scenarios.length === 0) refuseArguments(USAGE, `--only: no scenario has "${only}" in its name.`);

await installDependencies();
await installDependencies({ folder: at('bench') });
await buildIfStale([LIBRARY]);
// Only now: these need what was just installed.
const { measure } = await import('./measure/alternate.mjs');
const { processIdsOf } = await import('./measure/redis.mjs');
const { plainTable, markdown, headline, barChart, CHARTS, figuresPicture, rowsOf } = await import('./report/index.mjs');

const tether = await Tether.open();
const since = Date.now();
const measured = [];
const failures = [];
let meta;
try {
  const redis = await findRedis({ tether, order: START_ORDER });
  meta = await describe(redis);
  const servers = await processIdsOf(redis.url);
  console.log(headline(meta));
  for (const scenario of scenarios) {
    const { rows, failures: failed } = await measure(scenario, {
      url: redis.url,
      servers,
      libraries,
      profileDirectory: options.profile ? join(out, 'profiles') : undefined,
      say: (text) => console.error(text),
    });
    measured.push(...rows);
    failures.push(...failed);
    // A run of an hour that is broken off leaves what it has measured.
    write(resultsSoFar(), options.out ? out : PARTIAL);
  }
} finally {
  await tether.close();
}

const results = resultsSoFar();
write(results, out);
if (out === RESULTS) {
  writeFileSync(at('docs', 'images', 'figures.svg'), figuresPicture(results.scenarios));
  writeCostTable(results);
}
console.log(`\n${plainTable(results.scenarios)}\n`);
for (const failure of failures) console.error(`FAILED ${failure}`);
if (failures.length > 0) process.exitCode = 1;
else console.log('Every job ran, and nothing was left in Redis.');

async function describe({ kind, description }) {
  const peers = JSON.parse(readFileSync(at('bench', 'package.json'), 'utf8')).dependencies;
  const own = JSON.parse(readFileSync(at('package.json'), 'utf8')).version;
  const settings = {};
  for (const library of LIBRARIES) settings[library] = (await load(library)).settings;
  return {
    date: new Date().toISOString(),
    machine: `${cpus().length} x ${cpus()[0].model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB`,
    node: process.version,
    redis: kind === 'local' ? basename(description) : description,
    versions: { 'nestjs-delay-queue': own, ...peers },
    settings,
    payload: '75 bytes of JSON',
    quick,
    scale,
    ...(only && { only }),
  };
}

function resultsSoFar() {
  return { meta: { ...meta, seconds: Math.round((Date.now() - since) / 1000) }, scenarios: measured.map(judged) };
}

/** In the order of the documented form; what only the report needs comes last. A busy machine decides nothing. */
function judged({ name, unit, ours, bullmq, beeQueue, bare, goal, ...rest }) {
  const met = rest.busy ? null : isMet(goal, { ours, bullmq, beeQueue, bare });
  return { name, unit, ours, bullmq, beeQueue, goal: goalText(goal), met, bare, ...rest };
}

function write(all, out) {
  mkdirSync(out, { recursive: true });
  const charts = Object.entries(CHARTS).flatMap(([name, title]) => {
    const rows = rowsOf(name, all.scenarios);
    if (rows.length === 0) return [];
    writeFileSync(join(out, `${name}.svg`), barChart(title, rows, TITLES));
    return [{ file: `${name}.svg`, title }];
  });
  writeFileSync(join(out, 'latest.json'), `${JSON.stringify(all, undefined, 2)}\n`);
  writeFileSync(join(out, 'latest.md'), markdown(all, charts));
}
