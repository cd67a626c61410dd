import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';

const run = promisify(execFile);
const folder = mkdtempSync(path.join(tmpdir(), 'delay-queue-arguments-'));
const noPlan = path.join(folder, 'no-plan.json');

beforeAll(() => writeFileSync(noPlan, '{ "plan": {} }'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function end(script: string, args: string): Promise<Ended> {
  const words = args === '' ? [] : args.replaceAll('FOLDER', folder).split(' ');
  const done = run(process.execPath, [`test/simulation/${script}.mjs`, ...words]);
  return done.then(
    (output) => ({ code: 0, ...output }),
    (error: Ended) => error,
  );
}

// Nothing is built or run for any of them.
it.each([
  ['simulation', '--bogus', "Unknown option '--bogus'"],
  ['simulation', '--seed abc', '--seed must be a whole number from 0 on, and not "abc".'],
  ['simulation', '--seed 0x10', '--seed must be a whole number from 0 on, and not "0x10".'],
  ['simulation', '--seed 1.5', '--seed must be a whole number from 0 on, and not "1.5".'],
  ['simulation', '--seed 99999999999999999999', '--seed must be a whole number'],
  ['simulation', '--seed=-1', '--seed must be a whole number'],
  ['simulation', '--seeds 0', '--seeds must be a whole number from 1 on, and not "0".'],
  ['simulation', '--seeds 2 --from x', '--from must be a whole number'],
  ['simulation', '--hours x', '--hours must be a number from 0.001 on, and not "x".'],
  ['simulation', '--goal 100 --each x', '--each must be a whole number'],
  ['simulation', '--seed 7 --faults 1,b', '--faults must be a whole number from 0 on, and not "b".'],
  ['simulation', '--seed 7 --set [1]', '--set must be an object as JSON, and not "[1]".'],
  ['simulation', '--seed 7 --seeds 2', '--seeds does not go with --seed.'],
  ['simulation', '--seeds 2 --print', '--print does not go with --seeds.'],
  ['simulation', '--keep some-name', '--keep needs --shrink.'],
  ['simulation', '--shrink 7 --keep ../x', '--keep takes a name as paused-queue'],
  ['simulation', '--shrink nosuch.json', '--shrink must be a whole number'],
  ['simulation', '--hours 1 --go-on', '--go-on needs --report FILE'],
  ['simulation', '--seeds 2 --report FOLDER', 'is a folder'],
  ['simulation', '--seeds 2 --report FOLDER/none/report.json', 'There is no folder'],
  ['simulation', '--plan nosuch', 'No plan "nosuch" is kept in test/simulation/plans'],
  ['simulation', '--plan FOLDER/none.json', 'There is no file'],
  ['simulation', '--older nosuch --seeds 1', 'git knows no commit "nosuch".'],
  ['mutants', 'nosuch/', 'No defect has nosuch/ in its name.'],
  ['mutants', '--seconds x leases/', '--seconds must be a whole number'],
  ['mutants', '--plan nosuch', 'No plan "nosuch" is kept'],
  ['mutants', '--profile nosuch', 'There is no profile nosuch: '],
  ['shrinking', 'nosuch/', 'No defect that is found has nosuch/ in its name.'],
  ['shrinking', '--plan nosuch', 'No plan "nosuch" is kept'],
  ['shrinking', '--plan silent-sentinel', '--plan needs the whole name of the defect that it finds.'],
  ['coverage', '--seeds x', '--seeds must be a whole number'],
  ['fidelity', '--seeds x', '--seeds must be a whole number'],
  ['fidelity', 'nosuch', 'No such server: nosuch.'],
  ['node-versions', '--seeds x', '--seeds must be a whole number'],
  ['node-versions', '--set {bad', '--set must be an object as JSON'],
])('%s.mjs %s is refused with its usage', async (script, args, problem) => {
  const { code, stdout, stderr } = await end(script, args);
  expect(stderr).toContain(problem);
  expect(stderr).toMatch(/^Usage: /m);
  expect(stderr).not.toMatch(/^ {4}at /m); // No stack.
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
});

it.each([
  [`--plan FOLDER/no-plan.json`, 'no-plan.json is no plan of the simulator.'],
  ['--hours 1 --report FOLDER/broken-report.json --go-on', 'broken-report.json is no report of a campaign.'],
  ['--seed 7 --faults 0,999999', 'The plan has no fault 999999.'],
])(
  'what shows only once it has been read is refused in the same way: %s',
  async (args, problem) => {
    writeFileSync(path.join(folder, 'broken-report.json'), 'cut');
    const { code, stderr } = await end('simulation', args);
    expect(stderr).toContain(problem);
    expect(stderr).toMatch(/^Usage: /m);
    expect(code).toBe(2);
  },
  900_000,
);
