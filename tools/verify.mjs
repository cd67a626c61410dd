// npm run verify: all that CI runs, with the time of each part. A failure does not hide the ones behind it, except that
// nothing can run without the dependencies and a Redis.
import { installDependencies } from './dependencies.mjs';
import { findRedis, testOrder } from './find-redis.mjs';
import { at } from './project.mjs';
import { npm } from './run-command.mjs';
import { Tether } from './tether.mjs';

const script = (name) => ({ name, work: () => npm(['run', '--silent', name], { cwd: at() }) });

const PARTS = [
  { name: 'install', work: installDependencies, essential: true },
  { name: 'redis', work: obtainRedis, essential: true },
  script('build'), // before the checks: the sample application is checked against what was built
  script('lint'),
  script('typecheck'),
  script('test'),
  script('test:package'),
];

const results = [];
for (const part of PARTS) {
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
