import { describe, expect, it } from '@jest/globals';
import { defineQueue, DelayQueueConsumer, OnDelayed, SnoozeJob } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import { batching } from '../../helpers/batching.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { oneHandler } from '../../helpers/one-handler.js';

const here = inAWorld();

describe('what a handler changes in its job', () => {
  it('changed when the job was due after it was handed back', async () => {
    const { app, producer } = await here.start();
    const { dueAt } = await producer.enqueue('handed-back', {}, { id: 'A' });
    const [pulled] = await app.get(DelayQueueConsumer).pull('handed-back');
    const { job } = pulled!;
    job.dueAt.setUTCFullYear(2100);
    job.enqueuedAt.setUTCFullYear(2100);
    expect(job.dueAt).toEqual(dueAt);
    await pulled!.release();
    expect(await producer.get('handed-back', 'A')).toMatchObject({ state: 'due', dueAt });
  });

  it('is not stored with the payload of a snooze', async () => {
    const handle = (_: unknown, { context }: DelayedJob) => {
      (context as Record<string, string>)['tenant'] = 'another';
      throw new SnoozeJob('1h', { payload: 'next' });
    };
    const { producer, queue, becomes } = await oneHandler(here, handle);
    await producer.enqueue(queue, 'first', { id: 'A', context: { tenant: 'one' } });
    const { payload, context } = await becomes('A', { state: 'delayed' });
    expect([payload, context]).toEqual(['next', { tenant: 'one' }]);
  });
});

describe('the payload of the next run', () => {
  it('was stored as the handler changed it after job.snooze()', async () => {
    const { producer, queue, call, becomes } = await batching(here, { batch: { size: 1 } });
    await producer.enqueue(queue, {}, { id: 'A' });
    const { jobs, end } = await call(1);
    const next = { step: 2 };
    expect(jobs[0]!.snooze('1h', { payload: next })).toBe(true);
    next.step = 3;
    end();
    await becomes('A', { state: 'delayed', payload: { step: 2 } });
  });

  it('that cannot be stored fails the job, and job.snooze() does not throw', async () => {
    const { producer, queue, call, becomes } = await batching(here, { batch: { size: 1 } });
    await producer.enqueue(queue, {}, { id: 'A', attempts: 1 });
    const { jobs, end } = await call(1);
    expect(jobs[0]!.snooze('1h', { payload: 1n })).toBe(true);
    end();
    await becomes('A', { state: 'dead', deadReason: 'exhausted' });
  });

  it('was stored as the handler changed it while the schema of its queue was asked', async () => {
    let asked = 0;
    const next = { step: 2 };
    const validate = async (value: unknown) => {
      await Promise.resolve();
      if (asked++ === 2) next.step = 3; // After those of the producer and of the worker.
      return { value };
    };
    const schema = { '~standard': { version: 1, vendor: 'test', validate } } as const;
    const queue = defineQueue<{ step: number }>('snoozed-by-schema', { schema: schema as never });
    class Handlers {
      @OnDelayed(queue)
      run(): void {
        throw new SnoozeJob('1h', { payload: next });
      }
    }
    const app = await here.start({ providers: [Handlers] });
    await app.producer.enqueue(queue, { step: 1 }, { id: 'A' });
    await eventually(async () =>
      expect(await app.producer.get(queue, 'A')).toMatchObject({ state: 'delayed', payload: { step: 2 } }),
    );
    expect(asked).toBe(3);
  });
});
