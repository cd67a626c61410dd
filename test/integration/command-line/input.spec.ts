import { describe, expect, it } from '@jest/globals';
import { commandLine, inTerminal, program } from '../../helpers/command-line.js';
import type { RunSettings } from '../../helpers/command-line.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const HOUR = 3_600_000;
const run = (args: string[], settings?: RunSettings) => commandLine(here.world, args, settings);
const app = () => here.start({ options: { consume: false } });
const NO_DURATION = 'is not a duration';

describe('what is given', () => {
  it.each([
    ['reschedule q a --delay soon', `--delay: "soon" ${NO_DURATION}`],
    ['reschedule q --all --by x', `--by: "x" ${NO_DURATION}`],
    ['reschedule q --all --delay 1h --spread x', `--spread: "x" ${NO_DURATION}`],
    ['reschedule q --all --by 1h --spread 1h', '--spread: begins at a due time'],
    ['reschedule q a --at 1764000000', '--at: 1764000000 would be 1970-01-21'],
    ['requeue q --all --delay x', `--delay: "x" ${NO_DURATION}`],
    ['requeue q --all --spread x', `--spread: "x" ${NO_DURATION}`],
    ['requeue q --all --before x', '--before: "x" is not a time'],
    ['cancel q --from 2026-02-30 --to 2026-03-05', '--from: "2026-02-30" is not a time'],
    ['reschedule q a --at 2027-02-29T08:00Z', '--at: "2027-02-29T08:00Z" is not a time'],
    ['requeue q --all --limit 0', '--limit: "0" is not a whole number from 1 on'],
    ['move q x{y --all', 'target: "x{y" holds braces'],
    ['move q q --all', 'target: is the queue that has the jobs'],
    ['cancel q a{b', 'Job id: "a{b" holds braces'],
    ['get q a{b', 'id: "a{b" holds braces'],
    ['watch q a{b', 'id: "a{b" holds braces'],
    ['limits q --set globalConcurrency=x', '--set globalConcurrency: "x" is not a whole number'],
    ['limits q --set rateLimit=100', '--set rateLimit.per: "" is empty'],
    ['reshard q --to 2 --wait x', `--wait: "x" ${NO_DURATION}`],
    ['reshard q --to 257', '--to: "257" is not a whole number from 1 to 256'],
    ['enqueue q 1 --delay x', `--delay: "x" ${NO_DURATION}`],
    ['enqueue q 1 --expires-in x', `--expires-in: "x" ${NO_DURATION}`],
    ['enqueue q 1 --id {x', '--id: "{x" holds braces'],
    ['enqueue q 1 --attempts 5000', '--attempts: 5000 is not a whole number'],
    ['schedules backfill q s --from x --to now', '--from: "x" is not a time'],
    ['schedules pause q s{', 'id: "s{" holds braces'],
    ['import bullmq q x{y', 'queue: "x{y" holds braces'],
    ['import bullmq q x --id-prefix {', '--id-prefix: "{1" holds braces'],
    ['list q --limit 0', '--limit: "0" is not a whole number'],
    ['list q --state running --from now', '--from, --to: running jobs'],
    ['timeline q --for x', `--for: "x" ${NO_DURATION}`],
    ['timeline q --buckets 121', '--buckets: "121" is not a whole number from 1 to 120'],
    ['tail q --since x', '--since: "x" is not a time'],
  ])('is checked before anything is sent, under the name that it has here: %s', async (line, message) => {
    // Nobody answers there: what asks first ends with 5.
    const { code, stdout, stderr } = await program([...line.split(' '), '--redis', 'redis://127.0.0.1:1']);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(`error: ${message}`);
    expect(stderr).not.toMatch(/\(queue|queue, \{/);
  });

  it('is checked by what Redis knows before anybody is asked', async () => {
    const { producer } = await here.start({ options: { queues: { split: { shards: 3 } }, consume: false } });
    await producer.enqueue('split', 1);
    await producer.schedule('clock', 'often', { cron: '* * * * *' }, null);
    const limits = await run(['limits', 'split', '--set', 'globalConcurrency=2']);
    expect([limits.code, limits.stderr]).toEqual([2, expect.stringContaining('globalConcurrency is 2, and 3 shards')]);
    const stretch = ['--from', '2026-01-01', '--to', '2026-01-02'];
    const many = await run(['schedules', 'backfill', 'clock', 'often', ...stretch]);
    expect([many.code, many.stderr]).toEqual([2, expect.stringContaining('more than 1000 occurrences')]);
    expect((await run(['schedules', 'backfill', 'clock', 'nobody', ...stretch])).code).toBe(3);
    for (const { stderr } of [limits, many]) expect(stderr).not.toContain('--yes');
  });
});

describe('a range', () => {
  const MOMENTS = ['2026-01-01T10:00Z', '2026-01-01T09:00Z'] as const;

  it.each(['list', 'dead', 'timeline', 'cancel', 'run-now', 'reschedule --by 1h', 'move other', 'schedules backfill'])(
    'that ends before it begins, or when it begins, is refused by every command alike: %s',
    async (command) => {
      const [act, ...options] = command.split(' ');
      const line = act === 'schedules' ? ['schedules', 'backfill', 'q', 's'] : act === 'move' ? ['move', 'q', ...options] : [act!, 'q', ...options]; // prettier-ignore
      for (const to of MOMENTS) {
        const range = ['--from', MOMENTS[0], '--to', to, '--redis', 'redis://127.0.0.1:1'];
        const { code, stderr } = await program([...line, ...range]);
        expect([code, stderr]).toEqual([2, expect.stringContaining('--to: 2026-01-01T')]);
        expect(stderr).toContain('is not behind --from, 2026-01-01T10:00:00.000Z');
      }
    },
  );

  it('has the same jobs for those who list, count and change it: its beginning, and not its end', async () => {
    const { producer } = await app();
    const at = (await here.world.now()) + HOUR;
    for (const n of [0, 1, 2, 3]) await producer.enqueue('ranged', n, { id: `j${n}`, at: new Date(at + n) });
    const range = ['--from', String(at + 1), '--to', String(at + 3)];
    const listed = await run(['list', 'ranged', ...range, '--json']);
    const counted = await run(['timeline', 'ranged', ...range, '--buckets', '1', '--json']);
    const cancelled = await run(['cancel', 'ranged', ...range, '--yes', '--json']);
    for (const { objects } of [listed, cancelled]) expect(objects.map(({ id }) => id)).toEqual(['j1', 'j2']);
    expect(counted.objects).toMatchObject([{ counts: [2] }]);
    expect((await run(['list', 'ranged', '--json'])).objects.map(({ id }) => id)).toEqual(['j0', 'j3']);
  });

  it('of a backfill is no other one', async () => {
    const { producer } = await app();
    await producer.schedule('past', 'hourly', { cron: '0 * * * *', timeZone: 'UTC' }, null);
    const stretch = ['--from', '2026-01-01T01:00Z', '--to', '2026-01-01T03:00Z'];
    const dry = await run(['schedules', 'backfill', 'past', 'hourly', ...stretch, '--dry-run', '--json']);
    expect([dry.code, dry.objects]).toEqual([0, [{ queue: 'past', id: 'hourly', times: 2, dryRun: true }]]);
    const asked = await run(['schedules', 'backfill', 'past', 'hourly', ...stretch]);
    expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining('for 2 times from 2026-01-01T01:00')]);
    const made = await run(['schedules', 'backfill', 'past', 'hourly', ...stretch, '--yes', '--json']);
    expect(made.objects).toMatchObject([{ times: 2 }]);
    expect((await run(['list', 'past', '--state', 'due'])).lines).toHaveLength(2);
  });
});

