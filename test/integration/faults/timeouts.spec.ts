import { describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { DelayQueueHealth, fixed } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();

describe('A handler that never settles', () => {
  it('fails by timeout: its slot is free again, the job is retried, and one warning is said', async () => {
    const CONCURRENCY = 3;
    const hung: DelayedJob[] = [];
    const good: unknown[] = [];
    const log: string[] = [];
    const handle = (payload: 'hang' | 'good', job: DelayedJob) => {
      if (payload === 'good') return void good.push(job.id);
      hung.push(job);
      return new Promise(() => {});
    };
    const { app, producer, inspector } = await here.start({
      providers: [
        handlerClass('hang', handle, { concurrency: CONCURRENCY, timeout: 300, attempts: 2, backoff: fixed(50) }),
      ],
      log,
    });
    const items = Array.from({ length: CONCURRENCY }, () => ({ payload: 'hang' as const }));
    await producer.enqueueMany('hang', items);
    await eventually(() => expect(hung).toHaveLength(CONCURRENCY));
    await producer.enqueueMany(
      'hang',
      Array.from({ length: 10 }, () => ({ payload: 'good' as const })),
    );

    await eventually(() => expect(good).toHaveLength(10));
    await eventually(async () =>
      expect(await inspector.totals('hang')).toMatchObject({ dead: CONCURRENCY, completed: 10 }),
    );
    expect(hung.map(({ attempt }) => attempt)).toEqual([1, 1, 1, 2, 2, 2]);
    for (const { signal } of hung) expect(signal.reason).toMatchObject({ code: 'ERR_DQ_TIMEOUT' });
    const { jobs } = await inspector.list('hang', 'dead');
    for (const job of jobs) {
      expect(job).toMatchObject({ deadReason: 'exhausted', attempts: 2, lastError: { name: 'HandlerTimeoutError' } });
    }
    expect(log.filter((line) => /^warn .*ran on after its timeout/.test(line))).toHaveLength(1);
    const { status, queues } = await app.get(DelayQueueHealth).check();
    expect({ status, zombies: queues['hang']!.zombies }).toEqual({ status: 'degraded', zombies: 2 * CONCURRENCY });
  });

  it('and returns after its timeout changes nothing any more', async () => {
    let returned = false;
    const log: string[] = [];
    const handle = async (_: unknown, job: DelayedJob) => {
      await sleep(400);
      returned = true;
      return job.attempt;
    };
    const { app, producer, inspector } = await here.start({
      providers: [handlerClass('late', handle, { timeout: 100, attempts: 1 })],
      log,
    });
    const { id } = await producer.enqueue('late', {});
    await eventually(async () => expect(await producer.get('late', id)).toMatchObject({ state: 'dead' }));
    expect(returned).toBe(false);
    await eventually(async () => {
      expect(returned).toBe(true);
      expect((await app.get(DelayQueueHealth).check()).queues['late']!.zombies).toBe(0);
    });
    expect(await producer.get('late', id)).toMatchObject({ state: 'dead', deadReason: 'exhausted' });
    // The next step of the worker would tell Redis of a second ending.
    await producer.enqueue('late', {});
    await eventually(async () => expect(await inspector.totals('late')).toMatchObject({ failed: 2, dead: 2 }));
    expect(await inspector.totals('late')).toMatchObject({ completed: 0 });
    expect(log.filter((line) => line.includes('lost its lease'))).toEqual([]);
  });
});
