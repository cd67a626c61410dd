import { beforeEach, describe, expect, it } from '@jest/globals';
import type { ListedState, ListOptions } from '../../lib/index.js';
import type { Peer } from './peer.js';
import { HOUR } from './shard.js';
import type { Shard, State } from './shard.js';
import { shards } from './shards.js';

const here = shards();
let shard: Shard;
let peer: Peer;
beforeEach(() => {
  shard = here.fresh();
  peer = shard.peer();
});

const list = (state: ListedState, options?: ListOptions) => shard.inspector.list(shard.queue, state, options);
const idsOf = ({ jobs }: { jobs: readonly { id: string }[] }) => jobs.map(({ id }) => id);

/** All pages of a listing. Fails rather than going on for ever. */
async function pages(state: ListedState, options: ListOptions): Promise<string[][]> {
  const found: string[][] = [];
  for (let cursor: string | undefined, n = 0; n < 20; n++) {
    const page = await list(state, { ...options, cursor });
    found.push(idsOf(page));
    if (page.cursor === undefined) return found;
    cursor = page.cursor;
  }
  throw new Error(`the listing did not end: ${JSON.stringify(found)}`);
}

describe('get', () => {
  it.each<[State, object]>([
    ['delayed', { state: 'delayed', attempts: 1 }],
    ['due', { state: 'due', attempts: 1 }],
    ['quarantined', { state: 'due', attempts: 1 }],
    ['running', { state: 'running', attempts: 1 }],
    ['dead', { state: 'dead', attempts: 2, deadReason: 'exhausted' }],
  ])('of a job that is %s', async (state, seen) => {
    await shard.put(state, 'A');
    const { dueAt, enqueuedAt, lastError, ...rest } = (await shard.producer.get(shard.queue, 'A'))!;
    expect(rest).toEqual({ id: 'A', queue: shard.queue, payload: 'old', maxAttempts: undefined, context: {}, ...seen });
    const now = await shard.now();
    for (const time of [dueAt, enqueuedAt]) expect(Math.abs(time.getTime() - now)).toBeLessThan(2 * HOUR);
    expect(lastError).toBeDefined();
  });

  it.each<State>(['none', 'completed', 'cancelled', 'expired'])('of one that is %s gives nothing', async (state) => {
    await shard.put(state, 'A');
    expect(await shard.producer.get(shard.queue, 'A')).toBeUndefined();
  });

  it.each<State>(['running', 'quarantined', 'dead'])('of one that is %s tells when it was due', async (state) => {
    const dueAt = (await shard.now()) - 5_000;
    await shard.producer.enqueue(shard.queue, 1, { id: 'A', at: dueAt });
    const claim = await peer.take('A');
    const end = { verb: 'dead', reason: 'discarded', error: '{}', charge: true } as const;
    if (state === 'dead') await peer.settle(claim, 'A', end);
    if (state === 'quarantined') {
      await shard.expire(claim);
      await peer.step({ sweep: true });
    }
    expect((await shard.producer.get(shard.queue, 'A'))!.dueAt.getTime()).toBe(dueAt);
  });
});

