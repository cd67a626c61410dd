import { describe, expect, it } from '@jest/globals';
import { DelayQueueRegistry, DiscardJob, SnoozeJob } from '../../../lib/index.js';
import type { DelayedJob, HandlerOptions } from '../../../lib/index.js';
import { eventually } from '../../helpers/eventually.js';
import { holding } from '../../helpers/holding.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { oneHandler } from '../../helpers/one-handler.js';

const here = inAWorld();
const keepCompleted = {};
const behave = (how: string, job: DelayedJob) => {
  if (how === 'discard') throw new DiscardJob('asked to');
  if (how === 'snooze' && job.snoozes === 0) throw new SnoozeJob('1h');
  if (how === 'fail once' && job.attempt === 1) throw new Error('asked to');
  if (how === 'fail') throw new Error('asked to');
};
const keeping = (options: HandlerOptions = {}) =>
  oneHandler(here, behave, { keepCompleted, backoff: () => 0, ...options });

describe('keepCompleted', () => {
  it('shows a completed job as it was, with the time of its completion', async () => {
    const { queue, producer, inspector, becomes } = await keeping();
    const before = await here.world.now();
    const at = before - 5_000;
    await producer.enqueue(queue, 'fail once', { id: 'A', at, attempts: 3, context: { tenant: 't1' } });
    const job = await becomes('A', { state: 'completed' });
    const after = await here.world.now();
    expect(job).toMatchObject({
      id: 'A',
      queue,
      payload: 'fail once',
      dueAt: new Date(at),
      attempts: 1,
      maxAttempts: 3,
      context: { tenant: 't1' },
    });
    expect(job.lastError).toBeUndefined();
    expect(job.enqueuedAt.getTime()).toBeGreaterThanOrEqual(before);
    expect(job.completedAt!.getTime()).toBeGreaterThanOrEqual(job.enqueuedAt.getTime());
    expect(job.completedAt!.getTime()).toBeLessThanOrEqual(after);
    expect(await inspector.list(queue, 'completed')).toEqual({ jobs: [job] });
    expect(await inspector.counts(queue)).toMatchObject({ completed: 1, delayed: 0, due: 0, running: 0, dead: 0 });
    expect(await here.world.violations(queue)).toEqual([]);
  });

  it('is off by default: nothing is kept', async () => {
    const { queue, producer, inspector } = await keeping({ keepCompleted: false });
    await producer.enqueue(queue, 'complete', { id: 'A' });
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 1 }));
    expect(await producer.get(queue, 'A')).toBeUndefined();
    expect(await inspector.counts(queue)).toMatchObject({ completed: 0 });
    expect(await here.world.keys(queue)).not.toEqual(expect.arrayContaining(['history']));
  });

  it('keeps only what completed: no discarded, failed, snoozed, cancelled or replaced job', async () => {
    const { queue, producer, inspector, becomes } = await keeping({ attempts: 1 });
    for (const how of ['discard', 'fail', 'snooze', 'complete']) await producer.enqueue(queue, how, { id: how });
    await producer.enqueue(queue, 'complete', { id: 'cancelled', delay: '1h' });
    await producer.cancel(queue, 'cancelled');
    await becomes('complete', { state: 'completed' });
    await becomes('discard', { state: 'dead' });
    await becomes('fail', { state: 'dead' });
    await becomes('snooze', { state: 'delayed' });
    expect((await inspector.list(queue, 'completed')).jobs.map(({ id }) => id)).toEqual(['complete']);
    expect(await producer.get(queue, 'cancelled')).toBeUndefined();
  });

  it('does not keep a run that a followup or a cancellation ended', async () => {
    const { queue, producer, inspector, bring, held, state } = await holding(here, { keepCompleted });
    await bring('replaced', 'running');
    await bring('cancelled', 'running');
    await producer.enqueue(queue, 'new', { id: 'replaced', onDuplicate: 'replace', delay: '1h' });
    await producer.cancel(queue, 'cancelled', { running: true });
    for (const { end } of held) end();
    await eventually(async () => {
      expect([await state('cancelled'), await state('replaced')]).toEqual([undefined, 'delayed']);
    });
    expect(await inspector.counts(queue)).toMatchObject({ completed: 0 });
  });

  it('shows one job per id: one made anew takes the place of what was kept, and is kept in its turn', async () => {
    const { queue, producer, inspector, becomes } = await keeping();
    await producer.enqueue(queue, 'complete', { id: 'A' });
    const first = await becomes('A', { state: 'completed' });
    expect(await producer.enqueue(queue, 'snooze', { id: 'A', delay: '1h' })).toMatchObject({
      outcome: 'created',
      state: 'delayed',
    });
    expect(await producer.get(queue, 'A')).toMatchObject({ state: 'delayed', payload: 'snooze' });
    expect(await inspector.list(queue, 'completed')).toEqual({ jobs: [] });
    expect(await here.world.violations(queue)).toEqual([]);
    await producer.enqueue(queue, 'complete', { id: 'A', onDuplicate: 'replace' });
    const second = await becomes('A', { state: 'completed' });
    expect(second.completedAt!.getTime()).toBeGreaterThanOrEqual(first.completedAt!.getTime());
    expect(await inspector.counts(queue)).toMatchObject({ completed: 1 });
  });

  it('has nothing to do with uniqueFor', async () => {
    const { queue, producer, inspector, becomes } = await keeping();
    await producer.enqueue(queue, 'complete', { id: 'A', uniqueFor: '1h' });
    await becomes('A', { state: 'completed' });
    expect(await producer.enqueue(queue, 'complete', { id: 'A' })).toMatchObject({
      outcome: 'kept',
      state: 'completed',
    });
    expect(await inspector.purge(queue, { states: ['completed'] })).toEqual({ removed: 1 });
    expect(await producer.enqueue(queue, 'complete', { id: 'A' })).toMatchObject({
      outcome: 'kept',
      state: 'completed',
    });
  });

  it('keeps at most `count`, the newest ones', async () => {
    const { queue, producer, inspector } = await keeping({ keepCompleted: { count: 3 }, concurrency: 1 });
    for (const id of ['a', 'b', 'c', 'd', 'e']) {
      await producer.enqueue(queue, 'complete', { id });
      await eventually(async () => expect(await producer.get(queue, id)).toMatchObject({ state: 'completed' }));
    }
    const { jobs } = await inspector.list(queue, 'completed');
    expect(jobs.map(({ id }) => id)).toEqual(['c', 'd', 'e']);
    expect(await producer.get(queue, 'a')).toBeUndefined();
    expect(await here.world.violations(queue)).toEqual([]);
  });

  it('forgets those older than `age` though nothing completes any more', async () => {
    const { queue, producer, inspector, becomes } = await keeping({ keepCompleted: { age: '1h' }, lease: 400 });
    await producer.enqueue(queue, 'complete', { id: 'old' });
    await producer.enqueue(queue, 'complete', { id: 'young' });
    await becomes('old', { state: 'completed' });
    await becomes('young', { state: 'completed' });
    await here.world.redis.zadd(here.world.key(queue, 'completed'), (await here.world.now()) - 3_600_001, 'old');
    await eventually(async () => expect(await inspector.counts(queue)).toMatchObject({ completed: 1 }));
    expect(await producer.get(queue, 'old')).toBeUndefined();
    expect(await producer.get(queue, 'young')).toMatchObject({ state: 'completed' });
    expect(await here.world.violations(queue)).toEqual([]);
  });

  it('is listed in pages by time of completion', async () => {
    const { queue, producer, inspector } = await keeping({ concurrency: 50 });
    await producer.enqueueMany(
      queue,
      Array.from({ length: 25 }, (_, n) => ({ payload: 'complete', id: `j${n}` })),
    );
    await eventually(async () => expect(await inspector.counts(queue)).toMatchObject({ completed: 25 }));
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await inspector.list(queue, 'completed', { limit: 4, cursor });
      seen.push(...page.jobs.map(({ id }) => id));
      cursor = page.cursor;
    } while (cursor);
    expect([...new Set(seen)]).toHaveLength(25);
    expect(seen).toHaveLength(25);
    const from = (await here.world.now()) + 60_000;
    expect(await inspector.list(queue, 'completed', { from })).toEqual({ jobs: [] });
  });

  it('is purged only when that is asked for', async () => {
    const { queue, producer, inspector } = await keeping({ concurrency: 300 });
    await producer.enqueueMany(
      queue,
      Array.from({ length: 450 }, () => ({ payload: 'complete' })),
    );
    await eventually(async () => expect(await inspector.counts(queue)).toMatchObject({ completed: 450 }), 10_000);
    await producer.enqueue(queue, 'complete', { delay: '1h' });
    expect(await inspector.purge(queue)).toEqual({ removed: 1 });
    expect(await inspector.counts(queue)).toMatchObject({ completed: 450, delayed: 0 });
    expect(await inspector.purge(queue, { states: ['completed'] })).toEqual({ removed: 450 });
    expect(await here.world.read(queue)).toMatchObject({ completed: {}, history: {} });
  });

  it('may be said by queues[name] of a queue whose handler is added while running', async () => {
    const { app, producer } = await here.start({ options: { queues: { added: { keepCompleted: { count: 5 } } } } });
    app.get(DelayQueueRegistry).register('added', () => undefined);
    await producer.enqueue('added', 1, { id: 'A' });
    await eventually(async () => expect(await producer.get('added', 'A')).toMatchObject({ state: 'completed' }));
  });
});
