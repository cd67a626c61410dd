import { describe, expect, it } from '@jest/globals';
import { defineQueue } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();

describe('what is said of a queue', () => {
  const defined = defineQueue<object>('defined', { attempts: 2, delay: '2h' });

  it('counts in this order: the job, queues[name], the handler, the definition, defaults', async () => {
    const seen: Record<string, number> = {};
    const see =
      (name: string) =>
      (_: unknown, { id, maxAttempts }: { id: string; maxAttempts: number }) =>
        void (seen[`${name} ${id}`] = maxAttempts);
    const { producer } = await here.start({
      options: { defaults: { attempts: 1 }, queues: { operated: { attempts: 4 } } },
      providers: [
        handlerClass('plain', see('plain')),
        handlerClass('defined', see('defined')),
        handlerClass('decorated', see('decorated'), { attempts: 3 }),
        handlerClass('operated', see('operated'), { attempts: 3 }),
      ],
    });
    await producer.enqueue('plain', {}, { id: 'a' });
    await producer.enqueue('decorated', {}, { id: 'a' });
    await producer.enqueue('operated', {}, { id: 'a' });
    await producer.enqueue('operated', {}, { id: 'b', attempts: 5 });
    await eventually(() => expect(seen).toEqual({ 'plain a': 1, 'decorated a': 3, 'operated a': 4, 'operated b': 5 }));
  });

  it('gives jobs a default delay, which the call and queues[name] may change', async () => {
    const { producer } = await here.start({
      options: { consume: false, defaults: { delay: '1h' }, queues: { operated: { delay: '3h' } } },
    });
    const now = await here.world.now();
    const inHours = async (queue: string | typeof defined, options?: object) => {
      const { dueAt } = await producer.enqueue(queue as string, {}, options);
      return Math.round((dueAt.getTime() - now) / 3_600_000);
    };
    expect(await inHours('plain')).toBe(1);
    expect(await inHours(defined)).toBe(2);
    expect(await inHours('operated')).toBe(3);
    expect(await inHours('operated', { delay: '4h' })).toBe(4);
    expect(await inHours('operated', { delay: 0 })).toBe(0);
  });
});

describe('strictQueues', () => {
  it('refuses, in every call, names that are neither handled here, nor defined, nor listed', async () => {
    const { producer } = await here.start({
      options: { strictQueues: true, queues: { listed: {} } },
      providers: [handlerClass('handled', () => undefined)],
    });
    const delay = '1h';
    for (const queue of ['listed', 'handled'])
      expect(await producer.enqueue(queue, {}, { delay })).toMatchObject({ outcome: 'created' });
    expect(await producer.enqueue(defineQueue<object>('defined'), {}, { delay })).toMatchObject({ outcome: 'created' });
    const refusal = { code: 'ERR_DQ_INVALID_QUEUE', message: expect.stringContaining('"lsited"') };
    await expect(producer.enqueue('lsited', {})).rejects.toMatchObject(refusal);
    await expect(producer.enqueueMany('lsited', [{ payload: {} }])).rejects.toMatchObject(refusal);
    await expect(producer.cancel('lsited', 'a')).rejects.toMatchObject(refusal);
    await expect(producer.get('lsited', 'a')).rejects.toMatchObject(refusal);
    expect(Object.keys((await here.world.read('lsited')).jobs)).toEqual([]);
  });
});
