import { afterEach, describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { UnavailableError } from '../../../lib/index.js';
import type { DelayQueueProducer } from '../../../lib/index.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';
import { waiting } from '../../helpers/waiting.js';

const here = inAWorld({});
const end = endingWithEachTest();
const DEADLINE_MS = 1_000;
afterEach(async () => {
  await here.server.kill();
  await here.server.restart();
});

async function farProducer() {
  const proxy = end(await Proxy.before(here.world.url));
  const log: string[] = [];
  const { producer } = await here.start({
    options: { consume: false, connection: proxy.url, commandTimeout: DEADLINE_MS },
    log,
  });
  await producer.enqueue('mail', 'warm-up', { delay: '1h' });
  const goneIsKnown = async () => {
    await here.server.kill();
    await eventually(() => expect(log.join()).toContain('not reachable'));
  };
  return { proxy, producer, goneIsKnown };
}

/** Many calls at once, and how long it was waited until the last one had failed. */
async function failures(producer: DelayQueueProducer, count: number) {
  const waited = waiting();
  const all = await Promise.allSettled(
    Array.from({ length: count }, (_, n) => producer.enqueue('mail', n, { id: `job${n}`, delay: '1h' })),
  );
  const errors = all.map((result) => (result.status === 'rejected' ? (result.reason as UnavailableError) : undefined));
  return { errors, ms: waited() };
}

describe('When Redis is gone', () => {
  it('an enqueue fails within its deadline; it was not sent, so it is not accepted, now or later', async () => {
    const { producer, goneIsKnown } = await farProducer();
    await goneIsKnown();
    const { errors, ms } = await failures(producer, 500);
    expect(ms).toBeLessThan(DEADLINE_MS + 1_500);
    for (const [n, error] of errors.entries()) {
      expect(error).toBeInstanceOf(UnavailableError);
      expect(error).toMatchObject({ code: 'ERR_DQ_UNAVAILABLE', retryable: true, maybeAccepted: false, id: `job${n}` });
    }
    await here.server.restart();
    await eventually(() => producer.enqueue('mail', {}, { id: 'after', delay: '1h' }));
    expect(Object.keys((await here.world.read('mail')).jobs)).toEqual(['after']);
  });

  it('and comes back, no job appears of which it was said that it was not sent', async () => {
    const proxy = end(await Proxy.before(here.world.url));
    proxy.judge = () => 'cut';
    const { producer } = await here.start({
      options: { consume: false, connection: proxy.url, connect: 'lazy', commandTimeout: 6_000 },
    });
    const enqueue = (id: string) => producer.enqueue('told', {}, { id }).catch((error: UnavailableError) => error);
    const early = enqueue('early');
    // A connection that broke before it was ready is made anew after up to 2.5 s: the late one has more time than that when the early one fails.
    await sleep(4_000);
    const late = enqueue('late');
    // Redis comes back, and falls silent at the first thing that a producer asks it before it enqueues.
    let silent = false;
    proxy.judge = (direction, chunk) => {
      if (direction === 'request' && chunk.includes('return 1')) silent = true;
      return silent ? 'swallow' : 'pass';
    };
    const refused = (await early) as UnavailableError;
    expect(refused).toMatchObject({ code: 'ERR_DQ_UNAVAILABLE', id: 'early' });
    // The late one is still in time: whatever travels with it is sent now.
    proxy.judge = () => 'pass';
    proxy.cut();
    expect(await late).toMatchObject({ outcome: 'created' });
    const wasAccepted = 'early' in (await here.world.read('told')).jobs;
    expect([refused.maybeAccepted, wasAccepted]).not.toEqual([false, true]);
  });

  it('and its call was on its way, the error says that it may have been accepted', async () => {
    const { proxy, producer } = await farProducer();
    proxy.judge = (direction) => (direction === 'reply' ? 'swallow' : 'pass');
    const { errors, ms } = await failures(producer, 20);
    expect(ms).toBeLessThan(DEADLINE_MS + 1_500);
    for (const [n, error] of errors.entries()) {
      expect(error).toMatchObject({ code: 'ERR_DQ_UNAVAILABLE', maybeAccepted: true, id: `job${n}` });
    }
    proxy.judge = () => 'pass';
    const again = errors.map((error, n) => producer.enqueue('mail', n, { id: error!.id!, delay: '1h' }));
    // They get the answers of the first calls.
    for (const { outcome } of await Promise.all(again)) expect(outcome).toBe('created');
  });

  it('waiting calls share what they wait with', async () => {
    const { producer, goneIsKnown } = await farProducer();
    await goneIsKnown();
    const timers = () => process.getActiveResourcesInfo().filter((type) => type === 'Timeout').length;
    const before = timers();
    const calls: Promise<unknown>[] = [];
    for (let n = 0; n < 100; n++) {
      calls.push(producer.enqueue('mail', n).catch(() => undefined));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(timers() - before).toBeLessThan(10);
    await Promise.all(calls);
  });

  it('every other call fails within the deadline too', async () => {
    const { producer, goneIsKnown } = await farProducer();
    await goneIsKnown();
    const waited = waiting();
    const calls = [
      producer.cancel('mail', 'a'),
      producer.reschedule('mail', 'a', { delay: 1 }),
      producer.runNow('mail', 'a'),
      producer.get('mail', 'a'),
      producer.enqueueMany('mail', [{ payload: 1 }]),
    ];
    for (const result of await Promise.allSettled(calls)) {
      expect(result).toMatchObject({ status: 'rejected', reason: { retryable: true } });
    }
    expect(waited()).toBeLessThan(DEADLINE_MS + 1_500);
  });
});
