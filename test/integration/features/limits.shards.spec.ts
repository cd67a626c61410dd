import { describe, expect, it } from '@jest/globals';
import { DiscardJob, InvalidOptionError, StoredDataError } from '../../../lib/index.js';
import type { DelayedJob, DelayQueueProducer } from '../../../lib/index.js';
import { shardOf } from '../../../lib/shards/shard-hash.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { killedAfter } from '../../helpers/killed-after.js';
import { fleetOf, groupIn, idIn, idsByShard, isRejected, problemsOf, runningIn } from '../../helpers/sharded-groups.js';

const here = inAWorld();
const DAILY = { cron: '0 0 * * *' };

let queues = 0;
const newQueue = () => `shared-${queues++}`;
const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);

/** An application that only enqueues and looks. */
const looker = (queue: string, shards?: number) =>
  here.start({ options: { ...(shards !== undefined && { queues: { [queue]: { shards } } }), consume: false } });

/** The words in `needs` of each shard. */
const needs = (queue: string, shards: number) =>
  Promise.all(numbers(shards).map(async (n) => (await here.world.read(`${queue}:${n}`)).meta['needs']));

describe('a group of a queue with shards', () => {
  it('is in one shard with all its jobs, and jobs without a group are in those of their ids', async () => {
    const queue = newQueue();
    const { producer } = await looker(queue, 4);
    const jobs = numbers(16).map((n) => ({
      payload: n,
      id: idIn(n % 4, 4, `j${n}-`),
      group: groupIn(n >> 2, 4),
      delay: '1h',
    }));
    await producer.enqueueMany(queue, jobs);
    const own = idIn(3, 4, 'own');
    await producer.enqueue(queue, 1, { id: own, delay: '1h', priority: 3 });
    const ids = (group: string) => jobs.filter((job) => job.group === group).map(({ id }) => id);
    const expected = numbers(4).map((n) => [...ids(groupIn(n, 4)), ...(n === 3 ? [own] : [])].sort());
    expect(await idsByShard(here.world, queue, 4)).toEqual(expected);
    expect(await problemsOf(here.world, queue, 4)).toEqual([]);
  });

  it('makes all shards such that may have groups, before its first job is stored', async () => {
    const queue = newQueue();
    const { producer } = await looker(queue, 3);
    await producer.enqueue(queue, 1, { id: 'plain', delay: '1h' });
    expect(await needs(queue, 3)).toEqual(['shards:0/3', 'shards:1/3', 'shards:2/3']);
    await producer.enqueue(queue, 1, { group: groupIn(1, 3), delay: '1h' });
    expect(await needs(queue, 3)).toEqual(['shards:0/3 limits', 'shards:1/3 limits', 'shards:2/3 limits']);
    expect(await producer.get(queue, 'plain')).toMatchObject({ payload: 1 });
  });

  it('is looked for in all shards, and one that cannot be read is told by an error of the library', async () => {
    const queue = newQueue();
    const { producer } = await looker(queue, 2);
    const id = idIn(0, 2, 'sought');
    await producer.enqueue(queue, 1, { id, group: groupIn(1, 2), delay: '1h' });
    const stored = here.world.key(`${queue}:1`, 'jobs');
    await here.world.redis.del(stored);
    await here.world.redis.set(stored, 'of somebody else');
    const calls = [
      ['cancel', producer.cancel(queue, id)],
      ['reschedule', producer.reschedule(queue, id, { delay: '2h' })],
      ['runNow', producer.runNow(queue, id)],
      ['update', producer.update(queue, id, 2)],
      ['signal', producer.signal(queue, id, 2)],
    ] as const;
    for (const [name, call] of calls) {
      const error = await call.then(() => undefined).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(StoredDataError);
      expect((error as Error).message).toContain(`Redis refused ${name}("${queue}", "${id}")`);
    }
  });

  it('runs one job at a time in due order, with four shards and three processes', async () => {
    const queue = newQueue();
    const { producer, running, started, endAll } = await fleetOf(here, 3, queue, 4, { groups: { concurrency: 1 } });
    const groups = numbers(4).map((n) => groupIn(n, 4));
    const at = (await here.world.now()) - 1_000;
    await producer.enqueueMany(
      queue,
      numbers(5).flatMap((n) => groups.map((group) => ({ payload: n, group, id: `${group}/${n}`, at: at + n }))),
    );
    for (let round = 1; round <= 5; round++) {
      await eventually(() => expect(started).toHaveLength(4 * round));
      expect(new Set(Array.from(running.values(), ({ group }) => group))).toEqual(new Set(groups));
      expect(running.size).toBe(4);
      endAll();
    }
    for (const group of groups) {
      expect(started.filter((id) => id.startsWith(`${group}/`))).toEqual(numbers(5).map((n) => `${group}/${n}`));
    }
  });
});

