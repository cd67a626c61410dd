import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Peer } from './peer.js';
import { HOUR } from './shard.js';
import type { Shard } from './shard.js';
import { shards } from './shards.js';

const here = shards();
let shard: Shard;
let owner: Peer;
let other: Peer;
beforeEach(() => {
  shard = here.fresh();
  owner = shard.peer();
  other = shard.peer();
});

const LEASE = 30_000;
const names = (count: number) => Array.from({ length: count }, (_, n) => `j${String(n).padStart(3, '0')}`);
const recordOf = async (id: string) => (await shard.read()).attempts[id];
const indexes = async () => {
  const { due, running, quarantine } = await shard.read();
  return {
    due: Object.keys(due).length,
    running: Object.keys(running).length,
    quarantined: Object.keys(quarantine).length,
  };
};

describe('a lease that ended', () => {
  it('gives the job back to be run alone, and only a sweep looks for it', async () => {
    await shard.fill('A');
    const claim = await owner.take('A');
    await shard.expire(claim);
    await other.step({ limit: 1 });
    expect(await shard.see('A')).toMatchObject({ state: 'running' });
    const { quarantined } = await other.step({ sweep: true });
    expect(quarantined).toBe(1);
    expect(await shard.see('A')).toMatchObject({ state: 'quarantined' });
    expect((await shard.read()).leases).toEqual({});
  });

  it('is not over before its time', async () => {
    await shard.fill('A', 'B');
    await owner.take('A');
    await shard.expire(await owner.take('B'), -5_000);
    await other.step({ sweep: true });
    expect(await indexes()).toEqual({ due: 0, running: 2, quarantined: 0 });
  });

  it('tells the next sweep when to come: the answer names the first lease that ends', async () => {
    await shard.fill('A', 'B');
    const first = await owner.take('A');
    await owner.take('B');
    const end = (await shard.read()).leases[first]!;
    expect((await other.step({ sweep: true })).firstLease).toBe(end + 1);
    expect((await other.step({})).firstLease).toBeUndefined();
  });

  it('charges nobody when there were several: each of the batch lost one lease and no attempt', async () => {
    await shard.fill('A', 'B');
    const { claim } = await owner.claim(2, { isSole: true });
    await shard.expire(claim);
    await other.step({ sweep: true });
    expect([await recordOf('A'), await recordOf('B')]).toEqual([`0 1 0 ${claim}`, `0 1 0 ${claim}`]);
  });

  it('charges a job that was alone in its process', async () => {
    await shard.fill('A');
    const claim = await owner.take('A', { isSole: true });
    expect((await shard.read()).leases[claim]! % 1).toBe(0.5);
    await shard.expire(claim);
    await other.step({ sweep: true });
    expect(await recordOf('A')).toBe(`1 1 0 ${claim}`);
  });

  it.each([
    ['charges nobody once a renewal said that it is not alone', { isSole: true }, false, '0 1'],
    ['charges the job once a renewal said that it is alone', { isSole: false }, true, '1 1'],
  ])('%s', async (_, claimed, alone, record) => {
    await shard.fill('A');
    const claim = await owner.take('A', claimed);
    await owner.step({ renew: [{ claim, sole: alone }] });
    await shard.expire(claim);
    await other.step({ sweep: true });
    expect(await recordOf('A')).toBe(`${record} 0 ${claim}`);
  });

  it('charges nobody of a claim that was alone and held two jobs', async () => {
    await shard.fill('A', 'B');
    const { claim } = await owner.claim(2);
    await owner.step({ renew: [{ claim, held: 2, sole: true }] });
    await shard.expire(claim);
    await other.step({ sweep: true });
    expect(await recordOf('A')).toBe(`0 1 0 ${claim}`);
  });

  it('adds up: losses in a row, attempts charged, until a run ends properly', async () => {
    await shard.put('quarantined', 'A');
    const second = await other.step({ quarantineLimit: 1, isSole: true });
    await shard.expire(second.claim);
    await owner.step({ sweep: true });
    expect(await recordOf('A')).toBe(`2 2 0 ${second.claim}`);
    const third = await other.step({ quarantineLimit: 1, isSole: true });
    await other.settle(third.claim, 'A', { verb: 'snooze', delayMs: 0 });
    expect(await recordOf('A')).toBe('2 0 1 0');
  });

  it('leaves those jobs of a batch alone that were settled before', async () => {
    await shard.fill('A', 'B');
    const { claim } = await owner.claim(2);
    await owner.settle(claim, 'A', { verb: 'complete' });
    await shard.expire(claim);
    await other.step({ sweep: true });
    expect([await shard.see('A'), (await shard.see('B')).state]).toEqual([{ state: 'none' }, 'quarantined']);
  });

  it('without any job left is only forgotten', async () => {
    await here.world.redis.zadd(shard.key('leases'), 1_000, 12_345);
    await other.step({ sweep: true });
    expect((await shard.read()).leases).toEqual({});
  });
});

