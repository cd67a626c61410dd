import { beforeEach, describe, expect, it } from '@jest/globals';
import { DuplicateJobError } from '../../lib/index.js';
import type { JobState, OnDuplicate } from '../../lib/index.js';
import { TestSession } from './peer.js';
import type { Peer } from './peer.js';
import { HOUR } from './shard.js';
import type { Shard, State } from './shard.js';
import { shards } from './shards.js';
import { decodeEnvelope } from '../../lib/job/envelope.js';

const here = shards();
let shard: Shard;
let peer: Peer;
beforeEach(() => {
  shard = here.fresh();
  peer = shard.peer();
});

describe('two items with one id in one enqueueMany', () => {
  const twice = async (onDuplicate: OnDuplicate, at: [number, number]) => {
    const items = at.map((moment, n) => ({ payload: `p${n}`, id: 'A', at: moment, onDuplicate }));
    return shard.producer.enqueueMany(shard.queue, items);
  };

  it.each<[OnDuplicate, string, string, number]>([
    ['keep', 'kept', 'p0', 0],
    ['replace', 'replaced', 'p1', 1],
    ['reschedule', 'rescheduled', 'p0', 1],
  ])("with '%s' the second is %s", async (onDuplicate, outcome, payload, counts) => {
    const at: [number, number] = [(await shard.now()) + HOUR, (await shard.now()) + 2 * HOUR];
    const results = await twice(onDuplicate, at);
    expect(results.map((result) => [result.outcome, result.state, result.dueAt.getTime()])).toEqual([
      ['created', 'delayed', at[0]],
      [outcome, 'delayed', at[counts]],
    ]);
    expect(await shard.see('A')).toEqual({ state: 'delayed', payload, dueAt: at[counts] });
  });

  it("with 'reject' only the second is refused", async () => {
    const laterAt = (await shard.now()) + HOUR;
    const error = await twice('reject', [laterAt, laterAt]).catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      code: 'ERR_DQ_BULK',
      results: [
        { id: 'A', outcome: 'created' },
        { id: 'A', error: expect.any(DuplicateJobError) },
      ],
    });
    expect(await shard.see('A')).toEqual({ state: 'delayed', payload: 'p0', dueAt: laterAt });
  });

  it.each<[State, string, JobState]>([
    ['dead', 'dead', 'delayed'],
    ['quarantined', 'due', 'delayed'],
    ['due', 'due', 'delayed'],
    ['running', 'running', 'running'],
  ])('the second finds what the first made of a job that was %s', async (state, first, second) => {
    await shard.put(state, 'A');
    const laterAt = (await shard.now()) + HOUR;
    const results = await twice('replace', [laterAt, laterAt + 1]);
    expect(results.map((result) => [result.outcome, result.state])).toEqual([
      ['replaced', first],
      ['replaced', second],
    ]);
    expect(await shard.see('A')).toMatchObject(
      state === 'running' ? { payload: 'old', followup: 'p1' } : { payload: 'p1', dueAt: laterAt + 1 },
    );
  });

  it('other jobs of the same call keep their places', async () => {
    const at = (await shard.now()) - 1_000;
    const items = ['A', 'B', 'A', 'C'].map((id, n) => ({
      payload: n,
      id,
      at: at + n,
      onDuplicate: 'replace' as const,
    }));
    await shard.producer.enqueueMany(shard.queue, items);
    const { jobs } = await peer.claim(9);
    expect(jobs.map(({ id, dueAt }) => [id, dueAt - at])).toEqual([
      ['B', 1],
      ['A', 2],
      ['C', 3],
    ]);
  });
});

