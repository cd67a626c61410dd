import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';

// The simulator needs the built package and drives the queues of Node itself, so it runs in a process of its own.
const run = promisify(execFile);

async function simulate(...args: string[]): Promise<string> {
  const done = run(process.execPath, ['test/simulation/simulation.mjs', ...args], { maxBuffer: 64 * 1024 ** 2 });
  // The output says what was broken; the code alone does not.
  const { stdout, stderr } = await done.catch((error: { stdout: string; stderr: string }) => error);
  return stdout + stderr;
}

/** Two minutes where little else runs; much longer where it does. */
const LIMIT_MS = 900_000;
const SEEDS = 20;
/** From here on twenty take little time. */
const FIRST_SEED = 58;

it(
  'all kept plans run as they are kept',
  async () => {
    const output = await simulate('--plans');
    expect(output).toContain('as kept');
    expect(output).not.toContain('NOT AS KEPT');
  },
  LIMIT_MS,
);

it(
  `${SEEDS} seeds break no rule, and run twice they do the same`,
  async () => {
    const output = await simulate('--seeds', String(SEEDS), '--from', String(FIRST_SEED), '--threads', '1', '--twice');
    expect(output).toContain(`${SEEDS} seeds, 0 of them broke a rule`);
    expect(output).not.toMatch(/unequal|crashed/);
  },
  LIMIT_MS,
);

it(
  'a seed does the same with modules for each process and a turn of the event loop for each event',
  async () => {
    const traceOf = (output: string) => /^seed \d+: [^;]*/m.exec(output)?.[0];
    const fast = traceOf(await simulate('--seed', '118'));
    expect(fast).toBeDefined();
    expect(traceOf(await simulate('--seed', '118', '--slow'))).toBe(fast);
  },
  LIMIT_MS,
);

const THROWS_ON_THE_WAY = `
  import { buildAll } from './test/simulation/build.mjs';
  await buildAll();
  const { inOneTurn } = await import('./dist-simulation/one-turn.js');
  const events = [() => process.nextTick(() => { throw new Error('in a callback'); }), () => console.log('goes on')];
  await inOneTurn(() => (events.shift()?.(), events.length > 0), ({ message }) => console.log('threw', message));
  console.log('ended');`;

it(
  'what a callback of the driver throws is told, and the events go on',
  async () => {
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', THROWS_ON_THE_WAY]);
    expect(stdout.trim().split('\n').slice(-3)).toEqual(['threw in a callback', 'goes on', 'ended']);
  },
  LIMIT_MS,
);
