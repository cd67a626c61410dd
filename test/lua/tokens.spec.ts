import { beforeEach, describe, expect, it } from '@jest/globals';
import { parseStep } from '../../lib/redis/step.protocol.js';
import type { Settlement } from '../../lib/worker/settlement.js';
import type { Peer } from './peer.js';
import { HOUR } from './shard.js';
import type { Seen, Shard, State } from './shard.js';
import { shards } from './shards.js';

const here = shards();
let shard: Shard;
let peer: Peer;
let other: Peer;
beforeEach(() => {
  shard = here.fresh();
  peer = shard.peer();
  other = shard.peer();
});

const SETTLEMENTS: Record<string, Settlement> = {
  complete: { verb: 'complete' },
  retry: { verb: 'retry', delayMs: HOUR, error: '{}' },
  snooze: { verb: 'snooze', delayMs: HOUR, content: '\n"snoozed"' },
  'dead letter': { verb: 'dead', reason: 'exhausted', error: '{}', charge: true },
  expired: { verb: 'expired' },
  release: { verb: 'release', dueAt: 1_000 },
};
const VERBS = Object.keys(SETTLEMENTS);

describe('what each settlement makes of a job that failed once', () => {
  it.each<[string, Seen, string | undefined]>([
    ['complete', { state: 'none' }, undefined],
    ['retry', { state: 'delayed', payload: 'old', attempts: 2, dueAt: expect.any(Number) as never }, 'retry'],
    ['snooze', { state: 'delayed', payload: 'snoozed', attempts: 1, dueAt: expect.any(Number) as never }, 'retry'],
    ['dead letter', { state: 'dead', payload: 'old', attempts: 2 }, 'exhausted'],
    ['expired', { state: 'none' }, undefined],
    ['release', { state: 'due', payload: 'old', attempts: 1, dueAt: 1_000 }, 'retry'],
  ])('%s', async (name, after, error) => {
    const claim = await shard.put('running', 'A');
    const { lost } = await peer.settle(claim, 'A', SETTLEMENTS[name]!);
    expect(lost).toEqual([]);
    expect(await shard.see('A')).toEqual(after);
    const { errors, leases } = await shard.read();
    expect(errors['A']?.split('\n')[0]).toBe(error);
    expect(leases).toEqual({});
  });

  it.each(['retry', 'snooze'])('the delay of a %s counts from the moment of the script', async (name) => {
    const claim = await shard.put('running', 'A');
    const before = await shard.now();
    await peer.settle(claim, 'A', SETTLEMENTS[name]!);
    const after = await shard.now();
    const { dueAt } = await shard.see('A');
    expect(dueAt).toBeGreaterThanOrEqual(before + HOUR);
    expect(dueAt).toBeLessThanOrEqual(after + HOUR);
  });

  it.each([1_000, 1e15])('what is released to rest does so from the moment of the script: due at %d', async (dueAt) => {
    const claim = await shard.put('running', 'A');
    const earliest = Math.max(dueAt, (await shard.now()) + HOUR);
    await peer.settle(claim, 'A', { verb: 'release', dueAt, restMs: HOUR });
    expect((await shard.see('A')).dueAt).toBeGreaterThanOrEqual(earliest);
  });

  it('what is released without a rest keeps its due time, also one before 1970', async () => {
    const claim = await shard.put('running', 'A');
    await peer.settle(claim, 'A', { verb: 'release', dueAt: -HOUR });
    expect((await shard.see('A')).dueAt).toBe(-HOUR);
  });

  it('a release without a usable time is due now', async () => {
    const claim = await shard.put('running', 'A');
    await peer.settle(claim, 'A', { verb: 'release', dueAt: NaN });
    expect((await shard.see('A')).state).toBe('due');
  });

  it.each([
    ['a retry', { verb: 'retry', delayMs: NaN, error: '{}' }],
    ['a snooze', { verb: 'snooze', delayMs: undefined as unknown as number }],
    ['a snooze for ever', { verb: 'snooze', delayMs: Infinity }],
  ] as const)('%s without a usable delay waits a minute, and fails no step', async (_, settlement) => {
    const claim = await shard.put('running', 'A');
    const before = await shard.now();
    await peer.settle(claim, 'A', settlement);
    const waits = (await shard.see('A')).dueAt! - before;
    expect(waits).toBeGreaterThanOrEqual(60_000);
    expect(waits - (await shard.now()) + before).toBeLessThanOrEqual(60_000);
  });

  it('a snooze counts as one, and with its own payload keeps header and expiry', async () => {
    await shard.producer.enqueue(shard.queue, 'old', { id: 'A', attempts: 7, expiresIn: HOUR });
    const { jobs } = await here.world.read(shard.queue);
    const claim = await peer.take('A');
    await peer.settle(claim, 'A', { verb: 'snooze', delayMs: 0, content: '{"a":7}\n"snoozed"' });
    const after = await peer.claim(1);
    expect(after.jobs[0]).toMatchObject({ attempts: { charged: 0, losses: 0, snoozes: 1 } });
    expect(after.jobs[0]!.envelope).toBe(jobs['A']!.replace('"old"', '"snoozed"'));
  });
});

