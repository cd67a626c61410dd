import assert from 'node:assert/strict';
import { describe, expect, it, jest } from '@jest/globals';
import type { DelayedJob, DelayQueueProducer } from '../../../lib/index.js';
import { parseOccurrenceId } from '../../../lib/job/job-id.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { interruptedAfter, killedAfter } from '../../helpers/killed-after.js';
import { groupIn, idsByShard, problemsOf } from '../../helpers/sharded-groups.js';

const here = inAWorld();
const SHARDS = 3;
const ID = 'day';
const HOURLY = { every: '1h' };
const HOUR = 3_600_000;
/** What the schedule has counted in its first shard. */
const COUNTED = { missed: '2', overlapped: '4', floor: '{day}kx' };
let queues = 0;
const newQueues = (count: number) => Array.from({ length: count }, () => `moves-${queues++}`);
const sharded = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, { shards: SHARDS }]));
const looker = (names: readonly string[]) => here.start({ options: { queues: sharded(names), consume: false } });
const into = (producer: DelayQueueProducer, queue: string, shard: number, options: object = {}) =>
  producer.schedule(queue, ID, HOURLY, 1, { group: groupIn(shard, SHARDS), ...options });
const key = (queue: string, shard: number, what: 'schedules' | 'ticks') => here.world.key(`${queue}:${shard}`, what);

interface Stored {
  readonly made: number;
  readonly paused: boolean;
  readonly leaving?: { until?: number };
}

/** The records of the schedule, with their shards. */
async function records(queue: string): Promise<(Stored & { shard: number })[]> {
  const texts = await Promise.all(
    [0, 1, 2].map((shard) => here.world.redis.hget(key(queue, shard, 'schedules'), `{${ID}}`)),
  );
  return texts.flatMap((text, shard) => (text ? [{ shard, ...(JSON.parse(text.split('\n')[1]!) as Stored) }] : []));
}

/** All that is stored of it, as a user counts: where it lives, its occurrences to come, and its counts. */
async function standing(producer: DelayQueueProducer, queue: string) {
  const all = await records(queue);
  const ids = await idsByShard(here.world, queue, SHARDS);
  const listed = [];
  for (const cursor of [undefined, '1::', '2::'])
    listed.push(...(await producer.listSchedules(queue, cursor === undefined ? {} : { cursor })).schedules);
  expect(listed.length).toBeLessThanOrEqual(1);
  expect(await problemsOf(here.world, queue, SHARDS)).toEqual([]);
  const now = await here.world.now();
  const [ahead, others] = [[] as number[], [] as number[]];
  for (const [shard, names] of ids.entries())
    for (const id of names) (parseOccurrenceId(id)!.at > now ? ahead : others).push(shard);
  const { counts, lastJob, paused } = listed[0] ?? {};
  return {
    shards: all.map(({ shard }) => shard),
    ahead,
    others,
    counts,
    lastJob,
    paused,
    leaving: all.some((one) => one.leaving),
  };
}

const alive = (shard: unknown, made = 1) => ({
  shards: [shard],
  ahead: [shard],
  others: [],
  counts: { made, missed: 2, overlapped: 4 },
  lastJob: COUNTED.floor,
  paused: false,
  leaving: false,
});
const NONE = { shards: [], ahead: [], others: [], leaving: false };

/** As if so much time had passed that nobody is at a move any more, and a ticker looks. */
async function later(queue: string): Promise<void> {
  const { redis } = here.world;
  for (const shard of [0, 1, 2]) {
    const text = await redis.hget(key(queue, shard, 'schedules'), `{${ID}}`);
    const [definition, state, ...content] = text?.split('\n') ?? [];
    const { leaving, ...others } = JSON.parse(state ?? '{}') as Stored;
    if (!leaving) continue;
    const aged = { ...leaving, ...(leaving.until !== undefined && { until: 1 }) };
    const record = [definition, JSON.stringify({ ...others, leaving: aged }), ...content].join('\n');
    await redis.hset(key(queue, shard, 'schedules'), `{${ID}}`, record);
    await redis.zadd(key(queue, shard, 'ticks'), 1, ID);
  }
}

