import { afterEach, describe, expect, it } from '@jest/globals';
import { DelayQueueConsumer, DelayQueueHealth, DiscardJob } from '../../../lib/index.js';
import type { HealthThresholds } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import type { TestApp } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { holding } from '../../helpers/holding.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld({ config: { appendonly: 'yes' } });
// A queue that a test left would be an orphan to the next ones, once nobody has asked it for a while.
afterEach(() => here.world.redis.flushdb());
const HOUR = 3_600_000;
let queues = 0;
const check = ({ app }: TestApp, thresholds?: HealthThresholds) => app.get(DelayQueueHealth).check(thresholds);

/** A worker whose only slot is taken, and a job that has been due for a minute. */
async function lagging() {
  const held = await holding(here, { concurrency: 1 });
  await held.bring('first', 'running');
  await held.producer.enqueue(held.queue, {}, { at: (await here.world.now()) - 60_000 });
  return held;
}

describe('up', () => {
  it('tells how Redis and the queues of this process are', async () => {
    const held = await holding(here);
    await held.bring('r', 'running');
    await held.producer.enqueue(held.queue, {}, { delay: HOUR });
    const result = await check(held);
    expect(result).toMatchObject({ status: 'up', reasons: [], orphans: [] });
    expect(result.redis).toEqual({
      status: 'up',
      latencyMs: expect.any(Number),
      version: expect.stringMatching(/^(valkey )?\d+\.\d+\.\d+$/),
      evictionPolicy: 'noeviction',
    });
    expect(result.queues).toEqual({
      [held.queue]: {
        status: 'up',
        delayed: 1,
        due: 0,
        running: 1,
        dead: 0,
        paused: false,
        lagMs: 0,
        lastClaimMs: expect.any(Number),
        zombies: 0,
      },
    });
  });
});

describe('the lag of a queue', () => {
  it.each<[string, HealthThresholds | undefined, string]>([
    ['degraded above 30 s', undefined, 'degraded'],
    ['up below the threshold that is given', { lag: { degraded: '2m' } }, 'up'],
    ['degraded above the threshold that is given', { lag: { degraded: '10s' } }, 'degraded'],
    ['down only above lag.down', { lag: { down: '50s' } }, 'down'],
    ['degraded below lag.down', { lag: { down: '2m' } }, 'degraded'],
  ])('is %s', async (_, thresholds, status) => {
    const held = await lagging();
    const result = await check(held, thresholds);
    expect(result.status).toBe(status);
    expect(result.queues[held.queue]).toMatchObject({ status, due: 1 });
    expect(result.queues[held.queue]!.lagMs).toBeGreaterThanOrEqual(60_000);
    const reasons = [expect.stringMatching(`Queue "${held.queue}" lags 1 min.* behind\\.`)];
    expect(result.reasons).toEqual(status === 'up' ? [] : reasons);
    expect(result.redis.status).toBe('up');
  });

  it('does not matter while the queue is paused', async () => {
    const held = await lagging();
    await held.inspector.pause(held.queue);
    const result = await check(held, { lag: { down: '1s' } });
    expect(result).toMatchObject({ status: 'up', queues: { [held.queue]: { status: 'up', paused: true } } });
  });

  it('does not matter to a process that does not consume', async () => {
    await lagging();
    const producer = await here.start({ options: { consume: false } });
    expect(await check(producer, { lag: { down: '1s' }, lastClaim: { down: 1 } })).toMatchObject({
      status: 'up',
      orphans: [],
    });
  });
});

describe('the claim loop', () => {
  it('is down when it was not answered for too long', async () => {
    const held = await holding(here);
    await eventually(async () => {
      const result = await check(held, { lastClaim: { down: 5 } });
      expect(result).toMatchObject({ status: 'down', queues: { [held.queue]: { status: 'down' } } });
      expect(result.reasons).toEqual([expect.stringMatching(/The claim loop of queue .* had no answer for \d/)]);
    });
    expect((await check(held)).status).toBe('up');
  });

  it('does not matter while the queue is paused', async () => {
    const held = await holding(here, { lease: 500 });
    await held.inspector.pause(held.queue);
    const limits = { lastClaim: { down: 5 } };
    // Until its next poll the worker does not know; then its loop may be as silent as it likes.
    await eventually(async () => {
      const result = await check(held, limits);
      expect(result.queues[held.queue]!.lastClaimMs).toBeGreaterThan(100);
      expect(result.status).toBe('up');
    });
  });
});

