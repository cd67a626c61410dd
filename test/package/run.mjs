// npm run test:package: the tarball as its users get it. Applications of the current and the previous major of Nest
// install it from npm's cache, compile against its types, run a handler on a real Redis, answer /health, count, trace and relay.
// One more has none of the optional peers, and tests itself with vitest and the test kit.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { answerHelp } from '../../tools/arguments.mjs';
import { buildIfStale, LIBRARY } from '../../tools/compile.mjs';
import { installDependencies } from '../../tools/dependencies.mjs';
import { findRedis, testOrder } from '../../tools/find-redis.mjs';
import { npm, run } from '../../tools/run-command.mjs';
import { Tether } from '../../tools/tether.mjs';
import { APPS, manifestOf, manifestOfVitest } from './apps.mjs';
import { install, pack, removeKeys } from './installing.mjs';

answerHelp(`Usage: npm run test:package

Packs the package, lints the tarball, installs it in applications of Nest 11 and 12 and in one with vitest, and runs them
on a Redis. Takes some minutes and no arguments.`);

const PREFIX = `package-test-${process.pid}`;
/** An application that does not end by itself has left something open. */
const APP_TIMEOUT_MS = 30_000;

const tether = await Tether.open();
try {
  await installDependencies();
  await buildIfStale([LIBRARY]);
  const redis = await findRedis({ tether, order: testOrder() });
  const tarball = await pack(tether.directory);
  await lintTarball(tarball);
  for (const app of APPS) await tryOut(app, tarball, redis.url);
  await tryVitest(tarball);
  if (redis.kind === 'url') await removeKeys(redis.url, PREFIX);
  console.log(`The package works on ${redis.description}`);
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await tether.close();
}

async function lintTarball(tarball) {
  console.log('== publint and are-the-types-wrong');
  await npm(['exec', '--yes', '--package=publint@0.3.25', '--', 'publint', tarball, '--strict']);
  await npm(['exec', '--yes', '--package=@arethetypeswrong/cli@0.18.5', '--', 'attw', tarball, '--profile', 'strict']);
}

async function tryOut(app, tarball, redisUrl) {
  console.log(`== ${app.name}, ioredis ${app.ioredis}`);
  const cwd = await install(tether.directory, 'app', manifestOf(app, tarball));
  expectOneCopyOfEverything(cwd, app);
  await npm(['exec', '--', 'tsc'], { cwd });
  const env = { ...process.env, REDIS_URL: redisUrl, PREFIX: `${PREFIX}-${app.name}` };
  const { stdout } = await promisify(execFile)(process.execPath, ['dist/main.js'], {
    cwd,
    env,
    timeout: APP_TIMEOUT_MS,
  });
  expectAllOfIt(JSON.parse(stdout.trim().split('\n').at(-1)));
  await tryCommandLine(cwd, redisUrl, env.PREFIX);
}

/** Under both of its names, as npm has linked them. */
async function tryCommandLine(cwd, redisUrl, prefix) {
  for (const name of ['nestjs-delay-queue', 'delay-queue']) {
    const args = ['exec', '--', name, 'queues', '--json', '--redis', redisUrl, '--prefix', prefix];
    const { stdout } = await promisify(execFile)('npm', args, { cwd, timeout: APP_TIMEOUT_MS });
    const queues = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.ok(queues.length > 0 && queues.every(({ queue }) => typeof queue === 'string'), `${name}: ${stdout}`);
  }
}

async function tryVitest(tarball) {
  console.log('== vitest, without optional peers');
  const cwd = await install(tether.directory, 'vitest', manifestOfVitest(tarball));
  await run(process.execPath, ['bare.mjs'], { cwd });
  await npm(['exec', '--', 'tsc'], { cwd });
  await npm(['exec', '--', 'vitest', 'run'], { cwd });
}

/** A peer range that npm could not satisfy would show as a second copy inside the library's folder. */
function expectOneCopyOfEverything(cwd, { ioredis }) {
  assert.equal(existsSync(join(cwd, 'node_modules', 'nestjs-delay-queue', 'node_modules')), false);
  const installed = JSON.parse(readFileSync(join(cwd, 'node_modules', 'ioredis', 'package.json'), 'utf8'));
  assert.equal(installed.version, ioredis);
}

function expectAllOfIt({ id, seen, health, metrics, spans, kit, relayed, dashboard }) {
  assert.deepEqual(seen, { id, text: 'hello' });
  assert.equal(health.status, 200);
  assert.equal(health.body.status, 'ok');
  assert.equal(health.body.details.delay_queue.status, 'up');
  assert.equal(metrics.length, 1);
  assert.deepEqual(spans, ['enqueue package.greeting', 'process package.greeting']);
  const matchers = ['toHaveCompleted', 'toHaveDeadLettered', 'toHaveEnqueued'];
  assert.deepEqual(kit, { before: 0, after: 1, matchers });
  const board = { statuses: [200, 200, 200, 200], user: 'ada', outcome: 'cancelled' };
  assert.deepEqual(dashboard, { express: board, fastify: board });
  assert.deepEqual(relayed, { message: { text: 'hello', id: 'A' }, header: 'delayed-job-id' });
}
