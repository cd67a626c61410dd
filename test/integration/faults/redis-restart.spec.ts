import { afterEach, describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { DelayQueueHealth } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';

// On disk before it is answered: what Redis itself may lose is not what is asked here.
const here = inAWorld({ appendfsync: 'always' });
const end = endingWithEachTest();
afterEach(() => here.server.restart());

const stepsSoFar = async () => {
  const stats = await here.world.redis.info('commandstats');
  return Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(stats)?.[1] ?? 0);
};

describe('When Redis is killed and started again', () => {
  it('workers go on by themselves, nothing is lost and nothing runs twice', async () => {
    const JOBS = 300;
    const proxy = end(await Proxy.before(here.server.url));
    const starts = new Map<string, number>();
    const handle = async (waitMs: number, { id }: DelayedJob) => {
      starts.set(id, (starts.get(id) ?? 0) + 1);
      await sleep(waitMs);
    };
    const log: string[] = [];
    const { app, producer, inspector } = await here.start({
      providers: [handlerClass('restart', handle, { concurrency: 10, lease: '1s' })],
      options: { connection: proxy.url },
      log,
    });
    const items = Array.from({ length: JOBS }, (_, n) => ({ payload: n % 10 === 0 ? 200 : 5 }));
    await producer.enqueueMany('restart', items);
    await producer.enqueue('restart', 5, { delay: 3_000 });
    await eventually(() => expect(starts.size).toBeGreaterThan(40));

    await here.server.kill();
    const downAt = performance.now();
    const connectionsBefore = proxy.connections;
    const busyBefore = performance.eventLoopUtilization();
    await sleep(1_900); // longer than the lease: settles wait past it
    expect((await app.get(DelayQueueHealth).check()).status).toBe('down');
    expect(performance.eventLoopUtilization(busyBefore).utilization).toBeLessThan(0.5);
    expect(proxy.connections - connectionsBefore).toBeLessThan(25);
    await here.server.restart();

    await eventually(
      async () => expect(await inspector.totals('restart')).toMatchObject({ completed: JOBS + 1 }),
      20_000,
    );
    expect([...starts.values()].filter((times) => times !== 1)).toEqual([]);
    expect(starts.size).toBe(JOBS + 1);
    expect(await here.world.violations('restart')).toEqual([]);
    expect((await app.get(DelayQueueHealth).check()).status).toBe('up');

    const outage = log.filter((line) => !line.startsWith('log [') && /Redis at/.test(line));
    expect(outage.filter((line) => /^warn .*is not reachable/.test(line))).toHaveLength(1);
    expect(outage.filter((line) => /^log .*is back after/.test(line))).toHaveLength(1);
    expect(log.filter((line) => /^(warn|error)/.test(line)).length).toBeLessThanOrEqual(2);
    // A step may carry ten jobs, and an idle worker steps three times per lease.
    const seconds = (performance.now() - downAt) / 1000;
    expect(await stepsSoFar()).toBeLessThan(JOBS + 20 * seconds);
  });

  it('an enqueue that was on its way is accepted once', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    await producer.enqueue('accept', 'first', { delay: '1h' });
    await here.server.kill();
    const enqueued = producer.enqueue('accept', 'second', { delay: '1h' });
    await here.server.restart();
    expect(await enqueued).toMatchObject({ outcome: 'created' });
    expect((await here.world.read('accept')).meta['enqueued']).toBe('2');
  });
});
