import { describe, expect, it } from '@jest/globals';
import { fixed } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { oneHandler } from '../../helpers/one-handler.js';

const here = inAWorld();

describe('a job that expired', () => {
  it('is removed and counted', async () => {
    const { queue, producer, inspector, runs } = await oneHandler(here, () => undefined);
    await producer.enqueue(queue, {}, { at: Date.now() - 60_000, expiresIn: '1s' });
    await producer.enqueue(queue, {}, { expiresAt: Date.now() - 60_000 });
    await eventually(async () => expect((await inspector.totals(queue)).expired).toBe(2));
    expect(runs).toEqual([]);
    expect(await here.world.read(queue)).toMatchObject({ due: {}, running: {}, jobs: {}, dead: {} });
    expect(await inspector.totals(queue)).toMatchObject({ completed: 0, failed: 0, dead: 0 });
  });

  it('is a dead letter with keepExpired', async () => {
    const { queue, producer, becomes, runs } = await oneHandler(here, () => undefined);
    const late = { at: Date.now() - 60_000, expiresIn: '1s', keepExpired: true } as const;
    const { id } = await producer.enqueue(queue, { n: 1 }, late);
    await becomes(id, { state: 'dead', deadReason: 'expired', attempts: 0, payload: { n: 1 } });
    expect(runs).toEqual([]);
  });

  it('between two attempts has no second one', async () => {
    const { queue, producer, inspector, runs } = await oneHandler(here, () => Promise.reject(new Error('no')), {
      backoff: fixed('1.2s'),
    });
    await producer.enqueue(queue, {}, { expiresIn: '1s' });
    await eventually(async () => expect((await inspector.totals(queue)).expired).toBe(1));
    expect(runs).toHaveLength(1);
  });

  it('moves its expiry with a reschedule', async () => {
    const queue = 'rescheduled';
    const { producer } = await here.start({ options: { consume: false } });
    await producer.enqueue(queue, {}, { id: 'moved', at: Date.now() - 60_000, expiresIn: '30s' });
    await producer.reschedule(queue, 'moved', { delay: 0 });
    const runs: string[] = [];
    await here.start({ providers: [handlerClass(queue, (_, { id }) => void runs.push(id))] });
    await eventually(() => expect(runs).toEqual(['moved']));
  });
});

it('a job that cannot be read is a dead letter, and what is stored of it stays as it was', async () => {
  const { queue, producer, becomes, runs, inspector } = await oneHandler(here, () => undefined);
  await inspector.pause(queue);
  const { id } = await producer.enqueue(queue, { n: 1 });
  const stored = (await here.world.redis.hget(here.world.key(queue, 'jobs'), id))!.replace('{"n":1}', '{"n":');
  await here.world.redis.hset(here.world.key(queue, 'jobs'), id, stored);
  await inspector.resume(queue);
  await becomes(id, { state: 'dead', deadReason: 'undecodable', payload: undefined });
  expect((await here.world.read(queue)).jobs[id]).toBe(stored);
  expect(runs).toEqual([]);
});
