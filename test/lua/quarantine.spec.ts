import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Peer } from './peer.js';
import { HOUR } from './shard.js';
import type { Shard } from './shard.js';
import { shards } from './shards.js';

const here = shards();
let shard: Shard;
let peer: Peer;
beforeEach(() => {
  shard = here.fresh();
  peer = shard.peer();
});

/** Jobs that lost this many leases in a row, in this order. */
async function quarantine(...losses: [id: string, losses: number][]): Promise<void> {
  for (const [id] of losses) await shard.fill(id);
  const { claim } = await peer.claim(losses.length);
  await shard.expire(claim);
  await peer.step({ sweep: true });
  for (const [n, [id, count]] of losses.entries()) {
    await here.world.redis.zadd(shard.key('quarantine'), (await shard.now()) - 1_000 + n, id);
    await here.world.redis.hset(shard.key('attempts'), id, `0 ${count} 0 ${claim}`);
  }
}
const idsOf = ({ jobs }: { jobs: readonly { id: string }[] }) => jobs.map(({ id }) => id);

describe('quarantine', () => {
  it('are never claimed together with due jobs: not by a step that wants due jobs, however many it wants', async () => {
    await quarantine(['S', 1]);
    await shard.fill('A');
    expect(idsOf(await peer.claim(200, { isSole: true, asksIsolation: true }))).toEqual(['A']);
    expect(await shard.see('S')).toMatchObject({ state: 'quarantined' });
  });

  it('never hold up due jobs, and a turn at them takes no due job', async () => {
    await quarantine(['S', 1]);
    await shard.fill('A');
    expect(idsOf(await peer.step({ quarantineLimit: 1, limit: 5 }))).toEqual(['S']);
    expect(await shard.see('A')).toMatchObject({ state: 'due' });
  });

  it.each<[string, [string, number][], string[]]>([
    [
      'a few together at the first loss',
      [
        ['A', 1],
        ['B', 1],
        ['C', 1],
        ['D', 1],
      ],
      ['A', 'B', 'C'],
    ],
    [
      'one at a time from the second',
      [
        ['A', 2],
        ['B', 1],
        ['C', 1],
      ],
      ['A'],
    ],
    [
      'none that lost twice among the few',
      [
        ['A', 1],
        ['B', 1],
        ['C', 2],
        ['D', 1],
      ],
      ['A', 'B'],
    ],
    [
      'one at a time when all lost often',
      [
        ['A', 5],
        ['B', 7],
      ],
      ['A'],
    ],
  ])('are claimed %s', async (_, losses, claimed) => {
    await quarantine(...losses);
    const reply = await peer.step({ quarantineLimit: 3 });
    expect(idsOf(reply).sort()).toEqual(claimed);
    expect(reply.quarantined).toBe(losses.length - claimed.length);
    expect(reply.jobs[0]!.attempts.losses).toBe(losses[0]![1]);
  });

  it('are known to run alone only when one was claimed by a process that holds nothing', async () => {
    await quarantine(['A', 2], ['B', 1], ['C', 1]);
    const leaseOf = async (claim: number) => (await shard.read()).leases[claim]! % 1;
    expect(await leaseOf((await peer.step({ quarantineLimit: 2, isSole: true })).claim)).toBe(0.5);
    expect(await leaseOf((await peer.step({ quarantineLimit: 2, isSole: true })).claim)).toBe(0);
  });

  it('are given to a process that holds something once they have waited long enough', async () => {
    await quarantine(['A', 1], ['B', 2]);
    const ago = async (id: string, ms: number) =>
      here.world.redis.zadd(shard.key('quarantine'), (await shard.now()) - ms, id);
    await ago('A', 10_000);
    await ago('B', 60_000);
    const reply = await peer.step({ quarantineLimit: 5, quarantinedForMs: 45_000 });
    expect([idsOf(reply), reply.mayIsolate]).toEqual([['B'], false]);
    expect(reply.now - reply.quarantinedSince!).toBeGreaterThanOrEqual(10_000);
    expect((await peer.step({ quarantineLimit: 5, quarantinedForMs: 45_000 })).jobs).toEqual([]);
    await ago('A', 45_000);
    const last = await peer.step({ quarantineLimit: 5, quarantinedForMs: 45_000 });
    expect([idsOf(last), last.quarantinedSince]).toEqual([['A'], undefined]);
  });

  it('wait no longer when the clock went back after they came', async () => {
    await quarantine(['A', 1]);
    await here.world.redis.zadd(shard.key('quarantine'), (await shard.now()) + HOUR, 'A');
    const { now, quarantinedSince } = await peer.step({ sweep: true });
    expect(quarantinedSince).toBeLessThanOrEqual(now);
  });

  it.each([
    [2, 0],
    [3, 0.5],
  ])('that lost %i leases in a row are marked among other jobs by %d', async (losses, mark) => {
    await quarantine(['A', losses]);
    const { claim } = await peer.step({ quarantineLimit: 1 });
    expect((await shard.read()).leases[claim]! % 1).toBe(mark);
    await shard.expire(claim);
    await peer.step({ sweep: true });
    expect((await shard.read()).attempts['A']).toBe(`${mark * 2} ${losses + 1} 0 ${claim}`);
  });

  it('start with the due time that they were made for', async () => {
    await shard.put('quarantined', 'A');
    const { dueAt } = (await shard.producer.get(shard.queue, 'A'))!;
    const { jobs } = await peer.step({ quarantineLimit: 1 });
    expect(jobs[0]).toMatchObject({ id: 'A', dueAt: dueAt.getTime() });
  });

  it('that were moved to another time go back into quarantine when it comes, not among due jobs', async () => {
    await quarantine(['S', 1]);
    await shard.producer.reschedule(shard.queue, 'S', { at: (await shard.now()) - 500 });
    await shard.fill('A');
    const reply = await peer.claim(5);
    expect(idsOf(reply)).toEqual(['A']);
    expect(reply.quarantined).toBe(1);
    expect(await shard.see('S')).toMatchObject({ state: 'quarantined' });
    expect(idsOf(await peer.step({ quarantineLimit: 1 }))).toEqual(['S']);
  });

  it('are not claimed from a paused queue', async () => {
    await quarantine(['S', 1]);
    await shard.inspector.pause(shard.queue);
    expect((await peer.step({ quarantineLimit: 1, asksIsolation: true })).jobs).toEqual([]);
    await shard.inspector.resume(shard.queue);
    expect(idsOf(await peer.step({ quarantineLimit: 1 }))).toEqual(['S']);
  });

  it('that end late in the very step that asks for some are not asked for', async () => {
    await shard.fill('A', 'B');
    const { claim } = await peer.claim(1);
    await shard.expire(claim);
    await peer.step({ sweep: true });
    const reply = await peer.step({
      settle: [[claim, 'A', { verb: 'complete' }]],
      quarantineLimit: 1,
      asksIsolation: true,
    });
    expect([reply.lost, reply.jobs, reply.quarantined, reply.mayIsolate]).toEqual([[], [], 0, false]);
    expect(await shard.see('A')).toEqual({ state: 'none' });
  });

  it('without a record become dead letters, while the next one is claimed', async () => {
    await quarantine(['A', 1], ['B', 1]);
    await here.world.redis.hdel(shard.key('jobs'), 'A');
    expect(idsOf(await peer.step({ quarantineLimit: 2 }))).toEqual(['B']);
    expect(await shard.producer.get(shard.queue, 'A')).toMatchObject({ state: 'dead', deadReason: 'undecodable' });
  });
});

