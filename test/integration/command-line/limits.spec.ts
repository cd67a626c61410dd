import { beforeEach, describe, expect, it } from '@jest/globals';
import type { DelayQueueInspector, DelayQueueProducer } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { commandLine, inTerminal } from '../../helpers/command-line.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { groupIn, idIn } from '../../helpers/sharded-groups.js';

const here = inAWorld();
let producer: DelayQueueProducer;
let inspector: DelayQueueInspector;
beforeEach(async () => void ({ producer, inspector } = await here.start({ options: { consume: false } })));

const run = (args: string[]) => commandLine(here.world, args);
const ALL = ['globalConcurrency=20', 'rateLimit=100/1m', 'groups.concurrency=1', 'groups.rateLimit=5/1500ms', 'groups.retries=block', 'priorityStep=2h']; // prettier-ignore

describe('limits <queue>', () => {
  it('sets all of them with --set, shows them in the same words, and takes them away with --clear', async () => {
    await producer.enqueue('set', 1);
    expect((await run(['limits', 'set'])).lines).toEqual(['setBy\tconfig']);
    const done = await run(['limits', 'set', '--set', ...ALL, '--yes']);
    const shown = ['setBy\toperator', ...ALL.map((word) => word.replace('=', '\t')), 'config\tno limits'];
    expect([done.code, done.lines]).toEqual([0, shown]);
    expect((await run(['limits', 'set'])).lines).toEqual(shown);
    const limits = { globalConcurrency: 20, rateLimit: { max: 100, per: 60_000 }, groups: { concurrency: 1, rateLimit: { max: 5, per: 1_500 }, retries: 'block' }, priorityStep: 7_200_000 }; // prettier-ignore
    expect(await inspector.limits('set')).toMatchObject({ limits, setBy: 'operator' });
    const object = { queue: 'set', limits, setBy: 'operator', config: null };
    expect((await run(['limits', 'set', '--json'])).objects).toEqual([object]);
    const cleared = await run(['limits', 'set', '--clear', '--yes', '--json']);
    expect(cleared.objects).toEqual([{ ...object, limits: null, dryRun: false }]);
    expect((await inspector.limits('set')).limits).toBeUndefined();
  });

  it('gives those of the applications back with --from-config', async () => {
    await here.start({ providers: [handlerClass('given', () => undefined, { rateLimit: { max: 7, per: '2s' } })] });
    const ofApplications = { limits: { rateLimit: { max: 7, per: 2_000 } }, setBy: 'config' };
    await eventually(async () => expect(await inspector.limits('given')).toEqual(ofApplications));
    const set = await run(['limits', 'given', '--set', 'globalConcurrency=1', '--yes']);
    expect(set.lines).toEqual(['setBy\toperator', 'globalConcurrency\t1', 'config\trateLimit=7/2s']);
    const dry = await run(['limits', 'given', '--from-config', '--dry-run', '--json']);
    expect(dry.objects).toEqual([{ queue: 'given', ...ofApplications, dryRun: true }]);
    expect(await inspector.limits('given')).toMatchObject({ setBy: 'operator' });
    expect((await run(['limits', 'given', '--from-config', '--yes'])).lines).toEqual([
      'setBy\tconfig',
      'rateLimit\t7/2s',
    ]);
    expect(await inspector.limits('given')).toEqual(ofApplications);
  });

  it('changes nothing in a dry run, without a yes, or when what is given makes no sense', async () => {
    await producer.enqueue('kept', 1);
    const wrong: [string[], number, string][] = [
      [['--set', 'globalConcurrency=3', '--dry-run'], 0, ''],
      [['--set', 'globalConcurrency=3'], 2, 'Change queue "kept" from no limits to globalConcurrency=3, whatever its applications say?'],
      [['--set', 'globalConcurrency=0', '--yes'], 2, '--set globalConcurrency: 0 is not a whole number'],
      [['--set', 'rateLimit=5', '--dry-run'], 2, '--set rateLimit.per: "" is empty'],
      [['--set', 'concurrency=3', '--yes'], 2, '--set: "concurrency=3" is no limit. Limits are such as globalConcurrency=20'],
      [['--set', 'globalConcurrency=3', 'globalConcurrency=4', '--yes'], 2, 'globalConcurrency is given twice'],
      [['--set', 'globalConcurrency=3', '--clear', '--yes'], 2, 'Give one of --set, --clear and --from-config.'],
      [['--dry-run'], 2, '--dry-run: say what to try'],
    ]; // prettier-ignore
    for (const [args, code, stderr] of wrong) {
      const ran = await run(['limits', 'kept', ...args]);
      expect([args, ran.code]).toEqual([args, code]);
      expect(ran.stderr).toContain(stderr);
    }
    expect(await inspector.limits('kept')).toEqual({ limits: undefined, setBy: 'config' });
    const no = await inTerminal(here.world, ['limits', 'kept', '--set', 'globalConcurrency=3'], { input: 'n\n' });
    expect([no.code, await inspector.limits('kept')]).toEqual([1, { limits: undefined, setBy: 'config' }]);
    const yes = await inTerminal(here.world, ['limits', 'kept', '--set', 'globalConcurrency=3'], { input: 'y\n' });
    expect([yes.code, (await inspector.limits('kept')).setBy]).toEqual([0, 'operator']);
    expect((await run(['limits', 'kpet'])).code).toBe(3);
  });
});

