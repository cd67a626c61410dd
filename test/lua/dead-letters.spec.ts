import { beforeEach, describe, expect, it } from '@jest/globals';
import type { RequeueOptions } from '../../lib/index.js';
import { TestSession } from './peer.js';
import type { Peer } from './peer.js';
import { HOUR } from './shard.js';
import type { Shard } from './shard.js';
import { shards } from './shards.js';
import { decodeEnvelope } from '../../lib/job/envelope.js';

const here = shards();
let shard: Shard;
let peer: Peer;
beforeEach(() => {
  shard = here.fresh();
  peer = shard.peer();
});

const DAY = 24 * HOUR;
const names = (count: number, from = 0) =>
  Array.from({ length: count }, (_, n) => `j${String(from + n).padStart(4, '0')}`);
const dead = async () => Object.keys((await shard.read()).dead);

/** Buries jobs through the scripts. */
async function bury(
  ids: readonly string[],
  reason: 'discarded' | 'exhausted' = 'discarded',
  limits?: object,
): Promise<void> {
  await shard.fill(...ids);
  for (let at = 0; at < ids.length; at += 200) {
    const { claim, jobs } = await peer.claim(200);
    const end = { verb: 'dead', reason, error: '{"name":"Error","message":"no"}', charge: true } as const;
    await peer.step({ settle: jobs.map(({ id }) => [claim, id, end] as const), ...limits });
  }
}

/** Moves the times of death: the first one died longest ago. */
async function diedAt(times: Record<string, number>): Promise<void> {
  await here.world.redis.zadd(shard.key('dead'), 'XX', ...Object.entries(times).flatMap(([id, at]) => [at, id]));
}

describe('a dead letter', () => {
  it('keeps its payload, attempts, error and reason', async () => {
    await bury(['A'], 'exhausted');
    expect(await shard.producer.get(shard.queue, 'A')).toMatchObject({
      state: 'dead',
      payload: 'A',
      attempts: 1,
      deadReason: 'exhausted',
      lastError: { name: 'Error', message: 'no' },
    });
    const totals = { enqueued: 1, completed: 0, failed: 1, retried: 0, dead: 1, expired: 0, skipped: 0 };
    expect(await shard.inspector.totals(shard.queue)).toMatchObject(totals);
  });

  it('that was not the fault of a run charges no attempt', async () => {
    await shard.fill('A');
    const end = { verb: 'dead', reason: 'invalid', error: '{}', charge: false } as const;
    await peer.settle(await peer.take('A'), 'A', end);
    expect((await shard.read()).attempts).toEqual({});
    expect(await shard.inspector.totals(shard.queue)).toMatchObject({ failed: 0, dead: 1 });
  });
});

describe('the cap on dead letters', () => {
  it('removes the oldest, with all that is known of them', async () => {
    await bury(names(5));
    await diedAt(Object.fromEntries(names(5).map((id, n) => [id, 1_000_000 + n])));
    await bury(['last'], 'discarded', { deadLetters: { max: 3, maxAgeMs: 99 * 365 * DAY } });
    expect(await dead()).toEqual(['j0003', 'j0004', 'last']);
    const { jobs, errors, attempts } = await shard.read();
    for (const map of [jobs, errors, attempts]) expect(Object.keys(map).sort()).toEqual(['j0003', 'j0004', 'last']);
  });

  it('holds while 200 die at once', async () => {
    const limits = { deadLetters: { max: 100, maxAgeMs: DAY } };
    await bury(names(200), 'discarded', limits);
    expect(await dead()).toHaveLength(100);
  });

  it('removes at most 50 in one step', async () => {
    await bury(names(120));
    const limits = { deadLetters: { max: 10, maxAgeMs: DAY } };
    const left: number[] = [];
    for (let step = 0; step < 3; step++) {
      await peer.step({ sweep: true, ...limits });
      left.push((await dead()).length);
    }
    expect(left).toEqual([70, 20, 10]);
  });
});