describe('jobs with one spec', () => {
  it.each([
    ['new ids', true, 'nd3600000 i5 - -', 'nd7200000'],
    ['ids to look up', false, 'kd3600000 i5 - -', 'kd7200000'],
    ['room to be looked at', false, 'nd3600000 i5 - - 9', 'nd7200000 - - - 9'],
  ])('share it: %s', async (_, toldOnce, inAnHour, inTwo) => {
    const items = [`2*${inAnHour}`, 'j0', '\n0', 'j1', '\n1', `2*${inTwo}`, 'j2', '\n2', 'j3', '\n3'];
    const answer = (await new TestSession(shard).call('enqueue', [0, ...items])) as string;
    const { due, jobs } = await shard.read();
    const stored = ['j0', 'j1', 'j2', 'j3'].map((id) => decodeEnvelope(jobs[id]!));
    const now = Number(answer.split(' ')[0]);
    const [hour, hours] = [now + HOUR, now + 2 * HOUR];
    expect(Object.values(due).map(Number)).toEqual([hour, hour, hours, hours]);
    expect(stored.map(({ dueAt, expiresAt, body }) => [dueAt, expiresAt, body])).toEqual([
      [hour, hour + 5, '0'],
      [hour, hour + 5, '1'],
      [hours, undefined, '2'],
      [hours, undefined, '3'],
    ]);
    const [first, third] = [`c - ${hour}`, `c - ${hours}`];
    const times = toldOnce ? [now, first, '=1', third, '=1'] : [now, first, first, third, third];
    expect(answer).toBe(`+${times.join(' ')}`);
  });
});

describe('expiry', () => {
  const expiryOf = async () => decodeEnvelope((await shard.read()).jobs['A']!).expiresAt;

  it('counts from the due time and moves along with it', async () => {
    const at = (await shard.now()) + HOUR;
    await shard.producer.enqueue(shard.queue, 'x', { id: 'A', at, expiresIn: 5_000 });
    expect(await expiryOf()).toBe(at + 5_000);
    await shard.producer.reschedule(shard.queue, 'A', { at: at + 100 });
    expect(await expiryOf()).toBe(at + 5_100);
    await shard.producer.enqueue(shard.queue, 'x', { id: 'A', at: at - 100, onDuplicate: 'reschedule' });
    expect(await expiryOf()).toBe(at + 4_900);
  });

  it('of its own moment moves by the same distance', async () => {
    const at = (await shard.now()) + HOUR;
    await shard.producer.enqueue(shard.queue, 'x', { id: 'A', at, expiresAt: at + 7_000 });
    await shard.producer.reschedule(shard.queue, 'A', { at: at + 100 });
    expect(await expiryOf()).toBe(at + 7_100);
  });

  it('is not touched by a retry', async () => {
    const { dueAt } = await shard.producer.enqueue(shard.queue, 'x', { id: 'A', expiresIn: HOUR });
    await peer.settle(await peer.take('A'), 'A', { verb: 'retry', delayMs: 60_000, error: '{}' });
    expect(await expiryOf()).toBe(dueAt.getTime() + HOUR);
  });
});

describe('uniqueFor', () => {
  it('makes no second job within the window, also after the first completed', async () => {
    await shard.producer.enqueue(shard.queue, 1, { id: 'A', uniqueFor: '1h' });
    await peer.settle(await peer.take('A'), 'A', { verb: 'complete' });
    for (const onDuplicate of ['keep', 'replace', 'reschedule'] as const) {
      const result = await shard.producer.enqueue(shard.queue, 2, { id: 'A', onDuplicate });
      expect(result).toMatchObject({ outcome: 'kept', state: 'completed' });
    }
    expect(await shard.see('A')).toEqual({ state: 'none' });
  });

  it('ends with the window', async () => {
    await shard.producer.enqueue(shard.queue, 1, { id: 'A', uniqueFor: '1h' });
    await peer.settle(await peer.take('A'), 'A', { verb: 'complete' });
    await here.world.redis.zadd(shard.key('unique'), 'XX', (await shard.now()) - 1, 'A');
    expect(await shard.producer.enqueue(shard.queue, 2, { id: 'A' })).toMatchObject({ outcome: 'created' });
  });

  it('ends with a cancellation', async () => {
    await shard.producer.enqueue(shard.queue, 1, { id: 'A', uniqueFor: '1h' });
    await shard.producer.cancel(shard.queue, 'A');
    expect(await shard.producer.enqueue(shard.queue, 2, { id: 'A' })).toMatchObject({ outcome: 'created' });
  });

  it('is forgotten by enqueues too, twice as many as they add, so that it needs no worker', async () => {
    const past = (await shard.now()) - 1;
    const ids = Array.from({ length: 10 }, (_, n) => `${n}`);
    await here.world.redis.zadd(shard.key('unique'), ...ids.flatMap((id) => [past, id]));
    const items = ['A', 'B'].map((id) => ({ payload: 1, id, uniqueFor: HOUR }));
    await shard.producer.enqueueMany(shard.queue, items);
    expect(await here.world.redis.zcard(shard.key('unique'))).toBe(10 + 2 - 4);
  });

  it('is forgotten by sweeps, at most 50 at a time', async () => {
    const past = (await shard.now()) - 1;
    const ids = Array.from({ length: 70 }, (_, n) => `${n}`);
    await here.world.redis.zadd(shard.key('unique'), ...ids.flatMap((id) => [past, id]), past + HOUR, 'still');
    await peer.step({ sweep: true });
    expect(await here.world.redis.zcard(shard.key('unique'))).toBe(21);
    await peer.step({ sweep: true });
    expect((await shard.read()).unique).toEqual({ still: past + HOUR });
  });
});

