// npm run test:builders: the tarball in an application that is built and started in other ways than by tsc: by swc, by webpack, bundled by
// esbuild into one file that needs no node_modules, and by `nest start --watch`, where a change replaces the process.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { answerHelp } from '../../tools/arguments.mjs';
import { buildIfStale, LIBRARY } from '../../tools/compile.mjs';
import { installDependencies } from '../../tools/dependencies.mjs';
import { findRedis, testOrder } from '../../tools/find-redis.mjs';
import { Tether } from '../../tools/tether.mjs';
import { manifestOfBuilders } from './apps.mjs';
import { install, pack, removeKeys } from './installing.mjs';

answerHelp(`Usage: npm run test:builders

Builds an application that has installed the package by swc, webpack and esbuild, changes it under \`nest start --watch\`, and
runs each on a Redis. Takes some minutes and no arguments.`);

const PREFIX = `builders-test-${process.pid}`;
/** For a machine that does much else. */
const TIMEOUT_MS = 120_000;
/** What Nest asks for and does without; an application that is bundled has no other choice than to name it. */
const OPTIONAL = [
  '@nestjs/microservices',
  '@nestjs/websockets',
  '@nestjs/platform-express',
  'class-validator',
  'class-transformer',
];
const run = promisify(execFile);

const tether = await Tether.open();
try {
  await installDependencies();
  await buildIfStale([LIBRARY]);
  const redis = await findRedis({ tether, order: testOrder() });
  const manifest = manifestOfBuilders(await pack(tether.directory));
  const cwd = await install(tether.directory, 'builders', manifest);
  const env = (part) => ({ ...process.env, REDIS_URL: redis.url, PREFIX: `${PREFIX}-${part}` });

  await part('nest build --builder swc', async () => {
    await nest(cwd, 'build', '--builder', 'swc');
    await handlesAJob(join(cwd, 'dist', 'main.js'), { cwd, env: env('swc') });
  });
  await part('esbuild, one file without node_modules', async () => {
    const alone = join(tether.directory, 'alone');
    mkdirSync(alone);
    await bundle(join(cwd, 'dist', 'main.js'), join(alone, 'app.mjs'));
    await handlesAJob('app.mjs', { cwd: alone, env: env('esbuild') });
  });
  await part('nest start --watch', () => restartsAfterAChange(cwd, env('watch')));
  await part('nest build --builder webpack', async () => {
    // What webpack makes for Node is CommonJS.
    writeFileSync(join(cwd, 'package.json'), JSON.stringify({ ...manifest, type: 'commonjs' }));
    await nest(cwd, 'build', '--builder', 'webpack');
    await handlesAJob(join(cwd, 'dist', 'main.js'), { cwd, env: env('webpack') });
  });
  if (redis.kind === 'url') await removeKeys(redis.url, PREFIX);
  console.log(`All of them work on ${redis.description}`);
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await tether.close();
}

async function part(name, work) {
  const began = performance.now();
  await work();
  console.log(`== ${name}: ${((performance.now() - began) / 1000).toFixed(1)} s`);
}

function nest(cwd, ...args) {
  return run(process.execPath, [join(cwd, 'node_modules', '@nestjs', 'cli', 'bin', 'nest.js'), ...args], { cwd });
}

async function bundle(entry, outfile) {
  const { build } = await import('esbuild');
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20.19',
    format: 'esm',
    external: OPTIONAL.flatMap((name) => [name, `${name}/*`]),
    // What is CommonJS in it asks for modules of Node.
    banner: {
      js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);",
    },
    logLevel: 'error',
  });
}

async function handlesAJob(file, { cwd, env }) {
  const options = { cwd, env: { ...env, ONCE: '1' }, timeout: TIMEOUT_MS };
  const { stdout } = await run(process.execPath, [file], options);
  const told = stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line).what);
  assert.deepEqual(told, ['started', 'handled', 'asked to end', 'drained']);
}

/** The process that is replaced ends its job, and the next one gets none of it. */
async function restartsAfterAChange(cwd, env) {
  const release = join(tether.directory, 'release', 'now');
  mkdirSync(join(release, '..'));
  const args = [
    join(cwd, 'node_modules', '@nestjs', 'cli', 'bin', 'nest.js'),
    'start',
    '--watch',
    '--preserveWatchOutput',
  ];
  // In a group of its own: nothing that it has started may outlive it.
  const child = spawn(process.execPath, args, { cwd, env: { ...env, RELEASE: release }, detached: true });
  child.stderr.pipe(process.stderr);
  const timer = setTimeout(() => process.kill(-Number(child.pid), 'SIGKILL'), TIMEOUT_MS);
  try {
    const told = lines(child.stdout);
    const first = await until(told, 'started');
    const file = join(cwd, 'src', 'main.ts');
    writeFileSync(file, readFileSync(file, 'utf8').replace('const version: number = 1;', 'const version: number = 2;'));
    // The next process is started at once, beside the one that ends.
    const second = await until(told, 'started');
    writeFileSync(release, '');
    const rest = [];
    const has = (what, version) => rest.some((one) => one.what === what && one.version === version);
    while (!has('drained', 1) || !has('handled', 2)) rest.push(await next(told));
    assert.deepEqual([first, second].map(jobOf), ['1 by 1, attempt 1', '2 by 2, attempt 1']);
    assert.notEqual(second.pid, first.pid);
    assert.deepEqual(
      rest.filter(({ pid }) => pid === first.pid).map(({ what }) => what),
      ['handled', 'asked to end', 'drained'],
    );
    assert.deepEqual(
      rest.filter(({ pid }) => pid !== first.pid).map(({ what }) => what),
      ['handled'],
    );
  } finally {
    clearTimeout(timer);
    const ended = once(child, 'exit');
    if (child.exitCode === null && child.signalCode === null) {
      process.kill(-Number(child.pid), 'SIGKILL');
      await ended;
    }
  }
}

/** Whose job it is, and who runs it. */
function jobOf({ payload, version, attempt }) {
  return `${payload.enqueuedBy} by ${version}, attempt ${attempt}`;
}

function lines(stream) {
  return createInterface({ input: stream })[Symbol.asyncIterator]();
}

/** The next line of the application; the compiler writes others. */
async function next(told) {
  for (;;) {
    const { value, done } = await told.next();
    if (done) throw new Error('nest start --watch has ended');
    if (value.startsWith('{')) return JSON.parse(value);
    console.log(`   ${value}`);
  }
}

async function until(told, what) {
  for (;;) {
    const one = await next(told);
    if (one.what === what) return one;
  }
}