describe('a settlement with an old token changes nothing and is reported as lost', () => {
  /** How the token came to be old. */
  const OUTDATED: Record<string, () => Promise<number>> = {
    'somebody else has the job': async () => {
      const old = await shard.put('quarantined', 'A');
      expect((await other.step({ quarantineLimit: 1 })).jobs).toHaveLength(1);
      return old;
    },
    'somebody else has retried it': async () => {
      const old = await shard.put('quarantined', 'A');
      const { claim } = await other.step({ quarantineLimit: 1 });
      await other.settle(claim, 'A', { verb: 'retry', delayMs: 0, error: '{}' });
      return old;
    },
    'somebody else has released it': async () => {
      const old = await shard.put('quarantined', 'A');
      const { claim } = await other.step({ quarantineLimit: 1 });
      await other.settle(claim, 'A', { verb: 'release', dueAt: 1_000 });
      return old;
    },
    'somebody else has buried it and it was requeued': async () => {
      const old = await shard.put('quarantined', 'A');
      const { claim } = await other.step({ quarantineLimit: 1 });
      await other.settle(claim, 'A', { verb: 'dead', reason: 'invalid', error: '{}', charge: false });
      await shard.inspector.requeueDead(shard.queue, ['A'], { resetAttempts: false });
      return old;
    },
    'it was replaced after it was taken back': async () => {
      const old = await shard.put('quarantined', 'A');
      await shard.producer.enqueue(shard.queue, 'new', { id: 'A', onDuplicate: 'replace' });
      return old;
    },
    'it was cancelled after it was taken back': async () => {
      const old = await shard.put('quarantined', 'A');
      await shard.producer.cancel(shard.queue, 'A');
      return old;
    },
    'it was settled before': async () => {
      const old = await shard.put('running', 'A');
      await other.settle(old, 'A', { verb: 'retry', delayMs: 0, error: '{}' });
      return old;
    },
    'the token is one too small': async () => (await shard.put('running', 'A')) - 1,
    'the token is one too large': async () => (await shard.put('running', 'A')) + 1,
  };

  describe.each(Object.keys(OUTDATED))('because %s', (why) => {
    it.each(VERBS)('%s', async (verb) => {
      const old = await OUTDATED[why]!();
      const before = await shard.stored();
      expect((await peer.settle(old, 'A', SETTLEMENTS[verb]!)).lost).toEqual(['A']);
      expect(await shard.stored()).toEqual(before);
    });
  });

  it('while its neighbours in the same call are settled', async () => {
    await shard.fill('A', 'B', 'C');
    const { claim } = await peer.claim(3);
    const settle = ['A', 'B', 'C'].map((id) => [id === 'B' ? claim - 1 : claim, id, SETTLEMENTS['complete']!] as const);
    expect((await peer.step({ settle })).lost).toEqual(['B']);
    expect((await shard.read()).running).toEqual({ B: claim });
  });
});

describe('a late settlement of a job that was taken back and that nobody has started again counts', () => {
  it.each(VERBS)('%s', async (verb) => {
    await shard.fill('A');
    const claim = await peer.take('A');
    const inTime = here.fresh();
    await inTime.fill('A');
    await inTime.peer().settle(await inTime.peer().take('A'), 'A', SETTLEMENTS[verb]!);
    const expected = await inTime.see('A');
    await shard.expire(claim);
    await other.step({ sweep: true });
    expect((await shard.see('A')).state).toBe('quarantined');

    expect((await peer.settle(claim, 'A', SETTLEMENTS[verb]!)).lost).toEqual([]);
    const { state, payload } = await shard.see('A');
    expect({ state, payload }).toEqual({ state: expected.state, payload: expected.payload });
    expect((await peer.settle(claim, 'A', SETTLEMENTS['complete']!)).lost).toEqual(['A']);
  });

  it.each([
    ['rescheduled', (id: string) => shard.producer.reschedule(shard.queue, id, { delay: '1h' })],
    [
      'enqueued again',
      (id: string) => shard.producer.enqueue(shard.queue, 0, { id, onDuplicate: 'reschedule', delay: '1h' }),
    ],
  ])('but not of one that was %s: the new time would be lost', async (_, move) => {
    const claim = await shard.put('quarantined', 'A');
    await move('A');
    for (const settlement of [SETTLEMENTS['complete']!, SETTLEMENTS['retry']!]) {
      expect((await peer.settle(claim, 'A', settlement)).lost).toEqual(['A']);
    }
    expect((await shard.see('A')).state).toBe('delayed');
  });
});