/** A schedule that has counted something, in the first shard. */
async function begun(producer: DelayQueueProducer, queue: string, options: object = {}): Promise<void> {
  await into(producer, queue, 0, options);
  const fields = Object.entries(COUNTED).flatMap(([name, value]) => [`${name}{${ID}}`, value]);
  await here.world.redis.hset(key(queue, 0, 'schedules'), ...(fields as [string, string]));
}

/**
 * Kills a process at each command of a move to the second shard, before and after it took effect.
 *
 * @returns the queues
 */
async function killedAnywhere(look: (queue: string, step: string) => Promise<void> = async () => undefined) {
  const all = newQueues(60);
  const { producer } = await looker(all);
  const used: string[] = [];
  for (const runs of [false, true]) {
    for (let calls = 0, isOver = false; !isOver; calls++) {
      const queue = all[used.length]!;
      used.push(queue);
      await begun(producer, queue);
      const mover = await looker([queue]);
      const killed = killedAfter(mover.producer, calls, runs);
      isOver = await into(mover.producer, queue, 1).then(
        () => true,
        () => false,
      );
      killed.restore();
      await mover.close();
      await look(queue, `${runs} ${calls}`);
    }
  }
  expect(used.length).toBeGreaterThan(12);
  return { used, producer };
}

describe('A schedule whose group brings it to another shard', () => {
  it('is there at each moment, wherever the process dies, and is listed once', async () => {
    const lists: number[] = [];
    const { producer, used } = await killedAnywhere(async (queue) => {
      const all = await records(queue);
      lists.push(all.length);
      expect(all.length).toBeGreaterThan(0);
    });
    // Also in two shards, when the process dies between its last two steps.
    expect(Math.max(...lists)).toBe(2);
    for (const queue of used) {
      expect(await standing(producer, queue)).toMatchObject({ counts: { missed: 2, overlapped: 4 }, paused: false });
    }
  });

  it('comes alive by a process that only works, and nothing of it is lost or twice', async () => {
    const { producer, used } = await killedAnywhere();
    for (const queue of used) await later(queue);
    const handlers = used.map((queue) => handlerClass(queue, () => undefined));
    await here.start({ providers: handlers, options: { queues: sharded(used) } });
    for (const queue of used)
      await eventually(async () => expect(await standing(producer, queue)).toEqual(alive(expect.any(Number))));
    const shards = new Set(await Promise.all(used.map(async (queue) => (await records(queue))[0]!.shard)));
    expect(shards).toEqual(new Set([0, 1]));
  });

  it('goes there by the same call again, and stays by one with its old group', async () => {
    for (const shard of [1, 0]) {
      const { producer, used } = await killedAnywhere();
      for (const queue of used) {
        const before = await records(queue);
        const wasAlive = before.some((one) => one.shard === shard && !one.leaving);
        await later(queue);
        const result = await into(producer, queue, shard);
        expect(result.next).toBeInstanceOf(Date);
        expect([queue, result.outcome]).toEqual([queue, wasAlive ? 'kept' : 'replaced']);
        expect(await standing(producer, queue)).toEqual(alive(shard));
      }
    }
  });

  it('is paused, resumed and triggered by calls that find it on its way', async () => {
    const { producer, used } = await killedAnywhere();
    for (const queue of used) {
      await later(queue);
      expect(await producer.pauseSchedule(queue, ID)).toMatchObject({ outcome: 'paused' });
      expect(await standing(producer, queue)).toMatchObject({ ahead: [], paused: true });
      await into(producer, queue, 2);
      expect(await standing(producer, queue)).toMatchObject({ shards: [2], ahead: [], paused: true });
      expect(await producer.resumeSchedule(queue, ID)).toMatchObject({ outcome: 'resumed' });
      expect(await standing(producer, queue)).toEqual(alive(2));
      const id = (await producer.triggerSchedule(queue, ID))!;
      expect(await producer.get(queue, id)).toMatchObject({ group: groupIn(2, SHARDS) });
    }
  });

  it('is removed by a call that finds it on its way, whatever a worker does later', async () => {
    const { producer, used } = await killedAnywhere();
    for (const queue of used) {
      await later(queue);
      expect(await producer.unschedule(queue, ID)).toMatchObject({ outcome: 'removed' });
      expect(await standing(producer, queue)).toMatchObject(NONE);
      expect(await producer.unschedule(queue, ID)).toMatchObject({ outcome: 'notFound' });
    }
  });

  it('stays stopped when its removal breaks off before the end', async () => {
    const { used } = await killedAnywhere();
    for (const queue of used) {
      const all = await records(queue);
      if (all.length !== 1 || !all[0]!.leaving) continue;
      let last: readonly Stored[] = [];
      for (let calls = 0, isOver = false; !isOver; calls++) {
        await later(queue);
        const remover = await looker([queue]);
        const killed = killedAfter(remover.producer, calls, false);
        isOver = await remover.producer.unschedule(queue, ID).then(
          () => true,
          () => false,
        );
        killed.restore();
        if (!isOver) last = await records(queue);
        await remover.close();
      }
      // Killed at the last command.
      expect(last).toEqual([expect.objectContaining({ paused: true })]);
      expect(last[0]!.leaving).toBeUndefined();
    }
  });
});