describe('counts', () => {
  it('of an empty queue', async () => {
    expect(await shard.inspector.counts(shard.queue)).toEqual({
      delayed: 0,
      due: 0,
      running: 0,
      dead: 0,
      paused: false,
      publishingPaused: false,
      completed: 0,
      lagMs: 0,
      nextDueAt: undefined,
      schedules: 0,
      schedulesLateMs: 0,
    });
  });

  it('of every state; jobs in quarantine are due', async () => {
    for (const state of ['dead', 'running', 'quarantined', 'delayed', 'due'] as const) await shard.put(state, state);
    await shard.inspector.pause(shard.queue);
    const counts = await shard.inspector.counts(shard.queue);
    expect(counts).toMatchObject({ delayed: 1, due: 2, running: 1, dead: 1, paused: true });
  });

  it('lag is the age of the oldest due job, and 0 while all are delayed', async () => {
    const now = await shard.now();
    await shard.producer.enqueue(shard.queue, 1, { at: now + HOUR });
    expect(await shard.inspector.counts(shard.queue)).toMatchObject({ lagMs: 0, nextDueAt: new Date(now + HOUR) });
    await shard.producer.enqueue(shard.queue, 1, { at: now - HOUR });
    await shard.producer.enqueue(shard.queue, 1, { at: now - 1_000 });
    const { lagMs, nextDueAt } = await shard.inspector.counts(shard.queue);
    expect(nextDueAt).toEqual(new Date(now - HOUR));
    expect(lagMs).toBeGreaterThanOrEqual(HOUR);
    expect(lagMs).toBeLessThan(HOUR + 60_000);
  });

  it('totals count what happened since the first job', async () => {
    const before = await shard.now();
    await shard.fill('A', 'B', 'C', 'D');
    const { claim } = await peer.claim(4);
    await peer.step({
      settle: [
        [claim, 'A', { verb: 'complete' }],
        [claim, 'B', { verb: 'retry', delayMs: HOUR, error: '{}' }],
        [claim, 'C', { verb: 'dead', reason: 'discarded', error: '{}', charge: true }],
        [claim, 'D', { verb: 'expired' }],
      ],
    });
    const { since, ...totals } = await shard.inspector.totals(shard.queue);
    expect(totals).toEqual({ enqueued: 4, completed: 1, failed: 2, retried: 1, dead: 1, expired: 1, skipped: 0 });
    expect(since!.getTime()).toBeGreaterThanOrEqual(before);
  });
});

