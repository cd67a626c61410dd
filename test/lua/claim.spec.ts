import { beforeEach, describe, expect, it } from '@jest/globals';
import type { QueueLimits } from '../../lib/index.js';
import { TestSession } from './peer.js';
import type { Peer } from './peer.js';
import { HOUR, payloadOf } from './shard.js';
import type { Shard } from './shard.js';
import { shards } from './shards.js';

const here = shards();
let shard: Shard;
let peer: Peer;
beforeEach(() => {
  shard = here.fresh();
  peer = shard.peer();
});

const idsOf = ({ jobs }: { jobs: readonly { id: string }[] }) => jobs.map(({ id }) => id);

/** Jobs with these due times, by id, stored in this order. */
async function due(times: Record<string, number>): Promise<void> {
  const items = Object.entries(times).map(([id, at]) => ({ payload: id, id, at }));
  await shard.producer.enqueueMany(shard.queue, items);
}

describe('a claim', () => {
  it('takes due jobs in the order of their due times, whatever order they were stored in', async () => {
    await due({ C: 3_000, A: 1_000, D: 4_000, B: 2_000 });
    expect(idsOf(await peer.claim(3))).toEqual(['A', 'B', 'C']);
    expect(idsOf(await peer.claim(3))).toEqual(['D']);
  });

  it('takes those that are due in the same millisecond in the byte order of their ids', async () => {
    await due({ b: 1_000, a: 1_000, Z: 1_000, é: 1_000, '10': 1_000, '9': 1_000 });
    expect(idsOf(await peer.claim(9))).toEqual(['10', '9', 'Z', 'a', 'b', 'é']);
  });

  it('so jobs of one producer keep their order', async () => {
    const items = Array.from({ length: 300 }, (_, n) => ({ payload: n, at: 1_000 }));
    await shard.producer.enqueueMany(shard.queue, items);
    const { jobs: first } = await peer.claim(200);
    const { jobs: second } = await peer.claim(200);
    const payloads = [...first, ...second].map(({ envelope }) => payloadOf(envelope));
    expect(payloads).toEqual(items.map(({ payload }) => payload));
  });

  it('never takes a job before its due time by the clock of the server', async () => {
    const now = await shard.now();
    await due({ soon: now + 5_000, later: now + HOUR, far: now + 99 * 365 * 24 * HOUR });
    const { jobs, head } = await peer.claim(200);
    expect(jobs).toEqual([]);
    expect(head).toBe(now + 5_000);
  });

  it('takes none that is due after the moment of the answer, by not even a millisecond', async () => {
    const tooEarly: number[] = [];
    for (let round = 0; round < 20; round++) {
      // Enqueued and claimed in one burst of packets, so that the claims run around the due time.
      const [answer, ...replies] = await Promise.all([
        new TestSession(shard).call('enqueue', [0, 'nd2', `j${round}`, '\n1']),
        ...Array.from({ length: 30 }, () => peer.step({ limit: 1 }, peer.newSession())),
      ]);
      const dueAt = Number(String(answer).split(' ')[3]);
      tooEarly.push(...replies.filter(({ jobs, now }) => jobs.length > 0 && now < dueAt).map(({ now }) => now - dueAt));
      await shard.inspector.purge(shard.queue);
    }
    expect(tooEarly).toEqual([]);
  });

  it('takes at most as many as it wants', async () => {
    await due({ A: 1, B: 2, C: 3 });
    expect(idsOf(await peer.claim(0))).toEqual([]);
    expect(idsOf(await peer.claim(2))).toEqual(['A', 'B']);
  });

  it('takes at most 200, whatever it wants', async () => {
    await due(Object.fromEntries(Array.from({ length: 250 }, (_, n) => [`j${n}`, 1_000 + n])));
    expect((await peer.claim(250)).jobs).toHaveLength(200);
    expect((await peer.again()).jobs).toHaveLength(200);
    expect((await peer.claim(250)).jobs).toHaveLength(50);
  });

  it('gives id, due time, attempts and envelope, and puts the batch under one lease', async () => {
    await due({ A: 1_000, B: 2_000 });
    const now = await shard.now();
    const { jobs, claim } = await peer.claim(2, { leaseMs: 7_000 });
    expect(jobs.map(({ envelope, ...rest }) => ({ ...rest, payload: payloadOf(envelope) }))).toEqual([
      { id: 'A', dueAt: 1_000, attempts: { charged: 0, losses: 0, snoozes: 0 }, payload: 'A' },
      { id: 'B', dueAt: 2_000, attempts: { charged: 0, losses: 0, snoozes: 0 }, payload: 'B' },
    ]);
    const { running, leases, jobs: records } = await shard.read();
    expect(running).toEqual({ A: claim, B: claim });
    expect(Object.keys(leases)).toEqual([String(claim)]);
    expect(leases[claim]).toBeGreaterThanOrEqual(now + 7_000);
    expect(Object.keys(records)).toEqual(['A', 'B']);
  });

  it('tells how often a job failed before', async () => {
    await shard.put('due', 'A');
    expect((await peer.claim(1)).jobs[0]!.attempts.charged).toBe(1);
  });

  it('is marked alone only with a single job', async () => {
    await due({ A: 1, B: 2, C: 3 });
    const both = await peer.claim(2, { isSole: true });
    const single = await peer.claim(1, { isSole: true });
    const { leases } = await shard.read();
    expect([leases[both.claim]! % 1, leases[single.claim]! % 1]).toEqual([0, 0.5]);
  });
});

