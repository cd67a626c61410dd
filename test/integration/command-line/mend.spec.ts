import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { beforeEach, describe, expect, it } from '@jest/globals';
import type { DelayQueueInspector, DelayQueueProducer } from '../../../lib/index.js';
import { BIN, commandLine, inTerminal } from '../../helpers/command-line.js';
import type { RunSettings } from '../../helpers/command-line.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const HOUR = 3_600_000;
let producer: DelayQueueProducer;
let inspector: DelayQueueInspector;
/** An hour from now. */
let at: number;
beforeEach(async () => {
  ({ producer, inspector } = await here.start({ options: { consume: false } }));
  at = (await here.world.now()) + HOUR;
});

const run = (args: string[], settings?: RunSettings) => commandLine(here.world, args, settings);
const due = async (queue: string) => (await here.world.read(queue)).due;

/** j0, j1, ... an hour from now, a millisecond apart. */
async function fill(queue: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, n) => `j${n}`);
  const jobs = ids.map((id, n) => ({ payload: n, id, at: at + n }));
  await producer.enqueueMany(queue, jobs);
  return ids;
}

async function bury(queue: string, ids: readonly string[], reason = 'exhausted'): Promise<void> {
  for (const [n, id] of ids.entries()) {
    await producer.enqueue(queue, id, { id });
    await here.world.redis.zrem(here.world.key(queue, 'due'), id);
    await here.world.redis.zadd(here.world.key(queue, 'dead'), at - 2 * HOUR + n, id);
    const error = JSON.stringify({ name: 'Error', message: 'no', at });
    await here.world.redis.hset(here.world.key(queue, 'errors'), id, `${reason}\n${error}`);
  }
}

describe('acts on jobs that are named', () => {
  it('say of each what became of it, and the exit code whether of all, some or none', async () => {
    await fill('named', 3);
    const some = await run(['run-now', 'named', 'j0', 'nobody', '--json']);
    expect(some.objects).toMatchObject([
      { queue: 'named', id: 'j0', outcome: 'rescheduled', state: 'delayed' },
      { id: 'nobody', outcome: 'notFound' },
    ]);
    expect([some.code, some.stderr]).toEqual([6, 'rescheduled: 1 of 2 jobs; 1 notFound.\n']);
    expect((await run(['run-now', 'named', 'nobody'])).code).toBe(3);
    const all = await run(['reschedule', 'named', 'j1', 'j2', '--at', String(at + 99)]);
    expect([all.code, all.lines]).toEqual([
      0,
      ['j1', 'j2'].map((id) => `${id}\trescheduled\tdelayed\t${new Date(at + 99).toISOString()}`),
    ]);
    await bury('named', ['buried']);
    expect((await run(['run-now', 'named', 'buried'])).code).toBe(4);
  });

  it('take ids from stdin, as list writes them', async () => {
    const ids = await fill('piped', 1_200);
    const listed = await run(['list', 'piped', '--all']);
    const input = listed.lines.map((line) => line.split('\t')[0]).join('\n');
    const { code, lines } = await run(['cancel', 'piped', '-', '--yes'], { input });
    expect([code, lines.length]).toEqual([0, ids.length]);
    expect(await due('piped')).toEqual({});
  });
});

