import { describe, expect, it } from '@jest/globals';
import { DelayQueueConsumer } from '../../../lib/index.js';
import type { DelayedJob, QueueLimits } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { enqueueQuarantined } from './quarantined.js';

const here = inAWorld();
let queues = 0;

describe('a job that lost its lease in a queue with limits', () => {
  it('starts within the rate of its group, however often its workers die', async () => {
    const queue = `dying${queues++}`;
    const limits = { groups: { rateLimit: { max: 2, per: '10m' } } };
    const { app, producer, inspector } = await here.start({ options: { queues: { [queue]: limits } } });
    await inspector.setLimits(queue, limits);
    const consumer = app.get(DelayQueueConsumer);
    const pull = (wait: string) => consumer.pull(queue, { lease: 300, autoExtend: false, wait });
    await producer.enqueue(queue, {}, { id: 'dies', group: 'g', attempts: 5 });
    expect([(await pull('20s'))[0]!.id, (await pull('20s'))[0]!.id]).toEqual(['dies', 'dies']);
    expect(await pull('3s')).toEqual([]);
    expect(Object.keys((await here.world.read(queue)).quarantine)).toEqual(['dies']);
    await producer.enqueue(queue, {}, { id: 'other', group: 'h' });
    const [other] = await pull('20s');
    expect(other!.id).toBe('other');
    await other!.complete();
    // The window is over.
    const { rates } = await here.world.read(queue);
    for (const group of Object.keys(rates)) await here.world.redis.hset(here.world.key(queue, 'rates'), group, '1:2');
    const [again] = await pull('20s');
    await again!.complete();
    expect(again!.id).toBe('dies');
  });

  it.each<[string, QueueLimits]>([
    ['globalConcurrency', { globalConcurrency: 1 }],
    ['rateLimit', { rateLimit: { max: 5, per: '500ms' } }],
    ['groups.rateLimit', { groups: { rateLimit: { max: 5, per: '500ms' } } }],
  ])('is not passed for ever by due jobs, of which there are always more: %s', async (_, limits) => {
    const queue = `passed${queues++}`;
    const started: string[] = [];
    const run = async (_payload: unknown, job: DelayedJob) => {
      started.push(job.id);
      await new Promise((resolve) => setTimeout(resolve, 5));
    };
    const worker = () => ({
      providers: [handlerClass(queue, run, { concurrency: 3 })],
      options: { queues: { [queue]: limits } },
    });
    const { producer } = await here.start(worker());
    await here.start(worker());
    const backlog = Array.from({ length: 20_000 }, (_item, n) => ({ payload: {}, id: `due${n}`, group: 'g' }));
    await producer.enqueueMany(queue, backlog);
    await eventually(() => expect(started.length).toBeGreaterThan(5));
    await enqueueQuarantined(here.world, producer, queue, 'lost', { waitedMs: 60_000, group: 'g' });
    await eventually(() => expect(started).toContain('lost'), 20_000);
    expect(started.length).toBeLessThan(20_000);
  });
});
