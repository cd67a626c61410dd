import { beforeEach, describe, expect, it } from '@jest/globals';
import { baseOf, placeOf } from '../../lib/job/place.js';
import { parseCounts } from '../../lib/redis/counts.protocol.js';
import { enqueueArgs } from '../../lib/redis/enqueue.protocol.js';
import type { AnyScriptName } from '../../lib/lua/scripts.js';
import { TestSession } from './peer.js';
import type { Ask, Ending, Peer } from './peer.js';
import type { Settlement } from '../../lib/worker/settlement.js';
import { later } from '../helpers/later.js';
import { place } from './placed.js';
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

const MINUTE = 60_000;
const idsOf = ({ jobs }: { jobs: readonly { id: string }[] }) => jobs.map(({ id }) => id);

interface Job {
  readonly id: string;
  readonly at: number;
  readonly group?: string;
  readonly priority?: number;
}

/** Stores jobs of groups, in this order. */
async function store(...jobs: readonly Job[]): Promise<void> {
  await place(shard, ...jobs.map(({ at, ...job }) => ({ ...job, spec: `ka${at}` })));
}

/** Of starts as they are stored: when they count, and how many they are; without their first claims. */
const startsIn = (text: string) => text.replaceAll(/(\d+:\d+):-?\d+/g, '$1');
const limit = (text: string) => shard.run('limit', shard.keys.session('none'), [text, 'c']);

/** Claims one at a time, completing none. */
async function oneByOne(n: number): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < n; i++) ids.push(...idsOf(await peer.claim(1)));
  return ids;
}

it('the answer to jobs that are refused while publishing is paused has one word for each of them', async () => {
  await store({ id: 'a', at: 1, group: 'g' });
  await shard.inspector.pausePublishing(shard.queue);
  const items = ['b', 'c', 'd'].map((id) => ({ id, spec: 'ka1', content: '\n1', place: placeOf('g', 0)! }));
  const answer = (await new TestSession(shard).call('place', enqueueArgs(items))) as string;
  expect(answer.replace(/^\d+/, 'now')).toBe('now b - 0 =2');
});

it('a call is answered that is on its way while the queue gets its first limit and its groups are asked for', async () => {
  const run = (script: AnyScriptName, ...args: (string | number)[]) =>
    shard.run(script, shard.keys.session('none'), args);
  const asked = { groups: () => run('groups', '', 50), limits: () => run('limit', '?', 'c') };
  // The server knows all scripts of these, or it would run them in another order than they are sent.
  await Promise.all([asked.groups(), run('counts')]);
  await limit('count:1');
  await run('counts');
  for (const ask of Object.values(asked)) {
    shard = here.fresh();
    await shard.fill('A');
    const [, counts] = await Promise.all([ask(), run('counts'), limit('count:1'), run('counts')]);
    expect(parseCounts(counts)).toMatchObject({ due: 1 });
  }
});

describe('a job that was claimed and did not begin', () => {
  const release = (claim: number, id: string, unbegun: boolean, at: number) =>
    peer.settle(claim, id, { verb: 'release', dueAt: at, ...(unbegun && { unbegun }) });

  it.each(['rate', 'groupRate'])('does not count for a rate, and its group goes on at once: %s', async (rate) => {
    const at = (await shard.now()) - MINUTE;
    await store(...['A', 'B', 'C', 'D'].map((id, n) => ({ id, at: at + n, group: 'g' })));
    await limit(`${rate}:2/${HOUR}`);
    for (let n = 0; n < 5; n++) {
      const { claim } = await peer.claim(1);
      await release(claim, 'A', true, at);
    }
    const held = [await peer.claim(1), await peer.claim(1), await peer.claim(1)];
    expect(held.map(idsOf)).toEqual([['A'], ['B'], []]);
    // One that has begun counts, also when it is handed back.
    await release(held[0]!.claim, 'A', false, at);
    expect(idsOf(await peer.claim(1))).toEqual([]);
    await release(held[1]!.claim, 'B', true, at);
    expect([idsOf(await peer.claim(1)), idsOf(await peer.claim(1))]).toEqual([['A'], []]);
  });

  it('leaves nothing of its group where it was cancelled meanwhile, and a group that goes on where it was not', async () => {
    const at = (await shard.now()) - MINUTE;
    await store({ id: 'A', at, group: 'a' }, { id: 'B', at, group: 'b' });
    await limit(`groupRate:2/${HOUR}`);
    const claims = [await peer.claim(1), await peer.claim(1)];
    await shard.producer.cancel(shard.queue, 'A', { running: true });
    for (const { claim, jobs } of claims) await release(claim, jobs[0]!.id, true, at);
    const { ring, rates } = await shard.read();
    expect([Object.keys(ring), rates]).toEqual([[baseOf('b')], {}]);
    expect(idsOf(await peer.claim(1))).toEqual(['B']);
    expect(await shard.problems()).toEqual([]);
  });

  it('gives its start back also where that was joined with later ones, and none that is not its own', async () => {
    const now = await shard.now();
    await store({ id: 'A', at: now - MINUTE });
    await limit(`rate:3/${HOUR}`);
    const { claim } = await peer.claim(1);
    // One of the future would count as of the ms of the release, which may be that of the claim.
    const later = Math.floor(claim / 1024) + 1;
    while ((await shard.now()) < later);
    const joined = `${later}:3:${claim - later * 1024}`;
    await here.world.redis.hset(shard.key('rates'), '', joined.replace(/-\d+$/, '1'));
    await release(claim, 'A', true, now - MINUTE);
    expect(idsOf(await peer.claim(1))).toEqual([]);
    await here.world.redis.hset(shard.key('rates'), '', joined.replace(':3:', ':2:'));
    const again = await peer.claim(1);
    await here.world.redis.hset(shard.key('rates'), '', joined);
    await release(again.claim, 'A', true, now - MINUTE);
    expect(idsOf(await peer.claim(1))).toEqual(['A']);
  });

  it('counts no more when it has expired since its claim', async () => {
    const at = (await shard.now()) - MINUTE;
    await store({ id: 'A', at });
    await place(shard, { id: 'B', spec: `ka${at} a${at + HOUR} - -` });
    await limit(`rate:2/${HOUR}`);
    await peer.claim(1);
    const { claim } = await peer.claim(1);
    // It expires with the ms of its claim, and is released later.
    const expiry = Math.floor(claim / 1024);
    await place(shard, { id: 'pattern', spec: `ka${at} a${expiry} - -` });
    const [stored, pattern] = (await here.world.redis.hmget(shard.key('jobs'), 'B', 'pattern')) as [string, string];
    await here.world.redis.hset(shard.key('jobs'), 'B', stored.slice(0, 16) + pattern.slice(16, 23) + stored.slice(23));
    while ((await shard.now()) <= expiry);
    await release(claim, 'B', true, at + 2 * HOUR);
    expect(Object.values((await shard.read()).rates).map((text) => startsIn(text).split(':')[1])).toEqual(['1']);
  });

  it('gives back its own start, and not that of another one, where the clock was set back before its claim', async () => {
    const at = (await shard.now()) - MINUTE;
    await store({ id: 'A', at }, { id: 'B', at: at + 1 });
    await limit(`rate:2/${HOUR}`);
    // Claims were made by a time that the clock will reach in an hour.
    await shard.meta({ claim: (at + MINUTE + HOUR) * 1024 });
    const { claim, now: first } = await peer.claim(1);
    while ((await shard.now()) <= first);
    const { now: second } = await peer.claim(1);
    await release(claim, 'A', true, at);
    expect(Object.values((await shard.read()).rates).map(startsIn)).toEqual([`${second}:1`]);
  });

  it('gives back its own start, and not that of another one, where the clock was set back after it, and was there again', async () => {
    const at = (await shard.now()) - MINUTE;
    await store({ id: 'A', at }, { id: 'B', at: at + 1 });
    await limit(`rate:2/${HOUR}`);
    const { claim } = await peer.claim(1);
    const { claim: other, now } = await peer.claim(1);
    // The first start was written again by a clock that was 8 ms behind, and both claims are of the same ms.
    const entry = (ms: number, number: number) => `${ms}:1:${number - ms * 1024}`;
    await here.world.redis.hset(shard.key('rates'), '', `${entry(now - 8, other - 1)} ${entry(now, other)}`);
    await here.world.redis.zadd(shard.key('running'), other - 1, 'A');
    await here.world.redis.zadd(shard.key('leases'), (await shard.now()) + HOUR, other - 1);
    await here.world.redis.zrem(shard.key('leases'), claim);
    await release(other - 1, 'A', true, at);
    expect(Object.values((await shard.read()).rates)).toEqual([entry(now, other)]);
  });

  it('gives back the start of a job from the quarantine, and nothing of one that has expired, which was not counted', async () => {
    const at = (await shard.now()) - MINUTE;
    await store(...['lost', 'A', 'B', 'C', 'D'].map((id, n) => ({ id, at: at + n, group: 'g' })));
    await here.world.redis.hset(shard.key('attempts'), 'lost', '0 1 0 5');
    await limit(`groupRate:4/${HOUR}`);
    expect(await oneByOne(2)).toEqual(['A']);
    await place(shard, { id: 'expired', spec: `ka${at} a${at + 1} - -`, group: 'g' });
    // In one claim with a job that counts.
    const both = await peer.claim(2);
    expect(idsOf(both).sort()).toEqual(['B', 'expired']);
    await release(both.claim, 'expired', true, at + 2 * HOUR);
    expect(await oneByOne(1)).toEqual(['C']);
    const isolated = await peer.step({ quarantineLimit: 1, limit: 1, isSole: true });
    expect(idsOf(isolated)).toEqual(['lost']);
    expect(await oneByOne(1)).toEqual([]);
    await release(isolated.claim, 'lost', true, at);
    await here.world.redis.hdel(shard.key('attempts'), 'lost');
    expect(await oneByOne(2)).toEqual(['lost']);
  });
});