describe('the age of dead letters', () => {
  const limits = { deadLetters: { max: 10_000, maxAgeMs: DAY } };

  it('removes those that died longer ago, when another one dies', async () => {
    await bury(['A', 'B']);
    await diedAt({ A: (await shard.now()) - DAY - 1_000, B: (await shard.now()) - DAY + 60_000 });
    await bury(['C'], 'discarded', limits);
    expect(await dead()).toEqual(['B', 'C']);
  });

  it('removes them also when none dies any more', async () => {
    await bury(['A']);
    await diedAt({ A: (await shard.now()) - DAY - 1_000 });
    await peer.step({ sweep: true, ...limits });
    expect(await shard.see('A')).toEqual({ state: 'none' });
  });

  it('removes at most 50 in one step', async () => {
    await bury(names(60));
    await diedAt(Object.fromEntries(names(60).map((id) => [id, 1_000])));
    await peer.step({ sweep: true, ...limits });
    expect(await dead()).toHaveLength(10);
  });
});

describe('requeueDead', () => {
  const requeue = (ids: readonly string[] | 'all', options?: RequeueOptions) =>
    shard.inspector.requeueDead(shard.queue, ids, options);
  const due = async () => Object.keys((await shard.read()).due);

  /** A died then, and B, C and D each a second later. */
  let first: number;
  beforeEach(async () => {
    await bury(['A', 'B', 'C', 'D']);
    first = (await shard.now()) - HOUR;
    await diedAt({ A: first, B: first + 1_000, C: first + 2_000, D: first + 3_000 });
  });

  it('makes the given ones due, and passes over ids that are not dead', async () => {
    await shard.producer.enqueue(shard.queue, 1, { id: 'waits', delay: '1h' });
    expect(await requeue(['C', 'nobody', 'A', 'waits'])).toEqual({ requeued: 2, remaining: 2 });
    expect((await due()).sort()).toEqual(['A', 'C', 'waits']);
    expect(await shard.see('waits')).toMatchObject({ state: 'delayed' });
    expect(await shard.see('A')).toMatchObject({ state: 'due', payload: 'A' });
  });

  it('makes all due', async () => {
    expect(await requeue('all')).toEqual({ requeued: 4, remaining: 0 });
    expect(await due()).toEqual(['A', 'B', 'C', 'D']);
  });

  it.each<[string, () => RequeueOptions, string[]]>([
    ['limit: the oldest ones', () => ({ limit: 2 }), ['A', 'B']],
    ['before: those that died earlier', () => ({ before: first + 2_000 }), ['A', 'B']],
    ['reason: those that died of it', () => ({ reason: 'exhausted' }), []],
    ['all of them together', () => ({ limit: 2, before: first + 9_000, reason: 'discarded' }), ['A', 'B']],
  ])('%s', async (_, options, chosen) => {
    const left = 4 - chosen.length;
    expect(await requeue('all', options())).toEqual({ requeued: chosen.length, remaining: left });
    expect(await due()).toEqual(chosen);
  });

  it('reason and before hold for given ids too', async () => {
    await here.world.redis.hset(shard.key('errors'), 'B', 'invalid\n{}');
    expect(await requeue(['A', 'B', 'D'], { reason: 'discarded', before: first + 3_000 })).toMatchObject({
      requeued: 1,
    });
    expect(await due()).toEqual(['A']);
  });

  it('looks past those of another reason', async () => {
    await here.world.redis.hset(shard.key('errors'), 'A', 'invalid\n{}', 'B', 'invalid\n{}');
    expect(await requeue('all', { reason: 'discarded', limit: 1 })).toEqual({ requeued: 1, remaining: 3 });
    expect(await due()).toEqual(['C']);
  });

  it('delay and spread: evenly over the time, so that they do not all run at once', async () => {
    const before = await shard.now();
    await requeue('all', { delay: HOUR, spread: HOUR });
    const { due: times } = await shard.read();
    const offsets = ['A', 'B', 'C', 'D'].map((id) => times[id]! - times['A']!);
    expect(offsets).toEqual([0, HOUR / 4, HOUR / 2, (3 * HOUR) / 4]);
    expect(times['A']).toBeGreaterThanOrEqual(before + HOUR);
  });

  it('moves the due time that the job was made for, and its expiry by the same distance', async () => {
    const { dueAt } = await shard.producer.enqueue(shard.queue, 1, { id: 'E', expiresIn: HOUR });
    const end = { verb: 'dead', reason: 'expired', error: '{}', charge: false } as const;
    await peer.settle(await peer.take('E'), 'E', end);
    await requeue(['E'], { delay: 9 * HOUR });
    const { due, jobs } = await shard.read();
    expect(due['E']).toBeGreaterThanOrEqual(dueAt.getTime() + 9 * HOUR);
    expect(decodeEnvelope(jobs['E']!).dueAt).toBe(due['E']);
    expect(decodeEnvelope(jobs['E']!).expiresAt).toBe(due['E']! + HOUR);
  });

  it('forgets the attempts, or leaves one more run of those that used them up', async () => {
    await requeue(['A']);
    await requeue(['B'], { resetAttempts: false });
    expect((await shard.see('A')).attempts).toBeUndefined();
    expect((await shard.read()).attempts['B']).toBe('1 0 0 0 2');
    await bury(['E', 'F']);
    await here.world.redis.hset(shard.key('attempts'), 'E', '10 3 2 77');
    await here.world.redis.hdel(shard.key('attempts'), 'F'); // died uncharged: it could not be read
    await requeue(['E', 'F'], { resetAttempts: false });
    expect((await shard.read()).attempts).toMatchObject({ E: '10 0 2 0 11', F: '0 0 0 0 1' });
  });

  it('that one run stays the last one, whatever becomes of it', async () => {
    const record = async () => (await shard.read()).attempts['A'];
    await requeue(['A'], { resetAttempts: false });
    const snoozed = await peer.take('A');
    await peer.settle(snoozed, 'A', { verb: 'snooze', delayMs: 0 });
    expect(await record()).toBe('1 0 1 0 2');
    await shard.producer.reschedule(shard.queue, 'A', { delay: 0 });
    expect(await record()).toBe('1 0 1 0 2');
    await shard.expire(await peer.take('A', { isSole: true }));
    await shard.peer().step({ sweep: true });
    expect(await record()).toMatch(/^2 1 1 \d+ 2$/);
    const [claimed] = (await shard.peer().step({ quarantineLimit: 1 })).jobs;
    expect(claimed!.attempts).toEqual({ charged: 2, losses: 1, snoozes: 1, limit: 2 });
    expect(await shard.producer.get(shard.queue, 'A')).toMatchObject({ attempts: 2, maxAttempts: 2 });
  });

  it('that one run stays the only one of a job that was never charged and expired again', async () => {
    await requeue(['A']);
    const expire = async () => {
      const settlement = { verb: 'dead', reason: 'expired', error: '{}', charge: false } as const;
      await peer.settle(await peer.take('A'), 'A', settlement);
    };
    await expire();
    await requeue(['A'], { resetAttempts: false });
    await expire();
    expect((await shard.read()).attempts['A']).toBe('0 0 0 0 1');
    expect(await shard.producer.get(shard.queue, 'A')).toMatchObject({ state: 'dead', attempts: 0, maxAttempts: 1 });
  });

  it('keeps the last error until the job has ended well, and then nothing', async () => {
    await requeue(['A']);
    expect(await shard.producer.get(shard.queue, 'A')).toMatchObject({ lastError: { message: 'no' } });
    await peer.settle(await peer.take('A'), 'A', { verb: 'complete' });
    await shard.inspector.removeDead(shard.queue, 'all');
    await requeue('all');
    expect((await shard.read()).errors).toEqual({});
  });

  it('goes in chunks of 200', async () => {
    await bury(names(450));
    const session = new TestSession(shard);
    const answer = await session.call('requeueDead', [0, 0, 1, 0, -1, '', '', 0, 500, 200]);
    expect(answer).toMatch(/^200 200 254 \d+ j0195$/);
    expect(await requeue('all')).toEqual({ requeued: 254, remaining: 0 });
    expect(await shard.inspector.counts(shard.queue)).toMatchObject({ due: 454, dead: 0 });
  });
});

