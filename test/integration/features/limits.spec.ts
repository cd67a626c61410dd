import { describe, expect, it, jest } from '@jest/globals';
import { DelayQueueRegistry, defineQueue, InvalidDelayError, InvalidOptionError } from '../../../lib/index.js';
import type { DelayedJob, HandlerOptions } from '../../../lib/index.js';
import { NoAnswerError } from '../../../lib/redis/redis.errors.js';
import { ShardStore } from '../../../lib/redis/shard-store.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
let queues = 0;
const newQueue = () => `limited-${queues++}`;
const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);

/** Two applications, as two processes, whose handlers run until they are told to end. */
async function twoProcesses(queue: string, options: HandlerOptions) {
  const running = new Map<string, { group: string; end: () => void }>();
  const started: string[] = [];
  const handle = (group: string, { id }: DelayedJob) =>
    new Promise<void>((resolve) => {
      started.push(id);
      running.set(id, { group, end: () => (running.delete(id), resolve()) });
    });
  const apps = await Promise.all(
    [1, 2].map(() => here.start({ providers: [handlerClass(queue, handle, options)], options: { drainTimeout: 0 } })),
  );
  const endAll = () => [...running.values()].forEach(({ end }) => end());
  return { ...apps[0]!, running, started, endAll };
}

describe('globalConcurrency', () => {
  it('is what all processes together run, and no more', async () => {
    const queue = newQueue();
    const { producer, inspector, running, started, endAll } = await twoProcesses(queue, { globalConcurrency: 3 });
    await producer.enqueueMany(
      queue,
      numbers(12).map((n) => ({ payload: `${n}` })),
    );
    for (let done = 3; done <= 12; done += 3) {
      await eventually(() => expect(running.size).toBe(3));
      expect(await inspector.counts(queue)).toMatchObject({ running: 3, limited: true, lagMs: 0 });
      expect(started).toHaveLength(done);
      endAll();
    }
  });
});

describe('groups with concurrency 1', () => {
  it('run one job at a time in due order, over all processes, each as soon as the one before has ended', async () => {
    const queue = newQueue();
    const { producer, running, started, endAll } = await twoProcesses(queue, { groups: { concurrency: 1 } });
    const at = (await here.world.now()) - 1_000;
    const jobs = numbers(5).flatMap((n) =>
      ['a', 'b'].map((group) => ({ payload: group, group, id: `${group}${n}`, at: at + n })),
    );
    await producer.enqueueMany(queue, jobs);
    for (let round = 0; round < 5; round++) {
      await eventually(() => expect(started).toHaveLength(2 * (round + 1)));
      expect([...running.values()].map(({ group }) => group).sort()).toEqual(['a', 'b']);
      endAll();
    }
    for (const group of ['a', 'b']) {
      expect(started.filter((id) => id.startsWith(group))).toEqual(numbers(5).map((n) => `${group}${n}`));
    }
  });
});

describe('rateLimit', () => {
  it('lets no more jobs start within its window, and the next one when it opens', async () => {
    const queue = newQueue();
    const starts: number[] = [];
    const handle = (_: unknown, { dueAt, latenessMs }: DelayedJob) => void starts.push(dueAt.getTime() + latenessMs);
    const options = { rateLimit: { max: 3, per: 400 } };
    const { producer } = await here.start({ providers: [handlerClass(queue, handle, options)] });
    await producer.enqueueMany(
      queue,
      numbers(9).map((n) => ({ payload: n })),
    );
    await eventually(() => expect(starts).toHaveLength(9));
    // Claims by the clock of the server: any four in a row are at least a window apart.
    const apart = starts.slice(3).map((at, n) => at - starts[n]!);
    expect(Math.min(...apart)).toBeGreaterThanOrEqual(400);
  });
});

describe('priority', () => {
  it('decides among due jobs, and `priorityStep` how much', async () => {
    const queue = newQueue();
    const { producer } = await here.start({ options: { consume: false } });
    const at = (await here.world.now()) - 60_000;
    await producer.enqueue(queue, 'plain', { at });
    await producer.enqueue(queue, 'urgent', { at: at + 20_000, priority: 9 });
    await producer.enqueue(queue, 'older', { at: at - 100_000 });
    const started: string[] = [];
    const handle = (payload: string) => void started.push(payload);
    await here.start({ providers: [handlerClass(queue, handle, { concurrency: 1, priorityStep: '10s' })] });
    await eventually(() => expect(started).toEqual(['older', 'urgent', 'plain']));
  });
});

describe('a definition', () => {
  it('makes group and priority of its jobs, and a job shows them', async () => {
    const queue = defineQueue<{ tenant: string }>(newQueue(), { group: ({ tenant }) => tenant, priority: 4 });
    const { producer } = await here.start({ options: { consume: false } });
    await producer.enqueue(queue, { tenant: 'acme' }, { id: 'A', delay: '1h', expiresIn: '1h' });
    await producer.enqueue(queue, { tenant: 'acme' }, { id: 'B', delay: '1h', group: 'other', priority: 0 });
    expect(await producer.get(queue, 'A')).toMatchObject({ group: 'acme', priority: 4, payload: { tenant: 'acme' } });
    expect(await producer.get(queue, 'B')).toMatchObject({ group: 'other', payload: { tenant: 'acme' } });
    await producer.update(queue, 'A', { tenant: 'new' });
    expect(await producer.get(queue, 'A')).toMatchObject({ group: 'acme', priority: 4, payload: { tenant: 'new' } });
    expect(await here.world.problems(queue.name)).toEqual([]);
  });
});