it('a queue that cannot be read is degraded, and the others are reported all the same', async () => {
  const held = await holding(here);
  const other = await here.start({ options: { consume: false } });
  await other.producer.enqueue('broken', {}, { delay: HOUR });
  await here.world.redis.set(here.world.key('broken', 'dead'), 'not ours');
  const result = await check(held);
  expect(result).toMatchObject({
    status: 'degraded',
    redis: { status: 'up' },
    queues: { [held.queue]: { status: 'up' } },
  });
  expect(result.reasons).toEqual([expect.stringMatching(/"broken".*WRONGTYPE/)]);
  await here.world.redis.del(here.world.key('broken', 'dead'));
});

it('a queue of this process that cannot be read has no numbers, so that they do not look like 0', async () => {
  const held = await holding(here);
  await here.world.redis.set(here.world.key(held.queue, 'dead'), 'not ours');
  const { redis, queues } = await check(held);
  expect(redis.status).toBe('up');
  expect(Object.keys(queues[held.queue]!).sort()).toEqual(['lastClaimMs', 'status', 'zombies']);
  expect(queues[held.queue]!.status).toBe('degraded');
  await here.world.redis.del(here.world.key(held.queue, 'dead'));
});

it('more dead letters than the threshold are degraded', async () => {
  const held = await holding(here);
  await held.bring('x', 'dead');
  expect((await check(held)).status).toBe('up');
  expect((await check(held, { dead: 1 })).status).toBe('up');
  expect(await check(held, { dead: 0 })).toMatchObject({
    status: 'degraded',
    reasons: [`Queue "${held.queue}" has 1 dead letters.`],
    queues: { [held.queue]: { status: 'degraded', dead: 1 } },
  });
});

it('handlers that run on after their timeout, one for each slot, are degraded', async () => {
  const held = await holding(here, { concurrency: 1, timeout: 20, backoff: () => HOUR });
  await held.producer.enqueue(held.queue, {});
  await eventually(async () => {
    expect(await check(held)).toMatchObject({ status: 'degraded', queues: { [held.queue]: { zombies: 1 } } });
  });
  held.held[0]!.end();
  await eventually(async () => expect((await check(held)).status).toBe('up'));
});

describe('a queue that is only pulled was not shown, and up whatever lag.down said;', () => {
  const pulled = async () => {
    const queue = `pulled-${queues++}`;
    const app = await here.start();
    const consumer = app.app.get(DelayQueueConsumer);
    const now = await here.world.now();
    await app.producer.enqueueMany(queue, [
      { payload: 1, id: 'held', at: now - 120_000 },
      { payload: 2, id: 'waits', at: now - 60_000 },
    ]);
    const [job] = await consumer.pull(queue);
    return { ...app, queue, consumer, job: job! };
  };

  it.each<[string, HealthThresholds | undefined, string]>([
    ['degraded by its lag', undefined, 'degraded'],
    ['down above lag.down', { lag: { down: '50s' } }, 'down'],
    ['up below what is given', { lag: { degraded: '10m' } }, 'up'],
  ])('is %s', async (_, thresholds, status) => {
    const { queue, job, ...app } = await pulled();
    const result = await check(app, thresholds);
    expect(result).toMatchObject({ status, orphans: [] });
    expect(result.queues).toEqual({
      [queue]: {
        status,
        delayed: 0,
        due: 1,
        running: 1,
        dead: 0,
        paused: false,
        lagMs: expect.any(Number),
        zombies: 0,
      },
    });
    await job.complete();
    expect((await check(app, thresholds)).queues).toMatchObject({ [queue]: { status, running: 0 } });
    await app.inspector.purge(queue);
  });

  it('its loop counts while somebody waits for jobs, and only then', async () => {
    const { queue, consumer, job, ...app } = await pulled();
    await app.inspector.purge(queue);
    const limits = { lastClaim: { down: 5 } };
    expect((await check(app, limits)).status).toBe('up');
    const waiting = consumer.pull(queue, { wait: '20s' });
    await eventually(async () => {
      const result = await check(app, limits);
      expect(result).toMatchObject({ status: 'down', queues: { [queue]: { status: 'down' } } });
      expect(result.reasons).toEqual([expect.stringMatching(/The claim loop of queue .* had no answer for \d/)]);
    });
    await app.producer.enqueue(queue, {});
    const [next] = await waiting;
    expect((await check(app, limits)).status).toBe('up');
    await Promise.all([job, next!].map((one) => one.complete()));
  });

  it('a pull after a long rest is no loop without an answer', async () => {
    const { queue, consumer, job, ...app } = await pulled();
    await app.inspector.purge(queue);
    await job.complete();
    const rests = performance.now();
    await eventually(() => expect(performance.now() - rests).toBeGreaterThan(50));
    await here.world.redis.client('PAUSE', 200, 'ALL'); // what is asked now is not answered yet when health looks
    const since = performance.now();
    const waiting = consumer.pull(queue, { wait: '20s' });
    const looking = check(app);
    const elapsed = performance.now() - since;
    expect((await looking).queues[queue]!.lastClaimMs).toBeLessThanOrEqual(Math.ceil(elapsed));
    await app.producer.enqueue(queue, {});
    await (await waiting)[0]!.complete();
  });
});

