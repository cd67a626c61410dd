// npm run verify: all that CI runs, with the time of each part. A failure does not hide the ones behind it, except that
// nothing can run without the dependencies and a Redis.
// npm run verify:all: also what takes long: defects on purpose, other servers, fault runs, fuzz tests, soak, bench.
import { readArguments, refuseArguments } from './arguments.mjs';
import { installDependencies } from './dependencies.mjs';
import { findRedis, testOrder } from './find-redis.mjs';
import { at } from './project.mjs';
import { npm } from './run-command.mjs';
import { Tether } from './tether.mjs';

const script = (name, ...args) => ({ name, work: () => npm(['run', '--silent', name, '--', ...args], { cwd: at() }) });

const PARTS = [
  { name: 'install', work: installDependencies, essential: true },
  { name: 'redis', work: obtainRedis, essential: true },
  script('build'), // before the checks: the sample application is checked against what was built
  script('lint'),
  script('typecheck'),
  script('test'),
  script('test:package'),
];
/** About two and a half hours on two cores, half of them for the defects and the bench. */
const LONG_PARTS = [
  script('fuzz'),
  script('chaos', '--minutes', '10'),
  script('soak', '--minutes', '10'),
  script('test:servers'),
  script('test:builders'),
  script('test:mutants'),
  script('bench'), // last: whoever reads its figures wants nothing beside it
];
const namesOf = (parts) => parts.map(({ name }) => name).join(', ');
const USAGE = `Usage: npm run verify [-- part ...]       all that CI runs, up to 30 minutes: ${namesOf(PARTS)}
       npm run verify:all [-- part ...]   also what takes hours: ${namesOf(LONG_PARTS)}

Names of parts choose some of them, beside those that all need: npm run verify:all -- fuzz soak`;
const { values, positionals: wanted } = readArguments(USAGE, {
  options: { all: { type: 'boolean' } },
  allowPositionals: true,
});
const offered = values.all ? [...PARTS, ...LONG_PARTS] : PARTS;
const unknown = wanted.filter((name) => !offered.some((part) => part.name === name));
if (unknown.length > 0) refuseArguments(USAGE, `No such part: ${unknown.join(', ')}. There are ${namesOf(offered)}.`);
const parts = wanted.length > 0 ? offered.filter(({ name, essential }) => essential || wanted.includes(name)) : offered;

const results = [];
for (const part of parts) {
  results.push(await timed(part));
  if (part.essential && results.at(-1).failed) break;
}
console.log(`\n${results.map(line).join('\n')}`);
process.exitCode = results.some(({ failed }) => failed) ? 1 : 0;

/** Tells at the beginning, rather than after minutes, that none can be had; on a bare Debian it installs one. */
async function obtainRedis() {
  const tether = await Tether.open();
  try {
    console.log((await findRedis({ tether, order: testOrder() })).description);
  } finally {
    await tether.close();
  }
}

async function timed({ name, work }) {
  console.log(`\n== ${name}`);
  const began = performance.now();
  const failed = await work().then(
    () => false,
    (error) => {
      console.error(error.message);
      return true;
    },
  );
  return { name, failed, seconds: (performance.now() - began) / 1000 };
}

function line({ name, failed, seconds }) {
  return `${name.padEnd(14)}${seconds.toFixed(1).padStart(7)} s  ${failed ? 'FAILED' : 'ok'}`;
}