describe('A schedule whose removal broke off', () => {
  it.each([
    ['in its shard', 0],
    ['in another shard', 1],
  ])('is made anew %s by the next call, and nobody has paused it', async (_, shard) => {
    const all = newQueues(30);
    const { producer } = await looker(all);
    let isOver = false;
    for (let calls = 0; !isOver; calls++) {
      const queue = all[calls]!;
      await begun(producer, queue);
      const remover = await looker([queue]);
      const killed = killedAfter(remover.producer, calls, calls % 2 === 0);
      isOver = await remover.producer.unschedule(queue, ID).then(
        () => true,
        () => false,
      );
      killed.restore();
      await remover.close();
      expect(await into(producer, queue, shard)).toMatchObject({ next: expect.any(Date) });
      expect(await standing(producer, queue)).toMatchObject({
        shards: [shard],
        ahead: [shard],
        paused: false,
        leaving: false,
      });
    }
  });

  it('goes on when it is resumed, and stays paused by the next call when it is paused', async () => {
    const [resumed, paused] = newQueues(2) as [string, string];
    const { producer } = await looker([resumed, paused]);
    for (const queue of [resumed, paused]) {
      await begun(producer, queue);
      let calls = 0;
      for (let isStopped = false; !isStopped; calls++) {
        const remover = await looker([queue]);
        const killed = killedAfter(remover.producer, calls, true);
        await remover.producer.unschedule(queue, ID).catch(() => undefined);
        killed.restore();
        await remover.close();
        isStopped = (await records(queue))[0]!.paused;
      }
    }
    await producer.resumeSchedule(resumed, ID);
    expect((await producer.listSchedules(resumed)).schedules).toMatchObject([{ id: ID, paused: false }]);
    await producer.pauseSchedule(paused, ID);
    await into(producer, paused, 0);
    expect((await producer.listSchedules(paused)).schedules).toMatchObject([{ id: ID, paused: true }]);
  });
});