describe('priority', () => {
  it('counts as if the job had been due so many minutes earlier', async () => {
    const at = (await shard.now()) - 20 * MINUTE;
    await store(
      { id: 'plain', at },
      { id: 'urgent', at: at + 8 * MINUTE, priority: 9 },
      { id: 'older', at: at - 2 * MINUTE },
      { id: 'some', at: at + 3 * MINUTE, priority: 4 },
    );
    expect(await oneByOne(4)).toEqual(['older', 'urgent', 'some', 'plain']);
  });

  it('never starts a job before it is due', async () => {
    const now = await shard.now();
    await store({ id: 'later', at: now + HOUR, priority: 9 }, { id: 'due', at: now - 1 });
    const reply = await peer.claim(10);
    expect([idsOf(reply), reply.head]).toEqual([['due'], now + HOUR]);
  });

  it('has a group wait for the first of its jobs to the millisecond, whatever their priorities', async () => {
    const now = await shard.now();
    const first = 4 * Math.ceil((now + HOUR) / 4);
    await store({ id: 'now', at: now }, { id: 'second', at: first + 1 }, { id: 'first', at: first, priority: 9 });
    expect((await peer.claim(1)).head).toBe(first);
  });

  it('is kept through a retry, a snooze, a release and a lost lease', async () => {
    const at = (await shard.now()) - 20 * MINUTE;
    await store({ id: 'A', at, priority: 9 }, { id: 'B', at: at - MINUTE });
    const settlements = [
      { verb: 'retry', delayMs: 0, error: '{}' },
      { verb: 'snooze', delayMs: 0 },
      { verb: 'release', dueAt: at },
    ] as const;
    for (const settlement of settlements) {
      const claim = await peer.take('A');
      await peer.settle(claim, 'A', settlement);
      await shard.run('reschedule', new TestSession(shard).key, ['1', 'A', 'a', at, 0]);
    }
    expect(await oneByOne(2)).toEqual(['A', 'B']);
  });
});

