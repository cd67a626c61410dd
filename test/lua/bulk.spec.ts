import { beforeEach, describe, expect, it } from '@jest/globals';
import { InvalidDelayError, InvalidIdError, InvalidOptionError } from '../../lib/index.js';
import type { BulkActPage, JobChoice, NewTimes } from '../../lib/index.js';
import { TestSession } from './peer.js';
import { HOUR, STATES } from './shard.js';
import type { Shard, State } from './shard.js';
import { shards } from './shards.js';

const here = shards();
const MINUTE = 60_000;
let shard: Shard;
/** An hour from now. */
let from: number;
beforeEach(async () => {
  shard = here.fresh();
  from = (await shard.now()) + HOUR;
});

const bulk = () => shard.inspector.bulk;
const idsOf = (count: number) => Array.from({ length: count }, (_, n) => `j${String(n).padStart(4, '0')}`);
const dues = async () => (await shard.read()).due;

/** Jobs j0000, j0001, ... that are due at these times. */
async function due(...times: number[]): Promise<string[]> {
  const ids = idsOf(times.length);
  await shard.producer.enqueueMany(
    shard.queue,
    ids.map((id, n) => ({ payload: id, id, at: times[n]! })),
  );
  return ids;
}

/** All calls of an act, page by page. Fails rather than going on for ever. */
async function walked<Outcome extends string>(call: (cursor?: string) => Promise<BulkActPage<Outcome>>) {
  const pages: BulkActPage<Outcome>['results'][] = [];
  for (let cursor: string | undefined, n = 0; n < 100; n++) {
    const page = await call(cursor);
    pages.push(page.results);
    if (page.cursor === undefined) return pages;
    cursor = page.cursor;
  }
  throw new Error(`the walk did not end: ${JSON.stringify(pages.slice(0, 10))}`);
}

describe('an act on ids', () => {
  type Change<Result> = (of: Shard) => Promise<Result>;

  /** What both ways of changing a job in this state answer, and leave behind. */
  async function bothWays(state: State, one: Change<object>, many: Change<BulkActPage<string>>) {
    const other = here.fresh();
    await shard.put(state, 'A');
    await other.put(state, 'A');
    const { queue: _, ...result } = { queue: '', ...(await one(other)) };
    const [single, page] = [{ results: [result] }, await many(shard)];
    const [seen, same] = [await shard.see('A'), await other.see('A')];
    // What nobody moved stands where it stood, each job by the time of its own enqueue.
    const isNear = Math.abs((seen.dueAt ?? 0) - (same.dueAt ?? 0)) < MINUTE;
    return [
      { page, seen: { ...seen, dueAt: isNear } },
      { page: single, seen: { ...same, dueAt: true } },
    ];
  }

  it.each(STATES)('answers and leaves behind what the single call does: cancel, %s', async (state) => {
    const [many, one] = await bothWays(
      state,
      ({ producer, queue }) => producer.cancel(queue, 'A'),
      ({ inspector, queue }) => inspector.bulk.cancel(queue, { ids: ['A'] }),
    );
    expect(many).toEqual(one);
  });

  it('cancels running jobs when asked to', async () => {
    const [many, one] = await bothWays(
      'running',
      ({ producer, queue }) => producer.cancel(queue, 'A', { running: true }),
      ({ inspector, queue }) => inspector.bulk.cancel(queue, { ids: ['A'] }, { running: true }),
    );
    expect(many).toEqual(one);
    expect(await shard.see('A')).toMatchObject({ followup: 'cancelled' });
  });

  it.each(STATES)('answers and leaves behind what the single call does: reschedule, %s', async (state) => {
    const [many, one] = await bothWays(
      state,
      ({ producer, queue }) => producer.reschedule(queue, 'A', { at: from }),
      ({ inspector, queue }) => inspector.bulk.reschedule(queue, { ids: ['A'] }, { at: from }),
    );
    expect(many).toEqual(one);
  });

  it.each(['none', 'running', 'dead'] as const)('runNow leaves one that is %s alone', async (state) => {
    const [many, one] = await bothWays(
      state,
      ({ producer, queue }) => producer.runNow(queue, 'A'),
      ({ inspector, queue }) => inspector.bulk.runNow(queue, { ids: ['A'] }),
    );
    expect(many).toEqual(one);
  });

  it('runNow makes delayed jobs due, and due ones keep their place', async () => {
    const past = from - 2 * HOUR;
    await due(from, past);
    const { results } = await bulk().runNow(shard.queue, { ids: idsOf(2) });
    expect(results.map(({ outcome, state }) => [outcome, state])).toEqual([
      ['rescheduled', 'delayed'],
      ['rescheduled', 'due'],
    ]);
    const now = await shard.now();
    expect(await dues()).toMatchObject({ j0001: past });
    expect((await dues())['j0000']).toBeLessThanOrEqual(now);
  });

  it('has one result for each id, in their order, for hundreds', async () => {
    const ids = await due(...Array.from({ length: 450 }, (_, n) => from + n));
    const asked = ['none', ...ids.toReversed(), ids[7]!];
    const { results, cursor } = await bulk().cancel(shard.queue, { ids: asked });
    expect(cursor).toBeUndefined();
    expect(results.map(({ id }) => id)).toEqual(['none', ...ids.toReversed()]);
    expect(results.filter(({ outcome }) => outcome !== 'cancelled').map(({ id }) => id)).toEqual(['none']);
    expect(await dues()).toEqual({});
  });

  it('moves jobs to another queue, with a result for each', async () => {
    const other = here.fresh();
    await due(from, from);
    const { results } = await bulk().move(shard.queue, { ids: ['j0001', 'none'] }, other.queue);
    expect(results).toEqual([
      { id: 'j0001', outcome: 'moved' },
      { id: 'none', outcome: 'notFound' },
    ]);
    expect(await other.see('j0001')).toMatchObject({ state: 'delayed', dueAt: from });
    expect(Object.keys(await dues())).toEqual(['j0000']);
  });

  it('spreads them in the order of the ids, also to sooner times', async () => {
    await due(from, from, from, from);
    const start = from - HOUR / 2;
    await bulk().reschedule(shard.queue, { ids: idsOf(4) }, { at: start, spread: '4m' });
    expect(Object.values(await dues())).toEqual([0, 1, 2, 3].map((n) => start + n * MINUTE));
  });
});

