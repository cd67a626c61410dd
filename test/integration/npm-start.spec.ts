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

let npm: ChildProcess;

afterEach(() => {
  if (isRunning()) process.kill(-npm.pid!, 'SIGKILL');
});

describe('npm start', () => {
  it(
    'exits with 0 on Ctrl-C, which reaches the whole process group, and its Redis is gone',
    async () => {
      const { redisPort, ended } = await start();
      process.kill(-npm.pid!, 'SIGINT');
      expect(await ended).toMatchObject({ code: 0, signal: null });
      expect(await isServing(redisPort)).toBe(false);
    },
    TIMEOUT_MS,
  );

  it(
    'exits with 0 on SIGTERM to npm alone, and its Redis is gone',
    async () => {
      const { redisPort, ended } = await start();
      npm.kill('SIGTERM');
      expect(await ended).toMatchObject({ code: 0, signal: null });
      expect(await isServing(redisPort)).toBe(false);
    },
    TIMEOUT_MS,
  );

  it.each([
    ['npm', () => npm.kill('SIGKILL')],
    ['npm and the start script', () => process.kill(-npm.pid!, 'SIGKILL')],
  ])(
    'leaves neither application nor Redis after SIGKILL of %s',
    async (_, kill) => {
      const { appPort, redisPort } = await start();
      kill();
      while (await isServing(redisPort)) await sleep(50);
      expect(await isServing(appPort)).toBe(false);
    },
    TIMEOUT_MS,
  );
});

/** Runs it as a terminal does, in a process group of its own, until the application serves. */
async function start() {
  const appPort = await freePort();
  const env = { ...process.env, PORT: String(appPort), REDIS_URL: '' };
  npm = spawn('npm', ['start'], { cwd: ROOT, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [npm.stdout!, npm.stderr!]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  const ended = once(npm, 'close').then(([code, signal]) => ({ code, signal, output }));
  while (!(await isServing(appPort))) {
    if (!isRunning()) throw new Error(`npm start ended early: ${(await ended).output}`);
    await sleep(50);
  }
  const redisPort = Number(/Redis: .*:(\d+)$/m.exec(output)?.[1]);
  expect(await isServing(redisPort)).toBe(true);
  return { appPort, redisPort, ended };
}

function isRunning(): boolean {
  return npm.exitCode === null && npm.signalCode === null;
}