it('jobs are kept apart also when a text of them holds what stands between them', async () => {
  const { redis } = here.world;
  await due({ A: 1_000, B: 2_000, C: 3_000, D: 4_000 });
  const { jobs: envelopes } = await shard.read();
  const stored = {
    A: envelopes['A']!,
    'B\x1e': envelopes['B']!,
    C: `${envelopes['C']!}\x1e3\x1eX\x1e`,
    D: envelopes['D']!,
  };
  await redis.zrem(shard.key('due'), 'B');
  await redis.zadd(shard.key('due'), 2_000, 'B\x1e');
  await redis.hset(shard.key('jobs'), stored);
  await redis.hdel(shard.key('jobs'), 'B');
  for (const [n, [id, envelope]] of Object.entries(stored).entries()) {
    const { claim, jobs } = await peer.claim(1);
    expect(jobs).toMatchObject([{ id, envelope }]);
    await peer.settle(claim, id, { verb: 'release', dueAt: 5_000 + n });
  }
  const { jobs } = await peer.claim(9);
  expect(Object.fromEntries(jobs.map(({ id, envelope }) => [id, envelope]))).toEqual(stored);
});

describe('the byte limit of a claim', () => {
  /** Three envelopes of about 100 bytes each. */
  beforeEach(() => due({ ['A'.repeat(3)]: 1, B: 2, C: 3 }));
  const sizes = async () => {
    const { jobs } = await shard.read();
    return ['AAA', 'B', 'C'].map((id) => Buffer.byteLength(jobs[id]!));
  };

  it('keeps the longest prefix that fits', async () => {
    const [a, b, c] = (await sizes()) as [number, number, number];
    expect(idsOf(await peer.claim(3, { bytes: a + b + c - 1 }))).toEqual(['AAA', 'B']);
    const { due: left } = await shard.read();
    expect(left).toEqual({ C: 3 });
  });

  it('takes all when they just fit', async () => {
    const [a, b, c] = (await sizes()) as [number, number, number];
    expect(idsOf(await peer.claim(3, { bytes: a + b + c }))).toEqual(['AAA', 'B', 'C']);
  });

  it('takes one in any case', async () => {
    expect(idsOf(await peer.claim(3, { bytes: 1 }))).toEqual(['AAA']);
    expect(idsOf(await peer.claim(3, { bytes: 1 }))).toEqual(['B']);
  });
});

describe('an index without a record', () => {
  beforeEach(async () => {
    await due({ A: 1_000, B: 2_000, C: 3_000 });
    await here.world.redis.hdel(shard.key('jobs'), 'B');
  });

  it('becomes a dead letter, alone: its neighbours are claimed', async () => {
    expect(idsOf(await peer.claim(3))).toEqual(['A', 'C']);
    expect(await shard.producer.get(shard.queue, 'B')).toMatchObject({
      state: 'dead',
      deadReason: 'undecodable',
      lastError: { name: 'StoredDataError' },
    });
    expect(await shard.inspector.totals(shard.queue)).toMatchObject({ dead: 1 });
  });

  it('is out of the way even when it is all that is due', async () => {
    await here.world.redis.hdel(shard.key('jobs'), 'A', 'C');
    const { jobs, claim, head } = await peer.claim(3);
    expect([jobs, claim, head]).toEqual([[], 0, undefined]);
    expect((await shard.read()).leases).toEqual({});
    expect(await shard.inspector.counts(shard.queue)).toMatchObject({ due: 0, running: 0, dead: 3 });
  });
});