describe('removeDead', () => {
  const remove = (ids: readonly string[] | 'all', options?: { limit?: number }) =>
    shard.inspector.removeDead(shard.queue, ids, options);

  it('removes the given ones, and nothing that is not dead', async () => {
    await bury(['A', 'B']);
    await shard.put('running', 'runs');
    await shard.put('due', 'waits');
    expect(await remove(['A', 'waits', 'runs', 'nobody'])).toEqual({ removed: 1, remaining: 1 });
    expect(await shard.see('A')).toEqual({ state: 'none' });
    expect([(await shard.see('runs')).state, (await shard.see('waits')).state]).toEqual(['running', 'due']);
  });

  it('removes all, or the oldest', async () => {
    await bury(names(250));
    await diedAt(Object.fromEntries(names(250).map((id, n) => [id, 1_000 + n])));
    expect(await remove('all', { limit: 210 })).toEqual({ removed: 210, remaining: 40 });
    expect((await dead())[0]).toBe('j0210');
    expect(await remove('all')).toEqual({ removed: 40, remaining: 0 });
  });

  it('frees the id, its window and its burst', async () => {
    await shard.producer.enqueue(shard.queue, 1, { id: 'A', uniqueFor: '1h' });
    const end = { verb: 'dead', reason: 'discarded', error: '{}', charge: true } as const;
    await peer.settle(await peer.take('A'), 'A', end);
    await remove('all');
    expect(await shard.producer.enqueue(shard.queue, 2, { id: 'A' })).toMatchObject({ outcome: 'created' });
  });
});