describe('an old token renews and extends nothing', () => {
  it('a renewal of it tells which jobs are left, and touches no lease', async () => {
    const old = await shard.put('quarantined', 'A');
    const { claim } = await other.step({ quarantineLimit: 1 });
    const { leases } = await shard.read();
    const { left } = await peer.step({ renew: [{ claim: old }], leaseMs: 60_000 });
    expect([...left]).toEqual([[old, new Set()]]);
    expect((await shard.read()).leases).toEqual(leases);
    expect(Object.keys(leases)).toEqual([String(claim)]);
  });

  it('a renewal names the jobs left of a batch', async () => {
    await shard.fill('A', 'B', 'C');
    const { claim } = await peer.claim(3);
    await peer.settle(claim, 'B', { verb: 'complete' });
    const { left } = await peer.step({ renew: [{ claim, held: 3 }] });
    expect([...left]).toEqual([[claim, new Set(['A', 'C'])]]);
    expect((await peer.step({ renew: [{ claim, held: 2 }] })).left.size).toBe(0);
  });

  it('extending it answers 0 and changes nothing', async () => {
    const old = await shard.put('quarantined', 'A');
    await other.step({ quarantineLimit: 1 });
    const before = await shard.stored();
    expect(await peer.session.call('extend', [0, old, 'A', 60_000])).toBe('0');
    expect(await peer.session.call('extend', [0, old, 'unknown', 60_000])).toBe('0');
    expect(await shard.stored()).toEqual(before);
  });
});

describe('extend', () => {
  const extend = async (claim: number, id: string, leaseMs: number) =>
    Number(await peer.session.call('extend', [0, claim, id, leaseMs]));

  it('gives one job of a batch a lease of its own and leaves its neighbours theirs', async () => {
    await shard.fill('A', 'B');
    const { claim } = await peer.claim(2);
    const before = (await shard.read()).leases;
    const now = await shard.now();
    const own = await extend(claim, 'A', HOUR);
    const { running, leases } = await shard.read();
    expect(running).toEqual({ A: own, B: claim });
    expect(leases[claim]).toBe(before[claim]);
    expect(leases[own]).toBeGreaterThanOrEqual(now + HOUR);
  });

  it('takes the lease of the last job of a batch away with it', async () => {
    const claim = await shard.put('running', 'A');
    const own = await extend(claim, 'A', HOUR);
    expect(Object.keys((await shard.read()).leases)).toEqual([String(own)]);
    expect((await peer.settle(claim, 'A', { verb: 'complete' })).lost).toEqual(['A']);
    expect((await peer.settle(own, 'A', { verb: 'complete' })).lost).toEqual([]);
  });

  it.each([
    ['alone in its process stays marked so', ['A'], 0.5],
    ['of a batch is not marked alone', ['A', 'B'], 0],
  ])('a job that is %s', async (_, ids, mark) => {
    await shard.fill(...ids);
    const { claim } = await peer.claim(ids.length);
    await peer.step({ renew: [{ claim, held: ids.length, sole: true }] });
    const own = await extend(claim, 'A', HOUR);
    expect((await shard.read()).leases[own]! % 1).toBe(mark);
  });

  it('by a shorter time takes nothing away', async () => {
    const claim = await shard.put('running', 'A');
    const { leases } = await shard.read();
    const own = await extend(claim, 'A', 100);
    expect((await shard.read()).leases).toEqual({ [own]: leases[claim] });
  });

  it('outlives renewals by a shorter lease', async () => {
    const own = await extend(await shard.put('running', 'A'), 'A', HOUR);
    const { leases } = await shard.read();
    await peer.step({ renew: [{ claim: own }] });
    expect((await shard.read()).leases).toEqual(leases);
  });
});