describe('orphans', () => {
  it('are queues with due jobs that no live process claims', async () => {
    const { producer, ...rest } = await here.start({ options: { consume: false } });
    await producer.enqueue('orphan', {});
    await producer.enqueue('later', {}, { delay: HOUR });
    await eventually(async () => {
      expect(await check({ producer, ...rest })).toMatchObject({
        status: 'degraded',
        orphans: ['orphan'],
        reasons: [
          'Queue "orphan" has 1 due job and no live process claims them. Start one with its handler, or move or remove them.',
        ],
      });
    });
    await rest.inspector.pause('orphan');
    expect(await check({ producer, ...rest })).toMatchObject({ status: 'up', orphans: [] });
    await rest.inspector.resume('orphan');

    const worker = await here.start({ providers: [handlerClass('orphan', () => Promise.reject(new DiscardJob('x')))] });
    await eventually(async () => expect((await check(worker)).orphans).toEqual([]));
    await worker.inspector.removeDead('orphan', 'all');
  });
});

describe('jobs of a dead worker past their lease, with nobody left to take them back, were no orphans, no lag, and up;', () => {
  /** A job that runs under a lease which is over since then, as a worker leaves it that was killed. */
  const leaveBehind = async (queue: string, producer: TestApp['producer'], overMs: number, seenMs: number) => {
    const { redis } = here.world;
    const key = (name: string) => here.world.key(queue, name);
    await producer.enqueue(queue, {}, { id: 'left' });
    const now = await here.world.now();
    const claim = (now - overMs - 30_000) * 1024;
    await redis.multi().zrem(key('due'), 'left').zadd(key('running'), claim, 'left').exec();
    await redis.zadd(key('leases'), now - overMs, claim);
    await redis.hset(key('meta'), { seenAt: now - seenMs });
    return { graceFor: (ms: number) => redis.hset(key('meta'), { graceUntil: now + ms }) };
  };

  it('the queue is an orphan', async () => {
    const { producer, inspector, ...rest } = await here.start({ options: { consume: false } });
    await leaveBehind('left-behind', producer, 60_000, 60_000);
    const look = () => check({ producer, inspector, ...rest });
    expect(await look()).toMatchObject({
      status: 'degraded',
      orphans: ['left-behind'],
      reasons: [
        expect.stringMatching(
          /^Queue "left-behind" has jobs of a process that is gone: their lease ended 1 min.* ago, and no live process takes them back\.$/,
        ),
      ],
    });
    expect((await inspector.counts('left-behind')).lagMs).toBeGreaterThanOrEqual(60_000);
    await inspector.pause('left-behind');
    expect(await look()).toMatchObject({ status: 'up', orphans: [] });
  });

  it.each<[string, number, number, number]>([
    ['a lease that has only just ended', 2_000, 60_000, 0],
    ['a queue that a live worker has just looked at', 60_000, 1_000, 0],
    ['the time after a jump of the clock, in which nothing is taken back', 60_000, 60_000, 20_000],
  ])('%s is none', async (_, overMs, seenMs, graceMs) => {
    const { producer, inspector, ...rest } = await here.start({ options: { consume: false } });
    const { graceFor } = await leaveBehind('taken-back', producer, overMs, seenMs);
    await graceFor(graceMs);
    expect(await check({ producer, inspector, ...rest })).toMatchObject({ status: 'up', orphans: [] });
  });

  it.each<[HealthThresholds | undefined, string]>([
    [undefined, 'degraded'],
    [{ lag: { degraded: '10m' } }, 'up'],
    [{ lag: { down: '50s' } }, 'down'],
  ])('a queue of this process lags by them: %j is %s', async (thresholds, status) => {
    const { producer, inspector, ...rest } = await here.start();
    const queue = `lags-${queues++}`;
    expect(await rest.app.get(DelayQueueConsumer).pull(queue)).toEqual([]); // and asks for no more
    await leaveBehind(queue, producer, 60_000, 60_000);
    const result = await check({ producer, inspector, ...rest }, thresholds);
    expect(result.queues[queue]).toMatchObject({ status, due: 0, running: 1 });
    expect(result.queues[queue]!.lagMs).toBeGreaterThanOrEqual(60_000);
    const reasons = [expect.stringMatching(`Queue "${queue}" lags 1 min.* behind: .*lease`)];
    expect(result).toMatchObject({ status, orphans: [], reasons: status === 'up' ? [] : reasons });
  });

  it('and not by a lease that a live worker takes back within seconds', async () => {
    const { producer, inspector, ...rest } = await here.start();
    const queue = `lags-${queues++}`;
    await rest.app.get(DelayQueueConsumer).pull(queue);
    await leaveBehind(queue, producer, 2_000, 2_000);
    const result = await check({ producer, inspector, ...rest }, { lag: { down: '1s' } });
    expect(result).toMatchObject({ status: 'up', queues: { [queue]: { lagMs: 0 } } });
  });
});