describe('groups', () => {
  it('take turns of at most five jobs, each in its due order', async () => {
    const jobs = ['x', 'y'].flatMap((group, g) =>
      Array.from({ length: 7 }, (_, n) => ({ id: `${group}${n}`, at: 1_000 + 100 * g + n, group })),
    );
    await store(...jobs);
    const claims: string[] = [];
    for (let n = 0; n < 3; n++) claims.push(idsOf(await peer.claim(5)).join(' '));
    expect(claims).toEqual(['x0 x1 x2 x3 x4', 'y0 y1 y2 x5 x6', 'y3 y4 y5 y6']);
  });

  it('of which one had nothing due until now come before those that wait for another turn', async () => {
    await store(...Array.from({ length: 20 }, (_, n) => ({ id: `big${n}`, at: 1_000 + n, group: 'big' })));
    await peer.claim(5);
    await store({ id: 'quiet', at: 5_000, group: 'quiet' });
    expect(idsOf(await peer.claim(5))[0]).toBe('quiet');
  });

  describe('of which the jobs are too large for one answer', () => {
    beforeEach(() =>
      store(
        ...['x', 'y', 'z'].flatMap((group, g) =>
          [1, 2, 3].map((n) => ({ id: `${group}${n}`, at: 1_000 + 100 * g + n, group })),
        ),
      ),
    );

    it('take turns all the same: those that had no room come next', async () => {
      const claims: string[] = [];
      for (let n = 0; n < 9; n++) claims.push(idsOf(await peer.claim(9, { bytes: 1 })).join(' '));
      expect(claims).toEqual(['x1', 'y1', 'z1', 'x2', 'y2', 'z2', 'x3', 'y3', 'z3']);
    });

    it('have the rest of their turn next, and no more than their rate allows', async () => {
      await limit(`groupRate:2/${HOUR}`);
      const { x1, x2, y1 } = (await shard.read()).jobs;
      const bytes = [x1, x2, y1].reduce((sum, job) => sum + Buffer.byteLength(job!), 0);
      const claims: string[] = [];
      for (let n = 0; n < 3; n++) claims.push(idsOf(await peer.claim(9, { bytes })).join(' '));
      expect(claims).toEqual(['x1 x2 y1', 'y2 z1 z2', '']);
    });
  });

  it('of which the head was rescheduled do not keep a claim from those behind them', async () => {
    const early = ['a', 'b', 'c'].map((group) => ({ id: group, at: 1_000, group }));
    await store(...early);
    for (const { id, group } of early) {
      await store({ id: `${group}-later`, at: 9e12, group });
      await shard.producer.reschedule(shard.queue, id, { delay: '1h' });
    }
    await store({ id: 'due', at: 2_000, group: 'd' });
    expect(idsOf(await peer.claim(1))).toEqual(['due']);
  });

  it('take new jobs of several kinds in one call, each with its own times and place', async () => {
    const job = (id: string, spec: string, group: string) => ({ id, spec, group, payload: id });
    await place(shard, job('A', 'nd0', 'a'), job('B', 'nd0 i5000 - -', 'b'), job('C', 'nd1', 'a'));
    for (const id of ['A', 'B', 'C']) expect(await shard.producer.get(shard.queue, id)).toMatchObject({ payload: id });
    expect(await shard.problems()).toEqual([]);
  });

  it('have a job that is signalled at once, in its place', async () => {
    const at = (await shard.now()) + HOUR;
    await store({ id: 'A', at, group: 'a', priority: 3 }, { id: 'B', at, group: 'a' });
    expect(await shard.producer.signal(shard.queue, 'A', 'paid')).toMatchObject({ outcome: 'signalled' });
    expect(await shard.problems()).toEqual([]);
    expect(idsOf(await peer.claim(10))).toEqual(['A']);
  });

  it('find each job of one call under its own id', async () => {
    await store({ id: 'A', at: 1_000, group: 'a' }, { id: 'B', at: 1_001, group: 'a' });
    const claim = await peer.take('A');
    await place(shard, ...['B', 'A'].map((id) => ({ id, spec: 'rd0', group: 'b', payload: 'new' })));
    expect(await shard.see('A')).toMatchObject({ state: 'running' });
    await peer.settle(claim, 'A', { verb: 'complete' });
    expect([await shard.see('A'), await shard.see('B')]).toMatchObject([{ state: 'due' }, { state: 'due' }]);
    expect(await shard.problems()).toEqual([]);
  });

  it('are shown page by page, also when those of the page before have gone', async () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
    const delay = (n: number) => HOUR + Math.floor(n / 3); // Some have one time, which is their place in line.
    await shard.producer.enqueueMany(shard.queue, names.map((group, n) => ({ payload: 1, id: group, group, delay: delay(n) }))); // prettier-ignore
    const known = new Set<string>();
    let cursor: string | undefined;
    do {
      const page = await shard.inspector.groups(shard.queue, { limit: 2, ...(cursor !== undefined && { cursor }) });
      for (const { group } of page.groups) {
        expect(known.has(group!)).toBe(false);
        known.add(group!);
        await shard.producer.cancel(shard.queue, group!);
      }
      ({ cursor } = page);
    } while (cursor !== undefined);
    expect([...known].sort()).toEqual(names);
  });

  it('are shown from where an older library has left off', async () => {
    for (const group of ['a', 'b', 'c']) await shard.producer.enqueue(shard.queue, 1, { group, delay: HOUR });
    const { groups } = await shard.inspector.groups(shard.queue, { cursor: '2' });
    expect(groups).toHaveLength(1);
  });

  it('are forgotten with their last job', async () => {
    await store(
      { id: 'A', at: 1_000, group: 'a' },
      { id: 'B', at: 9e12, group: 'b' },
      { id: 'C', at: 9e12, group: 'c' },
    );
    await peer.settle(await peer.take('A'), 'A', { verb: 'complete' });
    await shard.producer.cancel(shard.queue, 'B');
    await shard.inspector.purge(shard.queue);
    const { grouped, ring, held, rates } = await shard.read();
    expect({ grouped, ring, held, rates }).toEqual({ grouped: {}, ring: {}, held: {}, rates: {} });
  });

  it('hold what was stored before the queue had any', async () => {
    await shard.fill(...Array.from({ length: 250 }, (_, n) => `old${n}`));
    await store({ id: 'new', at: 1_000, group: 'a' });
    const claimed = new Set<string>();
    for (let n = 0; n < 4; n++) for (const id of idsOf(await peer.claim(200))) claimed.add(id);
    expect(claimed.size).toBe(251);
    expect((await shard.read()).meta['adopting']).toBeUndefined();
  });
});

it('after the clock went back, groups whose jobs were overdue when they came waited until it was again as late as then', async () => {
  const now = await shard.now();
  const jobs = Array.from({ length: 120 }, (_, n) => ({
    id: `j${n}`,
    at: now - MINUTE,
    group: `g${n}`,
    priority: n % 3,
  }));
  await store(...jobs, { id: 'later', at: now + HOUR, group: 'later' });
  const ahead = now + 2 * HOUR;
  const ring = Object.keys((await shard.read()).ring);
  await shard.world.redis.zadd(shard.world.key(shard.queue, 'ring'), ...ring.flatMap((base) => [ahead, base]));
  await shard.meta({ seenAt: ahead });
  const claimed = new Set<string>();
  for (let n = 0; n < 4; n++) {
    const { jobs: some, head, now: at } = await peer.claim(200);
    for (const { id } of some) claimed.add(id);
    // There is more to look at, until all have been.
    expect(head).toBe(n < 2 ? at - 50 : now + HOUR);
  }
  expect(claimed.size).toBe(120);
  expect((await shard.read()).meta['rewound']).toBeUndefined();
  expect((await shard.read()).ring[baseOf('later')]).toBe(now + HOUR);
  expect(await shard.problems()).toEqual([]);
});

it('after the clock went back, overdue groups start also behind many that are at a limit, and no look at them is without end', async () => {
  const MANY = 120;
  await limit(`groupRate:1/${HOUR}`);
  const at = (await shard.now()) - MINUTE;
  await store(...Array.from({ length: 2 * MANY }, (_, n) => ({ id: `j${n}`, at, group: `g${n % MANY}` })));
  expect((await peer.claim(200)).jobs).toHaveLength(MANY);
  await store({ id: 'overdue', at, group: 'overdue' });
  const ahead = (await shard.now()) + 2 * HOUR;
  await shard.world.redis.zadd(shard.key('ring'), ahead, baseOf('overdue'));
  await shard.meta({ seenAt: ahead });
  const claimed: string[] = [];
  for (let n = 0; n < 4; n++) claimed.push(...idsOf(await peer.claim(200)));
  expect(claimed).toEqual(['overdue']);
  const { head, now } = await peer.claim(200);
  expect(head).toBeGreaterThan(now);
});

