import { describe, expect, it } from '@jest/globals';
import type { DelayQueueInspector, ListedState } from '../../../lib/index.js';
import { holding } from '../../helpers/holding.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const HOUR = 3_600_000;

describe('list()', () => {
  /** All pages, one after another. */
  async function pages(inspector: DelayQueueInspector, queue: string, state: ListedState, limit: number) {
    const found: string[][] = [];
    for (let cursor: string | undefined; ;) {
      const page = await inspector.list(queue, state, { limit, ...(cursor ? { cursor } : {}) });
      found.push(page.jobs.map(({ id }) => id));
      ({ cursor } = page);
      if (!cursor) return found;
      if (found.length > 50) throw new Error('list() does not end');
    }
  }

  it('gives each job once, page by page in due order, also many of one moment', async () => {
    const { queue, producer, inspector } = await holding(here);
    const at = Date.now() + HOUR;
    const ids = Array.from({ length: 25 }, (_, n) => `j${String(n).padStart(2, '0')}`);
    const later = (n: number) => (n < 5 ? 0 : n < 20 ? 1 : n);
    await producer.enqueueMany(
      queue,
      ids.map((id, n) => ({ payload: n, id, at: at + later(n) })),
    );
    const found = await pages(inspector, queue, 'delayed', 4);
    expect(found.flat()).toEqual(ids);
    expect(found.map((page) => page.length)).toEqual([4, 4, 4, 4, 4, 4, 1]);
    expect((await pages(inspector, queue, 'delayed', 25)).flat()).toEqual(ids);
    expect(await pages(inspector, queue, 'delayed', 200)).toEqual([ids]);

    const range = await inspector.list(queue, 'delayed', { from: new Date(at + 1), to: at + 20 });
    expect(range.jobs.map(({ payload }) => payload)).toEqual([
      5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
    ]);
    expect(await inspector.list(queue, 'due')).toEqual({ jobs: [] });
  });

  it('of a group names itself where the queue cannot be read', async () => {
    const { queue, producer, inspector } = await holding(here);
    await producer.enqueue(queue, 1, { id: 'A', group: 'customer-1', delay: '1h' });
    await here.world.redis.hset(here.world.key(queue, 'meta'), 'layout', '99');
    await expect(inspector.list(queue, 'delayed', { group: 'customer-1' })).rejects.toThrow(
      `(list of queue "${queue}")`,
    );
  });

  it('tells due, running and dead jobs too, as get() does', async () => {
    const { queue, producer, inspector, bring } = await holding(here);
    await bring('dead', 'dead');
    await bring('r1', 'running');
    await bring('r2', 'running');
    await bring('due', 'due');
    await producer.enqueue(queue, {}, { id: 'also due', at: Date.now() - 2 * HOUR });
    for (const [state, ids] of [
      ['due', ['also due', 'due']],
      ['running', ['r1', 'r2']],
      ['dead', ['dead']],
    ] as const) {
      const { jobs } = await inspector.list(queue, state);
      expect(jobs.map(({ id }) => id)).toEqual(ids);
      expect(jobs).toEqual(await Promise.all(ids.map((id) => producer.get(queue, id))));
      expect((await pages(inspector, queue, state, 1)).flat()).toEqual(ids);
    }
  });

  it('goes on behind an occurrence of a schedule: a page that ended at one had a cursor that was refused', async () => {
    const { producer, inspector } = await here.start({ options: { consume: false } });
    await producer.schedule('recurring', 's', { every: '10s' }, null);
    const found = (await pages(inspector, 'recurring', 'delayed', 1)).flat();
    expect(found.length).toBeGreaterThan(3);
    expect(found.every((id) => id.startsWith('{s}'))).toBe(true);
  });

  it('names jobs in quarantine as due, page by page', async () => {
    const { queue, producer, inspector } = await holding(here);
    await inspector.pause(queue);
    await producer.enqueueMany(
      queue,
      Array.from({ length: 5 }, (_, n) => ({ payload: n, id: `s${n}`, at: Date.now() - HOUR })),
    );
    const quarantined = ['s1', 's3', 's4'];
    await here.world.redis.zrem(here.world.key(queue, 'due'), ...quarantined);
    await here.world.redis.zadd(
      here.world.key(queue, 'quarantine'),
      ...quarantined.flatMap((id, n) => [Date.now() + n, id]),
    );
    for (const limit of [1, 2, 3, 10]) {
      expect((await pages(inspector, queue, 'due', limit)).flat()).toEqual(['s0', 's2', 's1', 's3', 's4']);
    }
  });

  it.each([{ limit: 0 }, { limit: 201 }, { limit: '10' }, { cursor: 'x' }, { from: 'now' }, { page: 2 }])(
    'refuses %j',
    async (options) => {
      const { inspector } = await holding(here);
      const list = inspector.list('any', 'dead', options as never);
      await expect(list).rejects.toMatchObject({ code: expect.stringMatching(/^ERR_DQ_INVALID_(OPTION|DELAY)$/) });
    },
  );
});
