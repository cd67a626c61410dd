import { describe, expect, it } from '@jest/globals';
import {
  BulkEnqueueError,
  DelayQueueModule,
  DelayQueueProducer,
  DiscardJob,
  QueueFullError,
} from '../../../lib/index.js';
import type { EnqueueOptions, EnqueueResult } from '../../../lib/index.js';
import { defineQueue } from '../../../lib/job/queue-definition.js';
import { eventually } from '../../helpers/eventually.js';
import { holding } from '../../helpers/holding.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { oneHandler } from '../../helpers/one-handler.js';

const here = inAWorld();
const limited = async (maxSize: number) => here.start({ options: { consume: false, defaults: { maxSize } } });
const errorOf = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('maxSize', () => {
  it('refuses one job more with a typed error, and nothing of it is stored', async () => {
    const { producer, inspector } = await limited(2);
    await producer.enqueue('full', 1, { delay: '1h' });
    await producer.enqueue('full', 2, { delay: '1h' });
    const before = await here.world.read('full');
    for (const options of [{}, { id: 'own' }, { id: 'own', maxWait: '1h', uniqueFor: '1h' }] as EnqueueOptions[]) {
      const error = await errorOf(producer.enqueue('full', 3, options));
      expect(error).toBeInstanceOf(QueueFullError);
      expect(error).toMatchObject({ code: 'ERR_DQ_QUEUE_FULL', queue: 'full', maxSize: 2, retryable: true });
      expect(error).not.toMatchObject({ maybeAccepted: true });
      expect((error as Error).message).toContain('"full"');
    }
    expect(await here.world.read('full')).toEqual(before);
    expect(await inspector.totals('full')).toMatchObject({ enqueued: 2 });
  });

  it('counts delayed, due and running jobs and those in quarantine, not dead letters', async () => {
    const { queue, producer, bring, run } = await holding(here, {}, { defaults: { maxSize: 2 } });
    await bring('dead', 'dead');
    await bring('runs', 'running');
    await bring('delayed', 'delayed');
    expect(await errorOf(producer.enqueue(queue, 1))).toBeInstanceOf(QueueFullError);
    (await run(2)).end();
    await eventually(() => producer.enqueue(queue, 1, { id: 'fits', delay: '1h' }));
    // What a job in quarantine is to the queue: it waits, in an index of its own.
    await here.world.redis.zrem(here.world.key(queue, 'due'), 'fits');
    await here.world.redis.zadd(here.world.key(queue, 'quarantine'), Date.now(), 'fits');
    await here.world.redis.hset(here.world.key(queue, 'meta'), 'paused', 1);
    expect(await errorOf(producer.enqueue(queue, 1))).toBeInstanceOf(QueueFullError);
  });

  it.each<[string, EnqueueOptions, EnqueueResult['outcome']]>([
    ['kept', { id: 'there' }, 'kept'],
    ['replaced', { id: 'there', onDuplicate: 'replace' }, 'replaced'],
    ['rescheduled', { id: 'there', onDuplicate: 'reschedule', delay: '2h' }, 'rescheduled'],
    ['replaced while they run', { id: 'runs', onDuplicate: 'replace' }, 'replaced'],
    ['raised from the dead', { id: 'dead', onDuplicate: 'replace', delay: '1h' }, 'replaced'],
  ])('at the limit jobs that are there are still %s', async (_, options, outcome) => {
    const { queue, producer, bring } = await holding(here, {}, { defaults: { maxSize: 2 } });
    await bring('dead', 'dead');
    await bring('runs', 'running');
    await bring('there', 'delayed');
    expect(await producer.enqueue(queue, 'new', options)).toMatchObject({ outcome });
    expect(await errorOf(producer.enqueue(queue, 1))).toBeInstanceOf(QueueFullError);
  });

  it('never refuses retries, nor the followup of a job that is replaced while it runs', async () => {
    const { queue, producer, bring, run, state } = await holding(
      here,
      { backoff: () => '1h' },
      { defaults: { maxSize: 1 } },
    );
    await bring('A', 'running');
    await producer.enqueue(queue, 'next', { id: 'A', onDuplicate: 'replace' });
    (await run(1)).end();
    const { job, end } = await run(2);
    expect(job.payload).toBe('next');
    end(new Error('asked to'));
    await eventually(async () => expect(await state('A')).toBe('delayed'));
    expect(await errorOf(producer.enqueue(queue, 1))).toBeInstanceOf(QueueFullError);
  });

  it('of a batch takes those that fit, and tells of each what became of it', async () => {
    const { producer, inspector } = await limited(300);
    await producer.enqueue('batch', 'old', { id: 'there', delay: '1h' });
    const items = Array.from({ length: 500 }, (_, n) => ({ payload: n, id: `j${n}`, delay: '1h' as const }));
    const error = (await errorOf(
      producer.enqueueMany('batch', [
        ...items,
        { payload: 'new', id: 'there', onDuplicate: 'replace' as const, delay: '1h' },
      ]),
    )) as BulkEnqueueError<EnqueueResult>;
    expect(error).toBeInstanceOf(BulkEnqueueError);
    expect(error).toMatchObject({ retryable: true, cause: expect.any(QueueFullError) });
    const results = error.results as (EnqueueResult & { error?: unknown })[];
    expect(results.filter(({ outcome }) => outcome === 'created')).toHaveLength(299);
    expect(results.filter((result) => result.error instanceof QueueFullError)).toHaveLength(201);
    expect(results.at(-1)).toMatchObject({ id: 'there', outcome: 'replaced' });
    expect(await inspector.counts('batch')).toMatchObject({ delayed: 300 });
    expect(await here.world.redis.hlen(here.world.key('batch', 'jobs'))).toBe(300);
  });

  it('holds in every window of a batch of many thousands', async () => {
    const { producer, inspector } = await limited(10);
    const items = Array.from({ length: 6_000 }, (_, n) => ({ payload: n }));
    const { results } = (await errorOf(producer.enqueueMany('windows', items))) as BulkEnqueueError;
    const refused = results.filter((result) => (result as { error?: unknown }).error instanceof QueueFullError);
    expect(refused).toHaveLength(5_990);
    expect(await inspector.counts('windows')).toMatchObject({ due: 10 });
  });

  it('is not exceeded by many processes at once', async () => {
    const apps = await Promise.all(Array.from({ length: 3 }, () => limited(50)));
    const calls = apps.flatMap(({ producer }) => Array.from({ length: 60 }, (_, n) => producer.enqueue('race', n)));
    const settled = await Promise.allSettled(calls);
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(50);
    expect(await apps[0]!.inspector.counts('race')).toMatchObject({ due: 50 });
  });

  it('makes room as jobs end, however they end', async () => {
    const { producer, queue } = await oneHandler(here, (how: string) => {
      if (how === 'discard') throw new DiscardJob('asked to');
    });
    const other = await here.start({ options: { consume: false, queues: { [queue]: { maxSize: 1 } } } });
    for (const how of ['complete', 'discard', 'complete']) {
      await eventually(() => other.producer.enqueue(queue, how));
    }
    await eventually(() => other.producer.enqueue(queue, 'complete', { id: 'A', delay: '1h' }));
    expect(await errorOf(other.producer.enqueue(queue, 'complete'))).toBeInstanceOf(QueueFullError);
    await producer.cancel(queue, 'A');
    expect(await other.producer.enqueue(queue, 'complete')).toMatchObject({ outcome: 'created' });
  });

  it('may be said by a definition, and queues[name] beats it', async () => {
    const definition = defineQueue<number>('defined', { maxSize: 1 });
    const boot = (queues = {}) =>
      here.boot({
        imports: [
          DelayQueueModule.forRoot({
            connection: here.world.connection,
            prefix: here.world.prefix,
            consume: false,
            queues,
          }),
        ],
      });
    const one = (await boot()).get(DelayQueueProducer);
    await one.enqueue(definition, 1);
    expect(await errorOf(one.enqueue(definition, 2))).toMatchObject({ maxSize: 1 });
    // By its name alone this process knows of no limit.
    await one.enqueue('defined', 2);
    const operated = (await boot({ defined: { maxSize: 3 } })).get(DelayQueueProducer);
    await operated.enqueue(definition, 3);
    expect(await errorOf(operated.enqueue(definition, 4))).toMatchObject({ maxSize: 3 });
  });
});
