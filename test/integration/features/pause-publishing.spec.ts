import { describe, expect, it } from '@jest/globals';
import { BulkEnqueueError, PublishingPausedError } from '../../../lib/index.js';
import type { EnqueueOptions } from '../../../lib/index.js';
import { eventually } from '../../helpers/eventually.js';
import { holding } from '../../helpers/holding.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const errorOf = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('pausePublishing()', () => {
  it.each<[string, EnqueueOptions]>([
    ['a job of its own', {}],
    ['a job under an id of its own', { id: 'new', uniqueFor: '1h', maxWait: '1h' }],
    ['one that would be kept', { id: 'there' }],
    ['a replacement', { id: 'there', onDuplicate: 'replace' }],
    ['a reschedule by enqueue', { id: 'there', onDuplicate: 'reschedule', delay: '2h' }],
    ['one that would be rejected', { id: 'there', onDuplicate: 'reject' }],
  ])('refuses %s with a typed error, and nothing is stored', async (_, options) => {
    const { queue, producer, inspector, bring } = await holding(here);
    await bring('there', 'delayed');
    await inspector.pausePublishing(queue);
    const before = await stored(queue);
    const error = await errorOf(producer.enqueue(queue, 'new', options));
    expect(error).toBeInstanceOf(PublishingPausedError);
    expect(error).toMatchObject({ code: 'ERR_DQ_PUBLISHING_PAUSED', queue, retryable: true });
    expect(error).not.toMatchObject({ maybeAccepted: true });
    expect(await stored(queue)).toEqual(before);
  });

  it('refuses a whole batch, and says so of each job, however long it is', async () => {
    const { producer, inspector } = await here.start({ options: { consume: false } });
    await inspector.pausePublishing('batch');
    const items = Array.from({ length: 5_500 }, (_, n) => ({ payload: n, id: `j${n}` }));
    const error = (await errorOf(producer.enqueueMany('batch', items))) as BulkEnqueueError;
    expect(error).toBeInstanceOf(BulkEnqueueError);
    expect(error.retryable).toBe(true);
    const results = error.results as { id: string; error: unknown }[];
    expect(results.map(({ id }) => id)).toEqual(items.map(({ id }) => id));
    expect(results.every((result) => result.error instanceof PublishingPausedError)).toBe(true);
    expect(await here.world.read('batch')).toMatchObject({ jobs: {}, due: {} });
  });

  it('lets handlers, retries and followups that are stored go on', async () => {
    const { queue, producer, inspector, bring, run, held } = await holding(here, { backoff: () => 0 });
    await bring('A', 'running');
    await producer.enqueue(queue, 'followup', { id: 'A', onDuplicate: 'replace' });
    await producer.enqueue(queue, 'later', { id: 'B', delay: '1h' });
    await inspector.pausePublishing(queue);
    (await run(1)).end();
    const followUp = await run(2);
    expect(followUp.job.payload).toBe('followup');
    followUp.end(new Error('asked to'));
    const retry = await run(3);
    expect(retry.job).toMatchObject({ id: 'A', attempt: 2 });
    retry.end();
    await producer.runNow(queue, 'B');
    (await run(4)).end();
    await eventually(async () => expect(await inspector.counts(queue)).toMatchObject({ due: 0, running: 0 }));
    expect(held.map(({ job }) => job.id)).toEqual(['A', 'A', 'A', 'B']);
  });

  it('lets everything work that changes jobs which are there', async () => {
    const { queue, producer, inspector, bring } = await holding(here);
    await bring('dead', 'dead');
    await bring('cancelled', 'delayed');
    await bring('moved', 'delayed');
    await inspector.pausePublishing(queue);
    expect(await producer.cancel(queue, 'cancelled')).toMatchObject({ outcome: 'cancelled' });
    expect(await producer.reschedule(queue, 'moved', { delay: '2h' })).toMatchObject({ outcome: 'rescheduled' });
    expect(await inspector.requeueDead(queue, 'all', { delay: '1h' })).toMatchObject({ requeued: 1 });
    expect(await inspector.purge(queue)).toEqual({ removed: 2 });
  });

  it('holds for every process and outlives them all, until resumePublishing()', async () => {
    const [one, other] = [await here.start({ options: { consume: false } }), await here.start()];
    await one.inspector.pausePublishing('global');
    await one.close();
    expect(await errorOf(other.producer.enqueue('global', 1))).toBeInstanceOf(PublishingPausedError);
    expect(await other.inspector.counts('global')).toMatchObject({ publishingPaused: true, paused: false });
    expect(await other.producer.enqueue('another', 1)).toMatchObject({ outcome: 'created' });

    await other.inspector.resumePublishing('global');
    expect(await other.producer.enqueue('global', 1)).toMatchObject({ outcome: 'created' });
    expect(await other.inspector.counts('global')).toMatchObject({ publishingPaused: false });
  });

  it('is not ended by resume(), nor does it pause the claiming', async () => {
    const { queue, inspector, bring } = await holding(here);
    await bring('A', 'running');
    await inspector.pausePublishing(queue);
    await inspector.pause(queue);
    await inspector.resume(queue);
    expect(await inspector.counts(queue)).toMatchObject({ publishingPaused: true, paused: false });
  });
});

/** Everything but what a step that finds nothing changes. */
async function stored(queue: string): Promise<unknown> {
  const { idle: _, meta, ...rest } = await here.world.read(queue);
  const { enqueued, publishingPaused } = meta;
  return { ...rest, enqueued, publishingPaused };
}
