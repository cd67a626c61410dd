import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { channelName } from '../../lib/delay-queue.channels.js';
import type { OccurrencesSkippedMessage } from '../../lib/delay-queue.channels.js';
import { resolveModuleOptions } from '../../lib/delay-queue.options.js';
import { DelayQueueProducer, PublishingPausedError, UnavailableError } from '../../lib/index.js';
import { InstanceContext } from '../../lib/instance/instance-context.js';
import { EnqueueBatcher } from '../../lib/producer/enqueue-batcher.js';
import { scheduleKeys } from '../../lib/redis/keys.js';
import { parseSchedules, parseTicks, tickArgs } from '../../lib/redis/schedule.protocol.js';
import type { StoredSchedule, TickRequest } from '../../lib/redis/schedule.protocol.js';
import { parseOccurrenceId } from '../../lib/job/job-id.js';
import type { OccurrenceHeader } from '../../lib/job/occurrence-header.js';
import { dueAgain } from '../../lib/recurring/occurrence-gate.js';
import { occurrenceItems } from '../../lib/recurring/occurrence-items.js';
import { timesOf } from '../../lib/recurring/occurrence-times.js';
import { decodeRecord, encodeRecord, rhythmOf } from '../../lib/recurring/schedule-record.js';
import { planTick } from '../../lib/recurring/tick-plan.js';
import { eventually } from '../helpers/eventually.js';
import { TestSession } from './peer.js';
import { HOUR } from './shard.js';
import type { Shard } from './shard.js';
import { shards } from './shards.js';

const here = shards();
let shard: Shard;
let schedulesKey: string;
let ticksKey: string;
beforeEach(() => {
  shard = here.fresh();
  [schedulesKey, ticksKey] = scheduleKeys(shard.keys.fixed) as [string, string];
});

const list = async () =>
  parseSchedules((await shard.run('schedules', shard.keys.session('none'), ['', 200, '', ''])) as string[]);
const asked = async (mineForMs = 2_000) =>
  parseTicks((await shard.run('ticks', shard.keys.session('none'), [20, mineForMs])) as string[]);
const tell = (session: TestSession, request: TickRequest) => session.call('tick', [0, ...tickArgs(request)]);
const occurrences = async () => Object.keys((await shard.read()).jobs).filter((id) => id.startsWith('{'));

/** As if so much time had passed since the last occurrence was made. */
async function letPass(ms: number): Promise<void> {
  const [stored] = (await list()).schedules;
  const record = decodeRecord(stored!.text)!;
  const { state } = record;
  const earlier = { ...state, anchor: state.anchor - ms, last: state.last - ms, recent: [] };
  await here.world.redis.hset(schedulesKey, `{${stored!.id}}`, encodeRecord({ ...record, state: earlier }));
  await here.world.redis.zadd(ticksKey, stored!.tick - ms, stored!.id);
}

/** What a process computes that was told of a schedule. */
async function computed({ now, due }: Awaited<ReturnType<typeof asked>>): Promise<TickRequest> {
  const [{ id, text }] = due as [(typeof due)[number]];
  const record = decodeRecord(text)!;
  const plan = await planTick(id, record, await timesOf(rhythmOf(record), ''), now);
  return {
    id,
    read: text,
    follows: encodeRecord({ ...record, state: plan.state }),
    tick: plan.tick,
    missed: plan.missed?.count ?? 0,
    ahead: plan.occurrences.length,
    gone: [],
    validBefore: undefined,
    occurrences: occurrenceItems(id, record, plan.occurrences),
  };
}

describe('occurrences are made once', () => {
  it('by two processes that were told of the same schedule', async () => {
    await shard.producer.schedule(shard.queue, 's', { every: '10s' }, 1, { missed: 'all', overlap: 'allow' });
    await letPass(65_000);
    const before = (await occurrences()).length;
    const [one, other] = [await computed(await asked(0)), await computed(await asked(0))];
    expect(one.occurrences.length).toBeGreaterThan(5);
    expect(await tell(new TestSession(shard), one)).toBe('w');
    const after = await shard.read();
    expect(await tell(new TestSession(shard), other)).toBe('c');
    expect(await shard.read()).toEqual(after);
    expect((await occurrences()).length).toBe(before + one.occurrences.length);
  });

  it('and one that is cancelled after a change was computed is told to it, and nothing is written', async () => {
    const { producer, queue } = shard;
    await producer.schedule(queue, 's', { every: '25s' }, 1);
    const [stored] = (await list()).schedules;
    const record = decodeRecord(stored!.text)!;
    const ahead = (await occurrences()).sort();
    const change: TickRequest = {
      id: 's',
      read: stored!.text,
      follows: encodeRecord({ ...record, state: { ...record.state, revision: 99, recent: [] } }),
      tick: stored!.tick,
      missed: 0,
      ahead: 0,
      gone: ahead,
      validBefore: undefined,
      occurrences: [],
    };
    await producer.cancel(queue, ahead[1]!);
    const before = await shard.read();
    expect(await tell(new TestSession(shard), change)).toBe(`o${ahead.map((_, n) => (n === 1 ? '1' : '0')).join('')}`);
    expect(await shard.read()).toEqual(before);
  });

  it('when a process dies after it was told, by the next one, and none is left out', async () => {
    await shard.producer.schedule(shard.queue, 's', { every: '10s' }, 1, { missed: 'all' });
    await letPass(65_000);
    const dead = await computed(await asked());
    expect((await asked()).due).toEqual([]);
    await here.world.redis.zadd(ticksKey, (await shard.now()) - 1, 's');
    const next = await computed(await asked());
    expect(next.occurrences.map(({ id }) => id)).toEqual(expect.arrayContaining(dead.occurrences.map(({ id }) => id)));
    expect(await tell(new TestSession(shard), next)).toBe('w');
    // A process that only seemed to be dead.
    expect(await tell(new TestSession(shard), dead)).toBe('c');
    expect(await occurrences()).toEqual(expect.arrayContaining(next.occurrences.map(({ id }) => id)));
  });

  it('when a call is sent again because its answer was lost', async () => {
    await shard.producer.schedule(shard.queue, 's', { every: '10s' }, 1);
    await letPass(65_000);
    const request = await computed(await asked());
    const session = new TestSession(shard);
    await tell(session, request);
    const after = await shard.read();
    expect(await session.again()).toBe('w');
    expect(await shard.read()).toEqual(after);
  });

  it('and count when they begin while their schedule is changed by a process that takes them to be ahead', async () => {
    const { producer, queue } = shard;
    await producer.schedule(queue, 's', { every: '1h' }, 1);
    const [{ text, tick }] = (await list()).schedules as [StoredSchedule];
    const { now } = await asked();
    const [id] = (await occurrences()) as [string];
    const follows = `${text} `;
    const rest = { missed: 0, ahead: 1, gone: [id], validBefore: now, occurrences: [] };
    const change = { id: 's', read: text, follows, tick, ...rest };
    await here.world.redis.zadd(shard.key('due'), 1, id);
    const claim = await shard.peer().take(id);
    expect(await tell(new TestSession(shard), change)).toBe('c');
    expect((await list()).schedules[0]!.text).toBe(text);
    expect(await tell(new TestSession(shard), { ...change, validBefore: now + HOUR })).toBe('o1');
    expect(await occurrences()).toEqual([id]);
    await shard.peer().settle(claim, id, { verb: 'complete' });
  });

  it('and missed ones are counted once', async () => {
    await shard.producer.schedule(shard.queue, 's', { every: '10s' }, 1);
    await letPass(HOUR);
    const [one, other] = [await computed(await asked(0)), await computed(await asked(0))];
    expect(one.missed).toBeGreaterThan(300);
    await tell(new TestSession(shard), one);
    await tell(new TestSession(shard), other);
    expect((await list()).schedules[0]!.missed).toBe(one.missed);
  });
});

