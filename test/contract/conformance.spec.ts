import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import config from '../../jest.config.js';
import { CALLS, CREATED, ENQUEUE, FREE } from '../lua/job-states.js';
import { STATES } from '../lua/shard.js';
import type { State } from '../lua/shard.js';

// The contract of both stores, of Redis and of `memory://`, is one suite that runs twice. Here nothing runs: this says which
// pairs of state and call there are, and that no pair is left out of the suite, nor the suite of one of the stores.

const COMMANDS = [
  'keep',
  'replace',
  'reschedule',
  'reject',
  'cancel',
  'cancel running',
  'reschedule()',
  'update',
  'signal',
  'runNow()',
];
/** Row by row what the calls answer, in the order of COMMANDS. A job in quarantine is a due job that waits to run alone. */
const TABLE: Record<State, string> = {
  none: 'created created created created notFound notFound notFound notFound notFound notFound',
  completed: 'created created created created notFound notFound notFound notFound notFound notFound',
  cancelled: 'created created created created notFound notFound notFound notFound notFound notFound',
  expired: 'created created created created notFound notFound notFound notFound notFound notFound',
  delayed: 'kept replaced rescheduled throws cancelled cancelled rescheduled updated signalled rescheduled',
  due: 'kept replaced rescheduled throws cancelled cancelled rescheduled updated signalled rescheduled',
  quarantined: 'kept replaced rescheduled throws cancelled cancelled rescheduled updated signalled rescheduled',
  running: 'kept replaced rescheduled throws running running running running running running',
  dead: 'replaced replaced rescheduled throws dead dead dead dead dead dead',
};
const CALLED: Record<string, string> = {
  cancel: 'cancel',
  'cancel running': 'cancel({ running: true })',
  'reschedule()': 'reschedule',
  update: 'update',
  signal: 'signal',
  'runNow()': 'runNow',
};
const PAIRS = (Object.keys(TABLE) as State[]).flatMap((state) =>
  TABLE[state].split(' ').map((outcome, n) => [state, COMMANDS[n]!, outcome] as const),
);
/** The rest of the contract, by what a job or a queue goes through. */
const SUITES: Record<string, string> = {
  'each pair of the table': 'test/lua/job-states.spec.ts',
  'replacing, rescheduling and cancelling a running job': 'test/lua/followups.spec.ts',
  claim: 'test/lua/claim.spec.ts',
  settle: 'test/lua/tokens.spec.ts',
  recover: 'test/lua/take-back.spec.ts',
  'run alone what was recovered': 'test/lua/quarantine.spec.ts',
  expiry: 'test/lua/enqueue.spec.ts',
  'what expired is not run': 'test/integration/handlers/not-run.spec.ts',
  'age and cap of dead letters': 'test/lua/dead-letters.spec.ts',
  'pause and listing': 'test/lua/inspection.spec.ts',
  purge: 'test/integration/module/inspector.spec.ts',
  'any sequence of calls': 'test/model/sequences-1.spec.ts',
};

describe('the table of states and calls', () => {
  it('has every state that a job may be found in, and every call', () => {
    expect([...STATES].sort()).toEqual(Object.keys(TABLE).sort());
    expect(new Set(PAIRS.map(([state, command]) => `${state} ${command}`)).size).toBe(STATES.length * COMMANDS.length);
    expect(Object.keys(ENQUEUE).concat(Object.keys(CALLS)).sort()).toEqual(
      COMMANDS.map((command) => CALLED[command] ?? command).sort(),
    );
  });

  it.each(PAIRS)('%s × %s is tested to be %s', (state, command, outcome) => {
    const cells = command in CALLED ? CALLS[CALLED[command]!]!.cells : ENQUEUE[command as keyof typeof ENQUEUE];
    // The suite leaves out the cells of ids that nobody holds, which are all alike.
    const absent = command in CALLED ? 'notFound' : CREATED[0];
    expect(cells[state] === undefined).toBe(FREE.includes(state));
    expect(cells[state]?.[0] ?? absent).toBe(outcome);
  });
});

describe.each(Object.entries(SUITES))('%s', (_, file) => {
  it.each(['redis', 'memory'])(`is held by ${file} on %s`, (store) => {
    expect(readFileSync(file, 'utf8')).not.toMatch(/\b(?:it|test|describe)\.(?:skip|todo|only)\b/);
    type Project = { displayName: string; testMatch: string[]; testPathIgnorePatterns: string[] };
    const projects = config.projects as unknown as Project[];
    const { testMatch, testPathIgnorePatterns } = projects.find(({ displayName }) => displayName === store)!;
    expect(testMatch.some((glob) => covers(glob, file))).toBe(true);
    const ignored = testPathIgnorePatterns.map((part) => part.replace('<rootDir>', ''));
    expect(ignored.filter((part) => `/${file}`.includes(part))).toEqual([]);
  });
});

/** As far as the globs of jest.config.ts go. */
function covers(glob: string, file: string): boolean {
  const source = glob
    .replace('<rootDir>/', '')
    .replace(/[.\\]/g, '\\$&')
    .replace('{\\.spec\\.ts,/**/*\\.spec\\.ts}', '(?:\\.spec\\.ts|/.*\\.spec\\.ts)')
    .replace(/\{([^}]*)\}/g, (_, names: string) => `(?:${names.replaceAll(',', '|')})`)
    .replace('**/*', '.*');
  return new RegExp(`^${source}$`).test(file);
}