describe('groups <queue>', () => {
  it('has a line for each group, as many as --limit says, over all pages', async () => {
    const names = Array.from({ length: 120 }, (_, n) => `tenant-${String(n).padStart(3, '0')}`);
    await producer.enqueueMany('grouped', names.map((group) => ({ payload: 1, group, delay: '1h' }))); // prettier-ignore
    await producer.enqueue('grouped', 1, { group: 'tenant-007' });
    const all = await run(['groups', 'grouped', '--all']);
    expect(all.lines.map((line) => line.split('\t')[0]).toSorted()).toEqual(names);
    expect(all.lines).toContain('tenant-007\t2\t1\t0\t');
    const some = await run(['groups', 'grouped', '--limit', '3', '--json']);
    expect(some.objects).toHaveLength(3);
    expect(some.objects[0]).toEqual({ group: 'tenant-007', waiting: 2, due: 1, running: 0 });
    expect(some.stderr).toBe('The first 3 groups; --limit or --all shows more.\n');
    const shown = await inTerminal(here.world, ['groups', 'grouped', '--limit', '1', '--no-color']);
    expect(shown.lines[0]!.trim().split(/\s+/)).toEqual(['GROUP', 'WAITING', 'DUE', 'RUNNING', 'LIMITED']);
    expect((await run(['groups', 'gruoped'])).code).toBe(3);
  });
});