describe('of what an outage has missed, with a backfill of it before a worker has made the latest one', () => {
  /** All that is due runs. @returns for which times */
  const run = async () => {
    const peer = shard.peer();
    const { claim, jobs } = await peer.claim(50);
    for (const { id } of jobs) await peer.settle(claim, id, { verb: 'complete' });
    return jobs.map(({ id }) => parseOccurrenceId(id)!.at);
  };

  it.each(['once', 'all'] as const)('each time runs once, whenever it runs: %s', async (missed) => {
    const { producer, queue } = shard;
    await producer.schedule(queue, 's', { every: '1h' }, 1, { missed, overlap: 'allow' });
    for (const id of await occurrences()) await producer.cancel(queue, id);
    await letPass(5.5 * HOUR);
    const { now } = await asked(0);
    const ran: number[] = [];
    const call = Reflect.get(EnqueueBatcher.prototype, 'run') as EnqueueBatcher['run'];
    const spy = jest.spyOn(EnqueueBatcher.prototype, 'run').mockImplementation(async function (
      this: EnqueueBatcher,
      ...args
    ) {
      const answer = await call.apply(this, args);
      ran.push(...(await run()));
      return answer;
    });
    const made = await producer.backfillSchedule(queue, 's', { from: now - 3 * HOUR, to: now });
    spy.mockRestore();
    expect(made).toBe(3);
    const told = await asked(0);
    if (told.due.length > 0) await tell(new TestSession(shard), await computed(told));
    const left = (await occurrences()).map((id) => parseOccurrenceId(id)!.at);
    expect(left.filter((at) => at <= now)).toEqual([]);
    expect(new Set(ran).size).toBe(ran.length);
    expect(ran).toHaveLength(missed === 'all' ? 4 : 3);
  });

  it('each time runs once, when the process dies behind what it has caught up, and the backfill is repeated', async () => {
    const { producer, queue } = shard;
    await producer.schedule(queue, 's', { every: '1h' }, 1, { overlap: 'allow' });
    for (const id of await occurrences()) await producer.cancel(queue, id);
    await letPass(5.5 * HOUR);
    const { now } = await asked(0);
    const stretch = { from: now - 3 * HOUR, to: now };
    const call = Reflect.get(EnqueueBatcher.prototype, 'run') as EnqueueBatcher['run'];
    const died = new Error('died');
    let calls = 0;
    const spy = jest.spyOn(EnqueueBatcher.prototype, 'run').mockImplementation(async function (
      this: EnqueueBatcher,
      ...args
    ) {
      if (calls++ > 0) throw died;
      return call.apply(this, args);
    });
    await expect(producer.backfillSchedule(queue, 's', stretch)).rejects.toBe(died);
    spy.mockRestore();
    const first = await run();
    expect(first).toHaveLength(1);
    expect(await producer.backfillSchedule(queue, 's', stretch)).toBe(3);
    const second = await run();
    expect(new Set([...first, ...second]).size).toBe(3);
    expect([...first, ...second]).toHaveLength(3);
    const [{ text }] = (await list()).schedules as [StoredSchedule];
    expect(decodeRecord(text)!.state.backfills).toBeUndefined();
    // It is complete: the same stretch again is a new backfill.
    expect(await producer.backfillSchedule(queue, 's', stretch)).toBe(3);
    expect(await run()).toHaveLength(3);
  });
});

describe('no occurrences are made', () => {
  it('of a paused queue; afterwards they count as missed', async () => {
    await shard.producer.schedule(shard.queue, 's', { every: '10s' }, 1);
    await letPass(HOUR);
    await shard.inspector.pause(shard.queue);
    expect((await asked()).due).toEqual([]);
    await shard.inspector.resume(shard.queue);
    expect((await computed(await asked())).missed).toBeGreaterThan(300);
  });

  it('while publishing is paused, and a schedule is refused', async () => {
    await shard.producer.schedule(shard.queue, 's', { every: '10s' }, 1);
    await shard.inspector.pausePublishing(shard.queue);
    await letPass(HOUR);
    expect((await asked()).due).toEqual([]);
    const call = shard.producer.schedule(shard.queue, 'other', { every: '10s' }, 1);
    await expect(call).rejects.toBeInstanceOf(PublishingPausedError);
    expect((await list()).schedules.map(({ id }) => id)).toEqual(['s']);
  });
});