describe('exit code 3', () => {
  it('is the answer of an act that has found nothing to do, and of no list without lines', async () => {
    const { producer } = await app();
    await producer.enqueue('done', 1, { id: 'A' });
    await producer.cancel('done', 'A');
    const range = ['--from', 'now', '--to', '+1h'];
    for (const act of ['cancel', 'run-now', 'reschedule --by 1h']) {
      const [name, ...options] = act.split(' ');
      for (const jobs of [range, ['--all'], ['nobody']]) {
        expect([act, (await run([name!, 'done', ...options, ...jobs, '--yes'])).code]).toEqual([act, 3]);
      }
    }
    const nothing = ['move done other --all', 'requeue done --all', 'remove-dead done nobody', 'purge done', 'watch done A', 'get done A', 'tail done', 'schedules trigger done s']; // prettier-ignore
    for (const line of nothing) expect([line, (await run(line.split(' '))).code]).toEqual([line, 3]);
    const lists = ['list done', 'list done --state dead', 'dead done', 'dead done --group', 'groups done', 'timeline done', 'schedules list', 'stats', 'queues']; // prettier-ignore
    for (const line of lists) expect([line, (await run(line.split(' '))).code]).toEqual([line, 0]);
  });
});

describe('on a terminal', () => {
  it('one job is one job', async () => {
    const { producer } = await app();
    await producer.enqueue('one', 1, { id: 'A', delay: '1h' });
    const { stdout } = await inTerminal(here.world, ['cancel', 'one', 'A'], { input: 'y\n' });
    expect(stdout).toContain('Cancel 1 job of queue "one"?');
    expect(stdout).toContain('cancelled: 1 of 1 job.');
  });

  it('a new queue is called new before jobs are moved into it', async () => {
    const { producer } = await app();
    await producer.enqueue('old', 1, { id: 'A', delay: '1h' });
    const asked = await run(['move', 'old', 'odl', '--all']);
    expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining('Move 1 job of queue "old" to queue "odl", which is new?')]); // prettier-ignore
    await producer.enqueue('other', 1);
    expect((await run(['move', 'old', 'other', '--all'])).stderr).toContain('to queue "other"?');
  });

  it('a long id gives way to the columns behind it, and is whole for programs', async () => {
    const { producer } = await app();
    const long = 'x'.repeat(256);
    await producer.enqueue('long', 1, { id: long, delay: '1h' });
    await producer.enqueue('long', 1, { id: 'short', delay: '2h' });
    const { stdout } = await inTerminal(here.world, ['list', 'long', '--no-color']);
    const [titles, first, second] = stdout.split('\r\n').map((line) => line.trimEnd());
    expect(titles).toMatch(/^ID +DUE +WHEN +ATTEMPTS +LAST ERROR$/);
    expect(first).toMatch(/^x{11,}… {2}20\d\d-\S+ \S+ +in 59 min 5\d s +0$/);
    expect(second).toMatch(/^short +20\d\d-\S+ \S+ +in 1 h 59 min +0$/);
    expect(first!.length).toBeLessThanOrEqual(80);
    expect((await run(['list', 'long'])).lines[0]!.split('\t')[0]).toBe(long);
  });
});