describe('maxWait', () => {
  const debounce = (delay: number) =>
    shard.producer.enqueue(shard.queue, 'x', { id: 'A', delay, maxWait: HOUR, onDuplicate: 'reschedule' });

  it('bounds how long a burst is put off, counted from its first call', async () => {
    const first = await debounce(50 * 60_000);
    const startedAt = first.dueAt.getTime() - 50 * 60_000;
    expect((await debounce(59 * 60_000)).dueAt.getTime()).toBeLessThanOrEqual(startedAt + HOUR);
    expect((await debounce(2 * HOUR)).dueAt.getTime()).toBe(startedAt + HOUR);
    expect((await shard.read()).debounce).toEqual({ A: String(startedAt) });
  });

  it('makes no first call due before it asks, and lets no other call put it off', async () => {
    const before = await shard.now();
    const first = (await debounce(2 * HOUR)).dueAt.getTime();
    expect(first).toBeGreaterThanOrEqual(before + 2 * HOUR);
    expect((await debounce(3 * HOUR)).dueAt.getTime()).toBe(first);
    const sooner = (await debounce(HOUR / 2)).dueAt.getTime();
    expect(sooner).toBeLessThan(before + HOUR);
    const latest = (await debounce(3 * HOUR)).dueAt.getTime();
    expect(latest).toBeGreaterThanOrEqual(before + HOUR);
    expect(latest).toBeLessThan(before + 2 * HOUR);
  });

  it('nor one at a moment, nor one that follows a run, nor one in place of a dead letter', async () => {
    const at = (await shard.now()) + 48 * HOUR;
    const call = (id: string, options: object) =>
      shard.producer.enqueue(shard.queue, 'x', { id, maxWait: HOUR, onDuplicate: 'replace', ...options });
    expect((await call('M', { at })).dueAt.getTime()).toBe(at);
    await call('R', { delay: 0 });
    await peer.take('R');
    expect((await call('R', { at })).dueAt.getTime()).toBe(at);
    expect((await call('R', { at: at + HOUR })).dueAt.getTime()).toBe(at);
    await shard.put('dead', 'D');
    expect((await call('D', { at })).dueAt.getTime()).toBe(at);
  });

  it('bounds from the first call with it how long a job is put off that waits without it', async () => {
    await shard.producer.enqueue(shard.queue, 'x', { id: 'A', delay: 60_000 });
    const before = await shard.now();
    const { dueAt } = await debounce(2 * HOUR);
    expect(dueAt.getTime()).toBeGreaterThanOrEqual(before + HOUR);
    expect(dueAt.getTime()).toBeLessThan(before + 2 * HOUR);
  });

  it('bounds two calls that travel together', async () => {
    const item = { payload: 'x', id: 'A', maxWait: HOUR, onDuplicate: 'replace' as const };
    const [first, second] = await shard.producer.enqueueMany(shard.queue, [
      { ...item, delay: HOUR / 2 },
      { ...item, delay: 2 * HOUR },
    ]);
    expect(second!.dueAt.getTime() - first!.dueAt.getTime()).toBe(HOUR / 2);
  });

  it('begins a new burst once the job has started', async () => {
    await debounce(0);
    await peer.take('A');
    expect((await shard.read()).debounce).toEqual({});
    const before = await shard.now();
    const { dueAt } = await debounce(2 * HOUR);
    expect(dueAt.getTime()).toBeGreaterThanOrEqual(before + 2 * HOUR);
  });

  it('remembers no burst of a call that stored nothing', async () => {
    await shard.put('dead', 'A');
    await shard.producer.enqueue(shard.queue, 'x', { id: 'A', maxWait: HOUR, onDead: 'keep' });
    await shard.producer.enqueue(shard.queue, 'x', { id: 'B', uniqueFor: HOUR });
    await peer.settle(await peer.take('B'), 'B', { verb: 'complete' });
    await shard.producer.enqueue(shard.queue, 'x', { id: 'B', maxWait: HOUR });
    expect((await shard.read()).debounce).toEqual({});
  });
});

