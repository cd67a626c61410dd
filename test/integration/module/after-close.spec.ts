import { describe, expect, it } from '@jest/globals';
import { ClosedError, DelayQueueConsumer, DelayQueueHealth } from '../../../lib/index.js';
import type { DelayQueueRootOptions } from '../../../lib/index.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import type { TestApp } from '../../helpers/app.js';

const here = inAWorld();

const calls: [string, (app: TestApp) => Promise<unknown>][] = [
  ['enqueue()', ({ producer }) => producer.enqueue('known', 1)],
  ['enqueue() to a queue that it never used', ({ producer }) => producer.enqueue('unknown', 1)],
  ['a durable enqueue()', ({ producer }) => producer.enqueue('known', 1, { durability: 'fsync' })],
  ['update()', ({ producer }) => producer.update('known', 'A', 2)],
  ['get()', ({ producer }) => producer.get('known', 'A')],
  ['cancel()', ({ producer }) => producer.cancel('known', 'A')],
  ['runNow()', ({ producer }) => producer.runNow('unknown', 'A')],
  ['reschedule()', ({ producer }) => producer.reschedule('known', 'A', { delay: 5 })],
  ['counts()', ({ inspector }) => inspector.counts('known')],
  ['queues()', ({ inspector }) => inspector.queues()],
  ['list()', ({ inspector }) => inspector.list('known', 'delayed')],
  ['pause()', ({ inspector }) => inspector.pause('known')],
  ['requeueDead()', ({ inspector }) => inspector.requeueDead('known', ['A'])],
  ['removeDead()', ({ inspector }) => inspector.removeDead('known', ['A'])],
  ['purge()', ({ inspector }) => inspector.purge('known')],
  ['remove()', ({ inspector }) => inspector.remove('known')],
  ['move()', ({ inspector }) => inspector.move('known', ['A'], 'unknown')],
  ['reshard()', ({ inspector }) => inspector.reshard('known', { to: 2 })],
  ['pull()', ({ app }) => app.get(DelayQueueConsumer).pull('known')],
];

describe('after app.close() calls waited for commandTimeout and said that Redis did not answer; they are refused at once:', () => {
  const options: DelayQueueRootOptions = { commandTimeout: '10s', consume: false };
  const closed = async () => {
    const app = await here.start({ options });
    await app.producer.enqueue('known', 1, { id: 'A', delay: '1h' });
    await app.close();
    return app;
  };

  it.each(calls)('%s', async (_, call) => {
    const error = await call(await closed()).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ClosedError);
    expect(error).toMatchObject({
      code: 'ERR_DQ_CLOSED',
      retryable: false,
      message: expect.stringMatching(/application (was|is being) closed/),
    });
  });

  it('enqueueMany(), for each of its jobs', async () => {
    const { producer } = await closed();
    const items = Array.from({ length: 300 }, (_, n) => ({ payload: n, id: `j${n}` }));
    const error = await producer.enqueueMany('known', items).catch((thrown: unknown) => thrown);
    const results = items.map(({ id }) => ({ id, error: expect.objectContaining({ code: 'ERR_DQ_CLOSED' }) }));
    expect(error).toMatchObject({ code: 'ERR_DQ_BULK', retryable: false, cause: { code: 'ERR_DQ_CLOSED' }, results });
  });

  it('health is down by that reason', async () => {
    const { app } = await closed();
    expect(await app.get(DelayQueueHealth).check()).toMatchObject({
      status: 'down',
      reasons: expect.arrayContaining([expect.stringMatching(/is not reachable: the application was closed/)]),
    });
  });

  it('and so is what still waited for a Redis that was away', async () => {
    const app = await here.start({ options: { ...options, connection: 'redis://127.0.0.1:1', connect: 'lazy' } });
    const waiting = [
      app.producer.enqueue('known', 1),
      app.producer.cancel('known', 'A'),
      app.inspector.counts('known'),
      app.inspector.queues(),
    ].map((call) => call.catch((thrown: { code: string }) => thrown.code));
    await app.close();
    expect(await Promise.all(waiting)).toEqual(waiting.map(() => 'ERR_DQ_CLOSED'));
  });
});