describe('a sweep takes back at most 50 jobs', () => {
  it('of one batch', async () => {
    await shard.fill(...names(120));
    const { claim } = await owner.claim(120);
    await shard.expire(claim);
    const left: number[] = [];
    for (let sweep = 0; sweep < 3; sweep++) {
      await other.step({ sweep: true });
      left.push((await indexes()).running);
      expect(Object.keys((await shard.read()).leases)).toHaveLength(left.at(-1) === 0 ? 0 : 1);
    }
    expect(left).toEqual([70, 20, 0]);
  });

  it('of many batches, the oldest lease first', async () => {
    await shard.fill(...names(60));
    for (const id of names(60)) await shard.expire(await owner.take(id), id === 'j059' ? 9_000 : 5_000);
    await other.step({ sweep: true });
    expect(await indexes()).toEqual({ due: 0, running: 10, quarantined: 50 });
    expect(await shard.see('j059')).toMatchObject({ state: 'quarantined' });
    await other.step({ sweep: true });
    expect(await indexes()).toEqual({ due: 0, running: 0, quarantined: 60 });
  });
});

describe('renewals', () => {
  it('come before the take-back: a worker that was frozen and whom nobody replaced goes on', async () => {
    await shard.fill('A', 'B');
    const { claim } = await owner.claim(2);
    await shard.expire(claim, 5_000);
    const now = await shard.now();
    const { left, quarantined } = await owner.step({ renew: [{ claim, held: 2 }], sweep: true });
    expect([left.size, quarantined]).toEqual([0, 0]);
    expect((await shard.read()).leases[claim]).toBeGreaterThanOrEqual(now + LEASE);
    expect((await owner.settle(claim, 'A', { verb: 'complete' })).lost).toEqual([]);
  });

  it('move the deadline of the whole batch and never the token', async () => {
    await shard.fill('A', 'B');
    const { claim } = await owner.claim(2);
    await shard.expire(claim, -5_000);
    const { running } = await shard.read();
    const now = await shard.now();
    await owner.step({ renew: [{ claim, held: 2 }], leaseMs: 10_000 });
    const after = await shard.read();
    expect(after.running).toEqual(running);
    expect(after.leases[claim]).toBeGreaterThanOrEqual(now + 10_000);
    expect(after.leases[claim]).toBeLessThanOrEqual((await shard.now()) + 10_000);
  });

  it('never shorten a lease', async () => {
    await shard.fill('A');
    const claim = await owner.take('A');
    const { leases } = await shard.read();
    await owner.step({ renew: [{ claim }], leaseMs: 1_000 });
    expect((await shard.read()).leases).toEqual(leases);
  });

  it.each([
    ['that runs keeps its end', 5_000],
    ['that is over is taken back all the same', -100],
  ])('of nothing tell only that a claim is not alone: one %s', async (_, leftMs) => {
    await shard.fill('A');
    const claim = await owner.take('A', { isSole: true });
    await shard.expire(claim, -leftMs);
    const { leases } = await shard.read();
    await owner.step({ renew: [{ claim, ownMs: -1 }], sweep: true });
    const isOver = leftMs < 0;
    expect((await shard.read()).leases).toEqual(isOver ? {} : { [claim]: Math.floor(leases[claim]!) });
    expect(await recordOf('A')).toBe(isOver ? `0 1 0 ${claim}` : undefined);
  });

  it('cut a deadline that is further away than the longest lease', async () => {
    await shard.fill('A');
    const claim = await owner.take('A');
    await shard.expire(claim, -HOUR);
    await owner.step({ renew: [{ claim }] });
    expect((await shard.read()).leases[claim]).toBeLessThanOrEqual((await shard.now()) + LEASE);
  });

  it('make no lease for a claim that has gone', async () => {
    await owner.step({ renew: [{ claim: 12_345 }] });
    expect((await shard.read()).leases).toEqual({});
  });
});