describe('list', () => {
  let now: number;
  /** Seven jobs of a state whose index tells the given times; the second to fourth have the same. */
  const TIMES = [0, 1, 1, 1, 2, 3, 4];
  const IDS = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
  const at = (n: number) => now + (n - 10) * 60_000;

  const WORLDS: Record<'delayed' | 'due' | 'dead', { index: string; time: (n: number) => number }> = {
    delayed: { index: 'due', time: (n) => at(n) + HOUR },
    due: { index: 'due', time: at },
    dead: { index: 'dead', time: at },
  };

  async function populate(state: 'delayed' | 'due' | 'dead'): Promise<void> {
    now = await shard.now();
    await shard.fill(...IDS);
    if (state === 'dead') {
      const { claim } = await peer.claim(7);
      const end = { verb: 'dead', reason: 'discarded', error: '{}', charge: true } as const;
      await peer.step({ settle: IDS.map((id) => [claim, id, end] as const) });
    }
    const { index, time } = WORLDS[state];
    await here.world.redis.zadd(shard.key(index), 'XX', ...IDS.flatMap((id, n) => [time(TIMES[n]!), id]));
  }

  describe.each(['delayed', 'due', 'dead'] as const)('of %s jobs', (state) => {
    const { time } = WORLDS[state];
    beforeEach(() => populate(state));

    it('is in the order of the index', async () => {
      const page = await list(state);
      expect(idsOf(page)).toEqual(IDS);
      expect(page.cursor).toBeUndefined();
      expect(page.jobs.every((job) => job.state === state)).toBe(true);
    });

    it.each([1, 2, 3, 5, 7])('goes on in pages of %i, also between equal times', async (limit) => {
      const found = await pages(state, { limit });
      expect(found.flat()).toEqual(IDS);
      expect(Math.max(...found.map((page) => page.length))).toBe(limit);
    });

    it('begins at `from` and ends at `to`, both included', async () => {
      expect(idsOf(await list(state, { from: time(1) }))).toEqual(['b', 'c', 'd', 'e', 'f', 'g']);
      expect(idsOf(await list(state, { to: time(1) }))).toEqual(['a', 'b', 'c', 'd']);
      expect(idsOf(await list(state, { from: time(2), to: time(3) }))).toEqual(['e', 'f']);
      expect(idsOf(await list(state, { from: time(5) }))).toEqual([]);
      expect((await pages(state, { from: time(1), to: time(2), limit: 3 })).flat()).toEqual(['b', 'c', 'd', 'e']);
    });
  });

  it('of delayed jobs shows none that is due, and of due ones none that is delayed', async () => {
    await populate('due');
    await shard.producer.enqueue(shard.queue, 1, { id: 'later', at: now + HOUR });
    expect(idsOf(await list('delayed'))).toEqual(['later']);
    expect(idsOf(await list('delayed', { from: 0, to: now + 2 * HOUR }))).toEqual(['later']);
    expect(idsOf(await list('due', { from: 0, to: now + 2 * HOUR }))).toEqual(IDS);
    expect(idsOf(await list('delayed', { to: now - HOUR }))).toEqual([]);
  });

  it('of delayed jobs goes on with those still delayed when the page before has become due', async () => {
    await populate('delayed');
    const { cursor } = await list('delayed', { limit: 3 });
    const { time } = WORLDS.delayed;
    const past = TIMES.slice(0, 4).flatMap((n, i) => [time(n) - HOUR, IDS[i]!]);
    await here.world.redis.zadd(shard.key('due'), 'XX', ...past);
    expect(idsOf(await list('delayed', { cursor }))).toEqual(['e', 'f', 'g']);
  });

  it('of running jobs is in the order of their claims', async () => {
    await shard.fill(...IDS);
    await peer.claim(3);
    await peer.claim(4);
    expect((await list('running')).jobs.every(({ state }) => state === 'running')).toBe(true);
    for (const limit of [1, 2, 3, 4, 50]) expect((await pages('running', { limit })).flat()).toEqual(IDS);
  });

  it.each([1, 2, 3, 4, 5, 6, 7, 50])('of due jobs ends with the quarantine, in pages of %i', async (limit) => {
    await shard.fill('s1', 's2', 's3', 's4');
    const { claim } = await peer.claim(4);
    await shard.expire(claim);
    await peer.step({ sweep: true });
    await shard.fill('a', 'b');
    const found = await pages('due', { limit });
    expect(found.flat()).toEqual(['a', 'b', 's1', 's2', 's3', 's4']);
    const { jobs } = await list('due');
    expect(jobs.every(({ state, dueAt }) => state === 'due' && dueAt.getTime() > 0)).toBe(true);
  });

  describe('skipped jobs when those before them had gone; it tells each that stays exactly once', () => {
    const ids = Array.from({ length: 120 }, (_, n) => `j${String(n).padStart(3, '0')}`);
    const GONE: [string, ListedState, (listed: string[]) => Promise<unknown>][] = [
      ['cancelled', 'delayed', (listed) => Promise.all(listed.map((id) => shard.producer.cancel(shard.queue, id)))],
      ['purged', 'due', () => shard.inspector.purge(shard.queue, { states: ['waiting'] })],
      ['removed', 'dead', (listed) => shard.inspector.removeDead(shard.queue, listed)],
      ['requeued', 'dead', (listed) => shard.inspector.requeueDead(shard.queue, listed)],
    ];

    describe.each([
      ['of one millisecond', 1],
      ['a few of each millisecond', 40],
    ])('%s', (_, moments) => {
      it.each(GONE)('that were %s', async (_, state, remove) => {
        const now = await shard.now();
        await shard.fill(...ids);
        if (state === 'dead') {
          const { claim } = await peer.claim(200);
          const end = { verb: 'dead', reason: 'discarded', error: '{}', charge: true } as const;
          await peer.step({ settle: ids.map((id) => [claim, id, end] as const) });
        }
        const from = now + (state === 'delayed' ? HOUR : -HOUR);
        const scores = ids.flatMap((id, n) => [from + Math.floor((n * moments) / ids.length), id]);
        await here.world.redis.zadd(shard.key(state === 'dead' ? 'dead' : 'due'), 'XX', ...scores);
        const listed: string[] = [];
        for (let cursor: string | undefined; ;) {
          const page = await list(state, { limit: 10, cursor });
          listed.push(...idsOf(page));
          cursor = page.cursor;
          if (cursor === undefined) break;
          if (state === 'due') {
            // `purge` would take all: what has not been told comes back to its place.
            const rest = ids.filter((id) => !listed.includes(id));
            const { due, jobs } = await shard.read();
            await remove(listed);
            await here.world.redis.zadd(shard.key('due'), ...rest.flatMap((id) => [due[id]!, id]));
            await here.world.redis.hset(shard.key('jobs'), ...rest.flatMap((id) => [id, jobs[id]!]));
          } else {
            // Not all of them, and what comes in meanwhile shifts the others as well.
            await remove(listed.slice(-10).filter((_, n) => n > 3));
          }
        }
        expect(listed).toEqual(ids);
      });
    });

    it('that were in quarantine', async () => {
      await shard.fill(...IDS);
      const { claim } = await peer.claim(7);
      await shard.expire(claim);
      await peer.step({ sweep: true });
      const first = await list('due', { limit: 3 });
      for (const id of idsOf(first)) await shard.producer.cancel(shard.queue, id);
      expect([...idsOf(first), ...idsOf(await list('due', { cursor: first.cursor }))]).toEqual(IDS);
    });

    it('among ids that differ in bytes where a locale or UTF-16 sees another order', async () => {
      const odd = ['B', 'Z', '_', 'a', 'aa', 'b', 'é', 'ｚ', '𝒳'];
      const at = (await shard.now()) + HOUR;
      await shard.producer.enqueueMany(
        shard.queue,
        odd.toReversed().map((id) => ({ payload: 1, id, at })),
      );
      const listed: string[] = [];
      for (let cursor: string | undefined, n = 0; n < odd.length + 1; n++) {
        const page = await list('delayed', { limit: 1, cursor });
        listed.push(...idsOf(page));
        await shard.producer.cancel(shard.queue, listed.at(-1)!);
        cursor = page.cursor;
        if (cursor === undefined) break;
      }
      expect(listed).toEqual(odd);
    });
  });

  describe('a page of 200 large jobs was one reply of 48 MiB', () => {
    const sizeOf = (jobs: readonly { payload: unknown }[]) =>
      jobs.reduce((bytes, { payload }) => bytes + JSON.stringify(payload).length, 0);

    it('ends at about a mebibyte and the next one goes on', async () => {
      const ids = Array.from({ length: 20 }, (_, n) => `j${String(n).padStart(2, '0')}`);
      const payload = 'x'.repeat(250_000);
      const at = (await shard.now()) + HOUR;
      await shard.producer.enqueueMany(
        shard.queue,
        ids.map((id) => ({ payload, id, at })),
      );
      const listed: string[] = [];
      for (let cursor: string | undefined, n = 0; n < 20; n++) {
        const page = await list('delayed', { limit: 200, cursor });
        expect(sizeOf(page.jobs)).toBeLessThanOrEqual(1024 * 1024);
        listed.push(...idsOf(page));
        cursor = page.cursor;
        if (cursor === undefined) break;
      }
      expect(listed).toEqual(ids);
    });

    it('one that is larger than a page has a page of its own', async () => {
      await shard.fill('A', 'B', 'C');
      const { jobs } = await shard.read();
      await here.world.redis.hset(shard.key('jobs'), 'B', `${jobs['B']!.slice(0, -1)}"${'x'.repeat(2_000_000)}"`);
      expect(await pages('due', { limit: 200 })).toEqual([['A'], ['B'], ['C']]);
    });
  });

  it('shows a job whose record cannot be decoded', async () => {
    await shard.fill('A', 'B');
    await here.world.redis.hset(shard.key('jobs'), 'A', 'rubbish');
    await here.world.redis.hdel(shard.key('jobs'), 'B');
    expect((await list('due')).jobs).toMatchObject([
      { id: 'A', state: 'due', payload: undefined },
      { id: 'B', state: 'due', payload: undefined },
    ]);
    await shard.inspector.purge(shard.queue);
  });
});

describe('pause and resume', () => {
  const pause = (on: 0 | 1) => shard.run('pause', shard.keys.session('none'), [on]);

  it('answer whether that changed something', async () => {
    expect([await pause(0), await pause(1), await pause(1), await pause(0), await pause(0)]).toEqual([
      '0',
      '1',
      '0',
      '1',
      '0',
    ]);
  });

  it.each(['pause', 'pausePublishing'] as const)('ask for places that rise, by whatever clock: %s', async (script) => {
    const ask = async () => Number(await shard.run(script, shard.keys.session('none'), ['?']));
    const place = await ask();
    expect(await ask()).toBeGreaterThan(place);
    // The clock was an hour ahead when another call asked, which is still on its way.
    const ahead = place + 3_600_000_000;
    await shard.meta({ lastPlace: ahead });
    expect([await ask(), await ask()]).toEqual([ahead + 1, ahead + 2]);
  });

  it('outlive a queue that is emptied', async () => {
    await pause(1);
    await shard.fill('A');
    await shard.inspector.purge(shard.queue);
    expect(await shard.inspector.counts(shard.queue)).toMatchObject({ due: 0, paused: true });
  });
});
