import { describe, expect, it } from '@jest/globals';
import { DelayQueueHealth } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';
import { waiting } from '../../helpers/waiting.js';

const here = inAWorld();
const end = endingWithEachTest();

async function farWorker(queue: string, commandTimeout = 5_000) {
  const proxy = end(await Proxy.before(here.world.url));
  const runs: string[] = [];
  const log: string[] = [];
  const { producer } = await here.start({ options: { consume: false } });
  const { app } = await here.start({
    providers: [handlerClass(queue, (_, { id }: DelayedJob) => runs.push(id))],
    options: { connection: proxy.url, commandTimeout },
    log,
  });
  await producer.enqueue(queue, {});
  await eventually(() => expect(runs).toHaveLength(1));
  return { proxy, runs, log, producer, health: app.get(DelayQueueHealth) };
}

describe('A worker whose connection to Redis', () => {
  it('is cut connects anew within moments, again and again, with one warning each time', async () => {
    const { proxy, runs, log, producer } = await farWorker('cut');
    for (let cuts = 1; cuts <= 4; cuts++) {
      proxy.cut();
      await eventually(() => expect(log.filter((line) => /is not reachable/.test(line))).toHaveLength(cuts));
      const { id } = await producer.enqueue('cut', {});
      await eventually(() => expect(runs).toContain(id));
      await eventually(() => expect(log.filter((line) => /is back/.test(line))).toHaveLength(cuts));
    }
    expect(new Set(runs).size).toBe(runs.length);
  });

  it('goes silent while it connects anew replaces both connections, and hears wake-ups again', async () => {
    const { proxy, runs, log, producer } = await farWorker('handshake', 1_500);
    const before = proxy.connections;
    proxy.judge = () => 'swallow';
    proxy.cut();
    await eventually(() => expect(proxy.connections).toBe(before + 2));
    proxy.deafen();
    proxy.judge = () => 'pass';
    await eventually(() => expect(proxy.connections).toBeGreaterThanOrEqual(before + 4));
    await eventually(() => expect(log.join()).toContain('is back'));

    const waited = waiting();
    const { id } = await producer.enqueue('handshake', {}, { delay: 300 });
    await eventually(() => expect(runs).toContain(id));
    expect(waited()).toBeLessThan(300 + 1_500);
  });

  it('goes silent for good without being closed works again within 15 s, and health is down within 10 s', async () => {
    const left = await farWorker('left-alone');
    const watched = await farWorker('watched');
    const before = left.proxy.connections;
    for (const { proxy } of [left, watched]) proxy.deafen();
    const deafAt = performance.now();
    const since = () => performance.now() - deafAt;
    const works = async ({ producer, runs }: typeof left, queue: string) => {
      const { id } = await producer.enqueue(queue, {});
      await eventually(() => expect(runs).toContain(id), 15_000 - since());
    };

    expect((await watched.health.check()).status).toBe('down');
    expect(since()).toBeLessThan(10_000);
    await Promise.all([works(left, 'left-alone'), works(watched, 'watched')]);
    expect((await watched.health.check()).status).toBe('up');
    // Wake-ups come over a connection of their own, which is found dead a little later.
    await eventually(() => expect(left.proxy.connections).toBe(before + 2), 20_000 - since());
    expect(left.runs).toHaveLength(2);
  });
});
