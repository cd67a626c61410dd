import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { whyNoShiftedClock } from '../helpers/shifted-redis.js';

const run = promisify(execFile);
const SEEDS = 3;
const LIMIT_MS = 300_000;
const missing = whyNoShiftedClock();

it(
  'what the simulated server replies, a real one replies at the same time',
  async () => {
    if (missing)
      return void process.stderr.write(`The simulated server is not compared with a real one: ${missing}.\n`);
    const args = ['test/simulation/fidelity.mjs', '--seeds', String(SEEDS)];
    const { stdout } = await run(process.execPath, args, { maxBuffer: 64 * 1024 ** 2 }).catch(
      (error: { stdout: string; stderr: string }) => ({ stdout: error.stdout + error.stderr }),
    );
    expect(stdout).toContain(`${SEEDS} seeds, 0 of them different`);
  },
  LIMIT_MS,
);