describe('when a schedule goes', () => {
  /** The first occurrence runs, the second one waits for its retry. */
  const begun = async (id: string) => {
    const { producer, queue } = shard;
    await producer.schedule(queue, id, { every: '10s' }, 1);
    const ids = (await occurrences()).filter((one) => one.startsWith(`{${id}}`)).sort();
    const peer = shard.peer();
    for (const one of ids.slice(0, 2)) await here.world.makeDue(queue, one, 1_000);
    const claim = await peer.take(ids[0]!);
    await peer.settle(await peer.take(ids[1]!), ids[1]!, { verb: 'retry', delayMs: HOUR, error: '{}' });
    const retry = () => peer.settle(claim, ids[0]!, { verb: 'retry', delayMs: 0, error: '{}' });
    return { ids, retry };
  };

  it('an occurrence that runs goes on, and one that retries; the others go', async () => {
    const { ids, retry } = await begun('s');
    expect(await shard.producer.unschedule(shard.queue, 's')).toMatchObject({ occurrences: ids.length - 2 });
    expect((await occurrences()).sort()).toEqual(ids.slice(0, 2));
    await retry();
    expect((await occurrences()).sort()).toEqual(ids.slice(0, 2));
    expect(await here.world.redis.exists(schedulesKey, ticksKey)).toBe(0);
  });

  it('with `running` an occurrence that runs or retries is cancelled, and none of another schedule', async () => {
    const { ids, retry } = await begun('s');
    const other = await begun('s2');
    const answer = await shard.producer.unschedule(shard.queue, 's', { running: true });
    expect(answer).toMatchObject({ occurrences: ids.length - 2 });
    expect((await occurrences()).sort()).toEqual([ids[0]!, ...other.ids].sort());
    expect(await shard.see(ids[0]!)).toMatchObject({ state: 'running', followup: 'cancelled' });
    await retry();
    expect((await occurrences()).sort()).toEqual(other.ids);
  });
});