describe('an act on a range', () => {
  it('concerns the jobs that are due from its beginning on and before its end, and no others', async () => {
    await shard.put('quarantined', 'quarantined');
    await shard.put('dead', 'dead');
    await due(from - 1, from, from + 1, from + 2);
    const { results } = await bulk().cancel(shard.queue, { from, to: from + 2 });
    expect(results).toEqual(['j0001', 'j0002'].map((id) => ({ id, outcome: 'cancelled', state: 'delayed' })));
    expect(Object.keys(await dues())).toEqual(['j0000', 'j0003']);
    expect(await shard.see('quarantined')).toMatchObject({ state: 'quarantined' });
  });

  it('is open at the side that is left out', async () => {
    const past = from - 2 * HOUR;
    await due(past, from);
    expect((await bulk().runNow(shard.queue, { to: from })).results).toMatchObject([{ id: 'j0000', state: 'due' }]);
    expect((await bulk().cancel(shard.queue, { from: past + 1 })).results).toMatchObject([{ id: 'j0001' }]);
  });

  it('meets each job once, page by page, also many of one moment and when the last one of a page has gone', async () => {
    const ids = await due(...Array.from({ length: 9 }, () => from));
    const choice = { from, to: from + 1 };
    const dry = await walked((cursor) => bulk().cancel(shard.queue, choice, { limit: 4, cursor, dryRun: true }));
    expect(dry.map((page) => page.map(({ id }) => id))).toEqual([ids.slice(0, 4), ids.slice(4, 8), ids.slice(8)]);
    const done = await walked((cursor) => bulk().cancel(shard.queue, choice, { limit: 4, cursor }));
    expect(done.flat().map(({ id }) => id)).toEqual(ids);
    expect(await dues()).toEqual({});
  });

  it('takes hundreds in one call, and goes on in the next one', async () => {
    await due(...Array.from({ length: 1_100 }, (_, n) => from + n));
    const pages = await walked((cursor) => bulk().cancel(shard.queue, { from }, { cursor }));
    expect(pages.map(({ length }) => length)).toEqual([1_000, 100]);
    expect(await dues()).toEqual({});
  });

  it('moves jobs to another queue, page by page', async () => {
    const other = here.fresh();
    await due(from, from + 1, from + 2, from + 3);
    const choice = { from: from + 1 };
    const pages = await walked((cursor) => bulk().move(shard.queue, choice, other.queue, { limit: 2, cursor }));
    expect(pages.flat()).toEqual(['j0001', 'j0002', 'j0003'].map((id) => ({ id, outcome: 'moved' })));
    expect((await other.read()).due).toEqual({ j0001: from + 1, j0002: from + 2, j0003: from + 3 });
  });

  it.each<[string, (middle: number) => NewTimes]>([
    ['later by less than the range is long', () => ({ by: '2m' })],
    // At the due time of none.
    ['to one moment within the range', (middle) => ({ at: middle })],
    ['spread over the range', (middle) => ({ at: middle, spread: '10m' })],
  ])('reschedules each job once: %s', async (_, timesAt) => {
    const times = [0, 1, 2, 3, 4, 5, 6].map((n) => from + n * MINUTE);
    const all = await due(...times);
    const choice = { from, to: from + 30 * MINUTE };
    const to = timesAt(from + 3.5 * MINUTE);
    const pages = await walked((cursor) => bulk().reschedule(shard.queue, choice, to, { limit: 2, cursor }));
    expect(pages.flat().map(({ id }) => id)).toEqual(all.toReversed());
  });

  it('meets no more jobs in a call than its limit, also if none of them has to be changed', async () => {
    await due(from, from, from, from);
    const page = () => bulk().reschedule(shard.queue, { from }, { at: from }, { limit: 3 });
    expect(await page()).toEqual({ results: [], cursor: expect.any(String) });
  });

  it('moves each job later by the same time', async () => {
    await due(from, from + MINUTE, from + 5 * MINUTE);
    const to = { by: '2m' };
    await walked((cursor) => bulk().reschedule(shard.queue, { from }, to, { limit: 1, cursor }));
    expect(Object.values(await dues())).toEqual([2, 3, 7].map((n) => from + n * MINUTE));
  });

  it('spreads a peak evenly and in its order, and makes no job due sooner than it was', async () => {
    const last = from + 8 * MINUTE;
    await due(from, from, from, from, from + 1, last);
    const choice = { from, to: from + 10 * MINUTE };
    await walked((cursor) => bulk().reschedule(shard.queue, choice, { at: from, spread: '6m' }, { limit: 4, cursor }));
    expect(Object.values(await dues())).toEqual([...[0, 1, 2, 3, 4].map((n) => from + n * MINUTE), last]);
  });

  it('spreads jobs over a time before the range, too', async () => {
    await due(from, from + 1, from + 2);
    const start = from - HOUR / 2;
    await bulk().reschedule(shard.queue, { from }, { at: start, spread: '3m' });
    expect(Object.values(await dues())).toEqual([0, 1, 2].map((n) => start + n * MINUTE));
  });

  it('counts a delay from its first call, on all pages', async () => {
    await due(from, from + 1, from + 2);
    const pages = await walked((cursor) =>
      bulk().reschedule(shard.queue, { from }, { delay: '2h' }, { limit: 1, cursor }),
    );
    expect(new Set(pages.flat().map(({ dueAt }) => dueAt!.getTime())).size).toBe(1);
  });

  it('moves the expiry of a job along, and disowns workers that lost it, as the single call does', async () => {
    await shard.producer.enqueue(shard.queue, 1, { id: 'A', at: from, expiresIn: '1m' });
    await shard.producer.enqueue(shard.queue, 1, { id: 'B', at: from, expiresIn: '1m' });
    await bulk().reschedule(shard.queue, { ids: ['A'] }, { at: from + HOUR });
    await shard.producer.reschedule(shard.queue, 'B', { at: from + HOUR });
    const { jobs } = await shard.read();
    // But for the time of their enqueue the same bytes.
    expect(jobs['A']!.slice(9)).toBe(jobs['B']!.slice(9));
  });
});