describe('A move of a schedule to another shard', () => {
  it('tells what it did, and keeps what was cancelled as over: it counts once, and does not come back', async () => {
    const [queue] = newQueues(1) as [string];
    const { producer } = await looker([queue]);
    await begun(producer, queue, { limit: 5 });
    const [[id]] = (await idsByShard(here.world, queue, SHARDS)) as [[string]];
    await producer.cancel(queue, id);
    const { next } = await into(producer, queue, 0, { limit: 5 });
    expect(next!.getTime()).toBe(parseOccurrenceId(id)!.at + HOUR);
    expect(await into(producer, queue, 1, { limit: 5 })).toEqual({ id: ID, queue, outcome: 'replaced', next });
    expect(await standing(producer, queue)).toEqual({ ...alive(1), ahead: [] });
    expect(await into(producer, queue, 1, { limit: 5 })).toEqual({ id: ID, queue, outcome: 'kept', next });
    expect(await into(producer, queue, 2, { limit: 5 })).toEqual({ id: ID, queue, outcome: 'replaced', next });
    expect(await standing(producer, queue)).toEqual({ ...alive(2), ahead: [] });
  });

  it('adds what its first shard counts while it is on its way', async () => {
    const { producer, used } = await killedAnywhere();
    const isTwofold = async (queue: string) => (await records(queue)).length === 2;
    const twofold = [];
    for (const queue of used) if (await isTwofold(queue)) twofold.push(queue);
    expect(twofold.length).toBeGreaterThan(0);
    for (const queue of twofold) {
      await here.world.redis.hset(key(queue, 0, 'schedules'), `missed{${ID}}`, '7', `floor{${ID}}`, '{day}ky');
      await later(queue);
      await into(producer, queue, 2);
      const counts = { made: 1, missed: 7, overlapped: 4 };
      expect(await standing(producer, queue)).toEqual({ ...alive(2), counts, lastJob: '{day}ky' });
    }
  });

  it('is waited for by other processes while it is about to be written, and they go on when its time is over', async () => {
    const { producer, used } = await killedAnywhere();
    const isHandedOver = async (queue: string) => {
      const [first, ...others] = await records(queue);
      return others.length === 0 && first?.leaving?.until !== undefined;
    };
    let queue: string | undefined;
    for (const one of used) if (await isHandedOver(one)) queue ??= one;
    const { leaving } = (await records(queue!))[0]!;
    expect(await producer.pauseSchedule(queue!, ID)).toMatchObject({ outcome: 'paused' });
    expect(await here.world.now()).toBeGreaterThanOrEqual(leaving!.until!);
    expect(await standing(producer, queue!)).toMatchObject({ shards: [0], ahead: [], paused: true, leaving: false });
  });

  it('by a process that is held up writes nothing where others have gone on with it meanwhile', async () => {
    const [queue] = newQueues(1) as [string];
    const [mover, other] = await Promise.all([looker([queue]), looker([queue])]);
    await begun(mover.producer, queue);
    let [seen, waitedMs, lived] = [0, -Infinity, [] as (Stored & { shard: number })[]];
    const { connection } = (mover.producer as any).shards;
    const run = connection.run.bind(connection);
    const spy = jest.spyOn(connection, 'run').mockImplementation(async (...args: unknown[]) => {
      const until = (await records(queue))[0]?.leaving?.until;
      // Behind the hand-over comes a read, and then the write.
      const isWrite = until !== undefined && ++seen === 2;
      if (isWrite) {
        await other.producer.triggerSchedule(queue, ID);
        waitedMs = (await here.world.now()) - until;
      }
      const answer = await run(...args);
      if (isWrite) lived = await records(queue);
      return answer;
    });
    expect(await into(mover.producer, queue, 1)).toMatchObject({ outcome: 'replaced' });
    spy.mockRestore();
    expect(waitedMs).toBeGreaterThanOrEqual(0);
    expect(lived).toEqual([expect.objectContaining({ shard: 0, paused: false })]);
    const counts = { made: 1, missed: 3, overlapped: 4 };
    expect(await standing(mover.producer, queue)).toEqual({ ...alive(1), counts });
  });

  it.each([0, 1, 2])(
    'to shard %s is seen by a pause that looks for it in one shard after the other meanwhile',
    async (shard) => {
      const [queue] = newQueues(1) as [string];
      const [mover, pauser] = await Promise.all([looker([queue]), looker([queue])]);
      await into(mover.producer, queue, (shard + 1) % SHARDS);
      const { connection } = (pauser.producer as any).shards;
      const run = connection.run.bind(connection);
      let looks = 0;
      const spy = jest.spyOn(connection, 'run').mockImplementation(async (...args: unknown[]) => {
        const answer = await run(...args);
        if (++looks === 1) await into(mover.producer, queue, shard);
        return answer;
      });
      expect(await pauser.producer.pauseSchedule(queue, ID)).toMatchObject({ outcome: 'paused' });
      spy.mockRestore();
      expect(await standing(mover.producer, queue)).toMatchObject({ shards: [shard], ahead: [], paused: true });
    },
  );

  it('by several processes at once, with a pause among them, ends with one schedule that is paused', async () => {
    const all = newQueues(12);
    const apps = await Promise.all([looker(all), looker(all), looker(all)]);
    const [one, two, three] = apps.map(({ producer }) => producer) as [
      DelayQueueProducer,
      DelayQueueProducer,
      DelayQueueProducer,
    ];
    const race = async (queue: string) => {
      await begun(one, queue);
      await Promise.all([
        into(one, queue, 1),
        into(two, queue, 2),
        three.pauseSchedule(queue, ID),
        into(one, queue, 0),
      ]);
      expect(await standing(one, queue)).toMatchObject({
        shards: [expect.any(Number)],
        ahead: [],
        paused: true,
        leaving: false,
      });
      await Promise.all([into(one, queue, 1), two.resumeSchedule(queue, ID), into(three, queue, 2)]);
      const { shard } = (await records(queue))[0]!;
      expect(await standing(one, queue)).toEqual(alive(shard));
    };
    await Promise.all(all.map(race));
  });

  it('while another process removes the schedule leaves one or none', async () => {
    const all = newQueues(12);
    const apps = await Promise.all([looker(all), looker(all)]);
    const [one, two] = apps.map(({ producer }) => producer) as [DelayQueueProducer, DelayQueueProducer];
    const race = async (queue: string) => {
      await begun(one, queue);
      await Promise.all([into(one, queue, 1), two.unschedule(queue, ID)]);
      const { shards, ahead, leaving } = await standing(one, queue);
      expect([
        [[], [], false],
        [[1], [1], false],
      ]).toContainEqual([shards, ahead, leaving]);
    };
    await Promise.all(all.map(race));
  });

  it('that meets one to a third shard ends in one of the two, wherever they meet', async () => {
    const all = newQueues(60);
    const other = await looker(all);
    for (let calls = 0, meets = true; meets; calls++) {
      const queue = all[calls]!;
      await begun(other.producer, queue);
      const mover = await looker([queue]);
      const interrupted = interruptedAfter(mover.producer, calls, () => into(other.producer, queue, 2));
      expect(await into(mover.producer, queue, 1)).toMatchObject({ id: ID, next: expect.any(Date) });
      meets = await interrupted.ended();
      const { shard } = (await records(queue))[0]!;
      expect(await standing(mover.producer, queue)).toMatchObject({ shards: [shard], ahead: [shard], leaving: false });
      await mover.close();
    }
  });

  it('again and again, by processes that die at any command, neither loses nor doubles an occurrence that a worker runs', async () => {
    const [queue] = newQueues(1) as [string];
    const { producer } = await looker([queue]);
    const dense = (by: DelayQueueProducer, shard: number) =>
      by.schedule(queue, ID, { every: '1s' }, 1, { group: groupIn(shard, SHARDS), missed: 'all', overlap: 'allow' });
    const ran: number[] = [];
    const handle = (_: unknown, job: DelayedJob) => void ran.push(job.schedule!.at.getTime());
    await here.start({ providers: [handlerClass(queue, handle)], options: { queues: sharded([queue]) } });
    await dense(producer, 0);
    for (let moves = 1; ran.length < 5; moves++) {
      const mover = await looker([queue]);
      const killed = killedAfter(mover.producer, moves % 12, moves % 2 === 0);
      await dense(mover.producer, moves % SHARDS).catch(() => undefined);
      killed.restore();
      await mover.close();
      await later(queue);
      const before = ran.length;
      if (moves % 4 === 0) await dense(producer, (moves + 1) % SHARDS);
      // Now and then it is left to the worker.
      else if (moves % 4 === 1) await eventually(() => assert(ran.length > before));
    }
    await later(queue);
    await producer.pauseSchedule(queue, ID);
    await eventually(async () => {
      const { counts, ahead, others, shards } = await standing(producer, queue);
      expect([shards.length, ahead, others]).toEqual([1, [], []]);
      expect(counts!.made).toBe(ran.length + counts!.missed);
    });
    expect(new Set(ran).size).toBe(ran.length);
  });

  it('that is refused, because the queue takes no new jobs, leaves it where it was', async () => {
    const [queue] = newQueues(1) as [string];
    const { producer, inspector } = await looker([queue]);
    await begun(producer, queue);
    await inspector.pausePublishing(queue);
    await expect(into(producer, queue, 1)).rejects.toThrow(/publishing/i);
    await later(queue);
    await inspector.resumePublishing(queue);
    await here.start({ providers: [handlerClass(queue, () => undefined)], options: { queues: sharded([queue]) } });
    await eventually(async () => expect(await standing(producer, queue)).toEqual(alive(0)));
  });
});