it.each(['', ' block:1'])(
  'after the clock went back, groups at a limit wait for one window at most%s',
  async (block) => {
    const MANY = 250;
    await limit(`groupCount:9 groupRate:1/${MINUTE}${block}`);
    const at = (await shard.now()) - 2 * HOUR;
    await store(...Array.from({ length: 2 * MANY }, (_, n) => ({ id: `j${n}`, at: at + n, group: `g${n % MANY}` })));
    let started = 0;
    for (let n = 0; n < 3; n++) started += (await peer.claim(200)).jobs.length;
    expect(started).toBe(MANY);
    // All of that was by a clock that was ahead by an hour until now.
    await later(here.world, shard.queue, -HOUR);
    await shard.meta({ seenAt: (await shard.now()) + HOUR });
    for (let n = 0; n < 6; n++) expect(idsOf(await peer.claim(200))).toEqual([]);
    const { ring, meta } = await shard.read();
    expect(Object.keys(ring)).toHaveLength(MANY);
    expect(Math.max(...Object.values(ring)) + 9e15).toBeLessThanOrEqual((await shard.now()) + MINUTE);
    expect([meta['rewound'], meta['widened']]).toEqual([undefined, undefined]);
  },
);

it('after the clock went back, a group waits for its next attempt as long as that does', async () => {
  await limit('groupCount:1 block:1');
  await store({ id: 'A1', at: 1_000, group: 'a' }, { id: 'A2', at: 1_001, group: 'a' });
  const { now } = await peer.settle(await peer.take('A1'), 'A1', { verb: 'retry', delayMs: HOUR, error: '{}' });
  await shard.meta({ seenAt: now + HOUR });
  for (let n = 0; n < 3; n++) expect(idsOf(await peer.claim(10))).toEqual([]);
  expect((await shard.read()).ring[baseOf('a')]! + 9e15).toBe(now + HOUR);
});

it('what came overdue by a clock that was ahead waits for no time that no step of a worker has seen', async () => {
  // The last step was an hour ago; if the clock goes back until then, the next step does not notice it.
  const seenAt = (await shard.now()) - HOUR;
  await shard.meta({ seenAt });
  await store(
    { id: 'before', at: seenAt - MINUTE, group: 'before' },
    { id: 'since', at: seenAt + MINUTE, group: 'since' },
  );
  const { ring } = await shard.read();
  expect(ring).toEqual({ [baseOf('before')]: seenAt, [baseOf('since')]: seenAt + MINUTE });
  // Of a time that was set back nothing counts that is yet to come.
  const ahead = (await shard.now()) + HOUR;
  await shard.meta({ seenAt: ahead });
  await store({ id: 'overdue', at: seenAt, group: 'overdue' });
  expect((await shard.read()).ring[baseOf('overdue')]).toBeLessThanOrEqual(await shard.now());
});

describe('groups with a concurrency', () => {
  it('of one run one job at a time, in due order', async () => {
    await limit('groupCount:1');
    await store(
      { id: 'A2', at: 1_001, group: 'a' },
      { id: 'A1', at: 1_000, group: 'a' },
      { id: 'B1', at: 1_002, group: 'b' },
    );
    const { claim, jobs } = await peer.claim(10);
    expect(idsOf({ jobs }).sort()).toEqual(['A1', 'B1']);
    expect(idsOf(await peer.claim(10))).toEqual([]);
    const reply = await peer.step({ limit: 10, settle: [[claim, 'A1', { verb: 'complete' }]] });
    expect(idsOf(reply)).toEqual(['A2']);
  });

  it('keep the place of a killed process until its job has run again', async () => {
    await limit('groupCount:1');
    await store({ id: 'A1', at: 1_000, group: 'a' }, { id: 'A2', at: 1_001, group: 'a' });
    await shard.expire(await peer.take('A1'));
    expect(idsOf(await peer.step({ sweep: true, limit: 10 }))).toEqual([]);
    const again = await peer.step({ quarantineLimit: 1, limit: 1, isSole: true });
    expect(idsOf(again)).toEqual(['A1']);
    expect(idsOf(await peer.step({ limit: 10, settle: [[again.claim, 'A1', { verb: 'complete' }]] }))).toEqual(['A2']);
  });

  it('have a job claimed once, also when their moment comes in the call that frees them', async () => {
    await limit('groupCount:1');
    await store(
      { id: 'A1', at: 1_000, group: 'a' },
      { id: 'A2', at: 1_001, group: 'a' },
      { id: 'A3', at: 1_002, group: 'a' },
    );
    const claim = await peer.take('A1');
    const base = Object.keys((await shard.read()).ring)[0]!;
    await peer.claim(1);
    await here.world.redis.zadd(shard.key('ring'), (await shard.now()) - 1 - 9e15, base);
    expect(idsOf(await peer.step({ limit: 10, settle: [[claim, 'A1', { verb: 'complete' }]] }))).toEqual(['A2']);
  });
});

describe('groups at a limit', () => {
  const MANY = 450;
  beforeEach(async () => {
    await limit(`groupRate:1/${HOUR}`);
    const at = (await shard.now()) - MINUTE;
    const jobs = Array.from({ length: 2 * MANY }, (_, n) => ({ id: `j${n}`, at: at + n, group: `g${n % MANY}` }));
    await store(...jobs);
    await started(5);
    await peer.claim(1);
  });

  /** How many jobs so many steps start. */
  async function started(steps: number): Promise<number> {
    let all = 0;
    for (let n = 0; n < steps; n++) all += (await peer.claim(200)).jobs.length;
    return all;
  }

  it('go on when it is widened, however many they are', async () => {
    await limit(`groupRate:2/${HOUR}`);
    expect(await started(12)).toBe(MANY);
    expect((await shard.read()).meta).not.toHaveProperty('widened');
  });

  it('are looked at once where other limits leave them there', async () => {
    await limit(`groupRate:1/${2 * HOUR}`);
    expect(await started(8)).toBe(0);
    const { ring, meta } = await shard.read();
    expect(meta).not.toHaveProperty('widened');
    const now = await shard.now();
    expect(Object.values(ring).filter((score) => score + 9e15 < now + 1.5 * HOUR)).toEqual([]);
  });

  it('stay there when the limits are set that hold', async () => {
    const { ring } = await shard.read();
    await limit(`groupRate:1/${HOUR}`);
    expect(await shard.read()).toMatchObject({ ring });
    expect((await shard.read()).meta).not.toHaveProperty('widened');
  });
});