describe('when the clock of the server jumped, or nobody looked for half a lease', () => {
  /** A job of a dead worker, and `seen` moved so that now is that much later than when somebody last looked. */
  const jump = async (byMs: number): Promise<number> => {
    await shard.fill('A');
    const claim = await owner.take('A');
    await shard.expire(claim);
    await shard.meta({ seenAt: (await shard.now()) - byMs });
    return claim;
  };

  it.each([
    ['an hour ahead', HOUR],
    ['an hour back', -HOUR],
    ['half a lease ahead', LEASE / 2 + 5_000],
    ['ten seconds back', -10_000],
  ])('%s, nothing is taken back for one lease', async (_, byMs) => {
    await jump(byMs);
    const now = await shard.now();
    const { firstLease } = await other.step({ sweep: true });
    expect(await shard.see('A')).toMatchObject({ state: 'running' });
    const { seenAt: seen, graceUntil: grace } = (await shard.read()).meta;
    expect(Number(seen)).toBeGreaterThanOrEqual(now);
    expect(Number(grace)).toBeGreaterThanOrEqual(now + LEASE);
    expect(firstLease).toBe(Number(grace));

    await other.step({ sweep: true });
    expect(await shard.see('A')).toMatchObject({ state: 'running' });
    await shard.meta({ graceUntil: await shard.now() });
    await other.step({ sweep: true });
    expect(await shard.see('A')).toMatchObject({ state: 'quarantined' });
  });

  it.each([
    ['a third of a lease ahead', LEASE / 3],
    ['less than a second back', -500],
  ])('%s is no jump', async (_, byMs) => {
    await jump(byMs);
    await other.step({ sweep: true });
    expect(await shard.see('A')).toMatchObject({ state: 'quarantined' });
  });

  it('what a grace has proved is taken back although nobody looked again since', async () => {
    await shard.fill('A', 'B');
    const [before, since] = [await owner.take('A'), await owner.take('B')];
    const graceFrom = (await shard.now()) - 2 * LEASE;
    await shard.expire(before, 2 * LEASE + 5_000);
    await shard.expire(since, 2 * LEASE - 5_000);
    await shard.meta({ graceFrom, graceUntil: graceFrom + LEASE, seenAt: graceFrom });
    await other.step({ sweep: true });
    expect([(await shard.see('A')).state, (await shard.see('B')).state]).toEqual(['quarantined', 'running']);
  });

  it('a grace that began by a clock that was ahead, and was set back since, proves nothing', async () => {
    await shard.fill('A');
    await owner.take('A');
    const now = await shard.now();
    await shard.meta({ graceFrom: now + HOUR, graceUntil: now - 1_000, seenAt: now - LEASE });
    await other.step({ sweep: true });
    expect(await shard.see('A')).toMatchObject({ state: 'running' });
    // Nor does it when that time comes.
    expect(Number((await shard.read()).meta['graceFrom'])).toBeLessThanOrEqual(await shard.now());
  });

  describe('a second jump during a grace takes nothing back', () => {
    const stamped = async (agoMs: number) => {
      const args = other.args({ sweep: true });
      args[1] = `${++other.session.sequence} ${(await shard.now()) - agoMs} 10000`;
      return shard.run('step', other.session.key, args);
    };
    // The grace that the first jump began is over by the clock, and the job's lease ended before it.
    beforeEach(async () => {
      await shard.fill('A');
      const graceFrom = (await shard.now()) - 2 * LEASE;
      await shard.expire(await owner.take('A'), 3 * LEASE);
      await shard.meta({ graceFrom, graceUntil: graceFrom + LEASE, seenAt: graceFrom });
    });

    it('where a call was refused as late meanwhile', async () => {
      await expect(stamped(20_000)).rejects.toThrow('DQLATE');
      await stamped(0);
      expect(await shard.see('A')).toMatchObject({ state: 'running' });
      expect(Number((await shard.read()).meta['graceUntil'])).toBeGreaterThan((await shard.now()) + LEASE - 5_000);
    });

    it('where a call was refused as late meanwhile, and the clock was set back a little since', async () => {
      await shard.meta({ lateAt: (await shard.now()) + 600 });
      await stamped(0);
      expect(await shard.see('A')).toMatchObject({ state: 'running' });
    });

    it('where the step itself left long ago', async () => {
      await stamped(9_000);
      expect(await shard.see('A')).toMatchObject({ state: 'running' });
    });

    it('where the step is yet to leave by the clock that its process knows: it was set back since', async () => {
      await stamped(-9_000);
      expect(await shard.see('A')).toMatchObject({ state: 'running' });
    });

    it('but a pause does: what was refused as late is of a clock that was far ahead', async () => {
      await shard.meta({ lateAt: (await shard.now()) + 60_000 });
      await stamped(0);
      expect(await shard.see('A')).toMatchObject({ state: 'quarantined' });
    });

    it('but a pause does: no call came late', async () => {
      await stamped(0);
      expect(await shard.see('A')).toMatchObject({ state: 'quarantined' });
    });
  });

  it('renewals go on, so that a live worker keeps its jobs when the grace is over', async () => {
    const claim = await jump(HOUR);
    await other.step({ sweep: true });
    expect((await owner.step({ renew: [{ claim }] })).left.size).toBe(0);
    await shard.meta({ graceUntil: await shard.now() });
    await other.step({ sweep: true });
    expect(await shard.see('A')).toMatchObject({ state: 'running' });
  });

  it.each([
    ['at the jump', HOUR],
    ['by a later sweep', 0],
  ])('deadlines beyond the longest lease are cut to it %s', async (_, jumped) => {
    await shard.fill('A', 'B');
    const [far, near] = [await owner.take('A'), await owner.take('B')];
    await shard.expire(far, -HOUR);
    await shard.expire(near, -10_000);
    const { leases } = await shard.read();
    await shard.meta({ seenAt: (await shard.now()) + jumped });
    await other.step({ sweep: true });
    const after = (await shard.read()).leases;
    expect(after[near]).toBe(leases[near]);
    expect(after[far]).toBeLessThanOrEqual((await shard.now()) + LEASE);
  });

  it('the job that was alone under a deadline that was cut was not charged when its process died', async () => {
    await shard.fill('A');
    const claim = await owner.take('A', { isSole: true });
    await owner.step({ renew: [{ claim, sole: true }] });
    await shard.expire(claim, -HOUR);
    await other.step({ sweep: true });
    const deadline = (await shard.read()).leases[claim]!;
    expect(deadline).toBeLessThanOrEqual((await shard.now()) + LEASE + 0.5);
    expect(deadline % 1).toBe(0.5);
    await other.step({ sweep: true });
    expect((await shard.read()).leases[claim]).toBe(deadline); // It is cut once.
    await shard.expire(claim);
    await other.step({ sweep: true });
    expect(await recordOf('A')).toBe(`1 1 0 ${claim}`);
  });

  it('a deadline at infinity, which only damage writes, is cut as well', async () => {
    await shard.fill('A');
    const claim = await owner.take('A', { isSole: true });
    await here.world.redis.zadd(shard.key('leases'), 'inf', claim);
    await other.step({ sweep: true });
    expect((await shard.read()).leases[claim]).toBeLessThanOrEqual((await shard.now()) + LEASE);
  });

  it('but not those of a longer lease that somebody has', async () => {
    await shard.fill('A');
    const claim = await owner.take('A', { leaseMs: 2 * HOUR });
    const { leases } = await shard.read();
    await shard.meta({ seenAt: (await shard.now()) + 9 * HOUR });
    await other.step({ sweep: true });
    expect((await shard.read()).leases).toEqual({ [claim]: leases[claim] });
  });

  it('a clock that is set right by less than a second during a grace does not end it', async () => {
    await jump(HOUR);
    await other.step({ sweep: true });
    // What the clock showed until now: it goes back by half a second.
    const { seenAt, graceUntil, graceFrom } = (await shard.read()).meta;
    const [seen, until, from] = [seenAt, graceUntil, graceFrom].map((at) => Number(at) + 500);
    await shard.meta({ seenAt: seen!, graceUntil: until!, graceFrom: from! });
    await other.step({ sweep: true });
    expect(await shard.see('A')).toMatchObject({ state: 'running' });
  });

  it('a clock that is set right twice by less than a second each during a grace does not end it', async () => {
    await jump(HOUR);
    await other.step({ sweep: true });
    // What the clock showed until now. No step came between one second back and half a second more.
    const { seenAt, graceUntil, graceFrom } = (await shard.read()).meta;
    const [until, from] = [graceUntil, graceFrom].map((at) => Number(at) + 1_500);
    await shard.meta({ seenAt: Number(seenAt) + 500, graceUntil: until!, graceFrom: from! });
    await other.step({ sweep: true });
    expect(await shard.see('A')).toMatchObject({ state: 'running' });
  });

  it('a grace that lies absurdly far ahead, because the clock went back, ends one lease from now', async () => {
    await jump(0);
    await shard.meta({ graceUntil: (await shard.now()) + HOUR });
    const { firstLease } = await other.step({ sweep: true });
    expect(await shard.see('A')).toMatchObject({ state: 'running' });
    const until = Number((await shard.read()).meta['graceUntil']);
    expect(firstLease).toBe(until);
    expect(until).toBeLessThanOrEqual((await shard.now()) + LEASE);
  });
});