describe('acts on a range', () => {
  it('with --dry-run say what would become of the same jobs, and change nothing', async () => {
    await fill('dry', 5);
    const range = ['--from', String(at + 1), '--to', String(at + 4)];
    const before = await due('dry');
    for (const act of [['cancel'], ['run-now'], ['reschedule', '--by', '1h']]) {
      const dry = await run([act[0]!, 'dry', ...act.slice(1), ...range, '--dry-run']);
      expect([dry.code, dry.lines.map((line) => line.split('\t')[0]).toSorted()]).toEqual([0, ['j1', 'j2', 'j3']]);
      expect(dry.stderr).toMatch(/^Would be (?:cancelled|rescheduled): 3 of 3 jobs\.\n$/);
    }
    const moved = await run(['move', 'dry', 'other', ...range, '--dry-run']);
    expect([moved.code, moved.lines.length]).toEqual([0, 3]);
    expect(await due('dry')).toEqual(before);
    const done = await run(['reschedule', 'dry', '--by', '1h', ...range, '--yes', '--json']);
    expect(new Set(done.objects.map(({ id }) => id))).toEqual(new Set(['j1', 'j2', 'j3']));
    expect((await due('dry'))['j2']).toBe(before['j2']! + HOUR);
  });

  it('are refused without a terminal to ask on, unless --yes is given', async () => {
    await fill('asked', 2);
    for (const args of [
      ['cancel', 'asked', 'j0'],
      ['cancel', 'asked', '--all'],
      ['run-now', 'asked', '--all'],
      ['purge', 'asked'],
      ['reshard', 'asked', '--to', '2'],
    ]) {
      const { code, stderr } = await run(args);
      expect([code, stderr]).toEqual([2, expect.stringContaining('give --yes, or --dry-run')]);
    }
    expect(Object.keys(await due('asked'))).toEqual(['j0', 'j1']);
    expect((await run(['cancel', 'asked', '--all', '--yes'])).code).toBe(0);
    expect((await run(['cancel', 'asked', '--all', '--yes'])).code).toBe(3);
  });

  it('ask on a terminal, and tell how many; anything but yes leaves all as it is', async () => {
    await fill('terminal', 3);
    const no = await inTerminal(here.world, ['cancel', 'terminal', '--all'], { input: 'n\n' });
    expect(no.stdout).toContain('Cancel 3 jobs of queue "terminal"? [y/N]');
    expect(no.stdout).toContain('Not confirmed; nothing was done.');
    expect([no.code, Object.keys(await due('terminal')).length]).toEqual([1, 3]);
    const word = await inTerminal(here.world, ['purge', 'terminal'], { input: 'y\n' });
    expect(word.stdout).toContain('Type terminal to go on:');
    expect([word.code, Object.keys(await due('terminal')).length]).toEqual([1, 3]);
    const yes = await inTerminal(here.world, ['cancel', 'terminal', '--all'], { input: 'y\n' });
    expect(yes.stdout).toContain('cancelled: 3 of 3 jobs.');
    expect([yes.code, await due('terminal')]).toEqual([0, {}]);
  });

  it.each([
    ['the end of what is typed', '\u0004', 1, 'Not confirmed; nothing was done.'],
    ['Ctrl C', '\u0003', 130, 'Interrupted; nothing was done.'],
  ])('are not done when the answer to their question is %s', async (_, key, code, said) => {
    await fill('unanswered', 3);
    const ended = await inTerminal(here.world, ['cancel', 'unanswered', '--all'], {
      with: (child) => {
        const answer = (text: Buffer | string) => {
          if (!String(text).includes('[y/N]')) return;
          child.stdout!.off('data', answer);
          child.stdin!.write(key);
        };
        child.stdout!.on('data', answer);
      },
    });
    expect([ended.code, ended.stdout]).toEqual([code, expect.stringContaining(said)]);
    expect(Object.keys(await due('unanswered'))).toHaveLength(3);
  });

  it('ask nobody at a terminal on which the ids were typed to their end', async () => {
    await fill('typed', 2);
    const ended = await inTerminal(here.world, ['cancel', 'typed', '-'], { input: 'j0\n\u0004' });
    expect([ended.code, ended.stdout]).toEqual([2, expect.stringContaining('give --yes, or --dry-run')]);
    expect(Object.keys(await due('typed'))).toHaveLength(2);
  });

  it('end after the present chunk when they are interrupted, and tell what was done', async () => {
    const ids = await fill('interrupted', 30_000);
    const ran = await run(['reschedule', 'interrupted', '--all', '--by', '1h', '--yes'], {
      with: (child) => child.stdout!.once('data', () => child.kill('SIGINT')),
    });
    expect(ran.code).toBe(130);
    const [, done] = /^Interrupted\. rescheduled: (\d+) of \1 jobs\.$/m.exec(ran.stderr) ?? [];
    expect(Number(done)).toBeLessThan(ids.length);
    expect(ran.lines).toHaveLength(Number(done));
    const late = Object.values(await due('interrupted')).filter((time) => time >= at + HOUR);
    expect(late).toHaveLength(Number(done));
  });
});

it('an act goes on to its end when nobody reads what it says any more', async () => {
  const ids = await fill('unread', 6_000);
  const args = ['cancel', 'unread', '--all', '--yes', '--redis', here.world.url, '--prefix', here.world.prefix];
  const child = spawn(process.execPath, [BIN, ...args], { stdio: ['ignore', 'pipe', 'ignore'] });
  child.stdout.once('data', () => child.stdout.destroy());
  const [code] = (await once(child, 'close')) as [number | null];
  expect([code, Object.keys(await due('unread')).length, ids.length]).toEqual([0, 0, 6_000]);
});

