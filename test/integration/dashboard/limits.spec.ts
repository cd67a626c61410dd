import { describe, expect, it } from '@jest/globals';
import type { StateResponse } from '../../../lib/dashboard/api.js';
import { handlerClass } from '../../helpers/app.js';
import { dashboardsIn } from '../../helpers/dashboard-in-a-world.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const { serve } = dashboardsIn(here);

describe('limits', () => {
  it('tell how near a queue is to them, who set them, and whose jobs wait', async () => {
    const released: (() => void)[] = [];
    const hold = () => new Promise<void>((resolve) => void released.push(resolve));
    const limits = {
      globalConcurrency: 2,
      rateLimit: { max: 100, per: '1m' as const },
      groups: { concurrency: 1, rateLimit: { max: 5, per: '10s' as const } },
    };
    const { producer, inspector } = await here.start({ providers: [handlerClass('limited', hold, limits)] });
    for (const [n, groups] of [['a', 'a', 'a', 'a'], ['b', 'b'], ['c']].entries()) {
      await producer.enqueueMany('limited', groups.map((group) => ({ payload: 1, group }))); // prettier-ignore
      await eventually(() => expect(released).toHaveLength(Math.min(2, n + 1)));
    }
    const { get } = await serve();
    const { body } = await get('api/limits?queue=limited');
    expect(body).toMatchObject({
      setBy: 'config',
      running: 2,
      concurrency: 2,
      rate: { max: 100, perMs: 60_000 },
      groupConcurrency: 1,
      groupRate: { max: 5, perMs: 10_000 },
      limited: true,
      groups: { total: 3 },
    });
    expect(body.backlog.map(({ due }: { due: number }) => due)).toEqual([3, 1, 1]);
    expect(body.backlog[0]).toMatchObject({ group: 'a', due: 3, waiting: 3, running: 1 });
    await inspector.setLimits('limited', { globalConcurrency: 7 });
    await eventually(async () =>
      expect((await get('api/limits?queue=limited')).body).toMatchObject({ setBy: 'operator', concurrency: 7 }),
    );
    for (let n = 0; n < 7; n++) {
      await eventually(() => expect(released.length).toBeGreaterThan(n));
      released[n]!();
    }
  });

  it('are a part of the state of those queues alone that have some', async () => {
    const { get, producer, inspector } = await serve();
    await producer.enqueue('with', 1, { delay: '1h' });
    await inspector.setLimits('with', { globalConcurrency: 1 });
    await producer.enqueue('without', 1, { delay: '1h' });
    const state = (await get('api/state')).body as StateResponse;
    const limited = (name: string) => state.queues.find(({ queue }) => queue === name)!.limited;
    expect([limited('with'), limited('without')]).toEqual([false, undefined]);
    expect((await get('api/limits?queue=without')).body).toMatchObject({ limited: false, backlog: [] });
    expect((await get('api/limits')).problem.code).toBe('DASHBOARD_BAD_REQUEST');
  });
});