describe('claim numbers', () => {
  /** Many claims in one burst of packets, so that several fall into one millisecond. */
  const burst = async (count: number, of = 'j'): Promise<number[]> => {
    await shard.fill(...Array.from({ length: count }, (_, n) => `${of}${n}`));
    const replies = Array.from({ length: count }, () => peer.step({ limit: 1 }, peer.newSession()));
    return (await Promise.all(replies)).map(({ claim }) => claim);
  };
  const rise = (numbers: number[]) => numbers.every((number, n) => n === 0 || number > numbers[n - 1]!);

  it('rise strictly, also within one millisecond', async () => {
    const numbers = await burst(100);
    expect(rise(numbers)).toBe(true);
    expect(numbers.every(Number.isSafeInteger)).toBe(true);
  });

  it('rise when the clock has gone back', async () => {
    const ahead = ((await shard.now()) + HOUR) * 1_024;
    await shard.meta({ claim: ahead });
    const [first, ...others] = await burst(3);
    const extended = Number(await peer.session.call('extend', [0, first!, 'j0', HOUR]));
    const numbers = [ahead, first!, ...others, extended];
    expect([rise(numbers), extended < ahead + 10_000]).toEqual([true, true]);
  });

  it('are others where a master goes on from the same number, because a failover has lost the claims behind it', async () => {
    const ahead = ((await shard.now()) + HOUR) * 1_024;
    await shard.meta({ claim: ahead });
    const lost = await burst(8);
    // A store in memory loses nothing while its process lives, and its clock has no microseconds.
    if (here.world.url.startsWith('memory:')) return;
    await shard.meta({ claim: ahead });
    const given = await burst(8, 'k');
    expect(Math.min(...given)).toBeGreaterThan(ahead);
    expect(given).not.toEqual(lost);
  });

  it('are those of the clock that its caller knows, when another master took over whose clock is behind', async () => {
    await shard.fill('A', 'B');
    // The master before gave out numbers by a clock that was 10 s ahead of this one, and the last ones never arrived here.
    const known = (await shard.now()) + 10_000;
    const claimBy = async (sequence: number, asked: number) => {
      const args = peer.args({ limit: 1 });
      args[1] = `${sequence} ${asked} 10000`;
      return parseStep(await shard.run('step', peer.session.key, args)).claim;
    };
    const claim = await claimBy(1, known);
    expect(claim).toBeGreaterThanOrEqual(known * 1_024);
    // Whoever asks next may never have seen the other clock.
    expect(await claimBy(2, await shard.now())).toBeGreaterThan(claim);
  });

  it('are those of the other clock also when the first step after that claims nothing', async () => {
    const known = (await shard.now()) + 10_000;
    const args = peer.args();
    args[1] = `1 ${known} 10000`;
    await shard.run('step', peer.session.key, args);
    await shard.fill('A');
    expect(await peer.take('A')).toBeGreaterThan(known * 1_024);
  });

  it('are those of the clock when it is ahead, so that a lost counter never gives one out twice', async () => {
    await shard.fill('A');
    const now = await shard.now();
    const claim = await peer.take('A');
    expect(claim).toBeGreaterThanOrEqual(now * 1_024);
    expect((await shard.read()).meta['claim']).toBe(String(claim));
  });

  it('are the same in running and leases to the last digit', async () => {
    await shard.meta({ claim: 2 ** 53 - 100 });
    const numbers = await burst(5);
    const { running, leases } = await shard.read();
    expect(new Set(Object.values(running))).toEqual(new Set(numbers));
    expect(new Set(Object.keys(leases).map(Number))).toEqual(new Set(numbers));
    const ends = [SETTLEMENTS['complete']!, SETTLEMENTS['retry']!];
    const settle = Object.entries(running).map(([id, claim], n) => [claim, id, ends[n % 2]!] as const);
    expect((await peer.step({ settle })).lost).toEqual([]);
  });

  it('are not used up by claims that find nothing', async () => {
    expect((await peer.claim(5)).claim).toBe(0);
    expect((await shard.read()).meta['claim']).toBeUndefined();
  });
});

it.each<State>(['quarantined', 'running'])('a job of which the lease ended is not %s twice', async (state) => {
  await shard.put(state, 'A');
  if (state === 'running') await shard.expire((await shard.read()).running['A']!);
  const replies = await Promise.all([
    peer.step({ sweep: true, quarantineLimit: 5 }),
    other.step({ sweep: true, quarantineLimit: 5 }),
    peer.step({ sweep: true, limit: 5 }, peer.newSession()),
  ]);
  expect(replies.flatMap(({ jobs }) => jobs)).toHaveLength(1);
});
