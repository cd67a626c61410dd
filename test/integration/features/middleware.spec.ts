import { describe, expect, it } from '@jest/globals';
import { DelayQueueRegistry, fixed, SnoozeJob } from '../../../lib/index.js';
import type { DelayedJob, DelayQueueMiddleware } from '../../../lib/index.js';
import { createApp, handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { oneHandler } from '../../helpers/one-handler.js';
import { World } from '../../helpers/world.js';

const here = inAWorld();

async function ending(middleware: DelayQueueMiddleware[], handle: (payload: unknown) => unknown) {
  const world = await World.open();
  const log: string[] = [];
  const providers = [handlerClass('q', handle, { attempts: 1, middleware })];
  const outer: DelayQueueMiddleware = async (job, next) => {
    log.push(`begin ${job.queue}`);
    try {
      await next();
      log.push('end');
    } catch (error) {
      log.push(`failed: ${(error as Error).message}`);
      throw error;
    }
  };
  const { producer, inspector, close } = await createApp(world, { providers, options: { middleware: [outer] } });
  await producer.enqueue('q', 0, { id: 'x' });
  const state = await eventually(async () => {
    const { running, due } = await inspector.counts('q');
    expect({ running, due }).toEqual({ running: 0, due: 0 });
    const snapshot = await producer.get('q', 'x');
    return snapshot?.deadReason ?? snapshot?.state ?? 'completed';
  });
  await close();
  await world.close();
  return { state, log };
}

describe('middleware', () => {
  it('runs around the handler, that of the module outside that of the handler, and sees its failure', async () => {
    const fail = () => {
      throw new Error('no luck');
    };
    expect(await ending([], () => {})).toEqual({ state: 'completed', log: ['begin q', 'end'] });
    expect(await ending([], fail)).toEqual({ state: 'exhausted', log: ['begin q', 'failed: no luck'] });
  });

  it('has handled a failure that it catches', async () => {
    const forgiving: DelayQueueMiddleware = (_, next) => next().catch(() => {});
    const handle = () => Promise.reject(new Error('no luck'));
    expect(await ending([forgiving], handle)).toEqual({ state: 'completed', log: ['begin q', 'end'] });
  });

  it('may snooze, fail, or do the job itself', async () => {
    let handled = 0;
    const snoozing: DelayQueueMiddleware = () => {
      throw new SnoozeJob('1h');
    };
    expect((await ending([snoozing], () => handled++)).state).toBe('delayed');
    const failing: DelayQueueMiddleware = async (_, next) => {
      await next();
      throw new Error('after all');
    };
    expect((await ending([failing], () => {})).state).toBe('exhausted');
    expect((await ending([() => {}], () => handled++)).state).toBe('completed');
    expect(handled).toBe(0);
  });

  it('leaves a snooze of the handler a snooze', async () => {
    const handle = () => {
      throw new SnoozeJob('1h');
    };
    expect(await ending([], handle)).toEqual({ state: 'delayed', log: ['begin q', 'end'] });
  });

  it('runs around registered functions too, and must be functions', async () => {
    const world = await World.open();
    const seen: string[] = [];
    const middleware: DelayQueueMiddleware[] = [(job, next) => (seen.push(job.id), next())];
    const { app, producer, close } = await createApp(world, { options: { middleware } });
    app.get(DelayQueueRegistry).register('fn', () => {});
    await producer.enqueue('fn', 0, { id: 'x' });
    await eventually(() => expect(seen).toEqual(['x']));
    const wrong = createApp(world, { options: { middleware: ['x'] as never } });
    await expect(wrong).rejects.toMatchObject({ code: 'ERR_DQ_INVALID_OPTION' });
    await close();
    await world.close();
  });
});

describe('next() of a middleware', () => {
  const TWICE = { name: 'MiddlewareError', message: expect.stringMatching(/called next\(\) more than once/) };
  const ways: [string, DelayQueueMiddleware, unknown][] = [
    ['one after the other', async (_, next) => (await next(), next()), TWICE],
    ['both at once', (_, next) => Promise.all([next(), next()]), TWICE],
    ['without waiting', (_, next) => void (next(), next()), TWICE],
    ['and swallows what the second call says', async (_, next) => (await next(), next().catch(() => {})), TWICE],
  ];
  it.each(ways)('called twice ran the handler twice: %s', async (way, middleware, lastError) => {
    let running = 0;
    let most = 0;
    const handle = async () => {
      most = Math.max(most, ++running);
      await new Promise(setImmediate);
      running--;
    };
    const inner = { calls: 0 };
    const counted: DelayQueueMiddleware = (_, next) => (inner.calls++, next());
    const settings = { backoff: fixed('1h'), middleware: [named('doubling', middleware), counted] };
    const { queue, producer, becomes, runs } = await oneHandler(here, handle, settings);
    const { id } = await producer.enqueue(queue, {});
    const { lastError: logged } = await becomes(id, { state: 'delayed', attempts: 1 });
    expect([way, logged]).toMatchObject([way, lastError]);
    expect(logged!.message).toContain(`Middleware "doubling" (1 of 2) of queue "${queue}"`);
    expect([runs.length, inner.calls, most, running]).toEqual([1, 1, 1, 0]);
  });

  it('called again after a failure makes no second attempt of it: both errors are kept, and the backoff decides', async () => {
    const persistent: DelayQueueMiddleware = (_, next) =>
      next()
        .catch(next)
        .catch(() => {});
    const handle = () => Promise.reject(new Error('no luck'));
    const { queue, producer, becomes, runs } = await oneHandler(here, handle, {
      backoff: fixed('1h'),
      middleware: [persistent],
    });
    const { id } = await producer.enqueue(queue, {});
    const { lastError } = await becomes(id, { state: 'delayed', attempts: 1 });
    expect(lastError).toMatchObject({ name: 'MiddlewareError', cause: { message: 'no luck' } });
    expect(runs).toHaveLength(1);
  });

  it('that is not waited for completed the job before its handler had ended', async () => {
    const fails: ((error: Error) => void)[] = [];
    const handle = () => new Promise((_, reject) => fails.push(reject));
    const hasty: DelayQueueMiddleware = (_, next) => void next();
    const hastyToo: DelayQueueMiddleware = async (_, next) => void (await Promise.resolve(), next());
    const { queue, producer, becomes, runs } = await oneHandler(here, handle, {
      backoff: fixed('1h'),
      middleware: [hasty, hastyToo],
    });
    const { id } = await producer.enqueue(queue, {});
    await eventually(() => expect(runs).toHaveLength(1));
    await producer.enqueue(queue, {}, { id: 'later' }); // time for a settlement
    await eventually(() => expect(runs).toHaveLength(2));
    await becomes(id, { state: 'running' });
    for (const fail of fails) fail(new Error('no luck'));
    await becomes(id, { state: 'delayed', attempts: 1, lastError: failure('no luck') });
    await becomes('later', { state: 'delayed', attempts: 1, lastError: failure('no luck') });
  });

  it('that comes just when the middleware ends begins nothing, or what it begins counts', async () => {
    const turns = Array.from({ length: 8 }, (_, n) => String(n));
    const hasty: DelayQueueMiddleware = (job, next) => {
      let wait = Promise.resolve();
      for (let n = 0; n < Number(job.id); n++) wait = wait.then(() => undefined);
      void wait.then(() => void next());
    };
    const began: string[] = [];
    const handle = (_: unknown, job: DelayedJob) => {
      began.push(job.id);
      return new Promise((_resolve, reject) => setImmediate(() => reject(new Error('no luck'))));
    };
    const settings = { backoff: fixed('1h'), middleware: [hasty] };
    const { queue, producer } = await oneHandler(here, handle, settings);
    for (const id of turns) await producer.enqueue(queue, {}, { id });
    const failed = await eventually(async () => {
      const found = await Promise.all(turns.map((id) => producer.get(queue, id)));
      const open = found.filter((job) => job !== undefined);
      for (const job of open) expect(job).toMatchObject({ state: 'delayed', attempts: 1 });
      return open.map(({ id }) => id);
    });
    expect(failed.sort()).toEqual(began.sort());
  });

  it('of a middleware that throws meanwhile: the next attempt began beside the handler', async () => {
    const ends: (() => void)[] = [];
    let running = 0;
    const handle = async () => {
      running++;
      await new Promise<void>((resolve) => ends.push(resolve));
      running--;
    };
    const impatient: DelayQueueMiddleware = (job, next) => {
      if (job.id.startsWith('later')) return; // does these itself
      if (job.attempt > 1) return next();
      void next();
      throw new Error('took too long');
    };
    const settings = { backoff: fixed(0), middleware: [impatient] };
    const { queue, producer, inspector, becomes } = await oneHandler(here, handle, settings);
    const { id } = await producer.enqueue(queue, {});
    await eventually(() => expect(ends).toHaveLength(1));
    // Time for a settlement, and for the attempt after it.
    for (const completed of [1, 2]) {
      await producer.enqueue(queue, {}, { id: `later-${completed}` });
      await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed }));
    }
    await becomes(id, { state: 'running' });
    expect(running).toBe(1);
    ends[0]!();
    await eventually(() => expect(ends).toHaveLength(2));
    ends[1]!();
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 3, retried: 1 }));
  });

  it('that comes when the middleware has ended starts nothing', async () => {
    const log: string[] = [];
    let late!: () => Promise<void>;
    const tooLate: DelayQueueMiddleware = (_, next) => void (late = next);
    const { queue, producer, inspector, runs } = await oneHandler(here, () => {}, { middleware: [tooLate] }, log);
    await producer.enqueue(queue, {});
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 1 }));
    await expect(late()).rejects.toMatchObject({ code: 'ERR_DQ_MIDDLEWARE', queue, middleware: '"tooLate" (1 of 1)' });
    void late(); // nobody waits for it, and the process lives on
    await new Promise(setImmediate);
    expect(runs).toEqual([]);
    expect(log.filter((line) => line.includes('after it had ended'))).toHaveLength(1);
  });

  it('never called completed jobs without a word: it is logged once per queue, by name', async () => {
    const log: string[] = [];
    const deduplicating: DelayQueueMiddleware = () => {};
    const { queue, producer, inspector, runs } = await oneHandler(
      here,
      () => {},
      { middleware: [(_, next) => next(), deduplicating] },
      log,
    );
    await producer.enqueueMany(
      queue,
      [1, 2, 3].map((payload) => ({ payload })),
    );
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 3 }));
    expect(runs).toEqual([]);
    const logged = log.filter((line) => line.includes('without calling next()'));
    expect(logged).toHaveLength(1);
    expect(logged[0]).toContain(`warn Middleware "deduplicating" (2 of 2) of queue "${queue}"`);
  });
});

function named(name: string, middleware: DelayQueueMiddleware): DelayQueueMiddleware {
  return Object.defineProperty(middleware, 'name', { value: name });
}

function failure(message: string): never {
  return expect.objectContaining({ message }) as never;
}