describe('limits', () => {
  it('set by an operator hold until they are given back to what applications say', async () => {
    const queue = newQueue();
    const log: string[] = [];
    const boot = (globalConcurrency: number) =>
      here.start({ providers: [handlerClass(queue, () => undefined, { globalConcurrency })], log });
    const { inspector } = await boot(5);
    const stored = (globalConcurrency: number, setBy: string) =>
      eventually(async () => expect(await inspector.limits(queue)).toEqual({ limits: { globalConcurrency }, setBy }));
    await stored(5, 'config');
    await boot(6);
    await stored(6, 'config');
    const change = `Queue "${queue}": its limits were globalConcurrency=5, and are globalConcurrency=6 from now on.`;
    await eventually(() => expect(log.join('\n')).toContain(change));
    await inspector.setLimits(queue, { globalConcurrency: 2 });
    await boot(7);
    await eventually(() => expect(log.join('\n')).toContain('an operator has set its limits to globalConcurrency=2'));
    expect(await inspector.limits(queue)).toEqual({ limits: { globalConcurrency: 2 }, setBy: 'operator', config: { globalConcurrency: 7 } }); // prettier-ignore
    await inspector.setLimits(queue, 'config');
    expect(await inspector.limits(queue)).toEqual({ limits: { globalConcurrency: 7 }, setBy: 'config' });
    await boot(8);
    await stored(8, 'config');
    await inspector.setLimits(queue, 'config');
    expect(await inspector.limits(queue)).toEqual({ limits: { globalConcurrency: 8 }, setBy: 'config' });
  });

  it('of the application that booted last hold again as soon as an operator gives them back, and free what waits', async () => {
    const queue = newQueue();
    const { producer, inspector, running } = await twoProcesses(queue, { globalConcurrency: 3 });
    await eventually(async () => expect((await inspector.limits(queue)).limits).toEqual({ globalConcurrency: 3 }));
    await inspector.setLimits(queue, { globalConcurrency: 1 });
    await inspector.setLimits(queue, { globalConcurrency: 2, priorityStep: '5m' });
    await producer.enqueueMany(
      queue,
      numbers(5).map((n) => ({ payload: `${n}` })),
    );
    await eventually(() => expect(running.size).toBe(2));
    await inspector.setLimits(queue, 'config');
    expect(await inspector.limits(queue)).toEqual({ limits: { globalConcurrency: 3 }, setBy: 'config' });
    await eventually(() => expect(running.size).toBe(3));
  });

  it('of an operator are taken away when they are given back and no application has said any', async () => {
    const queue = newQueue();
    const { inspector } = await here.start({ options: { consume: false } });
    await inspector.setLimits(queue, { globalConcurrency: 1 });
    await inspector.setLimits(queue, 'config');
    expect(await inspector.limits(queue)).toEqual({ limits: undefined, setBy: 'config' });
  });

  it('hold for jobs that were there before, and end with setLimits(queue, undefined)', async () => {
    const queue = newQueue();
    const running = new Set<string>();
    const handle = (_: unknown, { id }: DelayedJob) => (running.add(id), new Promise(() => undefined));
    const { producer, inspector } = await here.start({ options: { consume: false } });
    await producer.enqueueMany(
      queue,
      numbers(8).map((n) => ({ payload: n })),
    );
    await inspector.setLimits(queue, { globalConcurrency: 2 });
    await here.start({ providers: [handlerClass(queue, handle)], options: { drainTimeout: 0 } });
    await eventually(() => expect(running.size).toBe(2));
    await inspector.setLimits(queue, undefined);
    await eventually(() => expect(running.size).toBe(8));
  });

  it('are refused before anything is sent when they make no sense', async () => {
    const { producer, inspector } = await here.start({ options: { consume: false } });
    const bad: [Promise<unknown>, string][] = [
      [producer.enqueue('q', 1, { group: '' }), 'enqueue("q", { group }): is empty'],
      [producer.enqueue('q', 1, { priority: 10 }), 'enqueue("q", { priority }): 10 is not a whole number from 0 to 9'],
      [inspector.setLimits('q', { globalConcurrency: 0 }), 'setLimits("q", { globalConcurrency }): 0 is not'],
      [inspector.setLimits('q', { rateLimit: { max: 1 } as never }), 'needs both `max` and `per`'],
      [inspector.setLimits('q', { rateLimit: { limit: 1 } as never }), 'setLimits("q", { rateLimit }): unknown option "limit".'], // prettier-ignore
      [inspector.setLimits('q', { groups: 5 as never }), 'setLimits("q", { groups }): options must be a plain object'],
    ];
    for (const [call, message] of bad) {
      const error = await call.catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(InvalidOptionError);
      expect((error as Error).message).toContain(message);
    }
    const steps: [number | string, string][] = [
      [-1, '-1 is negative. A duration is 0 or more.'],
      ['25h', '"25h" is too long: at most 86400000 ms.'],
      [NaN, 'NaN is not a duration. Use ms'],
    ];
    for (const [priorityStep, message] of steps) {
      const error = await inspector.setLimits('q', { priorityStep }).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(InvalidDelayError);
      expect((error as Error).message).toContain(`setLimits("q", { priorityStep }): ${message}`);
    }
    expect(await here.world.keys('q')).toEqual([]);
  });
});

