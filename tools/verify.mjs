// npm run verify: all that CI runs. A failure does not hide the ones behind it.
import { installDependencies } from './dependencies.mjs';
import { at } from './project.mjs';
import { npm } from './run-command.mjs';

const PARTS = ['lint', 'typecheck', 'build', 'test', 'test:package'];

const results = [await timed('install', () => installDependencies())];
for (const part of PARTS) results.push(await timed(part, () => npm(['run', '--silent', part], { cwd: at() })));

console.log(results.map(({ part, seconds, failed }) => line(part, seconds, failed)).join('\n'));
process.exitCode = results.some(({ failed }) => failed) ? 1 : 0;

async function timed(part, work) {
  console.log(`\n== ${part}`);
  const began = performance.now();
  const failed = await work().then(
    () => false,
    (error) => {
      console.error(error.message);
      return true;
    },
  );
  return { part, failed, seconds: (performance.now() - began) / 1000 };
}

function line(part, seconds, failed) {
  return `${part.padEnd(14)}${seconds.toFixed(1).padStart(7)} s  ${failed ? 'FAILED' : 'ok'}`;
}
