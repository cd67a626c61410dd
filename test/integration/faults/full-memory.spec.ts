import { afterEach, describe, expect, it } from '@jest/globals';
import { BulkEnqueueError, RedisFullError } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld({});
const fill = () => here.world.redis.config('SET', 'maxmemory', 1);
const empty = () => here.world.redis.config('SET', 'maxmemory', 0);
afterEach(empty);

describe('A Redis without any memory left', () => {
  it('takes no jobs, which the producer learns at once and by a type of its own', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    const { id } = await producer.enqueue('mail', {}, { delay: '1h' });
    const before = await here.world.read('mail');
    await fill();

    const error = await producer.enqueue('mail', {}).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RedisFullError);
    expect(error).toMatchObject({ code: 'ERR_DQ_REDIS_FULL', retryable: true });
    const bulk = await producer
      .enqueueMany('mail', [{ payload: 1 }, { payload: 2 }])
      .catch((thrown: unknown) => thrown);
    expect(bulk).toBeInstanceOf(BulkEnqueueError);
    expect(bulk).toMatchObject({ cause: { code: 'ERR_DQ_REDIS_FULL' } });
    expect(await here.world.read('mail')).toEqual(before);
    expect(await producer.cancel('mail', id)).toMatchObject({ outcome: 'cancelled' });

    await empty();
    expect(await producer.enqueue('mail', {}, { delay: '1h' })).toMatchObject({ outcome: 'created' });
  });

  it('goes on being drained: completions, failures and dead letters', async () => {
    const { producer, inspector } = await here.start({ options: { consume: false } });
    const items = Array.from({ length: 1_000 }, (_, n) => ({ payload: n }));
    await producer.enqueueMany('drain', items);
    await fill();
    const log: string[] = [];
    const handle = (n: number) => {
      if (n % 10 === 0) throw new Error('no');
    };
    await here.start({ providers: [handlerClass('drain', handle, { attempts: 1, concurrency: 50 })], log });

    await eventually(async () => expect(await inspector.totals('drain')).toMatchObject({ completed: 900, dead: 100 }));
    expect(await here.world.violations('drain')).toEqual([]);
    expect(log.filter((line) => line.includes('OOM'))).toEqual([]);
  });
});