describe('a dry run', () => {
  const acts: Record<string, (choice: JobChoice, dryRun: boolean) => Promise<BulkActPage<string>>> = {
    cancel: (choice, dryRun) => bulk().cancel(shard.queue, choice, { dryRun }),
    'reschedule by': (choice, dryRun) => bulk().reschedule(shard.queue, choice, { by: '1h' }, { dryRun }),
    'reschedule at': (choice, dryRun) => bulk().reschedule(shard.queue, choice, { at: from + 5 }, { dryRun }),
    'reschedule and spread': (choice, dryRun) =>
      bulk().reschedule(shard.queue, choice, { at: from, spread: '1h' }, { dryRun }),
  };

  it.each(Object.keys(acts).flatMap((name) => [['ids', name] as const, ['a range', name] as const]))(
    'of %s changes nothing, and says what the act then does: %s',
    async (chosen, name) => {
      for (const state of ['running', 'dead'] as const) await shard.put(state, state);
      const ids = [...(await due(from, from + 1, from + 5, from + 9)), 'running', 'dead', 'none'];
      const choice = chosen === 'ids' ? { ids } : { from: from + 1, to: from + 9 };
      const before = await shard.stored();
      const dry = await acts[name]!(choice, true);
      expect(await shard.stored()).toEqual(before);
      expect(dry.results.length).toBeGreaterThan(0);
      expect(await acts[name]!(choice, false)).toEqual(dry);
    },
  );

  it('of runNow and move selects the same jobs', async () => {
    await due(from, from + 1, from + 2);
    const choice = { from: from + 1 };
    const options = { dryRun: true };
    const moved = await bulk().move(shard.queue, choice, 'other', options);
    expect(moved.results).toMatchObject([{ id: 'j0001', outcome: 'moved' }, { id: 'j0002' }]);
    const now = await bulk().runNow(shard.queue, choice, options);
    expect(now.results).toMatchObject([{ id: 'j0001', outcome: 'rescheduled' }, { id: 'j0002' }]);
    expect(await dues()).toEqual({ j0000: from, j0001: from + 1, j0002: from + 2 });
  });
});