describe('groups whose retries block', () => {
  beforeEach(async () => {
    await limit('groupCount:1 block:1');
    await store({ id: 'A1', at: 1_000, group: 'a' }, { id: 'A2', at: 1_001, group: 'a' });
  });

  const failed = (delayMs: number): Settlement => ({ verb: 'retry', delayMs, error: '{}' });

  it('start nothing before the next attempt, and then that', async () => {
    const claim = await peer.take('A1');
    await store({ id: 'B1', at: 1_002, group: 'b' });
    const reply = await peer.step({ limit: 10, settle: [[claim, 'A1', failed(HOUR)]] });
    expect([idsOf(reply), reply.head]).toEqual([['B1'], reply.now + HOUR]);
    await shard.inspector.setLimits(shard.queue, { groups: { concurrency: 1, retries: 'block' } }); // Which looks at groups anew.
    expect(idsOf(await peer.step({ limit: 10, sweep: true }))).toEqual([]);
    await later(here.world, shard.queue, HOUR);
    const again = await peer.claim(10);
    expect(idsOf(again)).toEqual(['A1']);
    expect(idsOf(await peer.step({ limit: 10, settle: [[again.claim, 'A1', { verb: 'complete' }]] }))).toEqual(['A2']);
    expect(await shard.problems()).toEqual([]);
  });

  it('let nobody pass a job that has started, however its runs give it back', async () => {
    const claim = await peer.take('A1');
    const due = (await peer.settle(claim, 'A1', failed(HOUR))).now + HOUR;
    await later(here.world, shard.queue, HOUR);
    const ends: Settlement[] = [
      { verb: 'release', dueAt: due - HOUR }, // As the shutdown of a process does, and an answer that came too late.
      { verb: 'snooze', delayMs: HOUR },
      failed(HOUR),
    ];
    for (const end of ends) {
      const again = await peer.claim(10);
      expect(idsOf(again)).toEqual(['A1']);
      const reply = await peer.step({ limit: 10, settle: [[again.claim, 'A1', end]] });
      // What is given back is claimed anew by the same call.
      expect(idsOf(reply)).toEqual(end.verb === 'release' ? ['A1'] : []);
      if (end.verb === 'release') await peer.settle(reply.claim, 'A1', end);
      else await later(here.world, shard.queue, HOUR);
    }
    const last = await peer.claim(10);
    expect(idsOf(await peer.step({ limit: 10, settle: [[last.claim, 'A1', { verb: 'complete' }]] }))).toEqual(['A2']);
    expect(await shard.problems()).toEqual([]);
  });

  it('keep the place of a job that has not failed yet, through a snooze and a lost lease that is given back late', async () => {
    await peer.settle(await peer.take('A1'), 'A1', { verb: 'snooze', delayMs: HOUR });
    expect(idsOf(await peer.claim(10))).toEqual([]);
    await later(here.world, shard.queue, HOUR);
    const claim = await peer.take('A1');
    await shard.expire(claim);
    await peer.step({ sweep: true });
    await peer.settle(claim, 'A1', { verb: 'release', dueAt: await shard.now() });
    expect(idsOf(await peer.claim(10))).toEqual([]); // It goes back to the quarantine, and its group waits for it.
  });

  it('go on when the job that waits is cancelled, moved by hand, or may wait no longer', async () => {
    for (const free of [
      () => shard.producer.cancel(shard.queue, 'A1'),
      () => shard.producer.reschedule(shard.queue, 'A1', { delay: '2h' }),
      () => limit('groupCount:1'),
    ]) {
      await shard.inspector.purge(shard.queue);
      await limit('groupCount:1 block:1');
      await store({ id: 'A1', at: 1_000, group: 'a' }, { id: 'A2', at: 1_001, group: 'a' });
      await peer.settle(await peer.take('A1'), 'A1', failed(HOUR));
      expect(idsOf(await peer.claim(1))).toEqual([]);
      await free();
      const next = await peer.claim(10);
      expect(idsOf(next)).toEqual(['A2']);
      for (const id of idsOf(next)) await peer.settle(next.claim, id, { verb: 'complete' });
    }
  });

  it('start the next ones as well when they block no more and may run several', async () => {
    await peer.settle(await peer.take('A1'), 'A1', failed(HOUR));
    await limit('groupCount:2');
    await store({ id: 'A3', at: 1_002, group: 'a' }, { id: 'A4', at: 1_003, group: 'a' });
    expect(idsOf(await peer.claim(10))).toEqual(['A2', 'A3']);
    expect(Object.keys((await shard.read()).held).sort()).toEqual(['A2', 'A3']);
  });

  it('start the next one beside a job that has kept its place, where it could not give it up', async () => {
    await peer.settle(await peer.take('A1'), 'A1', failed(HOUR));
    await here.world.redis.hset(shard.key('meta'), 'limits', 'groupCount:2'); // As of a queue where thousands of jobs run.
    await shard.producer.cancel(shard.queue, 'A2');
    await later(here.world, shard.queue, HOUR);
    await store({ id: 'A3', at: await shard.now(), group: 'a' });
    expect(idsOf(await peer.claim(10))).toEqual(['A1']);
    expect(idsOf(await peer.claim(10))).toEqual(['A3']);
  });

  describe('with several jobs that had started before one may run at a time', () => {
    let claim: number;
    beforeEach(async () => {
      await limit('groupCount:2');
      claim = (await peer.claim(10)).claim;
      await limit('groupCount:1 block:1');
    });

    it('start no next attempt beside another one of them that runs or is in quarantine', async () => {
      expect(idsOf(await peer.step({ limit: 10, settle: [[claim, 'A1', failed(0)]] }))).toEqual([]);
      await shard.expire(claim);
      expect(idsOf(await peer.step({ limit: 10, sweep: true }))).toEqual([]);
      expect(idsOf(await peer.step({ limit: 10, settle: [[claim, 'A2', { verb: 'complete' }]] }))).toEqual(['A1']);
    });

    it('start the earliest next attempt first, also when a later one becomes known after it', async () => {
      await peer.settle(claim, 'A2', failed(0));
      expect(idsOf(await peer.claim(10))).toEqual([]);
      await peer.settle(claim, 'A1', failed(HOUR));
      const first = await peer.claim(10);
      expect(idsOf(first)).toEqual(['A2']);
      expect(idsOf(await peer.step({ limit: 10, settle: [[first.claim, 'A2', { verb: 'complete' }]] }))).toEqual([]);
      await later(here.world, shard.queue, HOUR);
      expect(idsOf(await peer.claim(10))).toEqual(['A1']);
      expect(await shard.problems()).toEqual([]);
    });
  });

  it('go on when the job that waits turns out to have no record', async () => {
    await peer.settle(await peer.take('A1'), 'A1', failed(HOUR));
    await here.world.redis.hdel(shard.key('jobs'), 'A1');
    await later(here.world, shard.queue, HOUR);
    expect([idsOf(await peer.claim(10)), idsOf(await peer.claim(10))]).toEqual([[], ['A2']]);
  });

  it('go on when the job in quarantine that they wait for turns out to have no record', async () => {
    await shard.expire(await peer.take('A1'));
    await peer.step({ sweep: true });
    await here.world.redis.hdel(shard.key('jobs'), 'A1');
    await peer.step({ quarantineLimit: 1 });
    expect(idsOf(await peer.claim(10))).toEqual(['A2']);
  });

  it('go on when the last attempt has failed', async () => {
    const claim = await peer.take('A1');
    const dead = { verb: 'dead', reason: 'exhausted', error: '{}', charge: true } as const;
    expect(idsOf(await peer.step({ limit: 1, settle: [[claim, 'A1', dead]] }))).toEqual(['A2']);
  });
});