describe('limits of a queue with shards', () => {
  it('are divided: each shard has an equal share, and the first ones one more', async () => {
    const queue = newQueue();
    const { producer, inspector, running, started, endAll } = await fleetOf(here, 3, queue, 4, {
      globalConcurrency: 6,
    });
    await eventually(async () =>
      expect(await inspector.limits(queue)).toEqual({ limits: { globalConcurrency: 6 }, setBy: 'config' }),
    );
    const jobs = numbers(32).map((n) => ({ payload: n, id: idIn(n % 4, 4, `j${n}-`) }));
    await producer.enqueueMany(queue, jobs);
    await eventually(() => expect(running.size).toBe(6));
    expect(await runningIn(here.world, queue, 4)).toEqual([2, 2, 1, 1]);
    expect(await inspector.counts(queue)).toMatchObject({ running: 6, limited: true, lagMs: 0 });
    while (started.length < 32) {
      const before = started.length;
      endAll();
      await eventually(() => expect(started.length).toBeGreaterThan(before));
      expect(running.size).toBeLessThanOrEqual(6);
      for (const [n, count] of (await runningIn(here.world, queue, 4)).entries()) {
        expect(count).toBeLessThanOrEqual(n < 2 ? 2 : 1);
      }
    }
  });

  it('are divided also where they limit starts within a time', async () => {
    const queue = newQueue();
    const { producer, inspector, started } = await fleetOf(here, 2, queue, 4, { rateLimit: { max: 6, per: '1h' } });
    await producer.enqueueMany(
      queue,
      numbers(16).map((n) => ({ payload: n, id: idIn(n % 4, 4, `j${n}-`) })),
    );
    await eventually(() => expect(started).toHaveLength(6));
    expect(await runningIn(here.world, queue, 4)).toEqual([2, 2, 1, 1]);
    expect(await inspector.counts(queue)).toMatchObject({ limited: true, due: 10 });
  });

  it('of an operator are too low for the shards of an application that boots, which is told what it gave', async () => {
    const queue = newQueue();
    const { inspector } = await looker(queue, 4);
    await inspector.setLimits(queue, { globalConcurrency: 5 });
    const boot = here.start({ options: { queues: { [queue]: { shards: 6 } } } });
    const message = `forRoot({ queues: { "${queue}": { shards } } }): globalConcurrency is 5, and 6 shards share it`;
    expect(await isRejected(boot, message)).toBeInstanceOf(InvalidOptionError);
  });

  it('are refused when they are lower than the number of shards, which says what to do', async () => {
    const queue = newQueue();
    const low =
      'globalConcurrency is 3, and 4 shards share it, so some of them could never run a job. Give at least 4, or fewer shards.';
    const queuesOf = (settings: object) => ({ options: { queues: { [queue]: { shards: 4, ...settings } } } });
    const providers = [handlerClass(queue, () => undefined, { rateLimit: { max: 2, per: '1m' } })];
    const boots = [
      isRejected(here.start(queuesOf({ globalConcurrency: 3 })), low),
      isRejected(here.start({ ...queuesOf({}), providers }), 'rateLimit.max is 2, and 4 shards share it'),
    ];
    for (const error of await Promise.all(boots))
      expect(error).toMatchObject({ code: expect.stringContaining('INVALID') });

    const { inspector, producer } = await looker(queue, 4);
    expect(await isRejected(inspector.setLimits(queue, { globalConcurrency: 3 }), low)).toBeInstanceOf(
      InvalidOptionError,
    );
    expect((await inspector.limits(queue)).limits).toBeUndefined();
    await inspector.setLimits(queue, { globalConcurrency: 5 });
    await producer.enqueue(queue, 1, { id: 'A', delay: '1h' });
    const error = await isRejected(
      inspector.reshard(queue, { to: 6 }),
      'globalConcurrency is 5, and 6 shards share it',
    );
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error.message).toContain('setLimits()');
    expect(await producer.get(queue, 'A')).toMatchObject({ state: 'delayed' });
    expect(await inspector.limits(queue)).toEqual({ limits: { globalConcurrency: 5 }, setBy: 'operator' });
  });

  it('of an application are forgotten by an empty queue that takes a number of shards for which they are too low', async () => {
    const queue = newQueue();
    const boot = (shards: number, globalConcurrency: number) =>
      here.start({
        providers: [handlerClass(queue, () => undefined, { globalConcurrency })],
        options: { queues: { [queue]: { shards } } },
      });
    const before = await boot(2, 3);
    await eventually(async () =>
      expect((await before.inspector.limits(queue)).limits).toEqual({ globalConcurrency: 3 }),
    );
    await before.close();
    const only = await looker(queue, 4);
    expect((await only.inspector.limits(queue)).limits).toBeUndefined();
    const { inspector } = await boot(4, 8);
    await eventually(async () => expect((await inspector.limits(queue)).limits).toEqual({ globalConcurrency: 8 }));
  });
});

