import { describe, expect, it, jest } from '@jest/globals';
import { StoredDataError, UnavailableError } from '../../../lib/index.js';
import { EnqueueBatcher } from '../../../lib/producer/enqueue-batcher.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const HOUR = 3_600_000;

/** A queue with three shards that holds j0, j1, ... which are due one millisecond after the other. */
async function filled(queue: string, count: number) {
  const app = await here.start({ options: { queues: { [queue]: { shards: 3 } }, consume: false } });
  const from = (await here.world.now()) + HOUR;
  const ids = Array.from({ length: count }, (_, n) => `j${n}`);
  await app.producer.enqueueMany(
    queue,
    ids.map((id, n) => ({ payload: n, id, at: from + n })),
  );
  return { ...app, from, ids };
}

describe('bulk acts on a queue with shards', () => {
  it('find all jobs by their ids, and answer in their order', async () => {
    const { inspector, ids } = await filled('ids', 30);
    const { results } = await inspector.bulk.cancel('ids', { ids });
    expect(results).toEqual(ids.map((id) => ({ id, outcome: 'cancelled', state: 'delayed' })));
    expect(await inspector.counts('ids')).toMatchObject({ delayed: 0 });
  });

  it('go through the range of each shard, page by page', async () => {
    const { inspector, from, ids } = await filled('ranges', 30);
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await inspector.bulk.reschedule(
        'ranges',
        { from, to: from + 20 },
        { by: '1h' },
        { limit: 7, cursor },
      );
      found.push(...page.results.map(({ id }) => id));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(found.toSorted()).toEqual(ids.slice(0, 20).toSorted());
    expect(await inspector.timeline('ranges', { from, to: from + 2 * HOUR, buckets: 2 })).toMatchObject({
      counts: [10, 20],
    });
  });

  it('that fail after some jobs return the results of these, and the next call says why', async () => {
    const { inspector, producer, from } = await filled('broken', 30);
    const damaged = here.world.key('broken:1', 'due');
    const kept = await here.world.redis.zrange(damaged, '0', '-1', 'WITHSCORES');
    await here.world.redis.unlink(damaged);
    await here.world.redis.set(damaged, 'not a sorted set');
    const { results, cursor } = await inspector.bulk.cancel('broken', { from });
    expect(results.length).toBeGreaterThan(0);
    for (const { id } of results) expect(await producer.get('broken', id)).toBeUndefined();
    await expect(inspector.bulk.cancel('broken', { from }, { cursor })).rejects.toThrow(StoredDataError);
    await here.world.redis.unlink(damaged);
    await here.world.redis.zadd(damaged, ...kept.toReversed());
    const others = await inspector.bulk.cancel('broken', { from }, { cursor });
    expect(results.length + others.results.length).toBe(30);
    expect(others.cursor).toBeUndefined();
  });

  it('that fail in some shards return the results of the others, and do these no second time', async () => {
    const { inspector, producer, from, ids } = await filled('partly', 30);
    const damaged = here.world.key('partly:1', 'due');
    const kept = await here.world.redis.zrange(damaged, '0', '-1', 'WITHSCORES');
    await here.world.redis.unlink(damaged);
    await here.world.redis.set(damaged, 'not a sorted set');
    const { results, cursor } = await inspector.bulk.reschedule('partly', { ids }, { by: '1h' });
    expect(results.map(({ outcome }) => outcome)).toEqual(
      Array.from({ length: 30 - kept.length / 2 }, () => 'rescheduled'),
    );
    const again = () => inspector.bulk.reschedule('partly', { ids }, { by: '1h' }, { cursor });
    await expect(again()).rejects.toThrow(StoredDataError);
    await here.world.redis.unlink(damaged);
    await here.world.redis.zadd(damaged, ...kept.toReversed());
    const others = await again();
    expect(others.cursor).toBeUndefined();
    expect([...results, ...others.results].map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    for (const [n, id] of ids.entries()) {
      expect(await producer.get('partly', id)).toMatchObject({ dueAt: new Date(from + n + HOUR) });
    }
  });
});

describe('bulk.reschedule() by a time, of which no answer came for some jobs,', () => {
  /** The answer of this call of the script is lost, in every copy of it. */
  function losing(nth: number): void {
    const run = Reflect.get(EnqueueBatcher.prototype, 'run') as EnqueueBatcher['run'];
    let calls = 0;
    jest.spyOn(EnqueueBatcher.prototype, 'run').mockImplementation(async function (this: EnqueueBatcher, ...call) {
      const answer = await run.apply(this, call);
      if (call[0] === 'rescheduleMany' && ++calls === nth) {
        throw new UnavailableError('Redis did not answer', { maybeAccepted: true });
      }
      return answer;
    });
  }

  it.each(['ids', 'range'] as const)('moves none of them twice, and tells which they are: %s', async (way) => {
    const queue = `doubt ${way}`;
    const { inspector, from, ids } = await filled(queue, 900);
    // Of ids the first of the second 200, of a range the second 200 of the first shard.
    losing(way === 'ids' ? 4 : 2);
    const choice = way === 'ids' ? { ids } : { from };
    const outcomes: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await inspector.bulk.reschedule(queue, choice, { by: '1h' }, { cursor });
      outcomes.push(...page.results.map(({ outcome }) => outcome));
      cursor = page.cursor;
    } while (cursor !== undefined);
    jest.restoreAllMocks();
    expect(outcomes).toHaveLength(ids.length);
    expect(outcomes).toContain('unknown');
    expect(await inspector.timeline(queue, { from: from + HOUR, to: from + 2 * HOUR, buckets: 1 })).toMatchObject({
      counts: [ids.length],
      before: 0,
      after: 0,
    });
  });

  it('throws, where nothing else can be told', async () => {
    const { inspector, ids } = await filled('doubt of all', 1);
    losing(1);
    const acts = inspector.bulk.reschedule('doubt of all', { ids }, { by: '1h' });
    await expect(acts).rejects.toMatchObject({ code: 'ERR_DQ_UNAVAILABLE', maybeAccepted: true });
    jest.restoreAllMocks();
  });
});

it('the whole story: a peak is counted, spread and gone', async () => {
  const { producer, inspector } = await here.start({ options: { consume: false } });
  const at = (await here.world.now()) + HOUR;
  await producer.enqueueMany('peak', Array.from({ length: 300 }, () => ({ payload: 1, at }))); // prettier-ignore
  const range = { from: at, to: at + 10 * 60_000 };
  expect((await inspector.timeline('peak', { ...range, buckets: 10 })).counts[0]).toBe(300);
  const dry = await inspector.bulk.reschedule('peak', range, { at, spread: '10m' }, { dryRun: true });
  expect(dry.results).toHaveLength(300);
  await inspector.bulk.reschedule('peak', range, { at, spread: '10m' });
  expect((await inspector.timeline('peak', { ...range, buckets: 10 })).counts).toEqual(Array.from({ length: 10 }, () => 30)); // prettier-ignore
});
