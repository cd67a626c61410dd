import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { devalueCodec } from '../../../lib/devalue/index.js';
import { commandLine, inTerminal } from '../../helpers/command-line.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const HOUR = 3_600_000;
const run = (...args: string[]) => commandLine(here.world, args);
const app = () => here.start({ options: { consume: false } });

/** A dead letter with this error. */
async function bury(queue: string, id: string, error: string): Promise<void> {
  const { producer } = await app();
  await producer.enqueue(queue, { id }, { id });
  const [jobs, due, dead] = ['jobs', 'due', 'dead'].map((name) => here.world.key(queue, name));
  expect(await here.world.redis.hexists(jobs!, id)).toBe(1);
  await here.world.redis.zrem(due!, id);
  await here.world.redis.zadd(dead!, await here.world.now(), id);
  const record = JSON.stringify({ name: 'Error', message: error, at: await here.world.now() });
  await here.world.redis.hset(here.world.key(queue, 'errors'), id, `exhausted\n${record}`);
}

describe('queues', () => {
  it('tells of each queue in tabs, and as JSON one object a line', async () => {
    const { producer, inspector } = await app();
    await producer.enqueue('mails', 1, { delay: '1h' });
    await producer.enqueue('mails', 1);
    await producer.enqueue('held', 1);
    await inspector.pause('held');
    const piped = await run('queues');
    expect(piped.code).toBe(0);
    expect(piped.lines.map((line) => line.split('\t').slice(0, 6))).toEqual([
      ['held', 'paused', '0', '1', '0', '0'],
      ['mails', 'ok', '1', '1', '0', '0'],
    ]);
    const { objects } = await run('queues', '--json');
    expect(objects).toMatchObject([
      { queue: 'held', state: 'paused' },
      { queue: 'mails', delayed: 1, due: 1 },
    ]);
  });

  it('has columns with titles on a terminal', async () => {
    const { producer } = await app();
    await producer.enqueue('columns', 1);
    const { code, stdout } = await inTerminal(here.world, ['queues', '--no-color']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^QUEUE +STATE +DELAYED +DUE +RUNNING +DEAD +LAG +NEXT DUE/m);
    expect(stdout).toMatch(/^columns +ok +0 +1 /m);
  });

  it('finds the shards of a queue by itself, and shows a queue that cannot be read', async () => {
    const { producer } = await here.start({ options: { queues: { split: { shards: 3 } }, consume: false } });
    for (let n = 0; n < 9; n++) await producer.enqueue('split', n, { id: `j${n}` });
    await producer.enqueue('broken', 1);
    await here.world.redis.hset(here.world.key('broken', 'meta'), 'layout', '99');
    const { code, objects } = await run('queues', '--json');
    expect(code).toBe(6);
    const split = objects.find(({ queue }) => queue === 'split');
    expect(split).toMatchObject({ due: 9 });
    expect(objects.find(({ queue }) => queue === 'broken')).toMatchObject({ state: 'unreadable' });
    expect((await run('get', 'split', 'j5', '--json')).objects).toMatchObject([{ id: 'j5', payload: 5 }]);
    await here.world.redis.hset(here.world.key('broken', 'meta'), 'layout', '1');
  });
});

describe('list', () => {
  it('shows jobs of one state in their order, page behind page, and no payload unless it is asked for', async () => {
    const { producer } = await app();
    const at = (await here.world.now()) + HOUR;
    const jobs = Array.from({ length: 450 }, (_, n) => ({
      payload: { n },
      id: `j${String(n).padStart(3, '0')}`,
      at: at + n,
    }));
    await producer.enqueueMany('long', jobs);
    const all = await run('list', 'long', '--all', '--json');
    expect(all.objects.map(({ id }) => id)).toEqual(jobs.map(({ id }) => id));
    expect(all.objects[0]).not.toHaveProperty('payload');
    const some = await run('list', 'long', '--limit', '2', '--payload', '--from', String(at + 5));
    expect(some.lines.map((line) => line.split('\t'))).toMatchObject([
      ['j005', new Date(at + 5).toISOString(), '0', '{"n":5}', ''],
      ['j006', new Date(at + 6).toISOString(), '0', '{"n":6}', ''],
    ]);
    expect(some.stderr).toContain('The first 2 jobs; --limit or --all shows more.');
  });

  it('shows what a terminal would obey instead of sending it there', async () => {
    await bury('mean', 'mean', 'red \u001b[31malert\u0007\u202e\r\nrm -rf');
    for (const args of [
      ['dead', 'mean'],
      ['dead', 'mean', '--json'],
      ['dead', 'mean', '--group'],
      ['get', 'mean', 'mean'],
    ]) {
      const { stdout, code } = await run(...args);
      expect(code).toBe(0);
      expect(stdout.replaceAll(/[\n\t]/g, '')).not.toMatch(/[\p{Cc}\u202e]/u);
      expect(stdout).toContain(String.raw`\u001b`);
    }
    const seen = await inTerminal(here.world, ['dead', 'mean', '--no-color']);
    expect(seen.stdout.replaceAll('\r\n', '')).not.toMatch(/[\p{Cc}\u202e]/u);
    expect(seen.stdout).toContain(String.raw`red \u001b[31malert\u000`);
  });
});

