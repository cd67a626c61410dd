import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { DelayQueueConsumer, DelayQueueHealth, defineQueue } from '../../../lib/index.js';
import { DelayQueueRunner } from '../../../lib/worker/delay-queue.runner.js';
import { createApp, logCollector } from '../../helpers/app.js';
import type { TestApp } from '../../helpers/app.js';
import { beforeCompletion } from '../../helpers/before-completion.js';
import { eventually } from '../../helpers/eventually.js';
import { World } from '../../helpers/world.js';
import { waiting } from '../../helpers/waiting.js';

let world: World;
let test: TestApp;
let consumer: DelayQueueConsumer;

beforeEach(async () => {
  world = await World.open();
  test = await createApp(world, { options: { defaults: { backoff: { type: 'fixed', delay: 60_000 } as never } } });
  consumer = test.app.get(DelayQueueConsumer);
});

afterEach(async () => {
  await test.close();
  await world.close();
});

describe('pull', () => {
  it('claims due jobs only, at most max, and answers at once when there are none', async () => {
    await test.producer.enqueueMany('q', [{ payload: 1 }, { payload: 2 }, { payload: 3 }, { payload: 4, delay: '1h' }]);
    const first = await consumer.pull('q', { max: 2 });
    expect(first.map(({ payload }) => payload)).toEqual([1, 2]);
    const second = await consumer.pull('q', { max: 10 });
    expect(second.map(({ payload }) => payload)).toEqual([3]);
    expect(await consumer.pull('q')).toEqual([]);
    await Promise.all([...first, ...second].map((job) => job.complete()));
    expect(await test.inspector.counts('q')).toMatchObject({ delayed: 1, due: 0, running: 0 });
  });

  it('gives what is due also when that has to be asked for first, and fewer are due than it takes', async () => {
    await test.producer.schedule('q', 'hourly', { every: '1h' }, 1);
    const occurrence = await test.producer.triggerSchedule('q', 'hourly');
    const pulled = await consumer.pull('q', { max: 5 });
    expect(pulled.map(({ id }) => id)).toEqual([occurrence]);
    // The one before still runs: this one is left out, and the call says that there is nothing.
    await test.producer.triggerSchedule('q', 'hourly');
    expect(await consumer.pull('q', { max: 5 })).toEqual([]);
    await pulled[0]!.complete();
    await test.producer.triggerSchedule('q', 'hourly');
    expect(await consumer.take('q', 5)).toEqual([1]);
    const validate = async (value: unknown) => ({ value: value as number });
    const checked = defineQueue('checked', { schema: { '~standard': { version: 1, vendor: 'test', validate } } });
    await test.producer.enqueueMany(checked, [{ payload: 1 }, { payload: 2 }]);
    expect(await consumer.take(checked, 5)).toEqual([1, 2]);
  });

  it('goes by the definition that it is given, also of a queue that was pulled by its name before', async () => {
    const validate = (value: unknown) => ({ value: Number(value) });
    const defined = defineQueue('named', {
      schema: { '~standard': { version: 1, vendor: 'test', validate } },
      attempts: 3,
    });
    expect(await consumer.pull('named')).toEqual([]);
    await test.producer.enqueueMany('named', [{ payload: '7' }, { payload: '8' }, { payload: '9' }]);
    const [job] = await consumer.pull(defined);
    expect(job).toMatchObject({ payload: 7, job: { maxAttempts: 3 } });
    await job!.complete();
    expect(await consumer.take(defined)).toEqual([8]);
    expect(await consumer.take('named')).toEqual(['9']);
  });

  it('settles each way', async () => {
    const ways = ['complete', 'fail', 'retry', 'snooze', 'discard', 'release'];
    await test.producer.enqueueMany(
      'q',
      ways.map((id) => ({ payload: id, id })),
    );
    const jobs = await consumer.pull('q', { max: ways.length });
    const job = Object.fromEntries(jobs.map((claimed) => [claimed.id, claimed]));
    await Promise.all([
      job['complete']!.complete(),
      job['fail']!.fail(new Error('no luck')),
      job['retry']!.retry({ delay: '2m' }),
      job['snooze']!.snooze('3m'),
      job['discard']!.discard('useless'),
      job['release']!.release(),
    ]);
    const found = await Promise.all(ways.map((id) => test.producer.get('q', id)));
    expect(found.map((snapshot) => snapshot && [snapshot.state, snapshot.attempts])).toEqual([
      undefined,
      ['delayed', 1],
      ['delayed', 1],
      ['delayed', 0],
      ['dead', 1],
      ['due', 0],
    ]);
    expect(found[1]?.lastError?.message).toBe('no luck');
    await expect(job['complete']!.complete()).rejects.toMatchObject({ code: 'ERR_DQ_INVALID_OPTION' });
  });

  it('settles a job that was frozen', async () => {
    await test.producer.enqueue('q', 1);
    const [claimed] = await consumer.pull('q');
    Object.freeze(claimed!.job);
    await claimed!.complete();
    expect(await test.inspector.counts('q')).toMatchObject({ due: 0, running: 0 });
  });

  it('waits for a job by wake-up', async () => {
    const pulling = consumer.pull('q', { wait: '30s', max: 5 });
    // It has looked, found nothing, and is known as idle.
    await eventually(async () => expect(Object.keys((await world.read('q')).idle)).toHaveLength(1));
    const waited = waiting();
    await test.producer.enqueue('q', 'hello');
    const [job] = await pulling;
    expect(waited()).toBeLessThan(4_000); // the next unprompted poll would come after five seconds
    expect(job!.payload).toBe('hello');
    await job!.complete();
  });

  it('gives up after wait, and hands back nothing it does not have', async () => {
    expect(await consumer.pull('q', { wait: 50 })).toEqual([]);
    await test.producer.enqueue('q', 1, { id: 'later' });
    expect(await test.producer.get('q', 'later')).toMatchObject({ state: 'due', attempts: 0 });
  });

  it('takes from several queues in their order', async () => {
    await test.producer.enqueueMany('low', [{ payload: 'l1' }, { payload: 'l2' }]);
    await test.producer.enqueueMany('high', [{ payload: 'h1' }, { payload: 'h2' }]);
    const jobs = await consumer.pull(['high', 'low'], { max: 3 });
    expect(jobs.map(({ payload }) => payload)).toEqual(['h1', 'h2', 'l1']);
    expect(await test.inspector.counts('low')).toMatchObject({ due: 1 });
    await Promise.all(jobs.map((job) => job.complete()));
  });

  it('keeps the lease by heartbeats, or lets it run out without autoExtend', async () => {
    await test.producer.enqueueMany('q', [
      { payload: 0, id: 'kept' },
      { payload: 0, id: 'lost' },
    ]);
    const [kept] = await consumer.pull('q', { lease: 1_500 });
    const [[claim, deadline]] = Object.entries((await world.read('q')).leases) as [[string, number]];
    const [lost] = await consumer.pull('q', { lease: 300, autoExtend: false });
    // Another process looks at the queue. What it gets is what lost its lease, because it holds nothing else.
    const other = await createApp(world);
    const [again] = await eventually(async () => {
      const jobs = await other.app.get(DelayQueueConsumer).pull('q', { lease: 300 });
      expect(jobs).toHaveLength(1);
      return jobs;
    });
    expect(again!.id).toBe('lost');
    await expect(lost!.complete()).rejects.toMatchObject({ code: 'ERR_DQ_LEASE_LOST' });
    await again!.complete();
    await eventually(async () => expect((await world.read('q')).leases[claim]).toBeGreaterThan(deadline + 1_500));
    await kept!.complete();
    await other.close();
  });

  it('is charged for a job that was alone, also when the ending of the one before it was still on its way', async () => {
    const charged: unknown[] = [];
    const other = await createApp(world);
    // Whether the ending is still on its way is a matter of microseconds: often enough it is.
    for (let n = 0; n < 32; n++) {
      await test.producer.enqueueMany('q', [
        { payload: 1, id: `first${n}` },
        { payload: 2, id: `second${n}` },
      ]);
      const [first] = await consumer.pull('q');
      const completion = first!.complete();
      for (let turn = 0; turn <= n % 4; turn++) await new Promise(setImmediate); // the step that tells it leaves
      const [second] = await consumer.pull('q');
      await completion;
      // As if this process had died.
      const { leases } = await world.read('q');
      const [[claim, deadline]] = Object.entries(leases) as [[string, number]];
      await world.redis.zadd(world.key('q', 'leases'), (await world.now()) - 1 + (deadline % 1), claim);
      await eventually(async () => {
        const found = await other.app.get(DelayQueueConsumer).pull('q', { lease: 200 + n });
        expect(found).toEqual([]);
        expect((await world.read('q')).running).toEqual({});
      });
      charged.push((await test.producer.get('q', second!.id))!.attempts);
      await second!.complete(); // late, but nobody has started it again
    }
    await other.close();
    expect(charged).toEqual(Array.from({ length: 32 }, () => 1));
  });

  it('hands jobs back at shutdown, uncharged', async () => {
    await test.producer.enqueue('q', 0, { id: 'held' });
    const other = await createApp(world, { options: { drainTimeout: 0 } });
    const [job] = await other.app.get(DelayQueueConsumer).pull('q');
    expect(job!.id).toBe('held');
    await other.close();
    expect(await test.producer.get('q', 'held')).toMatchObject({ state: 'due', attempts: 0 });
  });

  it('that waits ends when the application closes, and a later one is refused', async () => {
    const other = await createApp(world);
    const pulling = other.app.get(DelayQueueConsumer);
    const waiting = [pulling.pull('q', { wait: '10m' }), pulling.pull(['q', 'r'], { wait: '10m', max: 3 })];
    await other.close();
    expect(await Promise.all(waiting)).toEqual([[], []]);
    await expect(pulling.pull('q', { wait: '10m' })).rejects.toMatchObject({ code: 'ERR_DQ_CLOSED' });
    await expect(pulling.take('q')).rejects.toMatchObject({ code: 'ERR_DQ_CLOSED' });
  });

  it('refuses wrong options', async () => {
    const code = 'ERR_DQ_INVALID_OPTION';
    await expect(consumer.pull('q', { max: 0 })).rejects.toMatchObject({ code });
    await expect(consumer.pull([], {})).rejects.toMatchObject({ code });
    await expect(consumer.pull('q', { waits: 1 } as never)).rejects.toMatchObject({ code });
    await expect(consumer.pull('q', { wait: 'soon' })).rejects.toMatchObject({ code: 'ERR_DQ_INVALID_DELAY' });
    await expect(consumer.pull('{q}')).rejects.toMatchObject({ code: 'ERR_DQ_INVALID_QUEUE' });
  });
});