describe('of a schedule that made more occurrences than its record names', () => {
  const MADE = 250;
  /** Beside jobs of others, due before and after them, and in the same millisecond. */
  async function manyMade(): Promise<{ due: number; others: string[] }> {
    const { producer, queue } = shard;
    await producer.schedule(queue, 's', { cron: '*/10 * * * * *' }, 1, { overlap: 'allow' });
    await producer.schedule(queue, 's2', { every: '1h' }, 1);
    const to = new Date(await shard.now());
    await producer.backfillSchedule(queue, 's', { from: new Date(+to - MADE * 10_000), to });
    await here.world.redis.zadd(ticksKey, 9e15, 's');
    const due = (await occurrences()).filter((id) => id.startsWith('{s}')).sort();
    const moment = await here.world.redis.zscore(shard.key('due'), due[0]!);
    for (const at of [-1, 0, 1]) {
      const items = Array.from({ length: 400 }, (_, n) => ({
        payload: n,
        id: `${'az~'.charAt(at + 1)}${n}`,
        at: Number(moment) + at,
      }));
      await producer.enqueueMany(queue, items);
    }
    const others = Object.keys((await shard.read()).jobs).filter((id) => !id.startsWith('{s}'));
    expect(others).toHaveLength(1_201);
    return { due: due.length, others: others.sort() };
  }
  const stored = async () => Object.keys((await shard.read()).jobs).sort();

  it('unschedule() takes back all that wait, and nothing else', async () => {
    const { due, others } = await manyMade();
    expect(due).toBeGreaterThanOrEqual(MADE);
    const result = await shard.producer.unschedule(shard.queue, 's');
    expect(result).toMatchObject({ outcome: 'removed', occurrences: due });
    expect(await stored()).toEqual(others);
    expect((await list()).schedules.map(({ id }) => id)).toEqual(['s2']);
  });

  it('unschedule() of 1,000 schedules at once takes back what is theirs, and looks for it together', async () => {
    const { producer, queue } = shard;
    const ids = Array.from({ length: 1_000 }, (_, n) => `s${n}`);
    const kept = ['s', 's1000', 'k'];
    const all = [...kept, ...ids];
    while (all.length > 0)
      await Promise.all(all.splice(0, 100).map((id) => producer.schedule(queue, id, { every: '10s' }, 1)));
    const made = await occurrences();
    const asked = jest.spyOn(EnqueueBatcher.prototype, 'ask');
    try {
      const results = await Promise.all(ids.map((id) => producer.unschedule(queue, id)));
      for (const { id, outcome, occurrences: taken } of results) {
        const own = made.filter((one) => one.startsWith(`{${id}}`)).length;
        expect({ id, outcome, taken }).toEqual({ id, outcome: 'removed', taken: own });
      }
      const looks = asked.mock.calls.filter(([script]) => script === 'withdrawOccurrences');
      // Each by itself it were a dozen for each, and more at once than Redis answers in time.
      expect(looks.length).toBeLessThan(1_000);
    } finally {
      asked.mockRestore();
    }
    expect((await list()).schedules.map(({ id }) => id).sort()).toEqual(kept.sort());
    const isKept = (one: string) => kept.includes(parseOccurrenceId(one)!.schedule);
    expect((await occurrences()).sort()).toEqual(made.filter(isKept).sort());
  }, 60_000);
  it('pauseSchedule() takes back all that wait, and nothing else', async () => {
    const { others } = await manyMade();
    expect(await shard.producer.pauseSchedule(shard.queue, 's')).toMatchObject({ outcome: 'paused' });
    expect(await stored()).toEqual(others);
  });

  it('a pause counts each that was due once, though it breaks off, is repeated, and another process pauses meanwhile', async () => {
    const { due } = await manyMade();
    const { inspector, queue } = shard;
    const told: OccurrencesSkippedMessage[] = [];
    const listen = (message: unknown) => void told.push(message as OccurrencesSkippedMessage);
    subscribe(channelName('occurrencesSkipped'), listen);
    const ask = Reflect.get(EnqueueBatcher.prototype, 'ask') as EnqueueBatcher['ask'];
    let looks = 0;
    const spy = jest.spyOn(EnqueueBatcher.prototype, 'ask').mockImplementation(async function (
      this: EnqueueBatcher,
      ...args
    ) {
      // After two pages of three or more.
      if (args[0] === 'withdrawOccurrences' && ++looks === 3) return () => new UnavailableError('broken off');
      return ask.apply(this, args);
    });
    const options = resolveModuleOptions({ connection: here.world.connection, prefix: here.world.prefix }, 'default');
    const context = new InstanceContext(shard.connection, options, () => undefined);
    const another = new DelayQueueProducer(context);
    const now = await shard.now();
    const ahead = (await occurrences()).filter((id) => id.startsWith('{s}') && parseOccurrenceId(id)!.at > now).length;
    try {
      await expect(shard.producer.pauseSchedule(queue, 's')).rejects.toThrow('broken off');
      const before = told.reduce((sum, { count }) => sum + count, 0);
      expect(before).toBeGreaterThan(0);
      expect(before).toBeLessThan(due - ahead);
      await Promise.all([shard.producer.pauseSchedule(queue, 's'), another.pauseSchedule(queue, 's')]);
    } finally {
      spy.mockRestore();
      unsubscribe(channelName('occurrencesSkipped'), listen);
      await context.close(0);
    }
    const counted = told.reduce((sum, { count }) => sum + count, 0);
    expect(counted).toBeGreaterThanOrEqual(due - ahead);
    expect((await list()).schedules.find(({ id }) => id === 's')!.missed).toBe(counted);
    expect(await inspector.totals(queue)).toMatchObject({ skipped: counted });
  });

  it('what it makes stays when it goes on before its pause has taken back all', async () => {
    await manyMade();
    const { producer, queue } = shard;
    const ask = Reflect.get(EnqueueBatcher.prototype, 'ask') as EnqueueBatcher['ask'];
    let made: string[] | undefined;
    const spy = jest.spyOn(EnqueueBatcher.prototype, 'ask').mockImplementation(async function (
      this: EnqueueBatcher,
      ...args
    ) {
      if (args[0] === 'withdrawOccurrences' && !made) {
        made = [];
        const now = await shard.now();
        await producer.resumeSchedule(queue, 's');
        made = (await stored()).filter((id) => id.startsWith('{s}') && parseOccurrenceId(id)!.at > now);
      }
      return ask.apply(this, args);
    });
    try {
      await producer.pauseSchedule(queue, 's');
    } finally {
      spy.mockRestore();
    }
    expect(made!.length).toBeGreaterThanOrEqual(6);
    expect((await stored()).filter((id) => id.startsWith('{s}'))).toEqual(made);
  });

  /** Another process does something between the read of a call and its look through what is due. */
  async function beforeItsLook(
    act: (by: DelayQueueProducer) => Promise<unknown>,
    call: () => Promise<unknown>,
    isOver = () => false,
  ): Promise<void> {
    const ask = Reflect.get(EnqueueBatcher.prototype, 'ask') as EnqueueBatcher['ask'];
    const options = resolveModuleOptions({ connection: here.world.connection, prefix: here.world.prefix }, 'default');
    const context = new InstanceContext(shard.connection, options, () => undefined);
    let isActing = false;
    const spy = jest.spyOn(EnqueueBatcher.prototype, 'ask').mockImplementation(async function (
      this: EnqueueBatcher,
      ...args
    ) {
      if (args[0] === 'withdrawOccurrences' && !isActing) {
        isActing = true;
        const read = await shard.now();
        while ((await shard.now()) === read);
        await act(new DelayQueueProducer(context));
      } else if (isOver() && args[0] === 'unschedule') return () => new UnavailableError('broken off');
      return ask.apply(this, args);
    });
    try {
      await call();
    } finally {
      spy.mockRestore();
      await context.close(0);
    }
  }

  it('a pause that is written late holds for what has come due since it was read', async () => {
    const { producer, queue } = shard;
    await producer.schedule(queue, 's', { every: '1h' }, 1);
    const ask = Reflect.get(EnqueueBatcher.prototype, 'ask') as EnqueueBatcher['ask'];
    const spy = jest.spyOn(EnqueueBatcher.prototype, 'ask').mockImplementation(async function (
      this: EnqueueBatcher,
      ...args
    ) {
      const read = await shard.now();
      while ((await shard.now()) < read + 5);
      return ask.apply(this, args);
    });
    try {
      await producer.pauseSchedule(queue, 's');
    } finally {
      spy.mockRestore();
    }
    const [stored] = (await list()).schedules;
    const { last } = decodeRecord(stored!.text)!.state;
    const paused = Number(await here.world.redis.hget(schedulesKey, 'paused{s}'));
    expect(paused).toBeGreaterThanOrEqual(last + 4);
    expect(paused).toBeLessThan(await shard.now());
    await producer.resumeSchedule(queue, 's');
    expect(Number(await here.world.redis.hget(schedulesKey, 'paused{s}'))).toBe(last);
  });

  it('what is made anew under its name stays, though a removal that was begun before takes back what it has read', async () => {
    const { producer, queue } = shard;
    const make = (by = producer) => by.schedule(queue, 's', { cron: '0 0 1 1 *' }, 1);
    await make();
    const made = await stored();
    let isMade = false;
    const removed = beforeItsLook(
      async (by) => {
        expect(await make(by)).toMatchObject({ outcome: 'created' });
        expect(await stored()).toEqual(made);
        isMade = true;
      },
      () => producer.unschedule(queue, 's'),
      () => isMade,
    );
    await expect(removed).rejects.toThrow('broken off');
    expect(await make()).toMatchObject({ outcome: 'kept', next: expect.any(Date) });
    expect(await stored()).toEqual(made);
    expect(await producer.unschedule(queue, 's')).toMatchObject({ occurrences: made.length });
  });

  it('a backfill of it stays when it is paused by a call that has not taken back all yet', async () => {
    const { producer, queue } = shard;
    await producer.schedule(queue, 's', { cron: '0 * * * *' }, 1);
    const now = await shard.now();
    let count: number | undefined;
    await beforeItsLook(
      async (by) => (count = await by.backfillSchedule(queue, 's', { from: now - 10 * HOUR, to: now })),
      () => producer.pauseSchedule(queue, 's'),
    );
    expect(count).toBeGreaterThanOrEqual(10);
    expect(await stored()).toHaveLength(count!);
  });

  it('what was made by a clock that was set back goes with it', async () => {
    const { producer, queue } = shard;
    await producer.schedule(queue, 's', { every: '1h' }, 1);
    const jobs = Object.entries(await here.world.redis.hgetall(shard.key('jobs')));
    // Enqueued when they are due.
    for (const [id, job] of jobs) {
      await here.world.redis.hset(shard.key('jobs'), id, job.slice(0, 2) + job.slice(9, 16) + job.slice(9));
    }
    expect(await producer.unschedule(queue, 's')).toMatchObject({ occurrences: jobs.length });
    expect(await stored()).toEqual([]);
  });

  it('unschedule() cancels all that run, when asked to', async () => {
    await manyMade();
    const peer = shard.peer();
    const claims: Awaited<ReturnType<typeof peer.claim>>[] = [];
    while (claims.at(-1)?.jobs.length !== 0) claims.push(await peer.claim(1_000));
    const ran = claims.flatMap(({ jobs }) => jobs.map(({ id }) => id)).filter((id) => id.startsWith('{s}'));
    expect(ran.length).toBeGreaterThanOrEqual(MADE);
    await shard.producer.unschedule(shard.queue, 's', { running: true });
    expect(Object.keys((await shard.read()).followups).sort()).toEqual(ran.sort());
    for (const { claim, jobs } of claims)
      await peer.step({ settle: jobs.map(({ id }) => [claim, id, { verb: 'release', dueAt: 1 }] as const) });
    expect((await stored()).filter((id) => id.startsWith('{s}'))).toEqual([]);
  });

  it('a call that broke off half-way is completed when it is repeated', async () => {
    const { others } = await manyMade();
    const { producer, queue } = shard;
    // The process died when it had stopped the schedule.
    const stop = async () => {
      const record = decodeRecord((await here.world.redis.hget(schedulesKey, '{s}'))!)!;
      const now = await shard.now();
      const stopped = encodeRecord({ ...record, state: { ...record.state, paused: true, last: now } });
      await here.world.redis.hset(schedulesKey, '{s}', stopped);
      return now;
    };
    const now = await stop();
    for (const id of await occurrences()) if (parseOccurrenceId(id)!.at > now) await producer.cancel(queue, id);
    expect(await producer.pauseSchedule(queue, 's')).toMatchObject({ outcome: 'kept' });
    expect(await stored()).toEqual(others.filter((id) => !id.startsWith('{')));
    await producer.resumeSchedule(queue, 's');
    await producer.backfillSchedule(queue, 's', { from: now - 2_000_000, to: now });
    await stop();
    expect(await producer.unschedule(queue, 's')).toMatchObject({ outcome: 'removed' });
    expect((await stored()).filter((id) => id.startsWith('{s}'))).toEqual([]);
  });

  it('the next time is known, and a change of its times takes back what is ahead', async () => {
    const { producer, queue } = shard;
    await manyMade();
    const now = await shard.now();
    const next = (await producer.listSchedules(queue)).schedules.find(({ id }) => id === 's')!.next!;
    expect(next.getTime()).toBeGreaterThan(now);
    expect(next.getTime()).toBeLessThanOrEqual(now + 10_000);
    await producer.schedule(queue, 's', { cron: '0 0 1 1 *' }, 1, { overlap: 'allow' });
    const ahead = (await stored()).map(parseOccurrenceId).filter((one) => one?.schedule === 's' && one.at > now);
    expect(ahead).toHaveLength(1);
  });
});