describe('a rate of which the starts lie in the future, because the clock was set back', () => {
  const PER = 100;

  it.each([
    ['of the queue', `rate:1/${PER}`, ''],
    ['of a group', `groupRate:1/${PER}`, baseOf('g')],
  ])('%s opens one window later, and not when that future comes', async (_, limits, field) => {
    await store({ id: 'A', at: 1_000, group: 'g' });
    await limit(limits);
    const before = await shard.now();
    await here.world.redis.hset(shard.key('rates'), field, `${before + HOUR}:1`);
    const { now, head, jobs } = await peer.claim(1);
    expect([jobs, head]).toEqual([[], now + PER]);
    expect(Object.entries((await shard.read()).rates).map(([name, text]) => [name, startsIn(text)])).toEqual([
      [field, `${now}:1`],
    ]);
    while ((await shard.now()) < now + PER);
    expect(idsOf(await peer.claim(1))).toEqual(['A']);
  });
});

describe('jobs that have expired', () => {
  it('are handed out beside the limits of their group and its rate: they never run', async () => {
    await limit('groupCount:1 groupRate:1/600000 rate:2/600000');
    const now = await shard.now();
    const expired = ['E1', 'E2'].map((id, n) => ({
      id,
      group: 'a',
      spec: `ka${now - HOUR + n} a${now - HOUR + 9} - -`,
    }));
    await place(
      shard,
      ...expired,
      { id: 'A1', group: 'a', spec: `ka${now - 5}` },
      { id: 'A2', group: 'a', spec: `ka${now - 4}` },
    );
    const seen: string[] = [];
    for (let n = 0; n < 5; n++) seen.push(...idsOf(await peer.claim(10)));
    expect(seen).toEqual(['E1', 'E2', 'A1']);
    const { held, rates } = await shard.read();
    expect([Object.keys(held), Object.values(rates).map((text) => startsIn(text).split(':')[1])]).toEqual([
      ['A1'],
      ['1', '1'],
    ]);
  });

  it('count for no rate when they come from the quarantine', async () => {
    const now = await shard.now();
    await limit('rate:1/600000');
    await place(
      shard,
      { id: 'lost', spec: `ka${now - HOUR} a${now - MINUTE} - -` },
      { id: 'A', spec: `ka${now - 5}` },
      { id: 'B', spec: `ka${now - 4}` },
    );
    await here.world.redis.zrem(shard.key('due'), 'lost');
    await here.world.redis.zadd(shard.key('quarantine'), now, 'lost');
    await here.world.redis.hset(shard.key('attempts'), 'lost', '0 1 0 5');
    expect(idsOf(await peer.step({ quarantineLimit: 1, limit: 1, isSole: true }))).toEqual(['lost']);
    expect(await oneByOne(2)).toEqual(['A']);
  });
});

describe('the jobs of a group', () => {
  it('are listed by their due times, page by page, whatever their priorities', async () => {
    const now = await shard.now();
    const jobs = Array.from({ length: 9 }, (_, n) => ({
      id: `a${n}`,
      at: now - 1_000 + n,
      group: 'a',
      priority: n % 3,
    }));
    const twins = ['x', 'y'].map((id) => ({ id, at: now - 500, group: 'a', priority: 5 }));
    const later = ['l2', 'l1'].map((id, n) => ({ id, at: now + HOUR - n, group: 'a', priority: n }));
    await store(...jobs, ...twins, ...later, { id: 'other', at: 1_000, group: 'b' });
    const all = async (state: 'due' | 'delayed', limit: number) => {
      const found: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await shard.inspector.list(shard.queue, state, { group: 'a', limit, cursor });
        found.push(...page.jobs.map(({ id }) => id));
        cursor = page.cursor;
      } while (cursor !== undefined);
      return found.join(' ');
    };
    for (const limit of [1, 2, 4, 200]) {
      expect(await all('due', limit)).toBe('a0 a1 a2 a3 a4 a5 a6 a7 a8 x y');
      expect(await all('delayed', limit)).toBe('l1 l2');
    }
    expect((await shard.inspector.list(shard.queue, 'due', { group: 'none' })).jobs).toEqual([]);
  });
});

