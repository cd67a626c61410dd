import { describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { DelayQueueConsumer, JobCancelledError, LeaseLostError } from '../../../lib/index.js';
import type { TestAppSettings } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const HELD = { lease: 300, autoExtend: false } as const;

async function pulling(settings?: TestAppSettings) {
  const app = await here.start(settings);
  return { ...app, consumer: app.app.get(DelayQueueConsumer) };
}

describe('a pulled job that is not renewed and that nobody settles', () => {
  it('is given to the same process again: it was stuck there for ever', async () => {
    const { producer, consumer, inspector } = await pulling();
    await producer.enqueue('abandoned', 'mine', { id: 'A', attempts: 5 });
    const [first] = await consumer.pull('abandoned', HELD);
    const [second] = await consumer.pull('abandoned', { ...HELD, wait: '20s' });
    expect(second).toMatchObject({ id: 'A', payload: 'mine' });
    expect(second).not.toBe(first);
    expect(first!.job.signal.aborted).toBe(true);
    await expect(first!.complete()).rejects.toThrow(LeaseLostError);
    await second!.complete();
    expect(await inspector.totals('abandoned')).toMatchObject({ completed: 1 });
    expect(await here.world.read('abandoned')).toMatchObject({ jobs: {}, running: {}, leases: {}, quarantine: {} });
  });

  it('is given again and again, to pulls of any lease', async () => {
    const { producer, consumer } = await pulling();
    await producer.enqueue('again', 'mine', { id: 'A', attempts: 5 });
    for (const lease of [300, 301, 300]) {
      const [claimed] = await consumer.pull('again', { ...HELD, lease, wait: '20s' });
      expect(claimed!.id).toBe('A');
    }
    const [last] = await consumer.pull('again', { wait: '20s' });
    await last!.complete();
  });

  it('keeps nothing else of its process waiting', async () => {
    const { producer, consumer } = await pulling();
    await producer.enqueueMany('full', [
      { payload: 1, id: 'A' },
      { payload: 2, id: 'B' },
    ]);
    const [a] = await consumer.pull('full', HELD);
    const [b] = await consumer.pull('full', HELD);
    expect([a!.id, b!.id]).toEqual(['A', 'B']);
    const again = await consumer.pull('full', { ...HELD, max: 2, wait: '20s' });
    expect(again.length).toBeGreaterThan(0);
    await Promise.all(again.map((job) => job.complete()));
  });

  it('may still be settled late, and extended, as long as nobody took it', async () => {
    const { producer, consumer, inspector } = await pulling();
    await producer.enqueueMany('late', [{ payload: 1 }, { payload: 2 }]);
    const [late, later] = await consumer.pull('late', { ...HELD, max: 2 });
    await sleep(400); // The lease ends, which both sides know by their clocks.
    await eventually(() => expect(late!.job.signal.aborted).toBe(true));
    await later!.extend('1h');
    await late!.complete();
    await later!.complete();
    expect(await inspector.totals('late')).toMatchObject({ completed: 2 });
    expect(await here.world.read('late')).toMatchObject({ jobs: {}, running: {}, leases: {}, quarantine: {} });
  });
});

it.each([
  ['its own queue', 'alone'],
  ['another queue', 'other'],
])('a pulled job that is not renewed keeps the end of its lease when a job of %s joins it', async (_, queue) => {
  const { producer, consumer } = await pulling();
  await producer.enqueue('alone', 1, { id: 'A' });
  const long = { lease: '1h', autoExtend: false } as const;
  const [first] = await consumer.pull('alone', long);
  const deadline = async () => Object.values((await here.world.read('alone')).leases).sort((a, b) => a - b)[0]!;
  const given = await deadline();
  const began = await here.world.now();
  await eventually(async () => expect(await here.world.now()).toBeGreaterThan(began + 5));
  await producer.enqueue(queue, 2);
  const [second] = await consumer.pull(queue, long);
  // Redis has heard that it is not alone in its process any more, which is all that it had to hear.
  await eventually(async () => expect(await deadline()).toBe(Math.floor(given)));
  expect(given % 1).toBe(0.5);
  await Promise.all([first!.complete(), second!.complete()]);
});

it('a pulled job that is not renewed hears that it was cancelled, and keeps the end of its lease', async () => {
  const { producer, consumer } = await pulling();
  await producer.enqueue('cancelled', 1, { id: 'A' });
  const [job] = await consumer.pull('cancelled', { lease: '6s', autoExtend: false });
  const { leases } = await here.world.read('cancelled');
  await producer.cancel('cancelled', 'A', { running: true });
  await eventually(() => expect(job!.job.signal.aborted).toBe(true));
  expect(job!.job.signal.reason).toBeInstanceOf(JobCancelledError);
  expect((await here.world.read('cancelled')).leases).toEqual(leases);
  await job!.complete();
});

it('a pulled job whose lease had ended holds up a close again when it was extended', async () => {
  const { app, producer, consumer } = await pulling({ options: { drainTimeout: '1h' } });
  const other = await pulling();
  await producer.enqueue('resumed', 1, { id: 'A' });
  const [job] = await consumer.pull('resumed', HELD);
  await eventually(() => expect(job!.job.signal.aborted).toBe(true));
  await job!.extend('1h');
  const closing = app.close();
  // It is given to nobody else meanwhile.
  expect(await other.consumer.pull('resumed', { wait: '1s' })).toEqual([]);
  await job!.complete();
  await closing;
  expect(await other.inspector.totals('resumed')).toMatchObject({ completed: 1 });
});

it('a pulled job that is not renewed holds up a close no longer than its lease lasts', async () => {
  const { app, producer, consumer } = await pulling({ options: { drainTimeout: '1h' } });
  await producer.enqueue('lapsing', 1);
  const [job] = await consumer.pull('lapsing', { ...HELD, lease: '2s' });
  await app.close();
  expect(job!.job.signal.reason).toBeInstanceOf(LeaseLostError);
});

it('a pulled job whose lease had ended when the application closed is answered as lost: nobody answered', async () => {
  const { app, producer, consumer } = await pulling();
  await producer.enqueue('left', 1);
  const [late] = await consumer.pull('left', HELD);
  await eventually(() => expect(late!.job.signal.aborted).toBe(true));
  await app.close();
  await expect(late!.complete()).rejects.toThrow(LeaseLostError);
});
