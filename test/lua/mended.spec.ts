import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Peer } from './peer.js';
import { HOUR } from './shard.js';
import type { Shard } from './shard.js';
import { shards } from './shards.js';
import { decodeEnvelope } from '../../lib/job/envelope.js';

/** What once went wrong in the scripts, by the name of what went wrong. */

const here = shards();
let shard: Shard;
let owner: Peer;
let other: Peer;
beforeEach(() => {
  shard = here.fresh();
  owner = shard.peer();
  other = shard.peer();
});

const recordOf = async (id: string) => (await shard.read()).attempts[id];

describe('a job that extends its lease and kills its process', () => {
  const extend = async (claim: number, id: string) => Number(await owner.session.call('extend', [0, claim, id, HOUR]));

  it('was never charged, because its own lease forgot that it was alone', async () => {
    await shard.fill('A');
    const { claim } = await owner.claim(1, { isSole: true });
    const own = await extend(claim, 'A');
    expect((await shard.read()).leases[own]! % 1).toBe(0.5);
    await shard.expire(own);
    await other.step({ sweep: true });
    expect(await recordOf('A')).toBe(`1 1 0 ${own}`);
  });

  it('is not charged when it had neighbours, whatever mark their lease still has', async () => {
    await shard.fill('A', 'B');
    const { claim } = await owner.claim(2);
    const { leases } = await shard.read();
    await here.world.redis.zadd(shard.key('leases'), leases[claim]! + 0.5, claim);
    const own = await extend(claim, 'A');
    expect((await shard.read()).leases[own]! % 1).toBe(0);
    await shard.expire(own);
    await other.step({ sweep: true });
    expect(await recordOf('A')).toBe(`0 1 0 ${own}`);
  });

  it('is not charged when it had been told to have company', async () => {
    await shard.fill('A');
    const { claim } = await owner.claim(1, { isSole: true });
    await owner.step({ renew: [{ claim, sole: false }] });
    const own = await extend(claim, 'A');
    expect((await shard.read()).leases[own]! % 1).toBe(0);
  });
});

it('a requeued dead letter kept the expiry that had killed it', async () => {
  const at = (await shard.now()) - 10_000;
  await shard.producer.enqueue(shard.queue, 'old', { id: 'A', at, expiresIn: '5s', keepExpired: true });
  const claim = await owner.take('A');
  await owner.settle(claim, 'A', { verb: 'dead', reason: 'expired', error: '{}', charge: false });
  await shard.inspector.requeueDead(shard.queue, ['A'], { delay: '1h' });
  const due = (await shard.read()).due['A']!;
  const [envelope] = Object.values((await shard.read()).jobs);
  expect(decodeEnvelope(envelope!).dueAt).toBe(due);
  expect(decodeEnvelope(envelope!).expiresAt).toBe(due + 5_000);
});

it('an idle process got no suspects while a busy one had the role', async () => {
  await shard.put('quarantined', 'A');
  expect((await owner.step({ asksIsolation: true })).mayIsolate).toBe(true);
  const { jobs } = await other.step({ quarantineLimit: 1, isSole: true });
  expect(jobs.map(({ id }) => id)).toEqual(['A']);
});

describe('a dead worker kept its jobs for ever where steps are rarer than half a lease', () => {
  const LEASE = 20_000;

  it.each([
    ['a little more than half a lease', 0.6],
    ['nearly a lease', 0.95],
    ['more than a lease', 1.2],
    ['several leases', 4],
  ])('every %s', async (_, leases) => {
    await shard.fill('A');
    const claim = await owner.take('A', { leaseMs: LEASE });
    await shard.expire(claim);
    // Time passes: everything that the next step compares its clock with moves into the past.
    const pause = LEASE * leases;
    const pass = async () => {
      const { meta } = await shard.read();
      const moved = ['seenAt', 'graceUntil', 'graceFrom'].filter((field) => meta[field] !== undefined);
      await shard.meta(Object.fromEntries(moved.map((field) => [field, Number(meta[field]) - pause])));
      for (const [lease, end] of Object.entries((await shard.read()).leases)) {
        await here.world.redis.zadd(shard.key('leases'), end - pause, lease);
      }
    };
    await shard.meta({ seenAt: await shard.now(), graceUntil: (await shard.now()) + LEASE, graceFrom: await shard.now() });
    for (let steps = 0; steps < 6 && (await shard.see('A')).state === 'running'; steps++) {
      await pass();
      await other.step({ sweep: true, leaseMs: LEASE });
    }
    expect((await shard.see('A')).state).toBe('quarantined');
  });
});

