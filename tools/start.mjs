// npm start: from a fresh clone to a running sample application.
//
// The application and the Redis are children of a tether, in a session of their own. So a Ctrl-C, which a terminal
// sends to this whole process group and npm then sends to us once more, reaches the application exactly once, through
// us; and the Redis is there until the application has drained and ended.
import { constants } from 'node:os';
import { answerHelp } from './arguments.mjs';
import { buildIfStale, LIBRARY, SAMPLE } from './compile.mjs';
import { installDependencies } from './dependencies.mjs';
import { findRedis, RedisNotFound, START_ORDER } from './find-redis.mjs';
import { at } from './project.mjs';
import { Tether } from './tether.mjs';

answerHelp(`Usage: npm start

Installs what is missing, finds or starts a Redis, builds, and runs the sample application on http://localhost:3000; Ctrl-C
ends it and what it started. sample-app/README.md says what to ask it.
  PORT=3001                             another port
  REDIS_URL=redis://localhost:6379      this Redis; memory:// needs none`);

const PARENT_CHECK_MS = 500;

const interrupted = new AbortController();
let application;

for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => stop(signal));
process.on('SIGHUP', () => stop('SIGTERM'));
// Neither a shell nor npm that is killed hard passes that on; being adopted by another process tells of it.
const parent = process.ppid;
setInterval(() => process.ppid !== parent && stop('SIGTERM'), PARENT_CHECK_MS).unref();

const tether = await Tether.open();
const exitCode = await Promise.race([start().catch(explain), interruptedBeforeStart()]);
await tether.close();
process.exit(exitCode);

function stop(signal) {
  if (interrupted.signal.aborted) return;
  interrupted.abort(signal);
  application?.kill(signal);
}

/** A download or an installation that hangs must not hold up a Ctrl-C. */
function interruptedBeforeStart() {
  return new Promise((resolve) => {
    const giveUp = () => !application && resolve(exitCodeOf(interrupted.signal.reason));
    interrupted.signal.addEventListener('abort', giveUp);
  });
}

async function start() {
  const { signal } = interrupted;
  await installDependencies({ signal });
  // An append-only file: the sample is to run as it would in earnest, and to be restarted without losing payments.
  const flags = ['--appendonly', 'yes'];
  const redis = await findRedis({ tether, order: START_ORDER, flags, signal });
  console.error(`Redis: ${redis.description}${redis.port ? `, ${redis.url}` : ''}`);
  await buildIfStale([LIBRARY, SAMPLE], { signal });
  signal.throwIfAborted();
  application = await tether.spawn(process.execPath, ['--enable-source-maps', at(SAMPLE.lastFile)], {
    cwd: process.cwd(),
    env: { ...process.env, REDIS_URL: redis.url },
  });
  const ended = await application.exited;
  return ended.code ?? exitCodeOf(ended.signal);
}

function explain(error) {
  if (interrupted.signal.aborted) return exitCodeOf(interrupted.signal.reason);
  console.error(error instanceof RedisNotFound ? error.message : error);
  return 1;
}

function exitCodeOf(signal) {
  return 128 + constants.signals[signal];
}