it('move brings jobs into a queue that may be new, into its shards when it has some', async () => {
  await here.start({ options: { queues: { split: { shards: 3 } }, consume: false } });
  await fill('from', 9);
  expect((await run(['move', 'from', 'split', '--all', '--yes'])).code).toBe(0);
  expect((await run(['queues', '--json'])).objects.find(({ queue }) => queue === 'split')).toMatchObject({
    delayed: 9,
  });
});

describe('dead letters', () => {
  it('are requeued all, by their reason, or by their ids', async () => {
    await bury('dead', ['a', 'b', 'c']);
    await bury('dead', ['x'], 'discarded');
    const dry = await run(['requeue', 'dead', '--all', '--reason', 'exhausted', '--dry-run', '--json']);
    expect(dry.objects).toEqual([{ queue: 'dead', requeued: 3, dryRun: true }]);
    expect((await inspector.counts('dead')).dead).toBe(4);
    const named = await run(['requeue', 'dead', 'a', 'nobody', '--delay', '1h']);
    expect([named.code, named.stdout]).toEqual([6, 'requeued\t1\n']);
    const all = await run(['requeue', 'dead', '--all', '--reason', 'exhausted', '--spread', '10m', '--yes', '--json']);
    expect([all.code, all.objects]).toEqual([0, [{ queue: 'dead', requeued: 2, dryRun: false }]]);
    expect(await inspector.counts('dead')).toMatchObject({ dead: 1 });
    expect((await run(['requeue', 'dead', 'nobody'])).code).toBe(3);
  });

  it('are removed, so many as --limit says', async () => {
    await bury('gone', ['a', 'b', 'c']);
    expect((await run(['remove-dead', 'gone', '--all', '--dry-run'])).stdout).toBe('removed\t3\n');
    expect((await run(['remove-dead', 'gone', '--all', '--limit', '2', '--yes'])).stdout).toBe('removed\t2\n');
    expect((await here.world.read('gone')).dead).toEqual({ c: expect.any(Number) });
  });
});

describe('whole queues', () => {
  it('are purged of the jobs in some states, and of no others', async () => {
    await fill('purged', 5);
    await bury('purged', ['x']);
    expect((await run(['purge', 'purged', '--dry-run', '--json'])).objects).toEqual([
      { queue: 'purged', removed: 6, dryRun: true },
    ]);
    expect((await run(['purge', 'purged', '--states', 'waiting', '--yes'])).stdout).toBe('removed\t5\n');
    expect(await inspector.counts('purged')).toMatchObject({ delayed: 0, dead: 1 });
    expect((await run(['purge', 'purged', '--states', 'waiting', '--yes'])).code).toBe(3);
    expect((await run(['purge', 'purged', '--states', 'all'])).code).toBe(2);
  });

  it('are purged of jobs, and not of what their schedules have made ahead', async () => {
    await fill('scheduled', 3);
    for (const id of ['s', 't']) await producer.schedule('scheduled', id, { every: '1d' }, 1);
    const dry = await run(['purge', 'scheduled', '--dry-run', '--json']);
    expect(dry.objects).toEqual([{ queue: 'scheduled', removed: 3, dryRun: true }]);
    expect((await run(['purge', 'scheduled', '--yes'])).stdout).toBe('removed\t3\n');
    expect(await inspector.counts('scheduled')).toMatchObject({ delayed: 2 });
    expect((await run(['purge', 'scheduled', '--yes'])).code).toBe(3);
  });

  it('are paused and resumed, and so is their publishing', async () => {
    await fill('switched', 1);
    expect((await run(['pause', 'switched'])).stdout).toBe('switched\tpaused\n');
    expect((await run(['resume', 'switched'])).stdout).toBe('switched\tok\n');
    const paused = await run(['pause-publishing', 'switched', '--json']);
    expect(paused.objects).toEqual([{ queue: 'switched', paused: false, publishingPaused: true }]);
    expect((await run(['resume-publishing', 'switched'])).code).toBe(0);
    expect((await run(['pause', 'swtiched'])).code).toBe(3);
  });

  it('get another number of shards', async () => {
    await fill('resharded', 9);
    expect((await run(['reshard', 'resharded', '--to', '3', '--dry-run'])).stdout).toBe('1 -> 3\n');
    const done = await run(['reshard', 'resharded', '--to', '3', '--yes', '--json']);
    expect([done.code, done.objects]).toMatchObject([0, [{ queue: 'resharded', from: 1, to: 3 }]]);
    expect((await run(['list', 'resharded', '--all'])).lines).toHaveLength(9);
  });
});
