import { describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { DelayQueueConsumer, fixed, ShardCountError } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import { DelayQueueMetricsModule } from '../../../lib/metrics/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
let queues = 0;
const newQueue = () => `interplay-${queues++}`;
const thrown = (call: Promise<unknown>) => call.then(() => undefined).catch((error: unknown) => error);

describe('a handler', () => {
  it('sees the group and the priority of its job', async () => {
    const queue = newQueue();
    const seen: unknown[] = [];
    const handle = (_: unknown, job: DelayedJob) => void seen.push([job.group, job.priority, job.toJSON()]);
    const { producer } = await here.start({ providers: [handlerClass(queue, handle, { concurrency: 1 })] });
    await producer.enqueue(queue, 1, { group: 'acme', priority: 3 });
    await eventually(() => expect(seen).toHaveLength(1));
    await producer.enqueue(queue, 2);
    await eventually(() => expect(seen).toHaveLength(2));
    expect(seen).toMatchObject([
      ['acme', 3, { group: 'acme', priority: 3 }],
      [undefined, 0, {}],
    ]);
    expect(seen[1]).not.toHaveProperty('2.group');
  });

  it('fails, and with `retries: block` no later job of the group runs before its next attempt', async () => {
    const queue = newQueue();
    const log: string[] = [];
    const handle = (_: unknown, { id, attempt }: DelayedJob) => {
      log.push(`${id} ${attempt}`);
      if (id === 'a1' && attempt < 3) throw new Error('no luck');
    };
    const options = { groups: { concurrency: 1, retries: 'block' }, backoff: fixed(50), attempts: 3 } as const;
    const { producer } = await here.start({ options: { consume: false } });
    const at = (await here.world.now()) - 1_000;
    await producer.enqueueMany(
      queue,
      ['a1', 'a2', 'a3'].map((id, n) => ({ payload: id, id, group: 'a', at: at + n })),
    );
    await here.start({ providers: [handlerClass(queue, handle, options)], log: [] });
    await eventually(() => expect(log).toEqual(['a1 1', 'a1 2', 'a1 3', 'a2 1', 'a3 1']));
  });
});

describe('pull()', () => {
  it.each([{ groups: { concurrency: 1 } }, { globalConcurrency: 1 }])(
    'and take(), with %j, said that nothing was due when a job that had expired had the place of the one behind it',
    async (limits) => {
      const queue = newQueue();
      const { app, producer } = await here.start({ options: { queues: { [queue]: limits }, consume: false }, log: [] });
      const consumer = app.get(DelayQueueConsumer);
      const jobs = ['expired', 'good', 'expired', 'next'].map((payload, n) => {
        const expires = payload === 'expired' ? { expiresIn: 1 } : {};
        return { payload, group: 'a', at: 1_000_000_000_000 + n, ...expires };
      });
      await producer.enqueueMany(queue, jobs);
      expect(await consumer.take(queue, 10)).toEqual(['good']);
      const [pulled] = await consumer.pull(queue, { max: 10 });
      expect(pulled?.payload).toBe('next');
      await pulled!.complete();
    },
  );

  it('gives a job that has started, and was released, before all later jobs of its group where retries block', async () => {
    const queue = newQueue();
    const options = { groups: { concurrency: 1, retries: 'block' }, backoff: fixed(10), attempts: 5 } as const;
    const { app, producer } = await here.start({ options: { queues: { [queue]: options }, consume: false } });
    const consumer = app.get(DelayQueueConsumer);
    const ids = ['J', 'n0', 'n1', 'n2'];
    await producer.enqueueMany(
      queue,
      ids.map((id, n) => ({ payload: id, id, group: 'a', at: 1_000_000_000_000 + n })),
    );
    const next = async () => (await consumer.pull(queue, { wait: '20s' }))[0]!;
    await (await next()).fail(new Error('no luck'));
    for (const end of ['release', 'snooze', 'release'] as const) {
      const job = await next();
      expect(job.id).toBe('J');
      await (end === 'snooze' ? job.snooze(10) : job.release());
    }
    const order: string[] = [];
    for (let n = 0; n < ids.length; n++) {
      const job = await next();
      order.push(job.id);
      await job.complete();
    }
    expect(order).toEqual(ids);
  });

  it('of a queue with limits in the options of the module sets them, and keeps them', async () => {
    const queue = newQueue();
    const queueOptions = { [queue]: { globalConcurrency: 2, rateLimit: { max: 3, per: '1h' } } };
    const { app, producer } = await here.start({ options: { queues: queueOptions } });
    const consumer = app.get(DelayQueueConsumer);
    await producer.enqueueMany(
      queue,
      Array.from({ length: 6 }, (_, n) => ({ payload: n })),
    );
    const first = await consumer.pull(queue, { max: 5 });
    expect(first).toHaveLength(2);
    for (const job of first) await job.complete();
    const second = await consumer.pull(queue, { max: 5 });
    expect(second).toHaveLength(1);
    await second[0]!.complete();
    expect(await consumer.pull(queue, { max: 5 })).toEqual([]);
  });
});

describe('move()', () => {
  it('keeps group and priority: a target without groups becomes a queue with groups, as by enqueue()', async () => {
    const [from, plain, grouped] = [newQueue(), newQueue(), newQueue()];
    const { producer, inspector } = await here.start({ options: { consume: false } });
    await inspector.setLimits(grouped, { groups: { concurrency: 1 } });
    for (const id of ['A', 'B']) await producer.enqueue(from, id, { id, group: 'acme', priority: 2, delay: '1h' });
    expect(await inspector.move(from, ['A', 'B'], plain)).toMatchObject({
      results: [{ outcome: 'moved' }, { outcome: 'moved' }],
    });
    expect(await producer.get(plain, 'A')).toMatchObject({ group: 'acme', priority: 2, payload: 'A' });
    expect((await inspector.groups(plain)).groups).toMatchObject([{ group: 'acme', waiting: 2 }]);
    await producer.reschedule(plain, 'A', { delay: '2h' });
    expect(await inspector.move(plain, ['A'], grouped)).toMatchObject({ results: [{ outcome: 'moved' }] });
    await producer.enqueue(from, 'C', { id: 'C', group: 'acme', priority: 2, delay: '1h' });
    expect(await inspector.move(from, ['C'], grouped)).toMatchObject({ results: [{ outcome: 'moved' }] });
    expect(await producer.get(grouped, 'C')).toMatchObject({ group: 'acme', priority: 2, payload: 'C' });
    expect((await inspector.groups(grouped)).groups).toMatchObject([{ group: 'acme', waiting: 2 }]);
    for (const queue of [from, plain, grouped]) expect(await here.world.problems(queue)).toEqual([]);
  });
});

describe('move() into a queue whose limits come later', () => {
  it.each([
    ['with its group', { group: 'acme' }],
    ['with its priority', { priority: 2 }],
  ])('brings a job %s', async (_, place) => {
    const [from, to] = [newQueue(), newQueue()];
    const settings = { options: { consume: false } };
    const { producer, inspector, app } = await here.start(settings);
    const ids = ['A', 'B', 'C'];
    for (const id of ids) await producer.enqueue(from, id, { id, ...place });
    await inspector.move(from, ids, to);
    await inspector.setLimits(to, { groups: { concurrency: 1 } });
    const held = await app.get(DelayQueueConsumer).pull(to, { max: 10, lease: '1m' });
    expect(held.map(({ job: { group, priority } }) => ({ group, priority }))).toEqual(
      'group' in place ? [{ group: 'acme', priority: 0 }] : ids.map(() => ({ group: undefined, priority: 2 })),
    );
    for (const job of held) await job.complete();
    expect(await here.world.problems(to)).toEqual([]);
  });
});

describe('acts on many jobs', () => {
  it('leave each job in its group, or take it out', async () => {
    const [queue, target] = [newQueue(), newQueue()];
    const { producer, inspector } = await here.start({ options: { consume: false } });
    const groups = async (of: string) => {
      expect(await here.world.problems(of)).toEqual([]);
      const { groups: found } = await inspector.groups(of);
      return found.map(({ group, waiting, due }) => `${group} ${waiting} ${due}`).sort();
    };
    await inspector.setLimits(target, { groups: { concurrency: 1 } });
    const jobs = Array.from({ length: 30 }, (_, n) => ({
      payload: n,
      id: `j${n}`,
      group: `g${n % 3}`,
      priority: n % 2,
      delay: 3_600_000 + n,
    }));
    await producer.enqueueMany(queue, jobs);
    const ids = (from: number, to: number) => jobs.slice(from, to).map(({ id }) => id);
    await inspector.bulk.cancel(queue, { ids: ids(0, 6) });
    await inspector.bulk.reschedule(queue, { ids: ids(6, 18) }, { by: '1h' });
    await inspector.bulk.runNow(queue, { ids: ids(18, 21) });
    expect(await groups(queue)).toEqual(['g0 8 1', 'g1 8 1', 'g2 8 1']);
    await inspector.bulk.move(queue, { ids: ids(21, 30) }, target);
    expect([await groups(queue), await groups(target)]).toEqual([
      ['g0', 'g1', 'g2'].map((group) => `${group} 5 1`),
      ['g0', 'g1', 'g2'].map((group) => `${group} 3 0`),
    ]);
    await inspector.bulk.cancel(queue, { from: 0, to: Date.now() + 86_400_000 });
    expect(await groups(queue)).toEqual([]);
  });
});

describe('metrics', () => {
  it('tell of the groups of a queue, and when it is at its limit; of other queues nothing', async () => {
    const [queue, plain] = [newQueue(), newQueue()];
    const registry = new Registry();
    const { producer, inspector } = await here.start({
      imports: [DelayQueueMetricsModule.forRoot({ registry })],
      options: { consume: false },
    });
    await producer.enqueue(queue, 1, { group: 'a' });
    await producer.enqueue(queue, 2, { group: 'b', delay: '1h' });
    await producer.enqueue(plain, 3);
    await inspector.setLimits(queue, { rateLimit: { max: 1, per: '1h' } });
    await here.world.redis.hset(here.world.key(queue, 'rates'), '', `${await here.world.now()}:1`);
    expect(await registry.metrics()).not.toMatch(new RegExp(`_(limited|groups)\\{[^}]*"${plain}"`));
    const lines = (await registry.metrics())
      .split('\n')
      .filter((line) => line.includes(`queue="${queue}"`) && /_(limited|groups)\{/.test(line));
    expect(lines.map((line) => line.replace(`delay_queue="default",queue="${queue}"`, ''))).toEqual([
      'delay_queue_limited{} 1',
      'delay_queue_groups{,state="inLine"} 1',
      'delay_queue_groups{,state="limited"} 0',
      'delay_queue_groups{,state="total"} 2',
    ]);
  });
});

describe('a queue with shards', () => {
  it('has groups and limits for processes that know its shards; others are refused, and nothing is changed', async () => {
    const split = newQueue();
    const { producer } = await here.start({ options: { consume: false, queues: { [split]: { shards: 2 } } } });
    await producer.enqueue(split, 1, { id: 'A', delay: '1h' });
    const other = await here.start({ options: { consume: false } });
    const calls = [
      () => other.producer.enqueue(split, 3, { group: 'a' }),
      () => other.inspector.setLimits(split, { globalConcurrency: 1 }),
      () => other.inspector.groups(split),
      () => other.inspector.list(split, 'due', { group: 'a' }),
    ];
    for (const call of calls) expect(await thrown(call())).toBeInstanceOf(ShardCountError);
    expect(await producer.get(split, 'A')).toMatchObject({ state: 'delayed' });
    expect((await here.world.read(`${split}:0`)).meta['needs']).toBe('shards:0/2');
  });
});