describe('purge', () => {
  it('removes waiting and dead jobs, jobs in quarantine included, and no running one', async () => {
    await bury(['dead']);
    await shard.put('quarantined', 'quarantined');
    await shard.put('running', 'running');
    await shard.put('delayed', 'delayed');
    await shard.fill('due');
    expect(await shard.inspector.purge(shard.queue)).toEqual({ removed: 4 });
    expect(await shard.inspector.counts(shard.queue)).toMatchObject({ delayed: 0, due: 0, running: 1, dead: 0 });
    expect(Object.keys((await shard.read()).jobs)).toEqual(['running']);
  });

  it.each([
    ['waiting', { delayed: 0, due: 0, dead: 1 }],
    ['dead', { delayed: 1, due: 1, dead: 0 }],
  ] as const)('of %s ones leaves the others', async (state, left) => {
    await bury(['dead']);
    await shard.put('delayed', 'delayed');
    await shard.fill('due');
    await shard.inspector.purge(shard.queue, { states: [state] });
    expect(await shard.inspector.counts(shard.queue)).toMatchObject(left);
  });

  it('goes in chunks of 200', async () => {
    await shard.fill(...names(450));
    expect(await new TestSession(shard).call('remove', [0, 'w', 200, -1])).toBe('200 250');
    expect(await shard.inspector.purge(shard.queue)).toEqual({ removed: 250 });
    expect((await shard.read()).jobs).toEqual({});
  });
});

it('a requeued dead letter kept the expiry that had killed it', async () => {
  const at = (await shard.now()) - 10_000;
  await shard.producer.enqueue(shard.queue, 'old', { id: 'A', at, expiresIn: '5s', keepExpired: true });
  const claim = await peer.take('A');
  await peer.settle(claim, 'A', { verb: 'dead', reason: 'expired', error: '{}', charge: false });
  await shard.inspector.requeueDead(shard.queue, ['A'], { delay: '1h' });
  const due = (await shard.read()).due['A']!;
  const [envelope] = Object.values((await shard.read()).jobs);
  expect(decodeEnvelope(envelope!).dueAt).toBe(due);
  expect(decodeEnvelope(envelope!).expiresAt).toBe(due + 5_000);
});

it('more deaths in one step than a sweep removes burst the cap of dead letters', async () => {
  const ids = Array.from({ length: 150 }, (_, n) => `j${n}`);
  await shard.fill(...ids);
  const { claim } = await peer.claim(150);
  const settle = ids.map(
    (id) => [claim, id, { verb: 'dead', reason: 'exhausted', error: '{}', charge: true }] as const,
  );
  await peer.step({ settle, deadLetters: { max: 10, maxAgeMs: HOUR } });
  expect(Object.keys((await shard.read()).dead)).toHaveLength(10);
});