describe('groups with a rate', () => {
  it('leave the start of a job that goes to the quarantine instead to the next one', async () => {
    await limit('groupRate:1/600000');
    await store({ id: 'lost', at: 1_000, group: 'a' }, { id: 'next', at: 1_001, group: 'a' });
    await here.world.redis.hset(shard.key('attempts'), 'lost', '0 1 0 5');
    expect(idsOf(await peer.claim(10))).toEqual([]);
    expect(idsOf(await peer.claim(10))).toEqual(['next']);
  });

  it('start no more than that within any window, by the clock of the server', async () => {
    await limit('groupRate:2/600000');
    await store(...['a', 'b'].flatMap((group) => [1, 2, 3].map((n) => ({ id: `${group}${n}`, at: 1_000 + n, group }))));
    const { now, jobs } = await peer.claim(10);
    expect(idsOf({ jobs }).sort()).toEqual(['a1', 'a2', 'b1', 'b2']);
    const { head, jobs: none } = await peer.claim(10);
    expect([none, head]).toEqual([[], now + 600_000]);
    // Nor when somebody looks too early.
    for (const base of Object.keys((await shard.read()).ring)) {
      await here.world.redis.zadd(shard.key('ring'), now - 1 - 9e15, base);
    }
    expect(idsOf(await peer.claim(10))).toEqual([]);
    // And what was started a window ago counts no more.
    await here.world.redis.hset(shard.key('rates'), baseOf('a'), `${now - 600_000}:2`);
    await here.world.redis.zadd(shard.key('ring'), now - 1 - 9e15, baseOf('a'));
    expect(idsOf(await peer.claim(10))).toEqual(['a3']);
  });

  describe('and jobs in quarantine', () => {
    const rate = async (name: string) => startsIn((await shard.read()).rates[name] ?? '').replaceAll(/\d+:/g, '');
    /** Puts what is stored into quarantine. */
    const lose = async (losses: number, waitedMs: number, ...ids: readonly string[]) => {
      const now = await shard.now();
      for (const [n, id] of ids.entries()) {
        const { due, grouped } = await shard.read();
        const member = Object.keys(grouped).find((one) => one.endsWith(id))!;
        expect(due[id]).toBeDefined();
        const { redis } = here.world;
        await redis.zadd(shard.key('quarantine'), now - waitedMs + n, id);
        await redis.hset(shard.key('attempts'), id, `0 ${losses} 0 5`);
        await redis.zadd(shard.key('held'), grouped[member]!, id);
        await redis.zrem(shard.key('grouped'), member);
        await redis.zrem(shard.key('due'), id);
      }
    };
    const isolate = (quarantineLimit: number, quarantinedForMs = 0) =>
      peer.step({ quarantineLimit, quarantinedForMs, limit: 1, isSole: true });

    it('count these, and start none of them in a window that is full', async () => {
      await store(...['A', 'B', 'C', 'D'].map((id, n) => ({ id, at: 1_000 + n, group: 'g' })));
      await limit('groupRate:2/600000');
      await lose(1, 1_000, 'A', 'B', 'C');
      expect(idsOf(await isolate(5))).toEqual(['A', 'B']);
      expect(await rate(baseOf('g'))).toBe('2');
      expect(idsOf(await isolate(5))).toEqual([]);
      expect(await oneByOne(1)).toEqual([]);
      await here.world.redis.hset(shard.key('rates'), baseOf('g'), `${(await shard.now()) - 600_000}:2`);
      expect(idsOf(await isolate(5))).toEqual(['C']);
    });

    it('pass those of a full window, also one that has to run alone', async () => {
      const jobs = ['A', 'B', 'C'].map((id, n) => ({ id, at: 1_000 + n, group: id === 'C' ? 'h' : 'g' }));
      await store(...jobs, { id: 'none', at: 1_010 });
      await limit('groupRate:1/600000');
      await lose(2, 1_000, 'A', 'B', 'C', 'none');
      const claimed = [];
      for (let n = 0; n < 4; n++) claimed.push(idsOf(await isolate(1)));
      expect(claimed).toEqual([['A'], ['C'], ['none'], []]);
    });

    it('let nobody stop its queues for jobs that may not start yet', async () => {
      await store(...['A', 'B'].map((id, n) => ({ id, at: 1_000 + n, group: 'g' })));
      await limit('groupRate:1/600000');
      await lose(1, 1_000, 'A', 'B');
      expect(await peer.step({ asksIsolation: true })).toMatchObject({ mayIsolate: true });
      expect(idsOf(await isolate(1))).toEqual(['A']);
      // Who has the role loses it.
      expect(await peer.step({ asksIsolation: true })).toMatchObject({ mayIsolate: false, quarantined: 1 });
      expect((await shard.read()).meta['isolator']).toBe('');
      expect(await peer.step({ asksIsolation: true })).toMatchObject({ mayIsolate: false });
      await here.world.redis.hdel(shard.key('rates'), baseOf('g'));
      expect(await peer.step({ asksIsolation: true })).toMatchObject({ mayIsolate: true });
    });

    it('read the group of a job without a place from what is stored of it', async () => {
      await store(...['A', 'B', 'C'].map((id, n) => ({ id, at: 1_000 + n, group: 'g' })));
      await limit('groupRate:1/600000');
      await lose(1, 1_000, 'A', 'B');
      await here.world.redis.del(shard.key('held'));
      expect(idsOf(await isolate(5))).toEqual(['A']);
      expect(await rate(baseOf('g'))).toBe('1');
      expect(await oneByOne(1)).toEqual([]);
    });

    it('forget the window when it is over, where no other job of the group waits', async () => {
      await store({ id: 'A', at: 1_000, group: 'g' });
      await limit('groupRate:1/600000');
      await lose(1, 1_000, 'A');
      await here.world.redis.del(shard.key('ring'));
      const { now } = await isolate(1);
      expect((await shard.read()).ring).toEqual({ [baseOf('g')]: 8.65e15 + now + 600_000 });
    });

    it('count a start in the future, because the clock was set back, as one of now', async () => {
      await store(...['A', 'B'].map((id, n) => ({ id, at: 1_000 + n, group: 'g' })));
      await limit('groupRate:1/600000');
      await lose(1, 1_000, 'A', 'B');
      await here.world.redis.hset(shard.key('rates'), baseOf('g'), `${(await shard.now()) + HOUR}:1`);
      const { now } = await isolate(1);
      expect(startsIn((await shard.read()).rates[baseOf('g')]!)).toBe(`${now}:1`);
    });

    describe('that have waited there for long', () => {
      const LONG_MS = 60_000;

      it.each([
        ['of the rate of the queue', 'rate:1/600000', ''],
        ['of the rate of their group', 'groupRate:1/600000', baseOf('g')],
      ])('have the next start %s, for which due jobs are always there first', async (_, text, field) => {
        await store(...['A', 'B', 'C'].map((id, n) => ({ id, at: 1_000 + n, group: 'g' })));
        await limit(text);
        await lose(1, LONG_MS, 'B');
        const { jobs, head, now } = await peer.claim(5);
        expect(idsOf({ jobs })).toEqual([]);
        expect(head).toBe(now + 1_000);
        expect(idsOf(await isolate(5, 45_000))).toEqual(['B']);
        expect(await rate(field)).toBe('1');
        await here.world.redis.hset(shard.key('rates'), field, `${now - 600_000}:1`);
        await here.world.redis.zadd(shard.key('ring'), now - 1 - 9e15, baseOf('g'));
        expect(idsOf(await peer.claim(5))).toEqual(['A']);
      });

      it('have the next place of the queue, and leave all others to due jobs', async () => {
        await store(...['A', 'B', 'C', 'D'].map((id, n) => ({ id, at: 1_000 + n, group: `g${n}` })));
        await limit('count:2');
        await lose(1, LONG_MS, 'B', 'D');
        expect(idsOf(await peer.claim(5))).toEqual(['A']);
        expect(idsOf(await peer.claim(5))).toEqual([]);
        expect(idsOf(await isolate(5, 45_000))).toEqual(['B']);
      });

      it('take nothing of the queue while the window of their group is full', async () => {
        await store(...['A', 'B', 'C'].map((id, n) => ({ id, at: 1_000 + n, group: id === 'C' ? 'h' : 'g' })));
        await limit('count:1 groupRate:1/600000');
        await lose(1, LONG_MS, 'A', 'B');
        const { claim, jobs } = await isolate(1, 45_000);
        expect(idsOf({ jobs })).toEqual(['A']);
        await peer.settle(claim, 'A', { verb: 'complete' });
        expect(idsOf(await peer.claim(5))).toEqual(['C']);
      });

      it('take nothing from other groups', async () => {
        await store(...['A', 'B', 'C'].map((id, n) => ({ id, at: 1_000 + n, group: id === 'C' ? 'h' : 'g' })));
        await limit('groupRate:1/600000');
        await lose(1, LONG_MS, 'A');
        expect(idsOf(await peer.claim(5))).toEqual(['C']);
      });
    });
  });

  describe('of which only a window is left', () => {
    const IDLE: Ask = { limit: 10, sweep: true, refreshIdle: true, idleForMs: 422_000 };
    const PER = 600_000;
    const ended = async () => {
      await limit(`groupRate:1/${PER}`);
      await store({ id: 'A', at: 1_000, group: 'a' }, { id: 'B', at: 1_001, group: 'b' });
      const { claim } = await peer.claim(2);
      await peer.step({ settle: ['A', 'B'].map((id): Ending => [claim, id, { verb: 'complete' }]) });
    };
    const stored = async () => {
      const { ring, rates } = await shard.read();
      return { ring: Object.keys(ring).length, rates: Object.keys(rates).length };
    };

    it('keep no worker awake, and a sweep forgets them when that is over', async () => {
      await ended();
      const idle = await peer.step(IDLE);
      expect([idle.head, idle.quiet?.until]).toEqual([undefined, 9e15]);
      await later(here.world, shard.queue, PER - 60_000);
      expect((await peer.step(IDLE)).quiet?.until).toBe(9e15);
      expect(await stored()).toEqual({ ring: 2, rates: 2 });
      await later(here.world, shard.queue, 60_000);
      await peer.step(IDLE);
      expect(await stored()).toEqual({ ring: 0, rates: 0 });
    });

    it('let no worker rest while a sweep has left some that are over', async () => {
      await ended();
      const many = Array.from({ length: 250 }, (_, n) => String(16 * (n + 1) + 9));
      const over = (await shard.now()) - 1;
      await here.world.redis.zadd(shard.key('ring'), ...many.flatMap((base) => [8.65e15 + over, base]));
      await here.world.redis.hset(shard.key('rates'), ...many.flatMap((base) => [base, `${over - PER}:1`]));
      const untils = [await peer.step(IDLE), await peer.step(IDLE)].map(({ quiet }) => quiet?.until);
      expect([untils, await stored()]).toEqual([[0, 9e15], { ring: 2, rates: 2 }]);
    });

    it('have it still when a job comes', async () => {
      await ended();
      await store({ id: 'A2', at: 1_002, group: 'a' });
      const { now, jobs, head } = await peer.claim(10);
      expect([jobs, head! > now && head! <= now + PER]).toEqual([[], true]);
      await later(here.world, shard.queue, PER);
      expect(idsOf(await peer.claim(10))).toEqual(['A2']);
    });

    it('keep it for as long as limits say that hold by then', async () => {
      await ended();
      await limit(`groupRate:1/${2 * PER}`);
      await later(here.world, shard.queue, PER);
      await peer.step(IDLE);
      expect(await stored()).toEqual({ ring: 2, rates: 2 });
      await later(here.world, shard.queue, PER);
      await peer.step(IDLE);
      expect(await stored()).toEqual({ ring: 0, rates: 0 });
    });

    it('are forgotten also where a job of a far time was cancelled', async () => {
      await ended();
      await store({ id: 'far', at: (await shard.now()) + 1_000 * HOUR, group: 'a' });
      await peer.step(IDLE);
      await shard.producer.cancel(shard.queue, 'far');
      expect((await peer.step(IDLE)).head).toBeUndefined();
      await later(here.world, shard.queue, PER);
      await peer.step(IDLE);
      expect(await stored()).toEqual({ ring: 0, rates: 0 });
    });
  });

  it('are forgotten with their window when that is over', async () => {
    await limit('groupRate:1/600000');
    await store({ id: 'A', at: 1_000, group: 'a' });
    await peer.settle(await peer.take('A'), 'A', { verb: 'complete' });
    const base = baseOf('a');
    expect(Object.keys((await shard.read()).rates)).toEqual([base]);
    await here.world.redis.hset(shard.key('rates'), base, `${(await shard.now()) - 600_000}:1`);
    await here.world.redis.zadd(shard.key('ring'), (await shard.now()) - 1, base);
    await peer.claim(10);
    const { ring, rates } = await shard.read();
    expect({ ring, rates }).toEqual({ ring: {}, rates: {} });
  });
});

