import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { DelayQueueProducer, NotDurableError, UnsafeServerError } from '../../lib/index.js';
import type { DelayQueueRootOptions } from '../../lib/index.js';
import { eventually } from '../helpers/eventually.js';
import { inAWorld } from '../helpers/in-a-world.js';

const here = inAWorld({ appendfsync: 'everysec' });
const FSYNC: DelayQueueRootOptions = { consume: false, durability: 'fsync' };
const policy = (appendfsync: string) => here.world.redis.config('SET', 'appendfsync', appendfsync);
const produce = async () => (await here.start({ options: FSYNC })).producer;
let knowsIt: boolean;

beforeAll(async () => {
  knowsIt = await here.world.redis.call('COMMAND', 'INFO', 'WAITAOF').then((told) => (told as unknown[])[0] !== null);
});
afterEach(() => policy('everysec'));

/** The same titles on every server, so that its row of the table says which of the two it showed. */
describe("durability: 'fsync'", () => {
  it.each(['everysec', 'always'])(
    'with appendfsync %s: fulfilled, or refused by a server without WAITAOF',
    async (when) => {
      await policy(when);
      const producer = await produce().catch((error: unknown) => error);
      expect(producer instanceof UnsafeServerError).toBe(!knowsIt);
      if (!(producer instanceof DelayQueueProducer)) return;
      for (let n = 0; n < 3; n++) {
        expect(await producer.enqueue(when, n, { id: `${n}`, delay: '1h' })).toMatchObject({
          outcome: 'created',
          durability: { fsync: true },
        });
      }
      const bulk = await producer.enqueueMany(when, [{ payload: 1, delay: '1h' }]);
      expect(bulk[0]).toMatchObject({ durability: { fsync: true } });
      await here.server.kill('SIGKILL');
      await here.server.restart();
      await eventually(async () => expect(await here.world.redis.hlen(here.world.key(when, 'jobs'))).toBe(4), 15_000);
    },
  );

  it('with appendfsync no: nobody vouches for the job, which is kept and can be sent again', async () => {
    if (knowsIt) await policy('no');
    const producer = await produce().catch((error: unknown) => error);
    expect(producer instanceof UnsafeServerError).toBe(!knowsIt);
    if (!(producer instanceof DelayQueueProducer)) return;
    const failure = await producer.enqueue('never', 1, { id: 'a', delay: '1h' }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(NotDurableError);
    expect(failure).toMatchObject({ reached: { fsync: false }, maybeAccepted: true, retryable: true });
    await policy('always');
    const again = await producer.enqueue('never', 1, { id: 'a', delay: '1h' });
    expect(again).toMatchObject({ outcome: 'kept', durability: { fsync: true } });
  });

  it('the server vouches at once for a connection that wrote nothing, so the barrier writes before it waits', async () => {
    if (!knowsIt) return;
    await policy('no');
    const idle = new Redis(here.world.url, { lazyConnect: true });
    await idle.connect();
    try {
      await here.world.redis.set(here.world.key('raw', 'a'), '1');
      expect(await idle.call('WAITAOF', 1, 0, 100)).toEqual([1, 0]);
      await idle.set(here.world.key('raw', 'b'), '1');
      expect(await idle.call('WAITAOF', 1, 0, 100)).toEqual([0, 0]);
    } finally {
      idle.disconnect();
    }
  });
});