describe('a job of a group in a queue with shards', () => {
  const calls = {
    cancel: 'cancelled',
    reschedule: 'rescheduled',
    rescheduleLocally: 'rescheduled',
    update: 'updated',
    signal: 'signalled',
    runNow: 'rescheduled',
  } as const;

  it.each([true, false])('is found by every call with its id; the group is said: %s', async (says) => {
    const queue = newQueue();
    const { producer } = await looker(queue, 4);
    // Another process, which has not seen that the queue has groups.
    const other = await looker(queue, 4);
    const id = idIn(0, 4);
    const group = groupIn(2, 4);
    const options = says ? { group } : undefined;
    const local = { at: { local: '2087-03-28T09:00', timeZone: 'Europe/Berlin' } };
    for (const [call, outcome] of Object.entries(calls)) {
      await producer.enqueue(queue, 'old', { id, group, delay: '1h' });
      for (const by of [producer, other.producer]) {
        expect(await by.get(queue, id, options)).toMatchObject({ state: 'delayed', group, payload: 'old' });
      }
      const answers = {
        cancel: () => other.producer.cancel(queue, id, options),
        reschedule: () => other.producer.reschedule(queue, id, { delay: '2h' }, options),
        rescheduleLocally: () => other.producer.reschedule(queue, id, local, options),
        update: () => other.producer.update(queue, id, 'new', options),
        signal: () => other.producer.signal(queue, id, 'new', options),
        runNow: () => other.producer.runNow(queue, id, options),
      };
      expect([call, await answers[call as keyof typeof calls]()]).toMatchObject([call, { id, queue, outcome }]);
      await producer.cancel(queue, id, { group });
      expect(await other.producer.get(queue, id, options)).toBeUndefined();
      expect([call, await answers[call as keyof typeof calls]()]).toMatchObject([
        call,
        { id, queue, outcome: 'notFound' },
      ]);
    }
    expect(await problemsOf(here.world, queue, 4)).toEqual([]);
  });

  it('has an id of its own in its group: without the group a call that could mean two jobs is refused', async () => {
    const queue = newQueue();
    const { producer, inspector } = await looker(queue, 4);
    const [a, b] = [groupIn(1, 4), groupIn(2, 4)];
    const id = idIn(0, 4);
    for (const group of [a, b]) {
      expect(await producer.enqueue(queue, group, { id, group, delay: '1h' })).toMatchObject({ outcome: 'created' });
      expect(await producer.enqueue(queue, 'again', { id, group })).toMatchObject({ outcome: 'kept' });
    }
    const refused = [
      producer.get(queue, id),
      producer.cancel(queue, id),
      producer.update(queue, id, 1),
      inspector.bulk.cancel(queue, { ids: [id] }),
    ];
    for (const call of refused) {
      const error = await isRejected(
        call,
        'several groups have a job with this id. Say which one is meant: { group }.',
      );
      expect(error).toBeInstanceOf(InvalidOptionError);
    }
    expect(await producer.cancel(queue, id, { group: b })).toMatchObject({ outcome: 'cancelled' });
    expect(await producer.get(queue, id)).toMatchObject({ group: a, payload: a });
    // Without a group it is a third job, and calls that name no group mean it.
    await producer.enqueue(queue, 'none', { id, delay: '1h' });
    expect(await producer.get(queue, id)).toMatchObject({ payload: 'none' });
    expect(await producer.get(queue, id, { group: a })).toMatchObject({ payload: a });
  });

  it('is moved with the jobs of its range, whatever has the same id elsewhere', async () => {
    const [queue, target] = [newQueue(), newQueue()];
    const { producer, inspector } = await looker(queue, 4);
    const [a, b] = [groupIn(1, 4), groupIn(2, 4)];
    const at = Date.now() + 3_600_000;
    const later = at + 3_600_000;
    // One id is used without a group, too, the other one by another group.
    const [plain, shared] = [idIn(0, 4, 'plain'), idIn(0, 4, 'shared')];
    await producer.enqueue(queue, 'other', { id: plain, at: later });
    await producer.enqueue(queue, 'other', { id: shared, group: b, at: later });
    for (const id of [plain, shared]) await producer.enqueue(queue, 'meant', { id, group: a, at });
    const { results } = await inspector.bulk.move(queue, { from: at, to: later }, target);
    expect(results).toEqual([plain, shared].map((id) => ({ id, outcome: 'moved' })));
    for (const id of [plain, shared]) {
      expect(await producer.get(target, id)).toMatchObject({ payload: 'meant' });
      expect(await producer.get(queue, id)).toMatchObject({ payload: 'other' });
    }
  });

  it('is found by acts on many jobs: cancelled, moved away and here, requeued and removed when it is dead', async () => {
    const [queue, plain] = [newQueue(), newQueue()];
    const handle = (_: unknown, { id }: DelayedJob) => {
      if (id.startsWith('dead')) throw new DiscardJob('no');
    };
    const settings = { queues: { [queue]: { shards: 4 } }, deadLetters: {} };
    const { producer, inspector } = await here.start({ providers: [handlerClass(queue, handle)], options: settings });
    const jobs = numbers(8).map((n) => ({ id: `wait${n}`, group: groupIn(n % 4, 4), delay: '1h', payload: n }));
    await producer.enqueueMany(queue, jobs);
    await producer.enqueueMany(queue, numbers(8).map((n) => ({ id: `dead${n}`, group: groupIn(n % 4, 4), payload: n }))); // prettier-ignore
    await eventually(async () => expect(await inspector.counts(queue)).toMatchObject({ dead: 8, delayed: 8 }));

    const ids = jobs.map(({ id }) => id);
    const foreseen = await inspector.bulk.cancel(queue, { ids }, { dryRun: true });
    expect(foreseen.results.map(({ outcome }) => outcome)).toEqual(ids.map(() => 'cancelled'));
    const { results } = await inspector.bulk.cancel(queue, { ids: [...ids.slice(0, 2), 'none'] });
    expect(results.map(({ outcome }) => outcome)).toEqual(['cancelled', 'cancelled', 'notFound']);
    const later = await inspector.bulk.reschedule(queue, { ids: ids.slice(2) }, { by: '1h' });
    expect(later.results.map(({ outcome }) => outcome)).toEqual(numbers(6).map(() => 'rescheduled'));

    expect((await inspector.move(queue, ids.slice(2), plain)).results).toEqual(ids.slice(2).map((id) => ({ id, outcome: 'moved' }))); // prettier-ignore
    expect((await inspector.move(plain, ids.slice(2), queue)).results).toEqual(ids.slice(2).map((id) => ({ id, outcome: 'moved' }))); // prettier-ignore
    const expected = numbers(4).map((shard) => jobs.slice(2).filter(({ group }) => group === groupIn(shard, 4)).map(({ id }) => id)); // prettier-ignore
    const found = (await idsByShard(here.world, queue, 4)).map((all) => all.filter((id) => id.startsWith('wait')));
    expect(found).toEqual(expected);

    expect(await inspector.requeueDead(queue, ['dead1', 'dead2'], { delay: '1h' })).toEqual({
      requeued: 2,
      remaining: 6,
    });
    expect(await producer.get(queue, 'dead1')).toMatchObject({ state: 'delayed', group: groupIn(1, 4) });
    expect(await inspector.removeDead(queue, ['dead3', 'dead4'])).toEqual({ removed: 2, remaining: 4 });
    expect(await problemsOf(here.world, queue, 4)).toEqual([]);
  });

  it('moved into a queue without limits, lies in the shard of its group', async () => {
    const [from, to] = [newQueue(), newQueue()];
    const options = { queues: { [to]: { shards: 4 } }, consume: false };
    const { producer, inspector } = await here.start({ options });
    const jobs = numbers(20).map((n) => ({ id: `job${n}`, group: `own${n}`, delay: '1h', payload: n }));
    await producer.enqueueMany(from, jobs);
    await inspector.move(from, jobs.map(({ id }) => id), to); // prettier-ignore
    for (const { id, group } of jobs) expect(await producer.get(to, id, { group })).toMatchObject({ group });
    const again = await producer.enqueueMany(to, jobs);
    expect(again.map(({ outcome }) => outcome)).toEqual(jobs.map(() => 'kept'));
    expect((await idsByShard(here.world, to, 4)).flat()).toHaveLength(jobs.length);
    expect(await problemsOf(here.world, to, 4)).toEqual([]);
  });

  it('is listed with its group, whose names come shard by shard', async () => {
    const queue = newQueue();
    const { producer, inspector } = await looker(queue, 4);
    const groups = numbers(8).map((n) => groupIn(n % 4, 4, `g${n}-`));
    await producer.enqueueMany(queue, groups.flatMap((group) => numbers(3).map((n) => ({ payload: n, group, id: `${group}/${n}` })))); // prettier-ignore
    const names: (string | undefined)[] = [];
    for (let cursor: string | undefined = '0'; cursor !== undefined;) {
      const page = await inspector.groups(queue, { limit: 1, cursor });
      names.push(...page.groups.map(({ group }) => group));
      cursor = page.cursor;
    }
    expect(names).toHaveLength(8);
    expect(new Set(names)).toEqual(new Set(groups));
    expect(await inspector.counts(queue)).toMatchObject({ due: 24, groups: { inLine: 8, limited: 0, total: 8 } });
    const listed: string[] = [];
    for (let cursor: string | undefined; ;) {
      const page = await inspector.list(queue, 'due', { group: groups[5]!, limit: 2, ...(cursor && { cursor }) });
      listed.push(...page.jobs.map(({ id }) => id));
      cursor = page.cursor;
      if (cursor === undefined) break;
    }
    expect(listed.sort()).toEqual(numbers(3).map((n) => `${groups[5]}/${n}`));
  });
});