it('dead --group puts dead letters together whose errors differ in numbers only', async () => {
  for (const n of [1, 22, 333]) await bury('groups', `a${n}`, `no invoice ${n}`);
  await bury('groups', 'b', 'timeout');
  const { objects } = await run('dead', 'groups', '--group', '--json');
  expect(objects).toMatchObject([
    { count: 3, reason: 'exhausted', error: 'Error: no invoice N', example: 'a333' },
    { count: 1, error: 'Error: timeout', example: 'b' },
  ]);
});

describe('get', () => {
  it('shows one job with its payload; without it the exit code is 3', async () => {
    const { producer } = await app();
    await producer.enqueue('one', { total: 5 }, { id: 'a b', delay: '1h', context: { tenant: 'x' } });
    const { objects } = await run('get', 'one', 'a b', '--json');
    expect(objects).toMatchObject([{ id: 'a b', state: 'delayed', payload: { total: 5 }, context: { tenant: 'x' } }]);
    expect((await run('get', 'one', 'a b')).lines).toContain('payload\t{"total":5}');
    const missing = await run('get', 'one', 'nobody');
    expect([missing.code, missing.stdout, missing.stderr]).toEqual([
      3,
      '',
      'error: Queue "one" has no job "nobody".\n',
    ]);
  });

  it('does not take a slip of the pen for a queue, and makes none', async () => {
    const slip = await run('list', 'oen');
    expect(slip.code).toBe(3);
    expect(slip.stderr).toContain('No queue "oen" was ever used');
    expect((await run('queues', '--json')).objects.map(({ queue }) => queue)).not.toContain('oen');
  });
});

it('timeline counts due times, as a table and as one object', async () => {
  const { producer } = await app();
  const at = (await here.world.now()) + HOUR;
  await producer.enqueueMany(
    'peak',
    Array.from({ length: 30 }, () => ({ payload: 1, at })),
  );
  const range = ['--from', String(at), '--to', String(at + 4_000), '--buckets', '4'];
  const { lines } = await run('timeline', 'peak', ...range);
  expect(lines).toEqual([30, 0, 0, 0].map((jobs, n) => `${new Date(at + n * 1_000).toISOString()}\t${jobs}`));
  expect((await run('timeline', 'peak', ...range, '--json')).objects).toMatchObject([
    { counts: [30, 0, 0, 0], widthMs: 1_000 },
  ]);
  const seen = await inTerminal(here.world, ['timeline', 'peak', ...range]);
  expect(seen.stdout).toContain(`30  ${'█'.repeat(40)}`);
});

it('stats tells what became of all jobs', async () => {
  const { producer } = await app();
  await producer.enqueue('told', 1);
  expect((await run('stats', 'told', '--json')).objects).toMatchObject([{ queue: 'told', enqueued: 1, completed: 0 }]);
  expect((await run('stats')).lines.find((line) => line.startsWith('told\t1\t0\t0\t0\t0\t0\t0\t'))).toBeDefined();
});

describe('a payload that holds itself, as a codec keeps it', () => {
  it('is written as JSON with a mark where it begins anew', async () => {
    const codec = devalueCodec();
    const { producer } = await here.start({ options: { consume: false, codec } });
    const payload: Record<string, unknown> = { name: 'A', pair: [{ of: 1 }] };
    payload['self'] = payload;
    payload['twice'] = payload['pair'];
    await producer.enqueue('circles', payload, { id: 'A', delay: '1h' });
    const folder = mkdtempSync(join(tmpdir(), 'circles-'));
    const file = join(folder, 'delay-queue.config.mjs');
    const devalue = pathToFileURL(resolve('dist/esm/devalue/index.js')).href;
    writeFileSync(file, `import { devalueCodec } from '${devalue}';\nexport default { codec: devalueCodec() };\n`);
    const { code, stderr, objects } = await run('get', 'circles', 'A', '--json', '--config', file);
    rmSync(folder, { recursive: true });
    expect([code, stderr]).toEqual([0, '']);
    const pair = [{ of: 1 }];
    expect(objects).toMatchObject([{ id: 'A', payload: { name: 'A', pair, self: '[Circular]', twice: pair } }]);
  });
});