describe('a purge of the jobs that wait', () => {
  const DAY = 24 * HOUR;

  it.each(['without groups', 'with groups'])(
    'leaves what schedules have made ahead, and nothing else: %s',
    async (groups) => {
      const { producer, inspector, queue } = shard;
      const options = groups === 'with groups' ? { group: 'g', priority: 3 } : {};
      await shard.put('quarantined', 'q1');
      await shard.put('quarantined', 'q2');
      const now = await shard.now();
      // More of them than one page, and jobs between them and behind them.
      for (const id of 'abcdefghijkl')
        await producer.schedule(queue, id, { every: '1s' }, 1, { ...options, from: now });
      await producer.schedule(queue, 'daily', { every: '1d' }, 1, options);
      const due = Array.from({ length: 600 }, (_, n) => ({ payload: n, at: now + n * 200 - 2_000, ...options }));
      await producer.enqueueMany(queue, due);
      await producer.triggerSchedule(queue, 'daily');
      const ahead = (await occurrences()).filter((id) => parseOccurrenceId(id)!.at > now + 30_000);
      expect(ahead.length).toBeGreaterThan(250);
      const first = ahead.find((id) => id.startsWith('{a}'))!;
      await here.world.redis.hset(shard.key('attempts'), first, '1 0 0 0');
      const stray = `{gone}${(now + DAY).toString(36)}`;
      await here.world.redis.zadd(shard.key('due'), now + DAY, stray);
      await here.world.redis.hset(shard.key('jobs'), stray, '1-\n1');
      await inspector.purge(queue);
      const left = await occurrences();
      const at = await shard.now();
      expect(Object.keys((await shard.read()).jobs).sort()).toEqual(left.sort());
      expect(left).toEqual(
        expect.arrayContaining(ahead.filter((id) => id !== first && parseOccurrenceId(id)!.at > at)),
      );
      expect(left.filter((id) => id === first || id === stray || parseOccurrenceId(id)!.at <= now)).toEqual([]);
      expect(await inspector.purge(queue, { states: ['waiting'] })).toMatchObject({ removed: expect.any(Number) });
      const counts = await inspector.counts(queue);
      expect(counts.delayed + counts.due).toBe((await occurrences()).length);
    },
  );

  it('is one of them all where no schedule is, by the script that knows of none', async () => {
    const { producer, inspector, queue } = shard;
    const run = jest.spyOn(EnqueueBatcher.prototype, 'run');
    await producer.schedule(queue, 's', { every: '1d' }, 1);
    await producer.enqueue(queue, 1);
    expect(await inspector.purge(queue)).toEqual({ removed: 1 });
    await producer.unschedule(queue, 's');
    await producer.enqueue(queue, 1);
    expect(await inspector.purge(queue)).toEqual({ removed: 1 });
    const scripts = run.mock.calls.map(([script]) => script).filter((name) => /remove|purge/.test(name));
    run.mockRestore();
    expect(scripts).toEqual(['purgeWaiting', 'remove']);
  });
});