describe('a schedule with a group in a queue with shards', () => {
  it('is in the shard of its group with its occurrences, found by its id, and goes with its group', async () => {
    const queue = newQueue();
    const { producer } = await looker(queue, 4);
    const other = await looker(queue, 4);
    const schedule = (group?: string) => producer.schedule(queue, 'day', DAILY, 1, { group });
    const shards = async () => (await idsByShard(here.world, queue, 4)).map((ids) => ids.length);
    const alone = [0, 0, 0, 0];
    await schedule();
    const own = await shards();
    expect(own.toSorted((a, b) => a - b)).toEqual([0, 0, 0, 1]);
    const free = numbers(4).filter((n) => own[n] === 0);
    expect(await schedule(groupIn(free[0]!, 4))).toMatchObject({ outcome: 'replaced' });
    expect(await shards()).toEqual(alone.with(free[0]!, 1));
    expect(await schedule(groupIn(free[0]!, 4))).toMatchObject({ outcome: 'kept' });
    expect(await other.producer.pauseSchedule(queue, 'day')).toMatchObject({ outcome: 'paused' });
    expect(await schedule(groupIn(free[1]!, 4))).toMatchObject({ outcome: 'replaced', next: undefined });
    expect((await producer.listSchedules(queue)).schedules.length).toBeLessThanOrEqual(1);
    expect(await other.producer.resumeSchedule(queue, 'day')).toMatchObject({ outcome: 'resumed' });
    expect(await shards()).toEqual(alone.with(free[1]!, 1));
    const id = (await other.producer.triggerSchedule(queue, 'day'))!;
    expect(await other.producer.get(queue, id)).toMatchObject({ group: groupIn(free[1]!, 4) });
    expect(await other.producer.unschedule(queue, 'day')).toMatchObject({ outcome: 'removed' });
    expect(await shards()).toEqual(alone);
    expect(await other.producer.unschedule(queue, 'day')).toMatchObject({ outcome: 'notFound' });
    expect(await problemsOf(here.world, queue, 4)).toEqual([]);
  });

  it('keeps what it has counted when its group brings it to another shard, and what an outage has missed counts for its limit', async () => {
    const queue = newQueue();
    const { producer, inspector } = await looker(queue, 3);
    const schedule = (shard: number, options: object = {}) =>
      producer.schedule(queue, 'day', { every: '1h' }, 1, { group: groupIn(shard, 3), limit: 9, ...options });
    const counts = async () => {
      const [listed] = (await producer.listSchedules(queue)).schedules.concat(
        (await producer.listSchedules(queue, { cursor: '1::' })).schedules,
        (await producer.listSchedules(queue, { cursor: '2::' })).schedules,
      );
      return [listed!.counts, listed!.lastJob];
    };
    await schedule(0);
    expect(await counts()).toEqual([{ made: 1, missed: 0, overlapped: 0 }, undefined]);
    const key = here.world.key(`${queue}:0`, 'schedules');
    await here.world.redis.hset(key, 'missed{day}', '2', 'overlapped{day}', '4', 'floor{day}', '{day}kx');
    // As if three and a half hours had passed of which nobody was there in the last three.
    const [version, state, ...rest] = (await here.world.redis.hget(key, '{day}'))!.split('\n');
    const { anchor, last, ...more } = JSON.parse(state!) as { anchor: number; last: number };
    const by = 4.5 * 3_600_000;
    const earlier = JSON.stringify({ ...more, anchor: anchor - by, last: last - by, recent: [] });
    await here.world.redis.hset(key, '{day}', [version, earlier, ...rest].join('\n'));
    expect(await schedule(1)).toMatchObject({ outcome: 'replaced' });
    expect((await inspector.totals(queue)).skipped).toBe(3);
    // One that ran, three that were missed, and one ahead.
    expect(await counts()).toEqual([{ made: 5, missed: 5, overlapped: 4 }, '{day}kx']);
    await schedule(1, { priority: 2 });
    await schedule(2);
    expect(await counts()).toEqual([{ made: 5, missed: 5, overlapped: 4 }, '{day}kx']);
    expect(await problemsOf(here.world, queue, 3)).toEqual([]);
  });

  it('that makes nothing now is found by its id all the same', async () => {
    const queue = newQueue();
    const { producer } = await looker(queue, 4);
    const other = await looker(queue, 4);
    const own = shardOf('over', 4);
    const group = groupIn((own + 1) % 4, 4);
    const until = Date.now() - 1_000;
    await producer.schedule(queue, 'over', DAILY, 1, { group, until });
    expect(await other.producer.unschedule(queue, 'over')).toMatchObject({ outcome: 'removed', occurrences: 0 });
  });

  it('goes with its group also when the process that takes it there is killed on the way, and another one repeats it', async () => {
    for (let calls = 0, isOver = false; !isOver; calls++) {
      const queue = newQueue();
      const [before, after, other] = await Promise.all([looker(queue, 3), looker(queue, 3), looker(queue, 3)]);
      await before.producer.schedule(queue, 'day', DAILY, 1, { group: groupIn(0, 3) });
      const schedule = (by: DelayQueueProducer) => by.schedule(queue, 'day', DAILY, 1, { group: groupIn(1, 3) });
      const killed = killedAfter(after.producer, calls, calls % 2 === 0);
      isOver = await schedule(after.producer).then(
        () => true,
        () => false,
      );
      killed.restore();
      expect((await schedule(other.producer)).next).toBeInstanceOf(Date);
      const held = await idsByShard(here.world, queue, 3);
      expect(held.map((ids) => ids.length)).toEqual([0, 1, 0]);
      expect(await other.producer.unschedule(queue, 'day')).toMatchObject({ outcome: 'removed' });
      await Promise.all([before, after, other].map(({ close }) => close()));
    }
  });
});
