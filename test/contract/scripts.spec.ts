import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';

const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> };

/** Other people's programs answer for themselves, and `npm test` hands its arguments to Jest. */
const NOT_OURS = ['typecheck', 'lint', 'format', 'test'];
const commands = Object.entries(scripts)
  .filter(([name]) => !NOT_OURS.includes(name))
  .map(([name, command]) => [name, command.replace(/^exec node |^node /, '').split(' ')] as const);

/** With a wrong argument, where a script takes arguments at all. */
const MISTAKEN: Record<string, string[]> = {
  example: ['nothing-like-it'],
  bench: ['--only', 'nothing-like-it'],
  verify: ['nothing-like-it'],
  'verify:all': ['--nothing-like-it'],
  chaos: ['--minutes', 'soon'],
  fuzz: ['--seed', 'mine'],
  soak: ['--rate', 'fast'],
  'test:servers': ['nothing-like-it'],
  'test:mutants': ['nothing-like-it'],
  'test:wall-clock': ['--count', 'many'],
  'test:limits': ['--count', '0'],
  'test:races': ['--count', '1.5'],
  'test:import': ['--count', '1e5'],
};

function ask(args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [...args], { timeout: 100_000 }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });
}

describe('a script of package.json', () => {
  it.each(commands)('answers `npm run %s -- --help` with its usage, and does nothing else', async (name, command) => {
    const { code, stdout, stderr } = await ask([...command, '--help']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^Usage: /);
    expect(stdout).toContain(name === 'start' ? 'npm start' : `npm run ${name}`);
  });

  it.each(Object.entries(MISTAKEN))('%s refuses a wrong argument with its usage and no stack', async (name, wrong) => {
    const command = commands.find(([known]) => known === name)![1];
    const { code, stdout, stderr } = await ask([...command, ...wrong]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^\S.*\n\nUsage: npm run /);
    expect(stderr).not.toMatch(/^ +at /m);
  });
});

describe('a workflow of .github', () => {
  const folder = '.github/workflows';

  it.each(readdirSync(folder))('%s runs only scripts and parts that exist', (name) => {
    const text = readFileSync(`${folder}/${name}`, 'utf8');
    const called = [...text.matchAll(/npm run ([\w:]+)/g)].map(([, script]) => script!);
    expect(called.filter((script) => !(script in scripts))).toEqual([]);
    const [, parts = ''] = /part: \[(.*)\]/.exec(text) ?? [];
    const named = parts.split(/,\s*/).map((part) => part.replaceAll("'", ''));
    const known = readFileSync('tools/verify.mjs', 'utf8');
    expect(named.filter((part) => part !== '' && !known.includes(`script('${part}'`))).toEqual([]);
  });

  it('of every change runs what a contributor runs', () => {
    expect(readFileSync(`${folder}/ci.yml`, 'utf8')).toContain('- run: .ci/run\n');
  });
});