describe('--group, of a queue whose groups are in several shards', () => {
  const SHARDS = 3;
  const queue = 'sharded';
  const [a, b] = [groupIn(0, SHARDS), groupIn(1, SHARDS)];
  // A job in the shard of its id would come first.
  const id = idIn(2, SHARDS);
  let sharded: { producer: DelayQueueProducer; inspector: DelayQueueInspector };
  beforeEach(async () => {
    sharded = await here.start({ options: { consume: false, queues: { [queue]: { shards: SHARDS } } } });
    for (const group of [a, b])
      await sharded.producer.enqueue(queue, group, { id, group, delay: '1h', onDuplicate: 'replace' });
  });
  const left = async () => {
    const jobs = await Promise.all([a, b].map((group) => sharded.producer.get(queue, id, { group })));
    return jobs.map((job) => job?.state);
  };

  it.each([
    ['cancel', ['cancel', queue, id, '--yes'], ['delayed', undefined]],
    ['run-now', ['run-now', queue, id], ['delayed', 'due']],
    ['reschedule', ['reschedule', queue, id, '--at', '2020-01-01'], ['delayed', 'due']],
    ['move', ['move', queue, 'other', id], ['delayed', undefined]],
  ])('%s asks which of two jobs is meant, and changes that of the group alone', async (_, args, after) => {
    const refused = await run(args);
    expect([refused.code, await left()]).toEqual([2, ['delayed', 'delayed']]);
    expect(refused.stderr).toContain('several groups have a job with this id');
    const dry = await run([...args, '--group', b, '--dry-run']);
    expect([dry.code, await left()]).toEqual([0, ['delayed', 'delayed']]);
    expect((await run([...args, '--group', b])).code).toBe(0);
    expect(await left()).toEqual(after);
  });

  describe('of dead letters', () => {
    beforeEach(async () => {
      await sharded.inspector.resume(queue);
      for (const group of [a, b]) {
        await sharded.producer.cancel(queue, id, { group });
        await sharded.producer.enqueue(queue, group, { id, group, attempts: 1 });
      }
      await here.start({
        providers: [handlerClass(queue, () => Promise.reject(new Error('no')))],
        options: { queues: { [queue]: { shards: SHARDS } } },
      });
      await eventually(async () => {
        if ((await sharded.inspector.counts(queue)).dead < 2) throw new Error('not dead yet');
      });
      await sharded.inspector.pause(queue);
    });

    it.each([
      ['requeue', ['requeue', queue, id], ['dead', 'due']],
      ['remove-dead', ['remove-dead', queue, id, '--yes'], ['dead', undefined]],
    ])('%s asks which of two is meant, and changes that of the group alone', async (_, args, after) => {
      for (const more of [[], ['--dry-run']]) {
        const refused = await run([...args, ...more]);
        expect([refused.code, await left()]).toEqual([2, ['dead', 'dead']]);
        expect(refused.stderr).toContain(`Several groups have a dead letter with the id "${id}"`);
      }
      expect((await run([...args, '--group', 'another'])).code).toBe(3);
      const dry = await run([...args, '--group', b, '--dry-run']);
      expect([dry.code, await left()]).toEqual([0, ['dead', 'dead']]);
      expect((await run([...args, '--group', b])).code).toBe(0);
      expect(await left()).toEqual(after);
    });

    it('requeue takes all that died of one reason, also those of one id', async () => {
      await sharded.producer.enqueue(queue, 'alone', { id: 'alone', group: a, delay: '1h' });
      const requeued = await run(['requeue', queue, '--all', '--reason', 'exhausted', '--yes', '--json']);
      expect([requeued.code, requeued.objects]).toMatchObject([0, [{ requeued: 2 }]]);
      expect(await left()).toEqual(['due', 'due']);
    });

    it.each(['requeueDead', 'removeDead'] as const)('%s() takes that of the group alone', async (method) => {
      const { inspector } = sharded;
      await expect(inspector[method](queue, [id])).rejects.toThrow('several groups have a job with this id');
      await expect(inspector[method](queue, 'all', { group: b })).rejects.toThrow(`${method}({ group }): is of jobs`);
      expect(await inspector[method](queue, [id], { group: b })).toMatchObject({ remaining: 1 });
      expect(await left()).toEqual(['dead', method === 'removeDead' ? undefined : 'due']);
    });

    it.each(['requeue', 'remove-dead'])('%s --all is of all groups', async (command) => {
      expect((await run([command, queue, '--all', '--group', b, '--yes'])).code).toBe(2);
      expect((await run([command, queue, id, '--group', 'br{ace', '--yes'])).code).toBe(2);
      expect(await left()).toEqual(['dead', 'dead']);
    });
  });

  it.each(['get', 'watch'])('%s shows the job of the group', async (command) => {
    await sharded.producer.cancel(queue, id, { group: a });
    await sharded.producer.enqueue(queue, 'dead', { id, group: a });
    expect((await run(['get', queue, id, '--group', b, '--json'])).objects).toMatchObject([{ payload: b }]);
    expect((await run([command, queue, 'none', '--group', b])).code).toBe(3);
  });

  it('is refused with a range, and when it can be no group', async () => {
    expect((await run(['cancel', queue, '--all', '--group', b, '--yes'])).code).toBe(2);
    expect((await run(['cancel', queue, id, '--group', 'br{ace', '--yes'])).code).toBe(2);
    expect(await left()).toEqual(['delayed', 'delayed']);
  });
});