describe('only the first 200 names of the alphabet were looked at for orphans, without a word;', () => {
  it('all are, in turn, those found stay reported, and each answer says how many it left out', async () => {
    const prefix = `${here.world.prefix}-many`;
    const { producer, inspector, ...app } = await here.start({ options: { consume: false, prefix } });
    const names = Array.from({ length: 1_000 }, (_, n) => `q${String(n).padStart(4, '0')}`);
    await here.world.redis.sadd(`${prefix}:queues`, ...names);
    const orphans = ['q0000', 'q0500', 'q0999'];
    for (const queue of orphans) await producer.enqueue(queue, {});
    const found = new Set<string>();
    const leftOut: number[] = [];
    for (let n = 0; n < 8; n++) {
      const result = await check({ producer, inspector, ...app });
      for (const queue of found) expect(result.orphans).toContain(queue);
      for (const queue of result.orphans!) found.add(queue);
      leftOut.push(result.uncheckedQueues!);
    }
    expect([...found].sort()).toEqual(orphans);
    for (const left of leftOut) {
      expect(left).toBeGreaterThan(0);
      expect(left).toBeLessThan(1_000);
    }
    await inspector.purge('q0500');
    expect((await check({ producer, inspector, ...app })).orphans!.sort()).toEqual(['q0000', 'q0999']);
  });

  it('few are all looked at each time', async () => {
    const app = await here.start({ options: { consume: false } });
    expect(await check(app)).toMatchObject({ uncheckedQueues: 0 });
  });
});

it('a process that shuts down is degraded', async () => {
  const held = await holding(here, {}, { drainTimeout: 60_000 });
  await held.bring('r', 'running');
  const closed = held.close();
  await eventually(async () => {
    expect(await check(held)).toMatchObject({ status: 'degraded', reasons: ['This process is shutting down.'] });
  });
  held.held[0]!.end();
  await closed;
});

describe('thresholds that make no sense', () => {
  it.each<[unknown, string]>([
    [{ lag: { down: 'soon' } }, 'lag.down'],
    [{ lag: '30s' }, 'lag'],
    [{ dead: -1 }, 'dead'],
    [{ memory: { degraded: 80 } }, 'memory.degraded'],
    [{ lagg: {} }, 'lagg'],
    [{ lastClaim: {} }, 'lastClaim.down'],
    [{ lastClaim: { down: '2m', degraded: '1m' } }, 'lastClaim: unknown option "degraded"'],
    [{ memory: { degraded: 0.8, down: 0.9 } }, 'memory: unknown option "down"'],
    ['30s', 'options'],
    [null, 'options'],
  ])('are down and named, never thrown: %j', async (thresholds, name) => {
    const held = await holding(here);
    const result = await check(held, thresholds as HealthThresholds);
    expect(result.status).toBe('down');
    expect(result.reasons).toEqual([expect.stringContaining(name)]);
    expect(result.redis).toMatchObject({ status: 'up', evictionPolicy: 'noeviction' });
  });
});
