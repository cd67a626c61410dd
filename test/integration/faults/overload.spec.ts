import { describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { DelayQueueHealth } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();

describe('More due jobs than the workers can run', () => {
  it('wait in their order while the lag grows, and health says degraded until they are done', async () => {
    const JOBS = 60;
    const runs: number[] = [];
    const handle = async (n: number) => {
      runs.push(n);
      await sleep(30);
    };
    const { app, producer, inspector } = await here.start({
      providers: [handlerClass('load', handle, { concurrency: 1 })],
    });
    const health = () => app.get(DelayQueueHealth).check({ lag: { degraded: 300 } });
    expect((await health()).status).toBe('up');
    const at = await here.world.now();
    await producer.enqueueMany(
      'load',
      Array.from({ length: JOBS }, (_, n) => ({ payload: n, at: at + n })),
    );

    await eventually(() => expect(runs.length).toBeGreaterThan(10));
    const early = (await inspector.counts('load')).lagMs;
    await eventually(async () => expect((await health()).status).toBe('degraded'));
    const { queues, reasons } = await health();
    expect(reasons.join()).toMatch(/"load" lags \d+ ms/);
    expect(queues['load']).toMatchObject({ status: 'degraded', running: 1 });
    expect((await inspector.counts('load')).lagMs).toBeGreaterThan(early);

    await eventually(async () => expect((await inspector.totals('load')).completed).toBe(JOBS), 10_000);
    expect(runs).toEqual(Array.from({ length: JOBS }, (_, n) => n));
    expect((await health()).status).toBe('up');
  });

  it('make health say down only when a limit for that is given', async () => {
    const { app, producer } = await here.start({
      providers: [handlerClass('stuck', () => sleep(1_000), { concurrency: 1 })],
      options: { drainTimeout: '2s' },
    });
    const anHourAgo = (await here.world.now()) - 3_600_000;
    await producer.enqueueMany(
      'stuck',
      [1, 2].map((payload) => ({ payload, at: anHourAgo })),
    );
    const health = app.get(DelayQueueHealth);
    expect((await health.check()).status).toBe('degraded');
    expect((await health.check({ lag: { down: '30m' } })).status).toBe('down');
    expect((await health.check({ lag: { down: '2h' } })).status).toBe('degraded');
  });
});
