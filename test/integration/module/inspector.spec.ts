import { describe, expect, it } from '@jest/globals';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { holding } from '../../helpers/holding.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const HOUR = 3_600_000;

describe('counts() and totals()', () => {
  it('tell what a queue holds and what went through it', async () => {
    const { queue, producer, inspector, bring, run } = await holding(here, { backoff: () => HOUR, concurrency: 1 });
    expect(await inspector.counts(queue)).toEqual({
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
    const before = await here.world.now();
    await bring('dead', 'dead');
    await bring('completed', 'running');
    (await run(2)).end();
    await bring('failed', 'running');
    (await run(3)).end(new Error('no'));
    await bring('running', 'running');
    const later = await producer.enqueue(queue, {}, { delay: HOUR });
    await producer.enqueue(queue, {}, { delay: 2 * HOUR });
    expect(await inspector.counts(queue)).toMatchObject({ delayed: 3, due: 0, running: 1, dead: 1, lagMs: 0 });
    const { nextDueAt } = await inspector.counts(queue);
    expect(nextDueAt!.getTime()).toBeLessThanOrEqual(later.dueAt.getTime());

    await producer.enqueue(queue, {}, { at: before - HOUR });
    await producer.enqueue(queue, {});
    const behind = await inspector.counts(queue);
    expect(behind).toMatchObject({ delayed: 3, due: 2, nextDueAt: new Date(before - HOUR) });
    expect(behind.lagMs).toBeGreaterThanOrEqual(HOUR);

    const totals = await inspector.totals(queue);
    expect(totals).toMatchObject({ enqueued: 8, completed: 1, failed: 2, retried: 1, dead: 1, expired: 0 });
    expect(totals.since!.getTime()).toBeLessThanOrEqual(before);
    expect(totals.since!.getTime()).toBeGreaterThan(before - 60_000);
  });

  it('know all queues that were ever used', async () => {
    const { producer, inspector } = await here.start({ providers: [handlerClass('q.worker', () => undefined)] });
    await producer.enqueue('q.producer', {}, { delay: HOUR });
    await eventually(async () => {
      expect(await inspector.queues()).toEqual(expect.arrayContaining(['q.producer', 'q.worker']));
    });
    const names = await inspector.queues();
    expect(names).toEqual([...names].sort());
  });
});

describe('pause() and resume()', () => {
  it('hold for every process and outlive them all; running handlers go on', async () => {
    const { queue, producer, inspector, bring, run, held, close } = await holding(here);
    await bring('running', 'running');
    await inspector.pause(queue);
    expect(await inspector.counts(queue)).toMatchObject({ paused: true });
    await producer.enqueue(queue, {}, { id: 'waits' });
    (await run(1)).end();
    await eventually(async () => expect((await inspector.totals(queue)).completed).toBe(1));
    expect(held).toHaveLength(1);
    await close();

    const runs: string[] = [];
    const other = await here.start({ providers: [handlerClass(queue, (_, { id }) => void runs.push(id))] });
    // It has looked at the queue, found it paused, and waits.
    await eventually(async () => expect(Object.keys((await here.world.read(queue)).idle)).toHaveLength(1));
    expect([runs, await other.inspector.counts(queue)]).toEqual([
      [],
      expect.objectContaining({ due: 1, paused: true }),
    ]);
    await other.inspector.resume(queue);
    await eventually(() => expect(runs).toEqual(['waits']));
  });
});

describe('purge()', () => {
  it.each<[('waiting' | 'dead')[] | undefined, string[]]>([
    [undefined, ['running']],
    [['waiting'], ['dead', 'running']],
    [['dead'], ['delayed', 'due', 'running']],
  ])('of %j leaves %j', async (states, left) => {
    const { queue, producer, inspector, bring } = await holding(here);
    await bring('dead', 'dead');
    await bring('running', 'running');
    await bring('due', 'due');
    await producer.enqueue(queue, {}, { id: 'delayed', delay: HOUR });
    expect(await inspector.purge(queue, { states })).toEqual({ removed: 4 - left.length });
    expect(Object.keys((await here.world.read(queue)).jobs).sort()).toEqual(left);
    expect(await here.world.violations(queue)).toEqual([]);
  });

  it('removes thousands', async () => {
    const { queue, producer, inspector } = await holding(here);
    await producer.enqueueMany(
      queue,
      Array.from({ length: 2_000 }, (_, n) => ({ payload: n, delay: HOUR })),
    );
    expect(await inspector.purge(queue)).toEqual({ removed: 2_000 });
    expect(await here.world.read(queue)).toMatchObject({ due: {}, jobs: {} });
  });
});
