import { describe, expect, it, jest } from '@jest/globals';
import type { Type } from '@nestjs/common';
import {
  defineQueue,
  DelayQueueConsumer,
  DelayQueueHealth,
  DelayQueueRegistry,
  ShardCountError,
} from '../../../lib/index.js';
import type { DelayedJob, ScheduleSnapshot, StandardSchema } from '../../../lib/index.js';
import { shardOf } from '../../../lib/shards/shard-hash.js';
import { scheduleKeys, ShardKeys } from '../../../lib/redis/keys.js';
import { ShardStore } from '../../../lib/redis/shard-store.js';
import { parseOccurrenceId } from '../../../lib/job/job-id.js';
import { ZONE_DATA } from '../../../lib/recurring/zone-data.js';
import { DelayQueueRunner } from '../../../lib/worker/delay-queue.runner.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const here = inAWorld();

describe('recurring jobs on Redis', () => {
  it('of three processes run each occurrence once, at its time', async () => {
    const ran: DelayedJob[] = [];
    const handle = (_: unknown, job: DelayedJob) => void ran.push(job);
    const apps = [];
    for (let n = 0; n < 3; n++) apps.push(await here.start({ providers: [handlerClass('three', handle)] }));
    const { producer } = apps[0]!;
    await producer.schedule('three', 'second', { every: '1s' }, null, { missed: 'all', overlap: 'allow' });
    const keys = new ShardKeys(here.world.prefix, 'three');
    const [, ticks] = scheduleKeys(keys.fixed);
    // As if the minute that is made ahead were always almost over: all three of them make more.
    await eventually(async () => {
      await here.world.redis.zadd(ticks!, 'XX', 1, 'second');
      expect(ran.length).toBeGreaterThan(2);
    });
    const times = ran.map(({ schedule }) => schedule!.at.getTime());
    expect(new Set(times).size).toBe(times.length);
    expect(times.every((at, n) => n === 0 || at === times[n - 1]! + 1_000)).toBe(true);
    await producer.unschedule('three', 'second');
  });

  it('of a backfill are all made, also when another change of the schedule comes before a part of them', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    const other = await here.start({ options: { consume: false } });
    await producer.schedule('gaps', 'minute', { cron: '* * * * *' }, null);
    const to = Math.floor((Date.now() - 60_000) / 60_000) * 60_000;
    const from = to - 249 * 60_000;
    const triggers = Array.from({ length: 6 }, () => other.producer.triggerSchedule('gaps', 'minute'));
    const made = await producer.backfillSchedule('gaps', 'minute', { from, to });
    expect(made).toBe(250);
    await Promise.all(triggers);
    const ids = await here.world.redis.zrange(new ShardKeys(here.world.prefix, 'gaps').due, '0', '-1');
    const times = new Set(ids.map((id) => parseOccurrenceId(id)!.at));
    for (let at = from; at <= to; at += 60_000) expect(times).toContain(at);
    await producer.unschedule('gaps', 'minute');
  });

  it('with large payloads are all ahead when the call returns, and a backfill of them is stored', async () => {
    const queue = 'large';
    const { producer } = await here.start({
      options: { consume: false, maxPayloadBytes: 1_000_000 },
    });
    const { due } = new ShardKeys(here.world.prefix, queue);
    const now = Date.now();
    await producer.schedule(queue, 'second', { every: '1s' }, 'x'.repeat(250_000));
    expect(await here.world.redis.zcount(due, now + 50_000, '+inf')).toBeGreaterThan(5);
    await producer.pauseSchedule(queue, 'second');
    expect(await here.world.redis.zcard(due)).toBe(0);
    const resumedAt = Date.now();
    await producer.resumeSchedule(queue, 'second');
    expect(await here.world.redis.zcount(due, resumedAt + 50_000, '+inf')).toBeGreaterThan(5);
    await producer.unschedule(queue, 'second');

    // Together they are more than one process may hold.
    await producer.schedule(queue, 'minute', { cron: '* * * * *' }, 'x'.repeat(950_000));
    const to = Math.floor((now - 60_000) / 60_000) * 60_000;
    expect(await producer.backfillSchedule(queue, 'minute', { from: to - 74 * 60_000, to })).toBe(75);
    // A minute may end meanwhile, and then its own occurrence is due as well.
    const backfilled = (await here.world.redis.zrange(due, '0', '-1')).filter((id) => parseOccurrenceId(id)!.at <= to);
    expect(backfilled).toHaveLength(75);
    await producer.unschedule(queue, 'minute');
  });

  it('of a queue with shards are in the shard of their schedule', async () => {
    const queue = 'split';
    const options = { queues: { [queue]: { shards: 3 } } };
    const ran: DelayedJob[] = [];
    const { producer } = await here.start({
      options,
      providers: [handlerClass(queue, (_, job) => void ran.push(job))],
    });
    const ids = ['a', 'b', 'c', 'd', 'e'];
    for (const id of ids) await producer.schedule(queue, id, { cron: '0 0 1 1 *' }, id);
    for (const id of ids) await producer.triggerSchedule(queue, id);
    await eventually(() => expect(ran.map(({ payload }) => String(payload)).sort()).toEqual(ids));
    for (const job of ran) expect(parseOccurrenceId(job.id)!.schedule).toBe(job.payload);

    const listed: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await producer.listSchedules(queue, { limit: 1, ...(cursor && { cursor }) });
      listed.push(...page.schedules.map(({ id }) => id));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(listed.sort()).toEqual(ids);
  });

  it.each([
    [1, 3],
    [3, 2],
    [3, 1],
  ])('and jobs at a local time change their shard with the number of shards (%i to %i)', async (from, to) => {
    const queue = `moves-${from}-${to}`;
    const at = { local: '2087-07-01T09:00', timeZone: 'Europe/Berlin' };
    const start = (shards: number, providers: Type<unknown>[] = []) =>
      here.start({ options: { queues: { [queue]: { shards } }, consume: providers.length > 0 }, providers });
    const before = await start(from);
    const ids = Array.from({ length: 12 }, (_, n) => `s${n}`);
    for (const id of ids) await before.producer.schedule(queue, id, { cron: '0 0 1 1 *' }, id);
    await before.producer.pauseSchedule(queue, 's3');
    await before.producer.triggerSchedule(queue, 's4');
    for (const id of ids) await before.producer.enqueue(queue, id, { id, at });
    const listed = async ({ producer }: Awaited<ReturnType<typeof start>>) => {
      const found: ScheduleSnapshot[] = [];
      let cursor: string | undefined;
      do {
        const page = await producer.listSchedules(queue, { limit: 5, ...(cursor && { cursor }) });
        found.push(...page.schedules);
        cursor = page.cursor;
      } while (cursor !== undefined);
      return found.sort((a, b) => (a.id < b.id ? -1 : 1));
    };
    const [schedules, counts] = [await listed(before), await before.inspector.counts(queue)];
    expect(schedules.map(({ id }) => id)).toEqual([...ids].sort());
    expect((await before.inspector.reshard(queue, { from, to })).moved).toBeGreaterThan(0);
    await before.close();

    const ran: string[] = [];
    const lastOfS4: unknown = expect.any(String);
    const after = await start(to, [handlerClass(queue, (payload) => void ran.push(payload))]);
    await eventually(() => expect(ran).toEqual(['s4']));
    expect(await listed(after)).toEqual(
      schedules.map((one) => (one.id === 's4' ? { ...one, lastJob: lastOfS4 } : one)),
    );
    // All but the one that was triggered, which has run.
    expect(await after.inspector.counts(queue)).toMatchObject({ schedules: 12, delayed: counts.delayed });
    const notes = await Promise.all(
      Array.from({ length: to }, (_, n) =>
        here.world.redis.zrange(here.world.key(to === 1 ? queue : `${queue}:${n}`, 'zoned'), '0', '-1'),
      ),
    );
    for (const [n, of] of notes.entries()) expect(of.every((id) => shardOf(id, to) === n)).toBe(true);
    expect(notes.flat().sort()).toEqual([...ids].sort());
    for (const id of ids) expect(await after.producer.unschedule(queue, id)).toMatchObject({ outcome: 'removed' });
    expect(await after.inspector.counts(queue)).toMatchObject({ schedules: 0, delayed: 12 });
  });

  it('that were triggered while the clock of Redis was ahead hide nothing that is ahead, and stay when the schedule changes', async () => {
    const queue = 'clock-was-ahead';
    const jobs = async () => (await here.world.redis.hkeys(here.world.key(queue, 'jobs'))).sort();
    const { producer } = await here.start({ options: { consume: false } });
    await producer.schedule(queue, 's', { every: '30m' }, 'old', { limit: 5 });
    const [old] = await jobs();
    const { connection } = (producer as any).shards;
    connection.movedMs = 3_600_000;
    const triggered = (await producer.triggerSchedule(queue, 's'))!;
    connection.movedMs = 0;
    await producer.schedule(queue, 's', { every: '45m' }, 'new', { limit: 5 });
    const [anew, ...others] = (await jobs()).filter((id) => id !== triggered);
    expect([anew === old, others]).toEqual([false, []]);
    expect(await producer.get(queue, triggered)).toMatchObject({ payload: 'old' });
    expect((await producer.listSchedules(queue)).schedules).toMatchObject([{ counts: { made: 1 } }]);
    // A trigger by the right clock has the right time.
    const { at } = parseOccurrenceId((await producer.triggerSchedule(queue, 's'))!)!;
    expect(at).toBeLessThan(parseOccurrenceId(triggered)!.at - 1_800_000);
    expect(await producer.unschedule(queue, 's')).toMatchObject({ occurrences: 3 });
    expect(await jobs()).toEqual([]);
  });

  it('keep a queue from changing its shards as an empty one does, when only the option changes', async () => {
    const queue = 'not-empty';
    const { producer, close } = await here.start({ options: { consume: false } });
    await producer.schedule(queue, 's', { cron: '0 0 1 1 *' }, null);
    await producer.pauseSchedule(queue, 's');
    await close();
    const boots = here.start({ options: { queues: { [queue]: { shards: 2 } }, consume: false } });
    await expect(boots).rejects.toBeInstanceOf(ShardCountError);
  });

  it('run in a process that pulls its queue, which leaves a schedule of a handler alone', async () => {
    const queue = 'pulled';
    const handling = await here.start({
      options: { consume: true },
      providers: [handlerClass(queue, () => undefined, { repeat: { cron: '0 0 1 1 *' } })],
    });
    await eventually(async () => expect((await handling.producer.listSchedules(queue)).schedules).toHaveLength(1));
    await handling.close();
    const { app, producer } = await here.start();
    await producer.schedule(queue, 's', { every: '1s' }, null, { missed: 'all', overlap: 'allow' });
    const [, ticks] = scheduleKeys(new ShardKeys(here.world.prefix, queue).fixed);
    await here.world.redis.zadd(ticks!, 'XX', 1, 's');
    const pulled = app.get(DelayQueueConsumer).pull(queue, { wait: '20s' });
    const made = async () => (await producer.listSchedules(queue)).schedules.find(({ id }) => id === 's')!.counts.made;
    const before = await made();
    const [job] = await pulled;
    expect(job!.job.schedule!.id).toBe('s');
    await job!.complete();
    await eventually(async () => {
      await here.world.redis.zadd(ticks!, 'XX', 1, 's');
      expect(await made()).toBeGreaterThan(before);
    });
    expect((await producer.listSchedules(queue)).schedules.map(({ id }) => id).sort()).toEqual(['@code', 's']);
    await producer.unschedule(queue, 's');
  });

  it('go on in a process that pulls their queue when its handler is unregistered', async () => {
    const queue = 'unregistered';
    const { app, producer } = await here.start();
    const registry = app.get(DelayQueueRegistry);
    registry.register(queue, () => undefined);
    await producer.schedule(queue, 's', { every: '1s' }, null, { missed: 'all', overlap: 'allow' });
    const pulled = app.get(DelayQueueConsumer).pull(queue, { wait: '20s' });
    await registry.unregister(queue);
    const made = async () => (await producer.listSchedules(queue)).schedules[0]!.counts.made;
    const before = await made();
    const [, ticks] = scheduleKeys(new ShardKeys(here.world.prefix, queue).fixed);
    await eventually(async () => {
      await here.world.redis.zadd(ticks!, 'XX', 1, 's');
      expect(await made()).toBeGreaterThan(before);
    });
    for (const job of await pulled) await job.complete();
    await producer.unschedule(queue, 's');
  });

  it('are as the handler declares that was registered last, also where an earlier one is still being declared', async () => {
    const { app, producer } = await here.start();
    const registry = app.get(DelayQueueRegistry);
    let release = () => {};
    const gate = new Promise<void>((resolve) => (release = resolve));
    const asked = jest.fn();
    const validate = async (value: unknown) => {
      asked();
      if (value === 'first') await gate;
      return { value: value as string };
    };
    const schema: StandardSchema<string> = { '~standard': { version: 1, vendor: 'test', validate } };
    const queue = defineQueue('declared-twice', { schema });
    const declare = (payload: string) =>
      registry.register(queue, () => undefined, { repeat: { every: '1h', payload } });
    declare('first');
    await eventually(() => expect(asked).toHaveBeenCalled());
    void registry.unregister(queue);
    declare('second');
    const payload = async () => (await producer.listSchedules(queue)).schedules[0]?.payload;
    // Time enough for the second one to go ahead, if it were not to wait.
    for (let n = 0; n < 20; n++) await payload();
    release();
    await eventually(async () => expect(await payload()).toBe('second'));
    for (let n = 0; n < 20; n++) expect(await payload()).toBe('second');
    await producer.unschedule(queue, '@code');
  });

  it('that two processes declare differently at one boot are as one of them says, and nothing of the other one stands', async () => {
    const queue = 'declared';
    const months = [3, 5, 7, 9];
    const boot = (month: number) =>
      here.start({
        providers: [handlerClass(queue, () => undefined, { repeat: { cron: `0 0 1 ${month} *`, payload: month } })],
      });
    const [schedules] = scheduleKeys(new ShardKeys(here.world.prefix, queue).fixed);
    const apps = await Promise.all(months.map(boot));
    const [{ producer, inspector }] = apps as [(typeof apps)[0]];
    const state = async () => {
      const [schedule] = (await producer.listSchedules(queue)).schedules;
      const { jobs } = await inspector.list(queue, 'delayed');
      return {
        month: schedule?.payload,
        at: schedule?.next,
        jobs: jobs.map(({ payload, dueAt }) => ({ payload, dueAt })),
      };
    };
    // Each of them has said it.
    await eventually(async () => {
      const [, revision] = /"revision":(\d+)/.exec((await here.world.redis.hget(schedules!, '{@code}')) ?? '') ?? [];
      expect(Number(revision)).toBeGreaterThanOrEqual(months.length);
    });
    const { month, at, jobs } = await state();
    expect(months).toContain(month);
    expect(at!.getUTCMonth()).toBe((month as number) - 1);
    expect(jobs).toEqual([{ payload: month, dueAt: at }]);
  });

  it('whose handler is gone stay, are seen to be late, and can be removed', async () => {
    const queue = 'left-behind';
    const repeat = { every: '1s', payload: null } as const;
    const first = await here.start({ providers: [handlerClass(queue, () => undefined, { repeat })] });
    await eventually(async () => expect((await first.inspector.counts(queue)).schedules).toBe(1));
    await first.close();
    const { app, producer, inspector } = await here.start();
    const [, ticks] = scheduleKeys(new ShardKeys(here.world.prefix, queue).fixed);
    await here.world.redis.zadd(ticks!, 'XX', (await here.world.now()) - 120_000, '@code');
    expect((await inspector.counts(queue)).schedulesLateMs).toBeGreaterThanOrEqual(120_000);
    const { reasons } = await app.get(DelayQueueHealth).check();
    expect(reasons.filter((reason) => reason.includes(queue)).join()).toMatch(
      /no live process that works on the queue/,
    );
    expect(await producer.unschedule(queue, '@code')).toMatchObject({ outcome: 'removed' });
    expect(await inspector.counts(queue)).toMatchObject({ schedules: 0, schedulesLateMs: 0 });
  });

  it('are named by health when nobody makes their occurrences, and which of them a newer library wrote', async () => {
    const queue = 'late';
    const { app, producer, inspector } = await here.start({ options: { consume: false } });
    await producer.schedule(queue, 'mine', { every: '1h' }, null);
    const [schedules, ticks] = scheduleKeys(new ShardKeys(here.world.prefix, queue).fixed);
    const reasons = async () =>
      (await app.get(DelayQueueHealth).check()).reasons.filter((reason) => /schedule/.test(reason));
    const late = async (ms: number) => here.world.redis.zadd(ticks!, 'XX', (await here.world.now()) - ms, 'mine');
    await late(50_000);
    expect(await reasons()).toEqual([]);
    await late(70_000);
    expect(await reasons()).toEqual([
      expect.stringMatching(/"late" has needed .* no live process that works on the queue/),
    ]);
    await here.world.redis.hset(schedules!, '{mine}', '9{}\n{}\n\n1');
    expect(await reasons()).toEqual([expect.stringMatching(/a newer library wrote "mine"/)]);
    expect(await inspector.listSchedules(queue)).toMatchObject({ schedules: [], unreadable: ['mine'] });
    // A process that cannot read it asks for it again and again; it stays late.
    const old = await here.start({ providers: [handlerClass(queue, () => undefined)] });
    await eventually(async () =>
      expect(Number(await here.world.redis.zscore(ticks!, 'mine'))).toBeGreaterThan((await here.world.now()) - 10_000),
    );
    expect(await reasons()).toEqual([expect.stringMatching(/a newer library wrote "mine"/)]);
    const health = await old.app.get(DelayQueueHealth).check();
    expect(health.queues[queue]!.status).toBe('degraded');
  });

  it('that were cancelled stay so when newer zone data give their schedule other times, and a change gives them back', async () => {
    const queue = 'zoned';
    const { producer } = await here.start({ options: { consume: false } });
    const [schedules] = scheduleKeys(new ShardKeys(here.world.prefix, queue).fixed);
    const definition = { cron: '0 0 1 1 *', timeZone: 'Europe/Berlin' };
    const { next } = await producer.schedule(queue, 's', definition, null);
    const id = `{s}${next!.getTime().toString(36)}`;
    await producer.cancel(queue, id);
    // As if by older zone data the first of February were the first of January.
    const text = (await here.world.redis.hget(schedules!, '{s}'))!;
    const older = text.replace('0 0 1 1 *', '0 0 1 2 *').replace(`"zoneData":"${ZONE_DATA}"`, '"zoneData":"1999a"');
    await here.world.redis.hset(schedules!, '{s}', older);
    await here.start({ providers: [handlerClass(queue, () => undefined)] });
    await eventually(async () =>
      expect((await producer.listSchedules(queue)).schedules[0]!.next!.getUTCMonth()).toBe(0),
    );
    expect((await producer.schedule(queue, 's', definition, null)).outcome).toBe('replaced');
    expect(await producer.get(queue, id)).toBeUndefined();
  });

  it.each([
    [2, -1, [-1]],
    [-1, 2, []],
  ])(
    'of a day happen once when newer zone data move them over the present hour: from %i hours to %i',
    async (from, to, wanted) => {
      const queue = `zone${from}`;
      const runs: number[] = [];
      const handle = (_: unknown, job: DelayedJob) => void runs.push(job.schedule!.at.getTime());
      const { producer } = await here.start({ options: { consume: false } });
      const [schedules] = scheduleKeys(new ShardKeys(here.world.prefix, queue).fixed);
      const minute = Math.floor((await here.world.now()) / 60_000) * 60_000;
      const cronOf = (hours: number) => {
        const at = new Date(minute + hours * HOUR);
        return `${at.getUTCMinutes()} ${at.getUTCHours()} * * *`;
      };
      await producer.schedule(queue, 's', { cron: cronOf(from), timeZone: 'Africa/Abidjan' }, null);
      const text = (await here.world.redis.hget(schedules!, '{s}'))!;
      const older = text.replace(cronOf(from), cronOf(to)).replace(`"zoneData":"${ZONE_DATA}"`, '"zoneData":"1999a"');
      await here.world.redis.hset(schedules!, '{s}', older);
      await here.start({ providers: [handlerClass(queue, handle)] });
      const tomorrow = minute + to * HOUR + DAY;
      await eventually(async () =>
        expect((await producer.listSchedules(queue)).schedules[0]!.next!.getTime()).toBe(tomorrow),
      );
      await eventually(() => expect(runs).toEqual(wanted.map((hours) => minute + hours * HOUR)));
      await producer.unschedule(queue, 's');
    },
  );

  describe('that a process with other zone data has computed', () => {
    const newer = '9999z';
    async function written(queue: string) {
      const { app, producer } = await here.start({ providers: [handlerClass(queue, () => undefined)] });
      const ticker = app.get(DelayQueueRunner, { strict: false }).tickers.all.get(queue)!;
      // With the first one it looks at all.
      await ticker.tick();
      await producer.schedule(queue, 's', { cron: '0 0 1 1 *', timeZone: 'Europe/Berlin' }, null);
      const [schedules, ticks] = scheduleKeys(new ShardKeys(here.world.prefix, queue).fixed);
      const stored = async () => (await here.world.redis.hget(schedules!, '{s}'))!;
      const zoneData = async () => /"zoneData":"(.*?)"/.exec(await stored())![1];
      const write = async (from: string | RegExp, to: string) =>
        here.world.redis.hset(schedules!, '{s}', (await stored()).replace(from, to));
      /** More is needed now. */
      async function tick() {
        await here.world.redis.zadd(ticks!, 'XX', 1, 's');
        await ticker.tick();
      }
      return { producer, stored, zoneData, write, tick };
    }

    it('are left to such, if the data are newer, until nearly all is over that is made', async () => {
      const { producer, stored, zoneData, write, tick } = await written('newer');
      await write(ZONE_DATA, newer);
      const before = await stored();
      await tick();
      expect(await stored()).toBe(before);
      await write(/"last":\d+/, `"last":${(await here.world.now()) + 5_000}`);
      await tick();
      expect(await zoneData()).toBe(ZONE_DATA);
      await producer.unschedule('newer', 's');
    });

    it('are computed anew, if the data are older, where they need more', async () => {
      const { producer, zoneData, write, tick } = await written('older');
      await write('0 0 1 1 *', '0 0 1 2 *');
      await write(ZONE_DATA, '1999a');
      await tick();
      expect(await zoneData()).toBe(ZONE_DATA);
      const { schedules } = await producer.listSchedules('older');
      expect(schedules[0]!.next!.getUTCMonth()).toBe(0);
      await producer.unschedule('older', 's');
    });

    it('are of the data of who changes them', async () => {
      const { producer, zoneData, write } = await written('changed');
      await write(ZONE_DATA, newer);
      await producer.pauseSchedule('changed', 's');
      await write(`"zoneData":"${ZONE_DATA}"`, `"zoneData":"${newer}"`);
      await producer.resumeSchedule('changed', 's');
      expect(await zoneData()).toBe(ZONE_DATA);
      // Nor do newer ones say of what older ones have made that it was theirs.
      await write(ZONE_DATA, '1999a');
      await producer.backfillSchedule('changed', 's', { from: Date.UTC(2020, 0), to: Date.UTC(2021, 5) });
      expect(await zoneData()).toBe('1999a');
      await producer.unschedule('changed', 's');
    });
  });

  it('go on beside one that this process cannot compute or declare', async () => {
    const queue = 'odd';
    const { producer } = await here.start({ options: { consume: false } });
    const [schedules, ticks] = scheduleKeys(new ShardKeys(here.world.prefix, queue).fixed);
    for (const id of ['a', 'b', 'z'])
      await producer.schedule(queue, id, { cron: '* * * * * *', timeZone: 'Europe/Berlin' }, null);
    // As processes with newer zone data write them, and as ones with older data have written them.
    for (const [id, zoneData] of [
      ['a', ZONE_DATA],
      ['b', '1999a'],
    ] as const) {
      const text = (await here.world.redis.hget(schedules!, `{${id}}`))!;
      const unknown = text
        .replace('Europe/Berlin', 'Mars/Olympus')
        .replace(`"zoneData":"${ZONE_DATA}"`, `"zoneData":"${zoneData}"`);
      await here.world.redis.hset(schedules!, `{${id}}`, unknown);
    }
    await here.world.redis.hset(schedules!, '{@code}', '9{}\n{}\n\n1');
    await here.world.redis.zadd(ticks!, 1, 'a', 1, 'b', 1, 'z', 9e15, '@code');
    const runs: string[] = [];
    const handle = (_: unknown, job: DelayedJob) => void runs.push(job.schedule!.id);
    await here.start({ providers: [handlerClass(queue, handle, { repeat: { every: '1h' } })] });
    await eventually(async () =>
      expect(Number(await here.world.redis.zscore(ticks!, 'z'))).toBeGreaterThan((await here.world.now()) + 5_000),
    );
  });

  it('that are declared come back, and the limits of their queue, when all that was stored of it is lost', async () => {
    const queue = 'lost';
    const { app, producer, inspector } = await here.start({
      options: { queues: { [queue]: { globalConcurrency: 2 } } },
      providers: [handlerClass(queue, () => undefined, { repeat: { every: '1h' } })],
    });
    const ticker = app.get(DelayQueueRunner, { strict: false }).tickers.all.get(queue)!;
    const ids = async () => (await inspector.listSchedules(queue)).schedules.map(({ id }) => id);
    await eventually(async () => expect(await ids()).toEqual(['@code']));
    // What an operator removes stays away until the next boot.
    await ticker.tick();
    await producer.unschedule(queue, '@code');
    await ticker.tick();
    expect(await ids()).toEqual([]);
    await inspector.remove(queue, { force: true });
    // Whoever makes it anew.
    await producer.enqueue(queue, null, { delay: '1h' });
    await ticker.tick();
    expect(await ids()).toEqual(['@code']);
    await eventually(async () =>
      expect(await inspector.limits(queue)).toMatchObject({ limits: { globalConcurrency: 2 } }),
    );
  });

  it("of overlap: 'allow' that a closing process has interrupted run again, also when the next one is due", async () => {
    const queue = 'interrupted';
    const runs: DelayedJob[] = [];
    const handle = (_: unknown, job: DelayedJob) => {
      runs.push(job);
      return runs.length === 1 ? new Promise(() => undefined) : undefined;
    };
    const provider = handlerClass(queue, handle, { concurrency: 1, prefetch: false });
    const first = await here.start({ options: { drainTimeout: 0 }, providers: [provider] });
    await first.producer.schedule(queue, 's', { every: '1s' }, null, { overlap: 'allow' });
    await eventually(() => expect(runs).toHaveLength(1));
    await first.app.close();
    const { id, schedule } = runs[0]!;
    await eventually(async () => expect(await here.world.now()).toBeGreaterThan(schedule!.next!.getTime()));
    const { producer } = await here.start({ providers: [provider] });
    await eventually(() => expect(runs.length).toBeGreaterThan(2));
    expect(runs[1]!.id).toBe(id);
    await producer.unschedule(queue, 's');
  });

  it.each([
    ['skip', 'pauseSchedule'],
    ['queue', 'pauseSchedule'],
    ['allow', 'pauseSchedule'],
    ['skip', 'unschedule'],
    ['allow', 'unschedule'],
  ] as const)(
    'of overlap %s that a closing process has interrupted run again, and count nowhere, also behind %s',
    async (overlap, call) => {
      const queue = `interrupted-${overlap}-${call}`;
      const runs: string[] = [];
      const handle = (_: unknown, job: DelayedJob) => {
        runs.push(job.id);
        return runs.length === 1 ? new Promise(() => undefined) : undefined;
      };
      const provider = handlerClass(queue, handle, { concurrency: 1, prefetch: false });
      const first = await here.start({ options: { drainTimeout: 0 }, providers: [provider] });
      await first.producer.schedule(queue, 's', { cron: '0 0 1 1 *' }, null, { overlap });
      const id = await first.producer.triggerSchedule(queue, 's');
      await eventually(() => expect(runs).toEqual([id]));
      await first.app.close();
      const { producer } = await here.start({ options: { consume: false } });
      await producer[call](queue, 's');
      const { inspector } = await here.start({ providers: [provider] });
      await eventually(() => expect(runs).toEqual([id, id]));
      expect(await inspector.totals(queue)).toMatchObject({ skipped: 0 });
      await producer.unschedule(queue, 's');
    },
  );

  it.each(['pauseSchedule', 'unschedule'] as const)(
    'of which a closing process still asked whether they may run have not begun: %s takes them back',
    async (call) => {
      const queue = `asked-${call}`;
      const runs: string[] = [];
      const provider = handlerClass(queue, (_: unknown, job: DelayedJob) => void runs.push(job.id));
      const first = await here.start({ options: { drainTimeout: 0 }, providers: [provider] });
      const callOf = Reflect.get(ShardStore.prototype, 'call') as ShardStore['call'];
      const asked = jest.spyOn(ShardStore.prototype, 'call').mockImplementation(function (this: ShardStore, ...args) {
        return args[0] === 'beginOccurrence' ? new Promise(() => undefined) : callOf.apply(this, args);
      });
      await first.producer.schedule(queue, 's', { cron: '0 0 1 1 *' }, null);
      const id = await first.producer.triggerSchedule(queue, 's');
      await eventually(() => expect(asked).toHaveBeenCalledWith('beginOccurrence', expect.arrayContaining([id])));
      await first.app.close();
      asked.mockRestore();
      const { producer, inspector } = await here.start({ options: { consume: false } });
      await producer[call](queue, 's');
      expect(await producer.get(queue, id!)).toBeUndefined();
      expect(await inspector.totals(queue)).toMatchObject({ skipped: 1 });
      expect(runs).toEqual([]);
      await producer.unschedule(queue, 's');
    },
  );

  it('go with their queue', async () => {
    const { producer, inspector } = await here.start();
    await producer.schedule('gone', 's', { cron: '0 0 1 1 *' }, null);
    await producer.pauseSchedule('gone', 's');
    await expect(inspector.remove('gone')).rejects.toThrow(/gone/);
    await inspector.remove('gone', { force: true });
    expect((await producer.listSchedules('gone')).schedules).toEqual([]);
  });

  it('can be looked at, put off and cancelled one by one', async () => {
    const { producer } = await here.start();
    const { next } = await producer.schedule('one', 's', { cron: '0 0 1 1 *' }, { a: 1 });
    const id = `{s}${next!.getTime().toString(36)}`;
    expect(await producer.get('one', id)).toMatchObject({ id, payload: { a: 1 }, dueAt: next });
    expect(await producer.reschedule('one', id, { delay: '1h' })).toMatchObject({ outcome: 'rescheduled' });
    expect(await producer.cancel('one', id)).toMatchObject({ outcome: 'cancelled' });
  });
});