describe('one isolator at a time', () => {
  let other: Peer;
  beforeEach(async () => {
    other = shard.peer();
    await quarantine(['A', 1], ['B', 1]);
  });

  it('has the role: others do not get it meanwhile, but who holds nothing may take from the quarantine all the same', async () => {
    expect((await peer.step({ asksIsolation: true })).mayIsolate).toBe(true);
    expect((await other.step({ asksIsolation: true })).mayIsolate).toBe(false);
    const idle = await other.step({ quarantineLimit: 1 });
    expect([idle.mayIsolate, idle.jobs.length, idle.quarantined]).toEqual([false, 1, 1]);
    expect(idsOf(await peer.step({ quarantineLimit: 1 }))).toHaveLength(1);
  });

  it('loses it when its time is over, or lies absurdly far ahead', async () => {
    const now = await shard.now();
    for (const until of [now - 1, now + HOUR]) {
      await shard.meta({ isolator: `${peer.name} ${until}` });
      expect((await other.step({ asksIsolation: true })).mayIsolate).toBe(true);
      await shard.meta({ isolator: '' });
    }
  });

  it('keeps it by its steps', async () => {
    await shard.meta({ isolator: `${peer.name} ${(await shard.now()) + 1_000}` });
    await peer.step({ asksIsolation: true });
    const until = Number((await shard.read()).meta['isolator']!.split(' ')[1]);
    expect(until).toBeGreaterThan((await shard.now()) + 4_000);
  });

  it('gives it up when the quarantine is empty', async () => {
    await peer.step({ asksIsolation: true });
    await shard.producer.cancel(shard.queue, 'A');
    await shard.producer.cancel(shard.queue, 'B');
    expect((await peer.step({})).mayIsolate).toBe(false);
    expect((await shard.read()).meta['isolator']).toBe('');
  });

  it('gives it up when it leaves', async () => {
    await peer.step({ asksIsolation: true });
    await other.leave();
    expect((await shard.read()).meta['isolator']).toContain(peer.name);
    await peer.leave();
    expect((await other.step({ asksIsolation: true })).mayIsolate).toBe(true);
  });
});

it('nobody becomes isolator where the quarantine is empty', async () => {
  expect((await peer.step({ asksIsolation: true })).mayIsolate).toBe(false);
});

it('an idle process got none from the quarantine while a busy one had the role', async () => {
  await shard.put('quarantined', 'A');
  expect((await peer.step({ asksIsolation: true })).mayIsolate).toBe(true);
  const { jobs } = await shard.peer().step({ quarantineLimit: 1, isSole: true });
  expect(jobs.map(({ id }) => id)).toEqual(['A']);
});