it('an occurrence that was triggered while its schedule was paused stays when the schedule goes on', async () => {
  const { producer, queue } = shard;
  await producer.schedule(queue, 's', { cron: '0 0 1 1 *' }, 1);
  await producer.pauseSchedule(queue, 's');
  const id = await producer.triggerSchedule(queue, 's');
  await producer.pauseSchedule(queue, 's');
  expect(await occurrences()).toEqual([id]);
  await producer.resumeSchedule(queue, 's');
  expect(await occurrences()).toContain(id);
});

it('a pause that is repeated leaves what was triggered in the millisecond of the first one', async () => {
  const { producer, queue } = shard;
  await producer.schedule(queue, 's', { cron: '0 0 1 1 *' }, 1);
  for (let n = 0; n < 50; n++) {
    const paused = producer.pauseSchedule(queue, 's');
    const triggered = producer.triggerSchedule(queue, 's');
    const again = producer.pauseSchedule(queue, 's');
    const [, id] = await Promise.all([paused, triggered, again]);
    expect(await occurrences()).toContain(id);
    await producer.cancel(queue, id!);
    await producer.resumeSchedule(queue, 's');
  }
});

describe('the floor', () => {
  const begin = (at: number, claim: number, how: 'm' | 's' | 'w') =>
    shard.run('beginOccurrence', shard.keys.session('none'), ['s', `{s}${at}`, claim, how, at]);
  /** An occurrence that is stored and claimed. */
  const claimed = async (at: number) => {
    await here.world.redis.hset(shard.key('jobs'), `{s}${at}`, '1-,,,,,,,,,,,,,,\n1');
    await here.world.redis.zadd(shard.key('due'), 1, `{s}${at}`);
    return shard.peer().take(`{s}${at}`);
  };
  const over = async (claim: number, at: number) =>
    shard.peer().settle(claim, `{s}${at}`, { verb: 'release', dueAt: 1 });
  beforeEach(async () => {
    await shard.producer.schedule(shard.queue, 's', { cron: '0 0 1 1 *' }, 1);
  });

  it('is of the one that began, until its job is gone; its own run may begin again', async () => {
    const [one, two] = [await claimed(1), await claimed(2)];
    expect(await begin(1, one, 's')).toBe('g');
    expect(await begin(2, two, 'w')).toBe('b');
    expect(await begin(1, one, 's')).toBe('g');
    // Also when it is late by now: it had begun in time.
    expect(await begin(1, one, 'm')).toBe('g');
    await shard.peer().settle(one, '{s}1', { verb: 'complete' });
    expect(await begin(2, two, 'w')).toBe('g');
    await shard.peer().settle(two, '{s}2', { verb: 'complete' });
  });

  it('what does not run is counted once, also when its process dies before it says so, and ends with its run', async () => {
    const [one, two, three] = [await claimed(1), await claimed(2), await claimed(3)];
    expect(await begin(1, one, 's')).toBe('g');
    for (let runs = 0; runs < 3; runs++) expect(await begin(2, two, 's')).toBe('b');
    expect(await begin(3, three, 'm')).toBe('m');
    expect(await begin(3, three, 'm')).toBe('m');
    expect((await list()).schedules[0]).toMatchObject({ overlapped: 1, missed: 1 });
    // The process of one of them is gone; that of the other says that the run is over.
    await shard.expire(two);
    await shard.peer().step({ sweep: true });
    await over(three, 3);
    expect((await occurrences()).filter((id) => /^\{s\}[23]$/.test(id))).toEqual([]);
    expect(await shard.inspector.totals(shard.queue)).toMatchObject({ skipped: 2, expired: 0, completed: 0 });
    await shard.peer().settle(one, '{s}1', { verb: 'complete' });
  });

  it('is not given, when it is asked for again, to what was told that it does not run, or was cancelled', async () => {
    const [one, two, three] = [await claimed(1), await claimed(2), await claimed(3)];
    expect(await begin(1, one, 's')).toBe('g');
    expect(await begin(2, two, 's')).toBe('b');
    await shard.producer.cancel(shard.queue, '{s}3', { running: true });
    await shard.peer().settle(one, '{s}1', { verb: 'complete' });
    expect(await begin(2, two, 's')).toBe('l');
    expect(await begin(3, three, 'w')).toBe('l');
    await over(two, 2);
    await over(three, 3);
    expect((await list()).schedules[0]).toMatchObject({ overlapped: 1, missed: 0, floor: '{s}1' });
    expect((await occurrences()).filter((id) => /^\{s\}[123]$/.test(id))).toEqual([]);
  });

  it('is not asked of one that gives way to later ones, of which none is there', async () => {
    const one = await claimed(1);
    const asks = (...later: string[]) =>
      shard.run('beginOccurrence', shard.keys.session('none'), ['s', '{s}1', one, 'm', 1, ...later]);
    expect(await asks('{s}2', '{s}3')).toBe('n');
    expect((await list()).schedules[0]).toMatchObject({ missed: 0, floor: undefined });
    await here.world.redis.hset(shard.key('jobs'), '{s}3', '1-,,,,,,,,,,,,,,\n1');
    expect(await asks('{s}2', '{s}3')).toBe('m');
    await here.world.redis.hdel(shard.key('jobs'), '{s}3');
    await over(one, 1);
    expect((await list()).schedules[0]).toMatchObject({ missed: 1 });
  });

  it('is not given, and nothing ends, by a call that comes when another claim holds the occurrence', async () => {
    const one = await claimed(1);
    for (const how of ['m', 's', 'w'] as const) expect(await begin(1, one - 1, how)).toBe('l');
    expect((await list()).schedules[0]).toMatchObject({ overlapped: 0, missed: 0, floor: undefined });
    await over(one, 1);
    expect(await shard.see('{s}1')).toMatchObject({ state: 'due' });
    await shard.producer.cancel(shard.queue, '{s}1');
  });
});