describe('what a crash or a hand left behind is mended', () => {
  it('a record without an index becomes the job of the next enqueue', async () => {
    await shard.put('due', 'A');
    await here.world.redis.zrem(shard.key('due'), 'A');
    expect(await shard.producer.enqueue(shard.queue, 'new', { id: 'A' })).toMatchObject({ outcome: 'created' });
    expect(await shard.see('A')).toMatchObject({ state: 'due', payload: 'new' });
  });

  it.each<State>(['delayed', 'due', 'quarantined'])(
    'an index without a record (%s) gives way to a new job',
    async (state) => {
      await shard.put(state, 'A');
      await here.world.redis.hdel(shard.key('jobs'), 'A');
      expect(await shard.producer.enqueue(shard.queue, 'new', { id: 'A' })).toMatchObject({ outcome: 'created' });
      expect(await shard.see('A')).toEqual({ state: 'due', payload: 'new', dueAt: expect.any(Number) });
    },
  );

  it.each<State>(['dead', 'running'])(
    'rescheduling one without a record (%s) stores the payload given',
    async (state) => {
      const claim = await shard.put(state, 'A');
      await here.world.redis.hdel(shard.key('jobs'), 'A');
      const result = await shard.producer.enqueue(shard.queue, 'new', { id: 'A', onDuplicate: 'reschedule' });
      expect(result).toMatchObject({ outcome: 'rescheduled', state });
      if (state === 'running') await peer.settle(claim, 'A', { verb: 'complete' });
      expect(await shard.see('A')).toMatchObject({ state: 'due', payload: 'new' });
    },
  );

  it('an index without a record can be cancelled', async () => {
    await shard.put('due', 'A');
    await here.world.redis.hdel(shard.key('jobs'), 'A');
    expect(await shard.producer.cancel(shard.queue, 'A')).toMatchObject({ outcome: 'cancelled' });
    expect(await shard.see('A')).toEqual({ state: 'none' });
  });
});

it('ended uniqueness windows piled up where nobody works', async () => {
  const once = (n: number) => shard.producer.enqueue(shard.queue, n, { id: `u${n}`, delay: '1h', uniqueFor: '1h' });
  for (let n = 0; n < 20; n++) await once(n);
  const long = (await shard.now()) - HOUR;
  const { unique } = await shard.read();
  await here.world.redis.zadd(shard.key('unique'), ...Object.keys(unique).flatMap((id) => [long, id]));
  for (let n = 20; n < 30; n++) await once(n);
  expect(Object.keys((await shard.read()).unique)).toHaveLength(10);
});

it('the uniqueness window of a job that was cancelled while it ran outlived it', async () => {
  await shard.producer.enqueue(shard.queue, 1, { id: 'A', uniqueFor: '1h' });
  const claim = await peer.take('A');
  await shard.producer.cancel(shard.queue, 'A', { running: true });
  await peer.settle(claim, 'A', { verb: 'complete' });
  expect((await shard.read()).unique).toEqual({});
  expect(await shard.producer.enqueue(shard.queue, 2, { id: 'A' })).toMatchObject({ outcome: 'created' });
});