describe('groups()', () => {
  it('tells of each group its name and what it has, page by page', async () => {
    const queue = newQueue();
    const { producer, inspector } = await here.start({ options: { consume: false } });
    await producer.enqueue(queue, 0);
    await producer.enqueueMany(queue, [{ payload: 1, group: 'a' }, { payload: 2, group: 'a', delay: '1h' }, { payload: 3, group: 'b', delay: '2h' }]); // prettier-ignore
    const all = (await inspector.groups(queue)).groups;
    expect(all).toEqual([
      { group: 'a', waiting: 2, due: 1, running: 0 },
      { group: 'b', waiting: 1, due: 0, running: 0 },
    ]);
    const first = await inspector.groups(queue, { limit: 1 });
    const second = await inspector.groups(queue, { limit: 1, cursor: first.cursor });
    expect([...first.groups, ...second.groups]).toEqual(all);
    expect(second.cursor).toBeUndefined();
    expect(await inspector.counts(queue)).toMatchObject({
      delayed: 2,
      due: 2,
      groups: { inLine: 1, limited: 0, total: 2 },
    });
  });

  it('names those of which jobs only run', async () => {
    const queue = newQueue();
    const { producer, inspector, running } = await twoProcesses(queue, { groups: { concurrency: 1 } });
    const names = ['a', 'b', 'c'];
    await producer.enqueueMany(queue, names.map((group) => ({ payload: group, group }))); // prettier-ignore
    await eventually(() => expect(running.size).toBe(3));
    await producer.enqueue(queue, 'b', { group: 'b' });
    const found = [];
    let cursor: string | undefined;
    do {
      const page = await inspector.groups(queue, { limit: 1, ...(cursor !== undefined && { cursor }) });
      found.push(...page.groups);
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(found[0]).toMatchObject({ group: 'b', waiting: 1, due: 1, running: 1 });
    const others = found.slice(1).sort((one, other) => one.group!.localeCompare(other.group!));
    expect(others).toEqual(['a', 'c'].map((group) => ({ group, waiting: 0, due: 0, running: 1 })));
  });

  it('leaves those out of which only a window is left', async () => {
    const queue = newQueue();
    const { producer, inspector, running, endAll } = await twoProcesses(queue, {
      groups: { rateLimit: { max: 5, per: '1h' } },
    });
    await producer.enqueueMany(queue, ['a', 'b'].map((group) => ({ payload: group, group }))); // prettier-ignore
    await eventually(() => expect(running.size).toBe(2));
    endAll();
    await eventually(async () => expect(await inspector.counts(queue)).toMatchObject({ running: 0 }));
    await producer.enqueue(queue, 'b', { group: 'b', delay: '1h' });
    expect(await inspector.counts(queue)).toMatchObject({ groups: { total: 2 } });
    expect((await inspector.groups(queue)).groups).toEqual([{ group: 'b', waiting: 1, due: 0, running: 0 }]);
  });
});

it('the limits of a handler that has gone are not set any more when Redis can be reached again', async () => {
  const { app, inspector } = await here.start();
  const registry = app.get(DelayQueueRegistry);
  const [queue, other] = [newQueue(), newQueue()];
  const call = Reflect.get(ShardStore.prototype, 'call') as (this: ShardStore, ...given: unknown[]) => Promise<unknown>;
  const refused = new Set<string>();
  const spy = jest.spyOn(ShardStore.prototype, 'call').mockImplementation(function (this: ShardStore, script, args) {
    if (script !== 'limit' || refused.has(this.queue)) return call.call(this, script, args);
    refused.add(this.queue);
    return Promise.reject(new NoAnswerError('refused'));
  });
  const register = (name: string, globalConcurrency: number) =>
    registry.register(name, () => undefined, { globalConcurrency });
  register(queue, 1);
  await eventually(() => expect(refused.has(queue)).toBe(true));
  await registry.unregister(queue);
  register(queue, 5);
  const holding = async (name: string) => (await inspector.limits(name)).limits;
  await eventually(async () => expect(await holding(queue)).toEqual({ globalConcurrency: 5 }));
  // It was refused later, and is set when it is tried again as long after that: so the first one would have been, too.
  register(other, 2);
  await eventually(() => expect(refused.has(other)).toBe(true));
  await eventually(async () => expect(await holding(other)).toEqual({ globalConcurrency: 2 }));
  expect(await holding(queue)).toEqual({ globalConcurrency: 5 });
  spy.mockRestore();
});