describe('a queue', () => {
  it('that is full takes back what a killed process holds', async () => {
    await limit('count:1');
    await shard.fill('A', 'B');
    await shard.expire(await peer.take('A'));
    await peer.step({ sweep: true, limit: 10 });
    expect(Object.keys((await shard.read()).quarantine)).toEqual(['A']);
  });

  it('with a concurrency never runs more', async () => {
    await limit('count:3');
    await shard.fill('A', 'B', 'C', 'D', 'E');
    const { claim, jobs, head } = await peer.claim(10);
    expect([idsOf({ jobs }), head]).toEqual([['A', 'B', 'C'], undefined]);
    expect(idsOf(await peer.step({ limit: 10, settle: [[claim, 'B', { verb: 'complete' }]] }))).toEqual(['D']);
  });

  it('with a rate starts no more than that within its window', async () => {
    await limit('rate:3/600000');
    await shard.fill('A', 'B', 'C', 'D', 'E');
    const first = await peer.claim(2);
    const second = await peer.claim(10);
    expect([idsOf(first), idsOf(second)]).toEqual([['A', 'B'], ['C']]);
    expect(second.head).toBe(first.now + 600_000);
  });

  it('with a rate counts a start for at most a 64th of its window too long, however many there were', async () => {
    const PER_MS = 640_000;
    // Each start is 1/160 of the window after the one before: a window has more of them than it has entries.
    const APART_MS = 4_000;
    const STARTS = 400;
    await limit(`rate:1000/${PER_MS}`);
    await store(...Array.from({ length: STARTS }, (_, n) => ({ id: `j${n}`, at: 1_000 + n })));
    const entries = async () => (await here.world.redis.hget(shard.key('rates'), ''))!.split(' ');
    const since = await shard.now();
    for (let n = 0; n < STARTS; n++) {
      expect((await peer.claim(1)).jobs).toHaveLength(1);
      const older = (await entries()).map((entry) => entry.split(':').map(Number) as [number, number]);
      const text = older.map(([at, many]) => `${at - APART_MS}:${many}`).join(' ');
      await here.world.redis.hset(shard.key('rates'), '', text);
    }
    const now = await shard.now();
    const counted = (await entries())
      .map((entry) => entry.split(':').map(Number) as [number, number])
      .filter(([at]) => at > now - PER_MS);
    const many = counted.reduce((sum, [, n]) => sum + n, 0);
    const inTheWindow = PER_MS / APART_MS;
    // They are further apart by what this took.
    expect(many).toBeGreaterThanOrEqual((PER_MS - (now - since)) / APART_MS - 1);
    expect(many).toBeLessThanOrEqual(inTheWindow + inTheWindow / 64 + 2);
  }, 60_000);

  it('with a rate looks again when its window opens', async () => {
    await limit('rate:1/600000');
    await shard.fill('A', 'B');
    await peer.take('A');
    await here.world.redis.hset(shard.key('rates'), '', `${(await shard.now()) - 600_000}:1`);
    expect(idsOf(await peer.claim(10))).toEqual(['B']);
  });
});

it.each([
  ['', 'rate:1/600000'],
  ['', 'groupRate:1/600000'],
  ['rate:9/1000', 'rate:9/1000 groupRate:1/600000'],
])(
  'a job that was claimed while "%s" held, and not "%s", gives back no start of another one',
  async (without, rate) => {
    const at = (await shard.now()) - HOUR;
    await limit(rate);
    await store(...['A', 'B', 'C'].map((id, n) => ({ id, at: at + n, group: 'g' })));
    await peer.take('A');
    await limit(without);
    const claim = await peer.take('B');
    await limit(rate);
    expect(idsOf(await peer.claim(1))).toEqual([]);
    await peer.settle(claim, 'B', { verb: 'release', dueAt: at + 2 * HOUR, unbegun: true });
    expect(idsOf(await peer.claim(1))).toEqual([]);
  },
);