it('after the clock went back by an hour only 50 leases were ever cut', async () => {
  const ids = Array.from({ length: 120 }, (_, n) => `j${n}`);
  await shard.fill(...ids);
  for (const id of ids) await shard.expire(await owner.take(id), -HOUR);
  await shard.meta({ seenAt: (await shard.now()) + HOUR });
  for (let sweep = 0; sweep < 3; sweep++) await other.step({ sweep: true });
  const ends = Object.values((await shard.read()).leases);
  expect(ends).toHaveLength(120);
  expect(Math.max(...ends)).toBeLessThanOrEqual((await shard.now()) + 30_001);
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

it('more deaths in one step than a sweep removes burst the cap of dead letters', async () => {
  const ids = Array.from({ length: 150 }, (_, n) => `j${n}`);
  await shard.fill(...ids);
  const { claim } = await owner.claim(150);
  const settle = ids.map(
    (id) => [claim, id, { verb: 'dead', reason: 'exhausted', error: '{}', charge: true }] as const,
  );
  await owner.step({ settle, deadLetters: { max: 10, maxAgeMs: HOUR } });
  expect(Object.keys((await shard.read()).dead)).toHaveLength(10);
});

it('a lease under a name that is no number stopped the take-back of all leases', async () => {
  await shard.fill('A');
  await shard.expire(await owner.take('A'));
  await here.world.redis.zadd(shard.key('leases'), 0, 'junk', '-inf', '');
  await other.step({ sweep: true });
  expect(await shard.see('A')).toMatchObject({ state: 'quarantined' });
  expect((await shard.read()).leases).toEqual({});
});

it('a running job under a number that no claim has never came back', async () => {
  await shard.fill('A');
  await owner.take('A');
  await here.world.redis.del(shard.key('leases'));
  await here.world.redis.zadd(shard.key('running'), 17.5, 'A');
  await other.step({ sweep: true });
  await shard.expire(18);
  await other.step({ sweep: true });
  expect(await shard.see('A')).toMatchObject({ state: 'quarantined' });
});

it('the uniqueness window of a job that was cancelled while it ran outlived it', async () => {
  await shard.producer.enqueue(shard.queue, 1, { id: 'A', uniqueFor: '1h' });
  const claim = await owner.take('A');
  await shard.producer.cancel(shard.queue, 'A', { running: true });
  await owner.settle(claim, 'A', { verb: 'complete' });
  expect((await shard.read()).unique).toEqual({});
  expect(await shard.producer.enqueue(shard.queue, 2, { id: 'A' })).toMatchObject({ outcome: 'created' });
});

it('jobs that changed their shard went in calls without a limit when it was their history or their errors that were long', async () => {
  await shard.fill('A', 'B', 'C');
  const long = 'x'.repeat(1_000);
  await here.world.redis.hset(shard.key('history'), { A: `\n${long}`, B: `\n${long}` });
  await here.world.redis.hset(shard.key('errors'), { C: `retry\n${long}` });
  const told = async (...ids: string[]) =>
    ((await shard.run('moveOut', owner.session.key, ['', 1_500, ...ids])) as string[]).length / 10;
  expect(await told('A', 'B')).toBe(1);
  expect(await told('A', 'C')).toBe(1);
  await here.world.redis.del(shard.key('history'), shard.key('errors'));
  expect(await told('A', 'B', 'C')).toBe(3);
});