describe('A schedule that was left on its way to another shard, when the number of shards changes', () => {
  /** Brings it into one shard. @returns what is listed of it there, and its jobs by id, behind a call that may change it */
  async function united(queue: string, change: (producer: DelayQueueProducer) => Promise<unknown>) {
    const { inspector, close } = await looker([queue]);
    await inspector.reshard(queue, { to: 1 });
    await close();
    const { producer, close: end } = await here.start({ options: { consume: false } });
    const changed = await change(producer);
    const { schedules } = await producer.listSchedules(queue);
    const jobs = await Promise.all(
      (await here.world.redis.hkeys(here.world.key(queue, 'jobs'))).map((id) => producer.get(queue, id)),
    );
    expect(await here.world.problems(queue)).toEqual([]);
    await end();
    return { changed, schedules, groups: jobs.map((job) => job?.group) };
  }

  it('is what it was in the shard where it lives, with all that both have counted', async () => {
    const { used } = await killedAnywhere();
    let twofold = 0;
    for (const queue of used) {
      if ((await records(queue)).length !== 2) continue;
      twofold++;
      await here.world.redis.hset(key(queue, 0, 'schedules'), `missed{${ID}}`, '7', `floor{${ID}}`, '{day}ky');
      await here.world.redis.hset(key(queue, 1, 'schedules'), `missed{${ID}}`, '1');
      const { schedules, groups } = await united(queue, async () => undefined);
      const counts = { made: 1, missed: 8, overlapped: 4 };
      const group = groupIn(1, SHARDS);
      expect(schedules).toMatchObject([{ id: ID, group, paused: false, counts, lastJob: '{day}ky' }]);
      expect(groups).toEqual([group]);
    }
    expect(twofold).toBeGreaterThan(0);
  });

  it('goes on by the next call, and nobody has paused it', async () => {
    const { used } = await killedAnywhere();
    const seen = new Set<string>();
    for (const queue of used) {
      const [one, ...others] = await records(queue);
      if (others.length > 0 || !one!.leaving) continue;
      // As it was stopped, with its occurrences taken back or not, and as it was handed over.
      const standsAs = `${(await idsByShard(here.world, queue, SHARDS)).flat().length} ${one!.leaving.until !== undefined}`;
      if (seen.has(standsAs)) continue;
      seen.add(standsAs);
      await later(queue);
      const { changed, schedules, groups } = await united(queue, (producer) => into(producer, queue, 1));
      expect(changed).toMatchObject({ outcome: 'replaced', next: expect.any(Date) });
      const counts = { made: 1, missed: 2, overlapped: 4 };
      expect(schedules).toMatchObject([{ id: ID, paused: false, counts, lastJob: COUNTED.floor }]);
      expect(groups).toEqual([groupIn(1, SHARDS)]);
    }
    expect(seen.size).toBeGreaterThan(1);
  });
});