describe('a paused queue', () => {
  beforeEach(async () => {
    await due({ A: 1_000, B: 2_000 });
  });

  it('gives out nothing, and settles, renews and takes back all the same', async () => {
    const claim = await peer.take('A');
    await shard.inspector.pause(shard.queue);
    const reply = await peer.step({ limit: 5, renew: [{ claim }] });
    expect([reply.jobs, reply.paused, reply.left.size]).toEqual([[], true, 0]);
    await shard.expire(claim);
    expect((await peer.step({ sweep: true })).quarantined).toBe(1);
    expect((await peer.settle(claim, 'A', { verb: 'complete' })).lost).toEqual([]);
    expect(await shard.inspector.counts(shard.queue)).toMatchObject({ due: 1, running: 0, paused: true });
  });

  it('answers a claim that is sent again with the batch it had', async () => {
    await peer.claim(1);
    await shard.inspector.pause(shard.queue);
    expect(idsOf(await peer.again())).toEqual(['A']);
  });

  it('gives out jobs again once it is resumed', async () => {
    await shard.inspector.pause(shard.queue);
    await shard.inspector.pause(shard.queue);
    expect((await peer.claim(1)).jobs).toEqual([]);
    await shard.inspector.resume(shard.queue);
    const reply = await peer.claim(1);
    expect([idsOf(reply), reply.paused]).toEqual([['A'], false]);
  });
});

it('a step answers the due time of the first job that is left, or none', async () => {
  const later = (await shard.now()) + HOUR;
  await due({ A: 1_000, B: 2_000, C: later });
  expect((await peer.claim(1)).head).toBe(2_000);
  expect((await peer.claim(5)).head).toBe(later);
  await shard.producer.cancel(shard.queue, 'C');
  expect((await peer.claim(5)).head).toBeUndefined();
});

it('one step settles, renews and claims', async () => {
  await due({ A: 1_000, B: 2_000, C: 3_000 });
  const { claim } = await peer.claim(2);
  const { leases } = await shard.read();
  await shard.expire(claim);
  const reply = await peer.step({
    settle: [[claim, 'A', { verb: 'complete' }]],
    renew: [{ claim, held: 1 }],
    sweep: true,
    limit: 1,
  });
  expect([reply.lost, reply.left.size, reply.quarantined, idsOf(reply)]).toEqual([[], 0, 0, ['C']]);
  const after = await shard.read();
  expect(after.running).toEqual({ B: claim, C: reply.claim });
  expect(after.leases[claim]).toBeGreaterThanOrEqual(leases[claim]!);
});

describe('a claim of which a part is fetched ahead', () => {
  const twenty = () => due(Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`j${n + 10}`, 1_000 + n])));
  const waits = (peer: Peer) => peer.step({ limit: 1, refreshIdle: true });

  it('takes all that it wants while no other worker waits for jobs', async () => {
    await waits(peer);
    await twenty();
    expect(idsOf(await peer.claim(12, { ahead: 7 }))).toHaveLength(12);
  });

  it('takes no more than it has slots while another worker waits', async () => {
    await waits(shard.peer());
    await twenty();
    expect(idsOf(await peer.claim(12, { ahead: 7 }))).toHaveLength(5);
  });

  it.each<QueueLimits>([
    { globalConcurrency: 50 },
    { rateLimit: { max: 50, per: '1m' } },
    { groups: { concurrency: 50 } },
    { groups: { rateLimit: { max: 50, per: '1m' } } },
  ])('takes no more than it has slots where a limit counts what is claimed, and says so: %j', async (limits) => {
    await twenty();
    await shard.inspector.setLimits(shard.queue, limits);
    const reply = await peer.claim(12, { ahead: 7 });
    expect([idsOf(reply).length, reply.isLimited]).toEqual([5, true]);
  });

  it('says whether the queue has a place for one more', async () => {
    await twenty();
    await shard.inspector.setLimits(shard.queue, { globalConcurrency: 5 });
    const told: boolean[] = [];
    for (const limit of [4, 1, 0]) told.push((await peer.claim(limit)).hasNoPlace);
    await shard.inspector.setLimits(shard.queue, { globalConcurrency: 6 });
    told.push((await peer.step({ hasFreeSlots: true })).hasNoPlace);
    expect(told).toEqual([false, true, true, false]);
  });

  it('takes all that it wants again once the limits were taken away', async () => {
    await twenty();
    await shard.inspector.setLimits(shard.queue, { globalConcurrency: 50 });
    await peer.claim(12, { ahead: 7 });
    await shard.inspector.setLimits(shard.queue, undefined);
    const reply = await peer.claim(12, { ahead: 7 });
    expect([idsOf(reply).length, reply.isLimited]).toEqual([12, false]);
  });

  it('leaves no slot free when it brings as many jobs as there are slots, so this worker waits no longer', async () => {
    await waits(peer);
    await due({ A: 1_000, B: 1_001 });
    await peer.claim(12, { ahead: 10 });
    expect((await shard.read()).idle).toEqual({});
  });
});