describe('a worker was kept for ever for each lease that anybody ever pulled with;', () => {
  it('only a few of those that nobody needs are, and the others say goodbye', async () => {
    const waiting = consumer.pull('waited', { wait: '20s', lease: 5_000 });
    await test.producer.enqueue('q', 'held', { id: 'held' });
    const [held] = await consumer.pull('q', { lease: 9_999 });
    for (let n = 0; n < 100; n++) {
      await test.producer.enqueue('q', n);
      const [job] = await consumer.pull('q', { lease: 10_000 + n });
      expect(job!.payload).toBe(n);
      await job!.complete();
    }
    // Each has up to three lines of calls; what the producer has is among them.
    const sessions = async () => (await world.keys('q')).filter((name) => name.startsWith('session:')).length;
    await eventually(async () => expect(await sessions()).toBeLessThan(17 * 3 + 5));
    expect(Object.keys((await world.read('q')).idle).length).toBeLessThanOrEqual(17);
    // One whose job is held was not among them, nor one that somebody waits for; and a forgotten one comes back.
    await held!.extend('1m');
    await held!.complete();
    await test.producer.enqueue('waited', 'at last');
    const [last] = await waiting;
    await last!.complete();
    await test.producer.enqueue('q', 'again');
    const [again] = await consumer.pull('q', { lease: 10_000 });
    await again!.complete();
    expect(await test.inspector.counts('q')).toMatchObject({ due: 0, running: 0 });
  });

  it('nor is that of a call for several queues which was refused for one of them', async () => {
    const { pullers } = test.app.get(DelayQueueRunner);
    for (let n = 0; n < 20; n++) {
      const call = consumer.pull([`good-${n}`, '{bad'], { lease: 20_000 + n });
      await expect(call).rejects.toMatchObject({ code: 'ERR_DQ_INVALID_QUEUE' });
    }
    expect(pullers.length).toBeLessThanOrEqual(16);
  });

  it('health still tells the queues whose workers were forgotten', async () => {
    for (let n = 0; n < 20; n++) expect(await consumer.pull(`empty-${n}`)).toEqual([]);
    await test.producer.enqueue('empty-0', 1, { at: Date.now() - 3_600_000 });
    const { status, queues } = await test.app.get(DelayQueueHealth).check({ lag: { down: '1m' } });
    expect(status).toBe('down');
    expect(queues['empty-0']).toMatchObject({ status: 'down', due: 1 });
  });
});