describe('what a worker holds and has not begun while its schedule is paused', () => {
  const ask = (id: string, claim: number, dueAt = parseOccurrenceId(id)!.at) =>
    shard.run('beginOccurrence', shard.keys.session('none'), ['s', id, claim, 'w', dueAt]);

  it('does not begin any more, also when the schedule goes on, and counts as missed once; what was asked for since begins', async () => {
    const { inspector, producer, queue } = shard;
    await producer.schedule(queue, 's', { cron: '0 0 1 1 *' }, 1, { overlap: 'queue' });
    const peer = shard.peer();
    const [before, begun] = [
      (await producer.triggerSchedule(queue, 's'))!,
      (await producer.triggerSchedule(queue, 's'))!,
    ];
    const held = await peer.take(before);
    const runs = await peer.take(begun);
    expect(await ask(begun, runs)).toBe('g');
    expect(await ask(before, held)).toBe('b');
    await producer.pauseSchedule(queue, 's');
    expect(await ask(before, held)).toBe('m');
    expect(await ask(begun, runs)).toBe('g');
    await producer.resumeSchedule(queue, 's');
    expect(await ask(before, held)).toBe('m');
    expect((await list()).schedules[0]).toMatchObject({ missed: 1, overlapped: 0 });
    expect(await inspector.totals(queue)).toMatchObject({ skipped: 1 });
    await peer.settle(held, before, { verb: 'release', dueAt: 1 });
    await peer.settle(runs, begun, { verb: 'complete' });
    expect(await shard.see(before)).toEqual({ state: 'none' });
    const since = (await producer.triggerSchedule(queue, 's'))!;
    const claim = await peer.take(since);
    expect(await ask(since, claim)).toBe('g');
    await peer.settle(claim, since, { verb: 'complete' });
  });

  it('begins when somebody has made it due since, or it had begun before', async () => {
    const { producer, queue } = shard;
    await producer.schedule(queue, 's', { cron: '0 0 1 1 *' }, 1, { overlap: 'queue' });
    const peer = shard.peer();
    const [moved, retried] = [
      (await producer.triggerSchedule(queue, 's'))!,
      (await producer.triggerSchedule(queue, 's'))!,
    ];
    const [one, other] = [await peer.take(moved), await peer.take(retried)];
    await peer.settle(other, retried, { verb: 'retry', delayMs: 0, error: '{}' });
    await producer.pauseSchedule(queue, 's');
    expect(await ask(moved, one, (await shard.now()) + 1)).toBe('g');
    await peer.settle(one, moved, { verb: 'complete' });
    const again = await peer.take(retried);
    expect(await ask(retried, again)).toBe('g');
    await peer.settle(again, retried, { verb: 'complete' });
  });
});

describe('an occurrence that was lost by a process that held nothing else', () => {
  /** Its loss is charged. @returns its id, and the claim that has it by then */
  async function lost(overlap: 'skip' | 'queue', lease: (id: string, claim: number) => Promise<unknown>) {
    const { producer, queue } = shard;
    await producer.schedule(queue, 's', { cron: '0 0 1 1 *' }, 1, { overlap });
    const id = (await producer.triggerSchedule(queue, 's'))!;
    const peer = shard.peer();
    const claim = await peer.take(id, { isSole: true });
    await lease(id, claim);
    await shard.expire(claim);
    await peer.step({ sweep: true });
    expect(await shard.see(id)).toMatchObject({ state: 'quarantined', attempts: 1 });
    const again = async () => (await peer.step({ quarantineLimit: 1 })).claim;
    return { id, peer, again };
  }
  const ask = (id: string, claim: number, how: 'm' | 's' | 'w') =>
    shard.run('beginOccurrence', shard.keys.session('none'), ['s', id, claim, how, parseOccurrenceId(id)!.at]);

  it.each(['skip', 'queue'] as const)('before it began does not begin after a pause: overlap %s', async (overlap) => {
    const { id, peer, again } = await lost(overlap, async () => undefined);
    await shard.producer.pauseSchedule(shard.queue, 's');
    const claim = await again();
    expect(await ask(id, claim, overlap === 'queue' ? 'w' : 's')).toBe('m');
    await peer.settle(claim, id, { verb: 'release', dueAt: 1 });
    expect(await shard.see(id)).toEqual({ state: 'none' });
    expect((await list()).schedules[0]).toMatchObject({ missed: 1 });
  });

  it('before it began waits for the one before it where others wait, and not in quarantine', async () => {
    let before = '';
    let runs = 0;
    const { id, peer, again } = await lost('queue', async () => {
      before = (await shard.producer.triggerSchedule(shard.queue, 's'))!;
      runs = await shard.peer().take(before);
      expect(await ask(before, runs, 'w')).toBe('g');
    });
    for (let turn = 0; turn < 2; turn++) {
      const claim = turn === 0 ? await again() : await peer.take(id);
      expect(await ask(id, claim, 'w')).toBe('b');
      await peer.settle(claim, id, { verb: 'release', dueAt: (await shard.now()) + 1_000 });
      await here.world.makeDue(shard.queue, id, 1);
    }
    await peer.settle(runs, before, { verb: 'complete' });
    const claim = await peer.take(id);
    expect(await ask(id, claim, 'w')).toBe('g');
    await peer.settle(claim, id, { verb: 'complete' });
  });

  it('when it had begun begins again after a pause, and when its schedule is gone', async () => {
    const { id, peer, again } = await lost('skip', (id, claim) => ask(id, claim, 's'));
    await shard.producer.pauseSchedule(shard.queue, 's');
    const claim = await again();
    expect(await ask(id, claim, 's')).toBe('g');
    await shard.producer.unschedule(shard.queue, 's');
    expect(await ask(id, claim, 'm')).toBe('g');
    await peer.settle(claim, id, { verb: 'complete' });
  });
});

