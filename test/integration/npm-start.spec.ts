import { afterEach, describe, expect, it } from '@jest/globals';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../tools/free-port.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TIMEOUT_MS = 60_000;

let running: ChildProcess | undefined;

afterEach(() => {
  if (running && running.exitCode === null) process.kill(-running.pid!, 'SIGKILL');
});

describe('npm start', () => {
  it('Ctrl-C, which reaches the whole process group, drains the application and exits with 0', async () => {
    const { npm, redisPort, output } = await started();
    process.kill(-npm.pid!, 'SIGINT');
    expect(await exitOf(npm), output()).toEqual([0, null]);
    expect(await isServing(redisPort)).toBe(false);
  }, TIMEOUT_MS);

  it('SIGTERM to npm alone drains the application and exits with 0', async () => {
    const { npm, redisPort, output } = await started();
    npm.kill('SIGTERM');
    expect(await exitOf(npm), output()).toEqual([0, null]);
    expect(await isServing(redisPort)).toBe(false);
  }, TIMEOUT_MS);

  it.each(['npm', 'the start script'])('SIGKILL of %s leaves neither application nor Redis', async (victim) => {
    const { npm, appPort, redisPort } = await started();
    if (victim === 'npm') npm.kill('SIGKILL');
    else process.kill(-npm.pid!, 'SIGKILL');
    await eventually(async () => (await isServing(appPort)) || (await isServing(redisPort)));
  }, TIMEOUT_MS);
});

async function started() {
}