describe('the scripts of bulk acts', () => {
  it('leave a job alone that was given another due time since it was chosen', async () => {
    await due(from, from);
    const session = new TestSession(shard);
    const [A, B] = idsOf(2) as [string, string];
    expect(await session.call('rescheduleMany', [0, 0, A, 'b', 5, from - 1, B, 'b', 5, from])).toBe(
      `m l 0 s l ${from + 5}`,
    );
    expect(await session.call('cancelMany', [0, 0, A, from - 1, B, from + 5])).toBe('m l c l');
    expect(await dues()).toEqual({ [A]: from });
  });

  it('change each job once, however often a call arrives', async () => {
    await due(from);
    const session = new TestSession(shard);
    const answer = await session.call('rescheduleMany', [0, 0, 'j0000', 'b', MINUTE, '']);
    expect(await session.again()).toBe(answer);
    expect(await dues()).toEqual({ j0000: from + MINUTE });
  });
});

it.each<[string, () => Promise<unknown>, new (...args: any[]) => Error, string]>([
  ['no choice', () => bulk().cancel('q', {}), InvalidOptionError, 'give either { ids }, or { from, to }'],
  ['two choices', () => bulk().cancel('q', { ids: [], from: 1 } as never), InvalidOptionError, 'give either'],
  ['ids that are none', () => bulk().cancel('q', { ids: 'A' as never }), InvalidOptionError, 'must be an array'],
  ['a wrong id', () => bulk().runNow('q', { ids: ['{A}'] }), InvalidIdError, 'bulk.runNow(queue, { ids })'],
  ['too many ids', () => bulk().cancel('q', { ids: idsOf(1_001) }), InvalidOptionError, '1001 ids are more than 1000'],
  ['an empty range', () => bulk().cancel('q', { from: 2, to: 2 }), InvalidOptionError, 'is not behind `from`'],
  ['a limit of ids', () => bulk().cancel('q', { ids: ['A'] }, { limit: 1 }), InvalidOptionError, 'give fewer ids'],
  ['a high limit', () => bulk().cancel('q', { from: 1 }, { limit: 1_001 }), InvalidOptionError, 'from 1 to 1000'],
  ['a strange cursor', () => bulk().cancel('q', { from: 1 }, { cursor: 'x' }), InvalidOptionError, 'cursor'],
  ['the cursor of ids', () => bulk().cancel('q', { from: 1 }, { cursor: 'WzFd' }), InvalidOptionError, 'cursor'],
  ['no new time', () => bulk().reschedule('q', { from: 1 }, {} as never), InvalidOptionError, 'give one of { delay }'],
  ['a shift to nowhere', () => bulk().reschedule('q', { from: 1 }, { by: 0 }), InvalidDelayError, 'by'],
  [
    'a shift that is spread',
    () => bulk().reschedule('q', { from: 1 }, { by: 1, spread: 1 }),
    InvalidOptionError,
    'spread',
  ],
  ['running elsewhere', () => bulk().runNow('q', { from: 1 }, { running: true } as never), InvalidOptionError, 'unknown option'], // prettier-ignore
  ['the queue itself', () => bulk().move(shard.queue, { ids: ['A'] }, shard.queue), InvalidOptionError, 'the queue itself'], // prettier-ignore
])('refuses %s', async (_, call, type, message) => {
  const refused = call();
  await expect(refused).rejects.toThrow(type);
  await expect(refused).rejects.toThrow(message);
});