describe('the longest lease', () => {
  const longest = async () => Number((await shard.read()).meta['longestLease']);

  it('is forgotten when that time has passed and nobody has one any more', async () => {
    await shard.fill('A');
    await owner.settle(await owner.take('A', { leaseMs: 2 * HOUR }), 'A', { verb: 'complete' });
    await other.step({ sweep: true });
    expect(await longest()).toBe(2 * HOUR);
    await shard.meta({ longestLeaseUntil: (await shard.now()) - 1 });
    await other.step({ sweep: true });
    expect(await longest()).toBe(LEASE);
  });

  it('is known as long as somebody has one, or what is left of it', async () => {
    await shard.fill('A');
    const claim = await owner.take('A', { leaseMs: 2 * HOUR });
    const { leases } = await shard.read();
    for (let sweeps = 0; sweeps < 3; sweeps++) {
      await shard.meta({ longestLeaseUntil: (await shard.now()) - 1 });
      await other.step({ sweep: true });
      expect(await longest()).toBeGreaterThan(1.9 * HOUR);
      expect((await shard.read()).leases).toEqual({ [claim]: leases[claim] });
    }
  });
});

it('a running job whose lease is gone gets one to run out', async () => {
  await shard.fill('A');
  const claim = await owner.take('A');
  await here.world.redis.del(shard.key('leases'));
  const now = await shard.now();
  await other.step({ sweep: true });
  expect((await shard.read()).leases[claim]).toBeGreaterThanOrEqual(now + LEASE);
  await shard.expire(claim);
  await other.step({ sweep: true });
  expect(await shard.see('A')).toMatchObject({ state: 'quarantined' });
});

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

  it('is not charged when a renewal said that it is not alone', async () => {
    await shard.fill('A');
    const { claim } = await owner.claim(1, { isSole: true });
    await owner.step({ renew: [{ claim, sole: false }] });
    const own = await extend(claim, 'A');
    expect((await shard.read()).leases[own]! % 1).toBe(0);
  });
});

describe('a dead worker kept its jobs for ever where steps are rarer than half a lease', () => {
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
    await shard.meta({
      seenAt: await shard.now(),
      graceUntil: (await shard.now()) + LEASE,
      graceFrom: await shard.now(),
    });
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
