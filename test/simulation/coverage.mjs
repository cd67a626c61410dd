// node test/simulation/coverage.mjs --help: which branches of the library the simulator takes: of the built files in FOLDERS and of each
// script in Lua.
import { readFileSync, readdirSync } from 'node:fs';
import { Session } from 'node:inspector';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';
import { readArguments, readNumber, readObject } from '../../tools/arguments.mjs';
import { at } from '../../tools/project.mjs';
import { branchesOf, counter } from './branches.mjs';
import { buildAll } from './build.mjs';

const FOLDERS = ['worker', 'producer', 'consumer', 'redis'];

const ONE_SERVER = { older: false, cluster: false, reshards: [], contentIds: 0 };
/** All traits, and what else few seeds have. One seed in five goes by what it draws. */
const EACH = [
  {
    ...ONE_SERVER,
    traits: ['eager', 'checked', 'url', 'evicting', 'defined', 'context', 'traced', 'middleware', 'compressed', 'stated', 'retryRules', 'chatty', 'mistaken', 'debounced', 'tellsFleet'], // prettier-ignore
    schedules: 3,
    transfers: 0.1,
    fails: 0.3,
    batch: true,
    snoozes: 0.1,
    expires: 0.2,
    keptCount: 5,
    repeats: 0.2,
    kinds: ['damaged', 'lostReply', 'crash', 'denied'],
  },
  {
    ...ONE_SERVER,
    traits: ['ownClient', 'checked', 'oldServer', 'consumesList', 'handed', 'unheard', 'heavy', 'otherCodec', 'durable', 'fewDeadLetters', 'evictsTimed', 'throttled', 'refusing', 'tellsFleet'], // prettier-ignore
    operators: 0.05,
    timeouts: 0.2,
    burst: 0,
    concurrency: 10,
    fails: 0.3,
    pull: true,
    kinds: ['damaged', 'unwelcome', 'freeze', 'replyHeld'],
  },
  {
    ...ONE_SERVER,
    traits: ['eager', 'sentinels', 'otherDatabase', 'valkey', 'checked', 'mistaken', 'chatty', 'failingBatches', 'refusing'], // prettier-ignore
    batch: true,
    updates: 0.1,
    pull: true,
    kinds: ['masterFails', 'masterChanges', 'sentinelsAway', 'sentinelsLie', 'unwelcome', 'damaged'],
  },
  {
    older: false,
    cluster: true,
    traits: ['eager', 'checked', 'defined', 'durable', 'throttled', 'context'],
    schedules: 3,
    transfers: 0.1,
    durable: 0.3,
    replicas: 1,
    kinds: ['slotMoves', 'nodeFails', 'nodeClockSteps', 'crash', 'terminate', 'halfOpen', 'denied'],
  },
  {},
];

const USAGE = `Usage: node test/simulation/coverage.mjs [part of a file's name ...]    which branches of the library the simulator takes
  --seeds 100   so many
  --from 1      the first one
  --set JSON    what no seed draws, as '{"rate":2}'
  --plans       the kept plans as well
  --each        no trait and no rare fault is left to chance: each comes in a fifth of the seeds
  --missed      names the branches that were not taken`;
const { values, positionals: wanted } = readArguments(USAGE, {
  options: {
    seeds: { type: 'string', default: '100' },
    from: { type: 'string', default: '1' },
    set: { type: 'string', default: '{}' },
    plans: { type: 'boolean', default: false },
    each: { type: 'boolean', default: false },
    missed: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});

const seeds = readNumber(USAGE, '--seeds', values.seeds);
const from = readNumber(USAGE, '--from', values.from, { least: 0 });
const set = readObject(USAGE, '--set', values.set);
await buildAll();
const [{ countLuaBranches }, { runPlan }, { planOf }, { withKeeper }, { keptNames, readPlan }] = await Promise.all(
  ['lua-branches', 'run-seed', 'plan', 'module-state', 'kept-plans'].map(
    (name) => import(`../../dist-simulation/${name}.js`),
  ),
);
// As they are now: somebody may build while the seeds run.
const texts = new Map(
  FOLDERS.flatMap((folder) => filesIn(at('dist-modules', 'cjs', folder))).map((file) => [
    file,
    withKeeper(readFileSync(file, 'utf8'), file),
  ]),
);
const { SOURCES } = createRequire(import.meta.url)(at('dist-modules', 'cjs', 'lua', 'scripts.generated.js'));
const lua = countLuaBranches();
const profiler = new Session();
profiler.connect();
const ask = (method, params) => {
  let answer;
  profiler.post(method, params, (error, result) => (answer = error ?? result)); // It answers at once.
  return answer;
};
ask('Profiler.enable');
ask('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

for (let seed = from; seed < from + seeds; seed++) await run(planOf(seed, givenTo(seed)), `seed ${seed}`);
if (values.plans) for (const name of keptNames(at())) await run(readPlan(at(), name).plan, `plan ${name}`);
tellJavaScript();
tellLua();

function givenTo(seed) {
  return { ...(values.each && EACH[seed % EACH.length]), ...set };
}

async function run(plan, what) {
  const { violations } = await runPlan(plan, { project: at() });
  for (const { rule, what: how } of violations.slice(0, 2)) console.log(`${what} breaks ${rule}: ${how}`);
}

function tellJavaScript() {
  const { result } = ask('Profiler.takePreciseCoverage');
  const functions = new Map(result.map(({ url, functions: of }) => [url.replace(/^file:\/\//, ''), of]));
  let [allTaken, all] = [0, 0];
  for (const folder of FOLDERS) {
    let [taken, count] = [0, 0];
    for (const file of filesIn(at('dist-modules', 'cjs', folder))) {
      const countAt = counter(functions.get(file) ?? []);
      const branches = branchesOf(texts.get(file));
      const missed = branches.filter((branch) => branch.taken(countAt) <= 0);
      taken += branches.length - missed.length;
      count += branches.length;
      if (branches.length > 0) tell(relative(at('dist-modules', 'cjs'), file), branches.length, missed);
    }
    console.log(`${folder}: ${share(taken, count)}`);
    allTaken += taken;
    all += count;
  }
  console.log(`worker, producer, consumer and redis: ${share(allTaken, all)} of ${seeds} seeds`);
}

function tellLua() {
  for (const [name, source] of Object.entries(SOURCES)) {
    const branches = lua.scripts.get(source) ?? [];
    const lines = source.split('\n');
    const missed = branches.filter(({ taken }) => taken === 0);
    const texts = missed.map((branch) => ({ ...branch, text: lines[branch.line - 1] }));
    tell(`${name}.lua`, branches.length, texts, name === 'step');
  }
}

function tell(name, count, missed, always = false) {
  const isWanted = wanted.length === 0 || wanted.some((part) => name.includes(part));
  if (!isWanted) return;
  console.log(`${name}: ${count === 0 ? 'never run' : share(count - missed.length, count)}`);
  if (!values.missed && !always) return;
  for (const { line, what, text } of missed) console.log(`    ${line} ${what}: ${text}`);
}

function filesIn(folder) {
  return readdirSync(folder, { recursive: true })
    .filter((name) => name.endsWith('.js'))
    .map((name) => join(folder, name))
    .toSorted();
}

function share(taken, count) {
  return `${count === 0 ? 100 : ((100 * taken) / count).toFixed(1)} % of ${count} branches taken`;
}
