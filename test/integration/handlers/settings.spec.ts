import { describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineQueue, DelayQueueModule, fixed, OnDelayed } from '../../../lib/index.js';
import type { DelayedJob, QueueDefaults, QueueDefinition } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
let queues = 0;

/** Everything that a layer can say, recognizable by one number. */
const saying = (n: number) => ({ attempts: n, backoff: fixed(`${n}h`) });
const sayingAll = (n: number) => ({ ...saying(n), lease: `${n}h` });

describe('of several that say something, the one who counts is', () => {
  const LAYERS = ['defaults', 'definition', '@OnDelayed', 'queues[name]', 'the job'] as const;

  it.each([...LAYERS.keys(), -1].map((top) => [LAYERS[top] ?? 'the library', top] as const))('%s', async (_, top) => {
    const name = `layers-${queues++}`;
    const has = (layer: (typeof LAYERS)[number]) => LAYERS.indexOf(layer) <= top;
    const definition = defineQueue(name, has('definition') ? sayingAll(3) : {});
    let leaseHours = NaN;
    class Handlers {
      @OnDelayed(definition, has('@OnDelayed') ? sayingAll(4) : {})
      async run(): Promise<void> {
        const [deadline] = Object.values((await here.world.read(name)).leases);
        leaseHours = (deadline! - (await here.world.now())) / 3_600_000;
        throw new Error('no');
      }
    }
    const { producer } = await here.start({
      providers: [Handlers],
      options: {
        defaults: has('defaults') ? sayingAll(2) : {},
        queues: { [name]: has('queues[name]') ? sayingAll(5) : {} },
      },
    });
    await producer.enqueue(name, {}, { id: 'a', ...(has('the job') ? saying(6) : {}) });
    const job = await eventually(async () => {
      const snapshot = await producer.get(name, 'a');
      expect(snapshot).toMatchObject({ state: 'delayed', attempts: 1 });
      return snapshot!;
    });
    const n = top + 2;
    expect(job.maxAttempts).toBe(top < 0 ? 10 : n);
    const hours = (job.dueAt.getTime() - (await here.world.now())) / 3_600_000;
    expect(hours).toBeCloseTo(top < 0 ? 0 : n, 1);
    expect(leaseHours).toBeCloseTo(top < 0 ? 30 / 3_600 : Math.min(n, 5), 1);
  });

  it.each<[string, QueueDefaults, QueueDefaults, QueueDefaults, object, number]>([
    ['the job, of its own delay', { delay: '2h' }, { delay: '3h' }, { delay: '4h' }, { delay: '5h' }, 5],
    ['the job, also when it says now', { delay: '2h' }, { delay: '3h' }, { delay: '4h' }, { delay: 0 }, 0],
    ['queues[name], of the delay', { delay: '2h' }, { delay: '3h' }, { delay: '4h' }, {}, 4],
    ['the definition, of the delay', { delay: '2h' }, { delay: '3h' }, {}, {}, 3],
    ['defaults, of the delay', { delay: '2h' }, {}, {}, {}, 2],
    ['the library, of the delay', {}, {}, {}, {}, 0],
  ])('%s', async (_, defaults, definition, fixedByQueue, job, hours) => {
    const name = `delays-${queues++}`;
    const { producer } = await here.start({ options: { consume: false, defaults, queues: { [name]: fixedByQueue } } });
    const { dueAt } = await producer.enqueue(defineQueue(name, definition), {}, job);
    expect((dueAt.getTime() - (await here.world.now())) / 3_600_000).toBeCloseTo(hours, 1);
  });

  it('a definition given to forFeature(), also for a handler and a job that name the queue as text', async () => {
    const definition: QueueDefinition = defineQueue('by-feature', { attempts: 7 });
    let seen: DelayedJob | undefined;
    const { producer } = await here.start({
      imports: [DelayQueueModule.forFeature([definition])],
      providers: [handlerClass('by-feature', (_, job) => void (seen = job))],
    });
    await producer.enqueue('by-feature', {});
    await eventually(() => expect(seen?.maxAttempts).toBe(7));
  });

  it('the timeout of the job, over the one of its queue', async () => {
    const { producer, inspector } = await here.start({
      providers: [handlerClass('timeouts', () => sleep(60), { timeout: 10, attempts: 1 })],
    });
    await producer.enqueue('timeouts', {}, { timeout: '1m' });
    await producer.enqueue('timeouts', {});
    await eventually(async () => {
      expect(await inspector.totals('timeouts')).toMatchObject({ completed: 1, dead: 1 });
    });
  });
});

describe('concurrency', () => {
  /** Counts how many handlers run at the same time; the first ones go on when so many do. */
  function meter(wanted: number) {
    const at = { now: 0, most: 0, done: 0 };
    let reached!: () => void;
    const full = new Promise<void>((resolve) => (reached = resolve));
    const handle = async () => {
      at.most = Math.max(at.most, ++at.now);
      if (at.now === wanted) reached();
      await full;
      await sleep(2);
      at.now--;
      at.done++;
    };
    return { at, handle };
  }

  it.each([1, 2, 7, 40])(
    '%i is reached and never exceeded',
    async (concurrency) => {
      const queue = `concurrency-${concurrency}`;
      const jobs = concurrency * 20;
      const { at, handle } = meter(concurrency);
      const { producer, inspector } = await here.start({ providers: [handlerClass(queue, handle, { concurrency })] });
      await inspector.pause(queue);
      await producer.enqueueMany(
        queue,
        Array.from({ length: jobs }, (_, n) => ({ payload: n })),
      );
      await inspector.resume(queue);
      await eventually(() => expect(at.done).toBe(jobs), 15_000);
      expect(at.most).toBe(concurrency);
    },
    20_000,
  );

  it('1 runs jobs one after another in their order, retries among them', async () => {
    const order: number[] = [];
    const handle = async (n: number, { attempt }: DelayedJob) => {
      order.push(n);
      await sleep(1);
      if (n === 3 && attempt === 1) throw new Error('once');
    };
    const { producer } = await here.start({
      providers: [handlerClass('one', handle, { concurrency: 1, backoff: fixed(0) })],
    });
    await producer.enqueueMany(
      'one',
      Array.from({ length: 10 }, (_, n) => ({ payload: n })),
    );
    await eventually(() => expect(order).toHaveLength(11));
    expect(order.filter((n, index) => n !== 3 || index === order.indexOf(3))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  it('is counted per queue', async () => {
    const slow = meter(1);
    const held: (() => void)[] = [];
    const hold = () => new Promise<void>((resolve) => held.push(resolve));
    const { producer } = await here.start({
      providers: [
        handlerClass('held', hold, { concurrency: 2 }),
        handlerClass('beside', slow.handle, { concurrency: 1 }),
      ],
    });
    const payloads = Array.from({ length: 4 }, (_, n) => ({ payload: n }));
    await producer.enqueueMany('held', payloads);
    await eventually(() => expect(held).toHaveLength(2));
    await producer.enqueueMany('beside', payloads);
    await eventually(() => expect(slow.at.done).toBe(4));
    expect(held).toHaveLength(2);
    held.splice(0).forEach((release) => release());
    await eventually(() => expect(held).toHaveLength(2));
    held.splice(0).forEach((release) => release());
  });
});
