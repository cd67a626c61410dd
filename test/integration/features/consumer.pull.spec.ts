import { describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { DelayQueueConsumer, DelayQueueRegistry, fixed } from '../../../lib/index.js';
import type { DelayedJob, HandlerOptions } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { waiting } from '../../helpers/waiting.js';
import { enqueueQuarantined } from '../quarantine/quarantined.js';

const here = inAWorld({});
let queues = 0;

/** A queue with a handler that holds its jobs, in an application that also pulls. */
async function handledAndPulled(handler: HandlerOptions = {}) {
  const queue = `h${queues++}`;
  const runs: { job: DelayedJob; end: () => void }[] = [];
  const hold = (_: unknown, job: DelayedJob) => new Promise<void>((resolve) => runs.push({ job, end: resolve }));
  const app = await here.start({ providers: [handlerClass(queue, hold, handler)], options: { drainTimeout: '10s' } });
  const run = (n: number, withinMs = 10_000) =>
    eventually(() => {
      expect(runs).toHaveLength(n);
      return runs[n - 1]!;
    }, withinMs);
  return { ...app, queue, runs, run, consumer: app.app.get(DelayQueueConsumer) };
}

describe('a handler and a pull() of one process', () => {
  it('shared one place among those who wait: when one was full nobody was woken for the other', async () => {
    const { producer, consumer, queue, run } = await handledAndPulled({ concurrency: 1 });
    await producer.enqueue(queue, {}, { id: 'held' });
    const { end } = await run(1);
    await producer.enqueue(queue, {}, { id: 'pulled' });
    const [pulled] = await consumer.pull(queue, { wait: '5s' });
    expect(pulled!.id).toBe('pulled');
    // The handler is free again and waits; then a pull comes and goes.
    end();
    await eventually(async () => expect(Object.keys((await here.world.read(queue)).idle)).toHaveLength(1));
    expect(await consumer.pull(queue)).toEqual([]);
    await pulled!.complete();
    await eventually(async () => expect((await here.world.read(queue)).running).toEqual({}));
    const waited = waiting();
    await producer.enqueue(queue, {}, { id: 'next' });
    const { end: endNext } = await run(2);
    expect(waited()).toBeLessThan(1_500); // unprompted it would look within five seconds
    endNext();
  });

  it('and the other way round: a pull that waits is woken while the handler is full', async () => {
    const { producer, consumer, queue, run } = await handledAndPulled({ concurrency: 1 });
    const pulling = consumer.pull(queue, { wait: '20s' });
    await eventually(async () => expect(Object.keys((await here.world.read(queue)).idle)).toHaveLength(2));
    const taken = async () => {
      await producer.enqueue(queue, {}, {});
      return producer.enqueue(queue, {}, { id: 'second' });
    };
    await taken();
    const waited = waiting();
    const [job] = await pulling;
    expect(waited()).toBeLessThan(1_500);
    await job!.complete();
    (await run(1)).end();
  });
});

describe('a pulled job whose time is over', () => {
  const pulledWithTimeout = async () => {
    const queue = `t${queues++}`;
    const app = await here.start({ options: { queues: { [queue]: { timeout: 200 } } } });
    const consumer = app.app.get(DelayQueueConsumer);
    await app.producer.enqueue(queue, {}, { id: 'slow', attempts: 2, backoff: fixed('1h') });
    const [job] = await consumer.pull(queue, { wait: '5s' });
    await eventually(() => expect(job!.job.signal.aborted).toBe(true));
    return { ...app, queue, consumer, job: job! };
  };

  it('never answered who completed it', async () => {
    const { job, queue, producer } = await pulledWithTimeout();
    await expect(job.complete()).rejects.toMatchObject({ code: 'ERR_DQ_LEASE_LOST', id: 'slow' });
    await eventually(async () => expect(await producer.get(queue, 'slow')).toMatchObject({ attempts: 1 }));
  });

  it('leaves no slot that claims for nobody', async () => {
    const { producer, consumer, queue, job } = await pulledWithTimeout();
    await producer.enqueueMany(
      queue,
      [{ id: 'first' }, { id: 'second' }].map((one) => ({ payload: {}, ...one })),
    );
    const [first] = await consumer.pull(queue);
    expect(Object.keys((await here.world.read(queue)).running)).toEqual([first!.id]);
    await first!.complete();
    await expect(job.complete()).rejects.toMatchObject({ code: 'ERR_DQ_LEASE_LOST' });
  });
});

it('a pull that was over, of a queue with a job in quarantine, went on stopping the other queues of the process', async () => {
  const { producer, consumer, queue, runs, run } = await handledAndPulled({ concurrency: 50, lease: '1s' });
  const pulled = `p${queues++}`;
  await producer.enqueue(queue, {});
  await run(1);
  await enqueueQuarantined(here.world, producer, pulled, 'S');
  expect(await consumer.pull(pulled)).toEqual([]);
  for (let n = 2; n < 7; n++) {
    await sleep(300);
    await producer.enqueue(queue, {});
    expect((await run(n)).job.latenessMs).toBeLessThan(1_000); // it stopped them for two seconds, then for four
  }
  for (const { end } of runs) end();
});

describe('a pulled job from the quarantine runs alone, so a pull that does not wait', () => {
  const pulledQuarantined = async (max: number) => {
    const { producer, app } = await here.start({ options: { drainTimeout: 0 } });
    const consumer = app.get(DelayQueueConsumer);
    const queue = `u${queues++}`;
    await enqueueQuarantined(here.world, producer, queue, 'S');
    expect(await consumer.pull(queue, { max })).toEqual([]); // This is how its worker learns of the quarantine.
    const waited = waiting();
    const [quarantined] = await consumer.pull(queue, { max });
    return { producer, consumer, queue, quarantined: quarantined!, waitedMs: waited() };
  };

  it('waited for more of them until the command timeout of five seconds', async () => {
    const { quarantined, waitedMs } = await pulledQuarantined(3);
    expect(quarantined.id).toBe('S');
    expect(waitedMs).toBeLessThan(2_500);
    await quarantined.complete();
  });

  it('failed at the same time, after as long, with the words that Redis did not answer', async () => {
    const { producer, consumer, queue, quarantined } = await pulledQuarantined(1);
    const other = `u${queues++}`;
    await producer.enqueueMany(queue, [{ payload: 'due' }]);
    await producer.enqueueMany(other, [{ payload: 'due' }]);
    expect(await consumer.pull(queue)).toEqual([]);
    expect(await consumer.pull(other)).toEqual([]);
    await quarantined.complete();
    expect(await consumer.take(other)).toEqual(['due']);
  });
});

it('a pulled job that is handed back at shutdown never answered who completed it', async () => {
  const queue = `s${queues++}`;
  const app = await here.start({ options: { drainTimeout: 0 } });
  await app.producer.enqueue(queue, {}, { id: 'held' });
  const [job] = await app.app.get(DelayQueueConsumer).pull(queue, { wait: '5s' });
  await app.close();
  await expect(job!.complete()).rejects.toMatchObject({ code: 'ERR_DQ_LEASE_LOST' });
  expect(Object.keys((await here.world.read(queue)).due)).toEqual(['held']);
});

it('a shutdown during unregister() did not wait for the handler', async () => {
  const { producer, queue, run, app, close } = await handledAndPulled();
  await producer.enqueue(queue, {}, { id: 'held' });
  const { job, end } = await run(1);
  const over: string[] = [];
  const leaving = app
    .get(DelayQueueRegistry)
    .unregister(queue)
    .then(() => over.push('unregister'));
  const closing = close().then(() => over.push('close'));
  await sleep(500);
  expect([over, job.signal.aborted]).toEqual([[], false]);
  end();
  await Promise.all([leaving, closing]);
  expect(over).toEqual(['unregister', 'close']);
  expect(await here.world.read(queue)).toMatchObject({ running: {}, due: {}, jobs: {} });
});

describe('calls of pull() that do not wait, on a queue with shards of which each has a job that may start', () => {
  it('waited for five seconds, when one shard had asked once more for the slots that the others left', async () => {
    const queue = `sharded${queues++}`;
    const limits = { shards: 4, groups: { concurrency: 1 } };
    const { app, producer } = await here.start({ options: { queues: { [queue]: limits } } });
    const consumer = app.get(DelayQueueConsumer);
    const jobs = Array.from({ length: 80 }, (_, n) => ({ payload: n, group: `g${n % 4}` }));
    await producer.enqueueMany(queue, jobs);
    const waited = waiting();
    let pulled = 0;
    for (let n = 0; n < 6; n++) {
      const claimed = await consumer.pull(queue, { max: 20 });
      pulled += claimed.length;
      await Promise.all(claimed.map((job) => job.complete()));
    }
    expect(waited()).toBeLessThan(10_000);
    expect(pulled).toBeGreaterThan(6);
  }, 60_000);
});

describe('a queue that does not answer', () => {
  /** Its steps are refused, and none of them says whether there are jobs. */
  const silence = (queue: string) => here.world.redis.set(here.world.key(queue, 'due'), 'no index');

  it('kept the jobs of the queues behind it: those were never asked', async () => {
    const { app, producer } = await here.start();
    const [silent, live] = [`silent${queues++}`, `live${queues++}`];
    await silence(silent);
    await producer.enqueue(live, {}, { id: 'A' });
    const jobs = await app.get(DelayQueueConsumer).pull([silent, live], { max: 2 });
    expect(jobs.map(({ id }) => id)).toEqual(['A']);
    await jobs[0]!.complete();
  });

  it('is named when no other one has a job, as it may have some', async () => {
    const { app } = await here.start({ options: { commandTimeout: '1s' } });
    const [silent, empty] = [`silent${queues++}`, `empty${queues++}`];
    await silence(silent);
    const pulled = app.get(DelayQueueConsumer).pull([silent, empty]);
    await expect(pulled).rejects.toMatchObject({
      code: 'ERR_DQ_UNAVAILABLE',
      message: expect.stringContaining(silent),
    });
  });

  it('is named with the reason, where Redis has refused', async () => {
    const { app } = await here.start({ options: { commandTimeout: '1s' } });
    const silent = `silent${queues++}`;
    await silence(silent);
    const reason = new RegExp(`"${silent}"\\): Redis did not answer: .*WRONGTYPE`);
    await expect(app.get(DelayQueueConsumer).pull(silent)).rejects.toThrow(reason);
  });

  it('of which only a shard is silent kept what the others had given until the wait and the command timeout were over', async () => {
    const queue = `sharded${queues++}`;
    const { app, producer } = await here.start({ options: { queues: { [queue]: { shards: 2 } } } });
    const consumer = app.get(DelayQueueConsumer);
    expect(await consumer.pull(queue)).toEqual([]); // Its shards are known.
    const jobs = Array.from({ length: 40 }, (_, n) => ({ payload: n }));
    await producer.enqueueMany(queue, jobs);
    const silent = here.world.key(`${queue}:1`, 'due');
    const theirs = await here.world.redis.zcard(silent);
    await here.world.redis.del(silent);
    await here.world.redis.set(silent, 'no index');
    const pulled = await consumer.pull(queue, { max: 100, wait: '10m' });
    expect(pulled).toHaveLength(40 - theirs);
    await Promise.all(pulled.map((job) => job.complete()));
  });
});

it('of jobs whose payloads are too large for one answer, a pull() that does not wait gave only the first few', async () => {
  const queue = `large${queues++}`;
  const { app, producer } = await here.start();
  const payload = 'x'.repeat(250_000);
  const ids = ['A', 'B', 'C', 'D', 'E', 'F'];
  await producer.enqueueMany(
    queue,
    ids.map((id) => ({ payload, id })),
  );
  const pulled = await app.get(DelayQueueConsumer).pull(queue, { max: 10 });
  expect(pulled.map(({ id }) => id)).toEqual(ids);
  await Promise.all(pulled.map((job) => job.complete()));
  expect(Object.keys((await here.world.read(queue)).jobs)).toEqual([]);
});

it('of a queue whose first entry is damaged, a pull() that does not wait gave nothing though a job was due', async () => {
  const queue = `damaged${queues++}`;
  const { app, producer } = await here.start({ log: [] });
  await producer.enqueue(queue, 'whole', { id: 'whole' });
  await here.world.redis.zadd(here.world.key(queue, 'due'), 1, 'no record');
  const [pulled] = await app.get(DelayQueueConsumer).pull(queue);
  expect(pulled?.id).toBe('whole');
  await pulled!.complete();
});
