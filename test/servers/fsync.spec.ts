import { execFileSync } from 'node:child_process';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { NotDurableError, UnsafeServerError } from '../../lib/index.js';
import type { DelayQueueRootOptions } from '../../lib/index.js';
import { serverOnPath } from '../../tools/local-redis.mjs';
import { eventually } from '../helpers/eventually.js';
import { inAWorld } from '../helpers/in-a-world.js';

const here = inAWorld({ appendfsync: 'everysec' });
const FSYNC: DelayQueueRootOptions = { consume: false, durability: 'fsync' };
const policy = (appendfsync: string) => here.world.redis.config('SET', 'appendfsync', appendfsync);
const produce = async () => (await here.start({ options: FSYNC })).producer;
/** Found out before the server of this spec starts, which is the same program. */
const said = execFileSync(serverOnPath()!, ['--version'], { encoding: 'utf8' });
const knowsIt = /Valkey|v=(7\.[2-9]|[89]|\d\d)/.test(said);

afterEach(() => policy('everysec'));

(knowsIt ? describe.skip : describe)('a server without WAITAOF', () => {
  it("is refused at boot with durability: 'fsync'", async () => {
    await expect(produce()).rejects.toBeInstanceOf(UnsafeServerError);
  });
});

(knowsIt ? describe : describe.skip)("durability: 'fsync'", () => {
  it.each(['everysec', 'always'])('is fulfilled with appendfsync %s', async (when) => {
    await policy(when);
    const producer = await produce();
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
  });

  it('is not with appendfsync no: nobody vouches for the job, which is kept and can be sent again', async () => {
    await policy('no');
    const producer = await produce();
    const failure = await producer.enqueue('never', 1, { id: 'a', delay: '1h' }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(NotDurableError);
    expect(failure).toMatchObject({ reached: { fsync: false }, maybeAccepted: true, retryable: true });
    await policy('always');
    const again = await producer.enqueue('never', 1, { id: 'a', delay: '1h' });
    expect(again).toMatchObject({ outcome: 'kept', durability: { fsync: true } });
  });

  it('the server vouches at once for a connection that wrote nothing, so the barrier writes before it waits', async () => {
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
