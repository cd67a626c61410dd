import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Ear } from './ear.js';
import { place } from './placed.js';
import { TestSession } from './peer.js';
import type { Peer } from './peer.js';
import { HOUR } from './shard.js';
import type { Shard } from './shard.js';
import { shards } from './shards.js';

const here = shards();
let ear: Ear;
beforeAll(async () => {
  ear = await Ear.open(here.world);
});
afterAll(() => ear.close());

let shard: Shard;
let peers: Record<'leader' | 'a' | 'b' | 'c' | 'busy', Peer>;
beforeEach(async () => {
  shard = here.fresh();
  peers = { leader: shard.peer(), a: shard.peer(), b: shard.peer(), c: shard.peer(), busy: shard.peer() };
  const now = await shard.now();
  const sleepers = { leader: 9_000, a: 6_000, b: 8_000, c: 7_000 };
  const entries = Object.entries(sleepers).flatMap(([name, ms]) => [now + ms, peers[name as keyof typeof peers].name]);
  await here.world.redis.zadd(shard.key('idle'), ...entries);
  await shard.meta({ leader: `${peers.leader.name} ${now + 5_000}` });
});

const woken = () => ear.woken(shard, peers);
const limit = (text: string) => shard.run('limit', shard.keys.session('none'), [text, 'c']);

/** Due jobs of one group. */
async function store(group: string | undefined, ...ids: string[]): Promise<void> {
  const at = (await shard.now()) - 10;
  await place(shard, ...ids.map((id) => ({ id, group, spec: `ka${at}` })));
}

/** Nobody who was woken before is counted. */
async function takeOne(): Promise<number> {
  const { claim } = await peers.busy.claim(1, { claimInFlight: true });
  await woken();
  return claim;
}

describe('the leader and two idle processes are woken', () => {
  it('when a run ends, its queue was at its concurrency, and its own process asks for no more', async () => {
    await limit('count:1');
    await store(undefined, 'A', 'B');
    await peers.busy.settle(await takeOne(), 'A', { verb: 'complete' });
    expect(await woken()).toEqual(['leader', 'b', 'c']);
  });

  it('when a run ends whose group was at its limit', async () => {
    await limit('groupCount:1');
    await store('a', 'A', 'B');
    const claim = await takeOne();
    await peers.busy.claim(1, { claimInFlight: true });
    await woken();
    await peers.busy.settle(claim, 'A', { verb: 'complete' });
    expect(await woken()).toEqual(['leader', 'b', 'c']);
  });

  it('when a run ends whose group was at its limit, and at once, also after the clock went back', async () => {
    await limit('groupCount:1');
    await store('a', 'A', 'B');
    await shard.meta({ turn: ((await shard.now()) + HOUR) * 1024 });
    const claim = await takeOne();
    await peers.busy.claim(1, { claimInFlight: true });
    await woken();
    await peers.busy.settle(claim, 'A', { verb: 'complete' });
    expect(await woken()).toEqual(['leader', 'b', 'c']);
    const { head, now } = await peers.busy.step({});
    expect(head).toBeLessThanOrEqual(now);
  });

  it.each([
    ['cancelled', () => shard.producer.cancel(shard.queue, 'A')],
    ['cancelled among others', () => shard.inspector.bulk.cancel(shard.queue, { ids: ['A'] })],
    ['removed', () => shard.run('remove', new TestSession(shard).key, ['1', 'w', 0, -1, 'A'])],
    ['moved to another queue', () => shard.run('reserve', new TestSession(shard).key, ['1', 1_000, 1_000, 'A'])],
  ])('when the job that its group waits for is %s', async (_, free) => {
    await limit('groupCount:1 block:1');
    await store('a', 'A', 'B');
    await peers.busy.settle(await takeOne(), 'A', { verb: 'retry', delayMs: HOUR, error: '{}' });
    await peers.busy.claim(1, { claimInFlight: true });
    await woken();
    await free();
    expect(await woken()).toEqual(['leader', 'b', 'c']);
  });

  it.each([
    ['pause', (queue: string) => shard.producer.pauseSchedule(queue, 's')],
    ['removal', (queue: string) => shard.producer.unschedule(queue, 's')],
  ])('when the %s of a schedule takes back the occurrence that its group waits for', async (_, takeBack) => {
    const { producer, queue } = shard;
    await limit('groupCount:1 block:1');
    await producer.schedule(queue, 's', { cron: '0 0 1 1 *' }, 1, { group: 'a' });
    const id = (await producer.triggerSchedule(queue, 's'))!;
    await peers.busy.settle(await takeOne(), id, {
      verb: 'release',
      dueAt: (await shard.now()) + HOUR,
      unbegun: true,
    });
    await store('a', 'B');
    await peers.busy.claim(1, { claimInFlight: true });
    await woken();
    await takeBack(queue);
    // These are several calls. Where 50 ms lie between two of them, the later one finds that nobody has come for B, and wakes again.
    expect((await woken()).slice(0, 3)).toEqual(['leader', 'b', 'c']);
  });

  it('when a limit is taken away', async () => {
    await limit('count:1');
    await store(undefined, 'A', 'B');
    const claim = await takeOne();
    await limit('count:2');
    expect(await woken()).toEqual(['leader', 'b', 'c']);
    await peers.busy.settle(claim, 'A', { verb: 'complete' });
  });
});

it('who missed the message is told again while groups are looked at because a limit was widened', async () => {
  await limit(`groupRate:1/${HOUR}`);
  await store('a', 'A', 'B');
  await takeOne();
  await peers.busy.claim(1, { claimInFlight: true });
  await limit(`groupRate:2/${HOUR}`);
  expect((await shard.read()).meta).toHaveProperty('widened');
  await shard.meta({ wokenAt: (await shard.now()) - 60 });
  await woken();
  await store('b', 'C');
  expect(await woken()).toEqual(['leader', 'b', 'c']);
});

describe('nobody is woken', () => {
  it('by a job for a queue that is at its concurrency', async () => {
    await limit('count:1');
    await store(undefined, 'A');
    const claim = await takeOne();
    await store(undefined, 'B');
    expect(await woken()).toEqual([]);
    await peers.busy.settle(claim, 'A', { verb: 'complete' });
  });

  it('by a job for a group that is at its limit', async () => {
    await limit('groupCount:1');
    await store('a', 'A', 'B');
    const claim = await takeOne();
    await peers.busy.claim(1, { claimInFlight: true });
    await woken();
    await store('a', 'C');
    expect(await woken()).toEqual([]);
    await peers.busy.settle(claim, 'A', { verb: 'complete' });
  });

  it('while the window of the queue is closed; the answer of a step says when it opens', async () => {
    await limit('rate:1/600000');
    await store(undefined, 'A');
    const { now, claim, head } = await peers.busy.claim(1, { claimInFlight: true });
    expect([claim > 0, head]).toEqual([true, now + 600_000]);
    await woken();
    await store(undefined, 'B');
    expect(await woken()).toEqual([]);
    await peers.busy.settle(claim, 'A', { verb: 'complete' });
  });
});
