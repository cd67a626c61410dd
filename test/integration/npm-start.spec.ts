import { afterEach, describe, expect, it } from '@jest/globals';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../tools/free-port.mjs';
import { isServing } from '../helpers/is-serving.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** For a build that is stale; everything else takes two seconds. */
const TIMEOUT_MS = 90_000;

/** Makes the application, and nothing else that node runs, say which signals reach it, and end late enough for two. */
const SAY_SIGNALS = `
  if (process.argv[1]?.endsWith('main.js')) {
    for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => console.log('application got ' + name));
    const exit = process.exit;
    process.exit = (code) => setTimeout(exit, 300, code);
  }`;

let npm: ChildProcess;

afterEach(() => {
  if (isRunning()) process.kill(-npm.pid!, 'SIGKILL');
});

describe('npm start', () => {
  it(
    'tells the application once of a Ctrl-C, which reaches the whole process group, and exits with 0 and no Redis',
    async () => {
      const { redis, ended } = await start();
      process.kill(-npm.pid!, 'SIGINT');
      expect(await ended).toEqual({ code: 0, signal: null, signalsSeen: ['application got SIGINT'] });
      expect(await isServing(redis)).toBe(false);
    },
    TIMEOUT_MS,
  );

  it(
    'tells the application once of a SIGTERM to npm alone, and exits with 0 and no Redis',
    async () => {
      const { redis, ended } = await start();
      npm.kill('SIGTERM');
      expect(await ended).toEqual({ code: 0, signal: null, signalsSeen: ['application got SIGTERM'] });
      expect(await isServing(redis)).toBe(false);
    },
    TIMEOUT_MS,
  );

  it.each([
    ['npm', () => npm.kill('SIGKILL')],
    ['npm and the start script', () => process.kill(-npm.pid!, 'SIGKILL')],
  ])(
    'leaves neither application nor Redis after SIGKILL of %s',
    async (_, kill) => {
      const { app, redis } = await start();
      kill();
      while (await isServing(redis)) await sleep(50);
      expect(await isServing(app)).toBe(false);
    },
    TIMEOUT_MS,
  );
});

describe('npm start without a Redis', () => {
  it(
    'serves with REDIS_URL=memory://, and starts no server',
    async () => {
      const { output, ended } = await start('memory://');
      expect(output).toContain('Redis: REDIS_URL, memory://\n');
      expect(output).toContain('memory:// keeps jobs in this process only');
      npm.kill('SIGTERM');
      expect(await ended).toMatchObject({ code: 0 });
    },
    TIMEOUT_MS,
  );
});

/** Runs it as a terminal does, in a process group of its own, until the application serves. */
async function start(url = '') {
  const port = await freePort();
  const app = `http://127.0.0.1:${port}`;
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(SAY_SIGNALS)}`;
  const env = { ...process.env, PORT: String(port), REDIS_URL: url, NODE_OPTIONS };
  npm = spawn('npm', ['start'], { cwd: ROOT, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [npm.stdout!, npm.stderr!]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  const ended = once(npm, 'close').then(([code, signal]) => ({
    code,
    signal,
    signalsSeen: output.match(/application got \w+/g),
  }));
  while (!(await isServing(app))) {
    if (!isRunning()) throw new Error(`npm start ended early: ${output}`);
    await sleep(50);
  }
  if (url) return { app, redis: url, ended, output };
  const redis = /Redis: .*(redis:\S+)$/m.exec(output)![1]!;
  expect(await isServing(redis)).toBe(true);
  return { app, redis, ended, output };
}

function isRunning(): boolean {
  return npm.exitCode === null && npm.signalCode === null;
}
