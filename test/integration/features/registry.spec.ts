import { describe, expect, it } from '@jest/globals';
import { defer, EMPTY, throwError } from 'rxjs';
import { DelayQueueRegistry, InvalidOptionError, SnoozeJob } from '../../../lib/index.js';
import { createApp, handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { World } from '../../helpers/world.js';

describe('DelayQueueRegistry', () => {
  it('works on a queue from register() to unregister(), which waits for the handlers that run', async () => {
    const world = await World.open();
    const { app, producer, inspector, close } = await createApp(world);
    const registry = app.get(DelayQueueRegistry);
    const ended: string[] = [];
    let release = () => {};
    const gate = new Promise<void>((resolve) => (release = resolve));

    await producer.enqueue('late', 'a');
    expect(registry.queues()).toEqual([]);
    registry.register('late', async (payload) => {
      await gate;
      ended.push(payload as string);
    });
    expect(registry.queues()).toEqual(['late']);
    await eventually(async () => expect(await inspector.counts('late')).toMatchObject({ running: 1 }));

    const unregistered = registry.unregister('late').then((had) => ended.push(`unregistered ${had}`));
    await producer.enqueue('late', 'b');
    release();
    await unregistered;
    expect(ended).toEqual(['a', 'unregistered true']);
    expect(await inspector.counts('late')).toMatchObject({ running: 0, due: 1 });
    expect(await registry.unregister('late')).toBe(false);

    registry.register('late', (payload) => void ended.push(payload as string));
    await eventually(() => expect(ended).toContain('b'));
    await close();
    await world.close();
  });

  it('gives functions retries, snoozes and options like decorated handlers', async () => {
    const world = await World.open();
    const { app, producer, inspector, close } = await createApp(world);
    const seen: string[] = [];
    app.get(DelayQueueRegistry).register(
      'fn',
      (payload, job) => {
        seen.push(`${String(payload)} ${job.attempt} ${job.snoozes}`);
        if (payload === 'snooze' && job.snoozes === 0) throw new SnoozeJob(0);
        if (payload === 'fail') throw new Error('asked to');
      },
      { attempts: 2, backoff: () => 0 },
    );
    await producer.enqueueMany('fn', [{ payload: 'snooze' }, { payload: 'fail' }]);
    await eventually(async () => expect(await inspector.counts('fn')).toMatchObject({ dead: 1, due: 0, running: 0 }));
    expect(seen.sort()).toEqual(['fail 1 0', 'fail 2 0', 'snooze 1 0', 'snooze 1 1']);
    await close();
    await world.close();
  });

  it('subscribes to the Observable that a function returns, and its error fails the attempt', async () => {
    const world = await World.open();
    const { app, producer, inspector, close } = await createApp(world);
    const seen: unknown[] = [];
    const sending = (payload: unknown) =>
      defer(() => {
        seen.push(payload);
        return payload === 'fail' ? throwError(() => new Error('asked to')) : EMPTY;
      });
    app.get(DelayQueueRegistry).register('sent', sending, { attempts: 1 });
    await producer.enqueueMany('sent', [{ payload: 'one' }, { payload: 'fail' }]);
    await eventually(async () => expect(await inspector.totals('sent')).toMatchObject({ completed: 1, dead: 1 }));
    expect(new Set(seen)).toEqual(new Set(['one', 'fail']));
    await close();
    await world.close();
  });

  it('refuses a function for another instance than its own', async () => {
    const world = await World.open();
    const { app, close } = await createApp(world);
    const registry = app.get(DelayQueueRegistry);
    const options = { instance: 'audit' } as object;
    expect(() => registry.register('other', () => {}, options)).toThrow(InvalidOptionError);
    expect(() => registry.register('other', () => {}, options)).toThrow('register("other"), instance: ');
    expect(registry.queues()).toEqual([]);
    await close();
    await world.close();
  });

  it('changes the concurrency of a queue that it works on', async () => {
    const world = await World.open();
    let running = 0;
    let release = () => {};
    const gate = new Promise<void>((resolve) => (release = resolve));
    const handle = async () => {
      running++;
      await gate;
    };
    const providers = [handlerClass('wide', handle, { concurrency: 1 })];
    const { app, producer, close } = await createApp(world, { providers });
    await producer.enqueueMany(
      'wide',
      Array.from({ length: 5 }, () => ({ payload: 0 })),
    );
    await eventually(() => expect(running).toBe(1));
    app.get(DelayQueueRegistry).setConcurrency('wide', 3);
    await eventually(() => expect(running).toBe(3));
    expect(() => app.get(DelayQueueRegistry).setConcurrency('wide', 0)).toThrow('whole number from 1 to 10000');
    expect(() => app.get(DelayQueueRegistry).setConcurrency('other', 1)).toThrow('does not work on');
    release();
    await eventually(() => expect(running).toBe(5));
    await close();
    await world.close();
  });

  it('refuses a second handler, a queue that is not consumed here, and wrong options', async () => {
    const world = await World.open();
    const options = { consume: ['a', 'b'] };
    const { app, close } = await createApp(world, { providers: [handlerClass('a', () => {})], options });
    const registry = app.get(DelayQueueRegistry);
    const code = (register: () => void) => {
      try {
        register();
        return undefined;
      } catch (error) {
        return (error as { code: string }).code;
      }
    };
    expect(code(() => registry.register('a', () => {}))).toBe('ERR_DQ_DUPLICATE_HANDLER');
    expect(code(() => registry.register('c', () => {}))).toBe('ERR_DQ_INVALID_OPTION');
    expect(code(() => registry.register('b', () => {}, { concurrency: 0 }))).toBe('ERR_DQ_INVALID_OPTION');
    for (const repeat of [{}, { every: '1h', cron: '0 6 * * *' }, { every: '1h', payloat: {} }]) {
      expect(code(() => registry.register('b', () => {}, { repeat: repeat as never }))).toBe('ERR_DQ_INVALID_OPTION');
    }
    expect(code(() => registry.register('b', () => {}, { repeat: { every: 'soon' as never } }))).toMatch(/^ERR_DQ_/);
    expect(code(() => registry.register('b', undefined as never))).toBe('ERR_DQ_INVALID_HANDLER');
    expect(registry.queues()).toEqual(['a']);
    await close();
    await world.close();
  });
});