describe('take', () => {
  it('deletes what it gives', async () => {
    await test.producer.enqueueMany('q', [{ payload: 'a' }, { payload: 'b' }, { payload: 'c' }]);
    expect(await consumer.take('q', 2)).toEqual(['a', 'b']);
    expect(await test.inspector.counts('q')).toMatchObject({ due: 1, running: 0 });
    expect(await consumer.take('q', 2)).toEqual(['c']);
    expect(await consumer.take('q')).toEqual([]);
  });

  describe('one lease was lost and the payloads of the completed ones with it', () => {
    /** Somebody else starts these jobs between the claim and its end. */
    const loseLeases = (...ids: string[]) => {
      beforeCompletion(async () => {
        const { running } = await world.read('q');
        for (const id of ids) await world.redis.zadd(world.key('q', 'running'), String(running[id]! + 1), id);
      });
    };
    const items = ['a', 'b', 'c'].map((id) => ({ payload: id, id }));

    it('gives what was completed and names what was not', async () => {
      const log: string[] = [];
      Logger.overrideLogger(logCollector(log));
      await test.producer.enqueueMany('q', items);
      loseLeases('b');
      expect(await consumer.take('q', 3)).toEqual(['a', 'c']);
      expect(Object.keys((await world.read('q')).jobs)).toEqual(['b']);
      expect(log.filter((line) => line.includes('take('))).toEqual([
        'warn take("q"): 1 of 3 jobs lost their lease before they were completed, and will be given again: "b". DelayQueue',
      ]);
    });

    it('gives it also when the logger throws', async () => {
      const broken = (line: string) => {
        if (line.startsWith('take(')) throw new Error('the disk of the log is full');
      };
      Logger.overrideLogger({ ...logCollector([]), warn: broken });
      await test.producer.enqueueMany('q', items);
      loseLeases('b');
      expect(await consumer.take('q', 3)).toEqual(['a', 'c']);
    });

    it('throws when nothing was completed', async () => {
      await test.producer.enqueueMany('q', items.slice(0, 2));
      loseLeases('a', 'b');
      await expect(consumer.take('q', 3)).rejects.toMatchObject({ code: 'ERR_DQ_LEASE_LOST', queue: 'q', id: 'a' });
    });

    afterEach(() => {
      jest.restoreAllMocks();
      Logger.overrideLogger(false);
    });
  });
});
