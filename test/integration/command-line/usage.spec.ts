import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, sep } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { commandLine, program } from '../../helpers/command-line.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const folder = mkdtempSync(join(tmpdir(), 'command-line-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('a wrong use ends with 2, before anything is sent', () => {
  it.each([
    [['lits', 'q'], "unknown command 'lits'"],
    [['list'], "missing required argument 'queue'"],
    [['list', 'q', '--state', 'lost'], 'Allowed choices are delayed, due, running, dead, completed'],
    [['list', 'q', '--frm', 'now'], "unknown option '--frm'"],
    [['queues', '--redis', 'redis://x', '--cluster', 'x:1'], 'Give one of --redis, --cluster and --sentinel'],
    [['queues', '--sentinel', 'x:1'], '--master'],
    [['queues', '--cluster', 'x'], '"x" is not host:port'],
    [['queues', '--redis', 'http://x'], 'redis://, rediss:// or memory:// URL'],
    [['queues', '--prefix', '{x}'], 'prefix'],
    [['queues', '--config', '/nowhere.mjs'], '--config: /nowhere.mjs cannot be loaded'],
    [['list', 'q{}'], 'Use 1 to 128 printable characters without braces'],
  ])('%j', async (args, message) => {
    const { code, stdout, stderr } = await program(args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
  });

  it('of a time or a number that is none', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    await producer.enqueue('q', 1);
    const time = await commandLine(here.world, ['list', 'q', '--from', 'soon']);
    expect([time.code, time.stderr]).toEqual([
      2,
      expect.stringContaining('--from: "soon" is not a time. Use now, +2h'),
    ]);
    const limit = await commandLine(here.world, ['list', 'q', '--limit', '0', '--json']);
    expect(limit.code).toBe(2);
    expect(JSON.parse(limit.stderr)).toEqual({ error: { message: expect.stringContaining('--limit: "0" is not') } });
  });
});

describe('the server', () => {
  const env = () => ({ REDIS_URL: 'redis://127.0.0.1:1', DELAY_QUEUE_PREFIX: here.world.prefix });

  it('is taken from a flag, else from the environment, else from a file', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    await producer.enqueue('found', 1);
    const file = join(folder, 'delay-queue.config.mjs');
    const { prefix, url } = here.world;
    writeFileSync(file, `export default async () => (${JSON.stringify({ connection: url, prefix })});`);
    const flag = await program(['queues', '--redis', url], { env: env() });
    const variable = await program(['queues', '--config', file], { env: { DELAY_QUEUE_REDIS: url } });
    const fromFile = await program(['queues', '--config', file]);
    for (const { code, stdout } of [flag, variable, fromFile]) {
      expect([code, stdout]).toEqual([0, expect.stringContaining('found\tok')]);
    }
    const away = await program(['queues', '--config', file, '--timeout', '300ms'], { env: env() });
    expect([away.code, away.stderr]).toEqual([5, expect.stringContaining('127.0.0.1:1')]);
  });

  it.each([{}, { DELAY_QUEUE_USERNAME: 'nobody' }])(
    'refuses a password whose %% is no escape, and keeps it to itself',
    async (more) => {
      const wrong = await program(['queues', '--redis', 'redis://:secret%zz@127.0.0.1:1'], {
        env: { ...env(), ...more },
      });
      expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('%25')]);
      expect(wrong.stderr).not.toContain('secret');
    },
  );

  it('is named by the flag where what was given is wrong', async () => {
    const wrong = await program(['queues', '--redis', 'localhost:6379'], { env: env() });
    expect([wrong.code, wrong.stderr]).toEqual([
      2,
      expect.stringMatching(/^(?:error: )?--redis: text without a scheme /i),
    ]);
    const prefix = await program(['queues', '--prefix', 'a{b}'], { env: env() });
    expect([prefix.code, prefix.stderr]).toEqual([2, expect.stringMatching(/^(?:error: )?--prefix: /i)]);
  });

  it('may need a password, which the environment has', async () => {
    const wrong = await program(['queues', '--redis', here.world.url, '--timeout', '2s'], {
      env: { DELAY_QUEUE_PASSWORD: 'secret', DELAY_QUEUE_USERNAME: 'nobody' },
    });
    expect(wrong.code).toBe(5);
    expect(wrong.stderr).not.toContain('secret');
  });
});

it('help and the version are answered without a server, with 0', async () => {
  const help = await program(['--help']);
  expect([help.code, help.stdout]).toEqual([0, expect.stringContaining('Usage: nestjs-delay-queue')]);
  expect((await program(['list', '--help'])).stdout).toContain('--state <state>');
  expect(await program(['--version'])).toMatchObject({ code: 0, stdout: '0.1.0\n' });
});

/** What the program asks Node for. */
async function modulesOf(...args: string[]): Promise<string> {
  const hook = join(folder, 'hook.cjs');
  const code = `const Module = require('node:module'); const load = Module._load; const seen = new Set();
      Module._load = function (name) { seen.add(name); return load.apply(this, arguments); };
      process.on('exit', () => process.stderr.write([...seen].join(' ')));`;
  writeFileSync(hook, code);
  return (await program(args, { env: { NODE_OPTIONS: `--require ${hook}` } })).stderr;
}

it('loads no driver to say how it is used', async () => {
  for (const args of [['--version'], ['--help'], ['list'], ['lits']]) {
    expect(await modulesOf(...args)).not.toMatch(/\bioredis\b/);
  }
  expect(await modulesOf('queues', '--redis', here.world.url)).toMatch(/\bioredis\b/);
});

it('loads the dashboard for nothing but the command that serves it', async () => {
  expect(await modulesOf('queues', '--redis', here.world.url)).not.toMatch(/\bhttp\b/);
  expect(await modulesOf('dashboard', '--redis', here.world.url, '--host', '203.0.113.1')).toMatch(/\bhttp\b/);
});

it('loads neither Nest nor the part of the package that needs it', async () => {
  const hook = join(folder, 'files.cjs');
  writeFileSync(hook, "process.on('exit', () => process.stderr.write(Object.keys(require.cache).join('\\n')));");
  const { producer } = await here.start({ options: { consume: false } });
  await producer.enqueue('found', 1);
  const { code, stderr } = await program(['list', 'found', '--state', 'due', '--redis', here.world.url], {
    env: { DELAY_QUEUE_PREFIX: here.world.prefix, NODE_OPTIONS: `--require ${hook}` },
  });
  const own = stderr.split('\n').filter((file) => file.includes(`${sep}dist${sep}`) && !file.includes('node_modules'));
  expect(code).toBe(0);
  expect(stderr).not.toContain('@nestjs');
  expect(own.map((file) => basename(dirname(file)))).toEqual(expect.arrayContaining(['cli', 'core']));
  expect(own.filter((file) => /[\\/](esm|cjs)[\\/]/.test(file))).toEqual([]);
});
