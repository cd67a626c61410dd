import { describe, expect, it } from '@jest/globals';
import { DelayQueueRegistry, SnoozeJob } from '../../../lib/index.js';
import type { DelayQueueMiddleware } from '../../../lib/index.js';
import { createApp, handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { World } from '../../helpers/world.js';

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