describe('an occurrence of a schedule that was removed and made anew since', () => {
  const ask = (id: string, claim: number, how: 'm' | 's' | 'w') =>
    shard.run('beginOccurrence', shard.keys.session('none'), ['s', id, claim, how, parseOccurrenceId(id)!.at]);

  it('and whose process died goes on, also beside another one and while the new schedule is paused', async () => {
    const { producer, queue } = shard;
    const make = () => producer.schedule(queue, 's', { cron: '0 0 1 1 *' }, 1);
    await make();
    const id = (await producer.triggerSchedule(queue, 's'))!;
    const peer = shard.peer();
    const lost = await peer.take(id);
    expect(await ask(id, lost, 's')).toBe('g');
    await shard.expire(lost);
    await peer.step({ sweep: true });
    await producer.unschedule(queue, 's');
    await eventually(async () => expect(await shard.now()).toBeGreaterThan(parseOccurrenceId(id)!.at));
    await make();
    const other = (await producer.triggerSchedule(queue, 's'))!;
    const runs = await peer.take(other);
    expect(await ask(other, runs, 's')).toBe('g');
    const { claim } = await peer.step({ quarantineLimit: 1 });
    expect(await ask(id, claim, 's')).toBe('g');
    await producer.pauseSchedule(queue, 's');
    expect(await ask(id, claim, 'm')).toBe('g');
    expect((await list()).schedules[0]).toMatchObject({ floor: other, missed: 0, overlapped: 0 });
    await peer.settle(claim, id, { verb: 'complete' });
    await peer.settle(runs, other, { verb: 'complete' });
  });
});

describe('an occurrence that a process which had to stop has interrupted', () => {
  const ask = (id: string, claim: number, how: 'm' | 's' | 'w') =>
    shard.run('beginOccurrence', shard.keys.session('none'), ['s', id, claim, how, parseOccurrenceId(id)!.at]);
  /** It has begun, and waits. */
  async function interrupted(overlap: 'skip' | 'queue' | 'allow') {
    const { producer, queue } = shard;
    await producer.schedule(queue, 's', { cron: '0 0 1 1 *' }, 1, { overlap });
    const id = (await producer.triggerSchedule(queue, 's'))!;
    const { dueAt } = await shard.see(id);
    const peer = shard.peer();
    const claim = await peer.take(id);
    const answer = overlap === 'allow' ? 'g' : await ask(id, claim, 's');
    expect(answer).toBe('g');
    const header = { overlap } as OccurrenceHeader;
    await peer.settle(claim, id, { verb: 'release', dueAt: dueAgain(dueAt!, header) });
    return { id, peer };
  }

  it.each(['skip', 'queue', 'allow'] as const)(
    'stays when its schedule is paused, and goes on: %s',
    async (overlap) => {
      const { id, peer } = await interrupted(overlap);
      await shard.producer.pauseSchedule(shard.queue, 's');
      expect((await list()).schedules[0]).toMatchObject({ missed: 0 });
      const claim = await peer.take(id);
      const answer = overlap === 'allow' ? 'g' : await ask(id, claim, 'm');
      expect(answer).toBe('g');
      await peer.settle(claim, id, { verb: 'complete' });
    },
  );

  it.each(['skip', 'allow'] as const)('stays when its schedule is removed, and goes on: %s', async (overlap) => {
    const { id, peer } = await interrupted(overlap);
    expect(await shard.producer.unschedule(shard.queue, 's')).toMatchObject({ occurrences: 1 });
    const claim = await peer.take(id);
    expect(await ask(id, claim, 'm')).toBe('g');
    await peer.settle(claim, id, { verb: 'complete' });
  });

  it('stays also when it had waited for the one before it, as that says when it is due', async () => {
    const { producer, queue } = shard;
    await producer.schedule(queue, 's', { cron: '0 0 1 1 *' }, 1, { overlap: 'queue' });
    const id = (await producer.triggerSchedule(queue, 's'))!;
    const peer = shard.peer();
    await peer.settle(await peer.take(id), id, { verb: 'release', dueAt: (await shard.now()) + 1_000 });
    await here.world.makeDue(queue, id, -5_000);
    const other = await shard.see(id);
    await here.world.makeDue(queue, id, 1);
    const claim = await peer.take(id);
    expect(await ask(id, claim, 'w')).toBe('g');
    await peer.settle(claim, id, { verb: 'release', dueAt: other.dueAt! });
    expect(await producer.unschedule(queue, 's')).toMatchObject({ occurrences: 1 });
    expect(await shard.see(id)).toMatchObject({ state: 'delayed' });
    await producer.cancel(queue, id);
  });
});

describe('a schedule that needs more occurrences', () => {
  const late = async () => (await shard.inspector.counts(shard.queue)).schedulesLateMs;

  it('is late until they are made, also while processes are told of it and cannot read it', async () => {
    await shard.producer.schedule(shard.queue, 's', { every: '10s' }, 1);
    expect(await late()).toBe(0);
    await letPass(HOUR);
    expect(await late()).toBeGreaterThan(HOUR - 60_000);
    const told = await asked();
    expect((await asked()).due).toEqual([]);
    expect(await late()).toBeGreaterThan(HOUR - 60_000);
    await tell(new TestSession(shard), await computed(told));
    expect(await late()).toBe(0);
    expect(await shard.inspector.counts(shard.queue)).toMatchObject({ schedules: 1 });
    await shard.producer.unschedule(shard.queue, 's');
    expect(await shard.inspector.counts(shard.queue)).toMatchObject({ schedules: 0, schedulesLateMs: 0 });
  });

  it('is not late while the queue or its publishing is paused', async () => {
    await shard.producer.schedule(shard.queue, 's', { every: '10s' }, 1);
    await letPass(HOUR);
    await shard.inspector.pause(shard.queue);
    expect(await late()).toBe(0);
    await shard.inspector.resume(shard.queue);
    await shard.inspector.pausePublishing(shard.queue);
    expect(await late()).toBe(0);
    await shard.inspector.resumePublishing(shard.queue);
    expect(await late()).toBeGreaterThan(0);
  });
});
