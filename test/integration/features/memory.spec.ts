import 'reflect-metadata';
import { afterEach, describe, expect, it } from '@jest/globals';
import { DelayQueueHealth, DelayQueueModule } from '../../../lib/index.js';
import type { DelayedJob, DelayQueueRootOptions } from '../../../lib/index.js';
import { createApp, handlerClass } from '../../helpers/app.js';
import type { TestApp } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import type { World } from '../../helpers/world.js';

// No world of this spec's own: there is no Redis anywhere in it.
const NOWHERE = { connection: 'memory://', prefix: 'dq' } as World;

describe("connection: 'memory://'", () => {
  const open: TestApp[] = [];
  const start = async (
    options: DelayQueueRootOptions = {},
    settings: { providers?: any[]; imports?: any[]; log?: string[] } = {},
  ) => {
    const app = await createApp(NOWHERE, { options, ...settings });
    open.push(app);
    return app;
  };
  afterEach(async () => {
    await Promise.all(open.splice(0).map((app) => app.close()));
  });

  it('runs delayed jobs, retries and dead letters in one process', async () => {
    const runs: [unknown, number][] = [];
    const Handlers = handlerClass(
      'q',
      (payload: { name: string }, job: DelayedJob) => {
        runs.push([payload, job.attempt]);
        if (payload.name === 'fails') throw new Error('told to');
      },
      { attempts: 2, backoff: () => 1 },
    );
    const { producer, inspector } = await start({}, { providers: [Handlers] });
    await producer.enqueue('q', { name: 'Jürgen 日本' }, { delay: 30 });
    await producer.enqueue('q', { name: 'fails' }, { id: 'F' });
    await eventually(() => expect(runs).toHaveLength(3));
    expect(runs).toContainEqual([{ name: 'Jürgen 日本' }, 1]);
    await eventually(async () => expect(await inspector.counts('q')).toMatchObject({ due: 0, running: 0, dead: 1 }));
    expect((await inspector.list('q', 'dead')).jobs).toMatchObject([
      { id: 'F', deadReason: 'exhausted', attempts: 2, lastError: { message: 'told to' } },
    ]);
    expect(await inspector.totals('q')).toMatchObject({ enqueued: 2, completed: 1, retried: 1, dead: 1 });
    expect(await inspector.queues()).toEqual(['q']);
  });

  it('changes the number of shards of a queue', async () => {
    const connection = 'memory://resharded';
    const { producer, inspector } = await start({ connection, queues: { q: { shards: 2 } } });
    const ids = Array.from({ length: 30 }, (_, n) => `j${n}`);
    await producer.enqueueMany(
      'q',
      ids.map((id) => ({ payload: id, id, delay: '1h' })),
    );
    expect(await inspector.reshard('q', { from: 2, to: 5 })).toMatchObject({
      from: 2,
      to: 5,
      moved: expect.any(Number),
    });
    const runs: string[] = [];
    const Handlers = handlerClass('q', (id: string) => void runs.push(id));
    const next = await start({ connection, queues: { q: { shards: 5 } } }, { providers: [Handlers] });
    await Promise.all(ids.map((id) => next.producer.runNow('q', id)));
    await eventually(() => expect([...runs].sort()).toEqual([...ids].sort()));
  });

  it('sleeps until a job is due, and a wake-up shortens the sleep', async () => {
    const ran: string[] = [];
    const { producer } = await start({}, { providers: [handlerClass('q', (name) => ran.push(name as string))] });
    await producer.enqueue('q', 'late', { delay: '1h' });
    const waits: number[] = [];
    for (const name of ['first', 'second', 'third']) {
      const since = performance.now();
      await producer.enqueue('q', name);
      await eventually(() => expect(ran).toContain(name));
      waits.push(performance.now() - since);
    }
    expect(ran).toEqual(['first', 'second', 'third']);
    // Without a wake-up it takes until the next poll, 5 s after the last one. Only the first may be met by a worker that starts.
    const [, median] = waits.sort((a, b) => a - b);
    expect(median).toBeLessThan(2_500);
  });

  it('says once that jobs do not survive the process, and nothing of persistence', async () => {
    const log: string[] = [];
    await start({}, { log });
    expect(log.filter((line) => line.includes('memory://'))).toEqual([
      expect.stringMatching(/^log memory:\/\/ keeps jobs in this process only: they do not survive it\./),
    ]);
    expect(log.filter((line) => line.startsWith('warn'))).toEqual([]);
  });

  it('says so of a named instance under its name', async () => {
    const log: string[] = [];
    const eu = DelayQueueModule.forRoot({ name: 'eu', connection: 'memory://' });
    await start({ connect: 'lazy' }, { log, imports: [eu] });
    const lines = log.filter((line) => line.includes('memory:// keeps'));
    expect(lines).toContainEqual(expect.stringMatching(/ DelayQueue:eu$/));
  });

  it('takes `durability` for reached at once, and says so', async () => {
    const log: string[] = [];
    const { producer } = await start({ durability: 'fsync' }, { log });
    expect(await producer.enqueue('q', 1)).toMatchObject({ outcome: 'created', durability: { fsync: true } });
    expect(log.filter((line) => line.startsWith('warn'))).toEqual([
      'warn memory:// has no copies and no disk: `durability` counts as reached at once. DelayQueue',
    ]);
  });

  it('passes the strict start-up checks and is up', async () => {
    const { app } = await start({ startupChecks: 'strict' }, { providers: [handlerClass('q', () => undefined)] });
    expect(await app.get(DelayQueueHealth).check()).toMatchObject({
      status: 'up',
      redis: { status: 'up', evictionPolicy: 'noeviction' },
    });
  });

  it('is of one application, unless it has a name', async () => {
    const [one, other] = [await start(), await start()];
    await one.producer.enqueue('q', 1, { id: 'A' });
    expect(await other.producer.get('q', 'A')).toBeUndefined();

    const connection = 'memory://shared-by-two';
    const [first, second] = [await start({ connection }), await start({ connection })];
    await first.producer.enqueue('q', 1, { id: 'A' });
    expect(await second.producer.get('q', 'A')).toMatchObject({ state: 'due', payload: 1 });
  });

  it('with a name outlives an application, as a Redis does', async () => {
    const connection = 'memory://restarted';
    const before = await start({ connection });
    await before.producer.enqueue('q', 'kept', { delay: 20 });
    await open.pop()!.close();
    const ran: unknown[] = [];
    await start({ connection }, { providers: [handlerClass('q', (payload) => ran.push(payload))] });
    await eventually(() => expect(ran).toEqual(['kept']));
  });

  it('lets two processes of one application, so to speak, share the jobs', async () => {
    const connection = 'memory://two-workers';
    const ran: string[] = [];
    const worker = (name: string) =>
      handlerClass('q', (n) => void ran.push(`${name}${n as number}`), { concurrency: 1 });
    const { producer } = await start({ connection }, { providers: [worker('a')] });
    await start({ connection }, { providers: [worker('b')] });
    await producer.enqueueMany(
      'q',
      Array.from({ length: 50 }, (_, n) => ({ payload: n })),
    );
    await eventually(() => expect(ran).toHaveLength(50));
    expect(new Set(ran.map((text) => text.slice(1))).size).toBe(50);
  });
});
