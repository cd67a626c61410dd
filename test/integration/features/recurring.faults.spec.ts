import { describe, expect, it, jest } from '@jest/globals';
import { scheduleKeys, ShardKeys } from '../../../lib/redis/keys.js';
import { ShardStore } from '../../../lib/redis/shard-store.js';
import { DelayQueueRunner } from '../../../lib/worker/delay-queue.runner.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { idIn } from '../../helpers/sharded-groups.js';

const here = inAWorld();
const SHARDS = 2;
const KEYS = ['schedules', 'ticks', 'zoned', 'pending'] as const;
const [BROKEN, SOUND] = [idIn(0, SHARDS), idIn(1, SHARDS)];
let queues = 0;

/** A queue of two shards with a schedule in each of them, and a process that makes their occurrences. */
async function twoShards() {
  const queue = `damaged-${queues++}`;
  const log: string[] = [];
  const app = await here.start({
    providers: [handlerClass(queue, () => undefined)],
    options: { queues: { [queue]: { shards: SHARDS } } },
    log,
  });
  for (const id of [BROKEN, SOUND]) await app.producer.schedule(queue, id, { every: '1h' }, 1);
  const ticker = app.app.get(DelayQueueRunner, { strict: false }).tickers.all.get(queue)!;
  const keysOf = (shard: number) => scheduleKeys(new ShardKeys(here.world.prefix, queue, shard, SHARDS).fixed);
  const ticks = keysOf(1)[KEYS.indexOf('ticks')]!;
  const { redis } = here.world;
  return {
    ...app,
    queue,
    ticker,
    log,
    keys: keysOf(0),
    told: () => log.filter((line) => line.startsWith('error ') && /Schedules|local time/.test(line)),
    /** The other schedule needs more occurrences from now on. */
    asks: () => redis.zadd(ticks, 1, SOUND),
    isLookedAt: async () => Number(await redis.zscore(ticks, SOUND)) > 1,
    damage: async (key: string) => {
      if (await redis.exists(key)) await redis.rename(key, `${key}.saved`);
      await redis.set(key, 'of somebody else');
    },
    /** As the log advises; and what was there comes back. */
    mend: async (key: string) => {
      await redis.rename(key, `${key}.wrong`);
      if (await redis.exists(`${key}.saved`)) await redis.rename(`${key}.saved`, key);
    },
  };
}

describe('what makes occurrences', () => {
  it.each(['schedules', 'ticks', 'pending'] as const)(
    'tells once that %s has a wrong type, and what to do; schedules in other shards go on; and it tells it again the next time',
    async (name) => {
      const { ticker, told, log, asks, isLookedAt, damage, mend, keys } = await twoShards();
      const key = keys[KEYS.indexOf(name)]!;
      const goesOn = () => log.filter((line) => /Schedules of queue .* go on/.test(line));
      for (const outages of [1, 2]) {
        await damage(key);
        await asks();
        for (let looks = 0; looks < 3; looks++) await ticker.tick();
        expect(told()).toHaveLength(outages);
        expect(told().at(-1)).toContain(`key "${key}" is no ${name === 'schedules' ? 'hash' : 'zset'}`);
        expect(told().at(-1)).toContain(`RENAME "${key}" "${key}.wrong"`);
        expect(await isLookedAt()).toBe(true);
        expect(goesOn()).toHaveLength(outages - 1);
        await mend(key);
        await ticker.tick();
        expect(goesOn()).toHaveLength(outages);
      }
    },
  );

  it('goes on where what is noted of jobs at a local time has a wrong type when the process boots, and tells it', async () => {
    const queue = 'zoned';
    const [, ticks, zoned] = scheduleKeys(new ShardKeys(here.world.prefix, queue).fixed) as [string, string, string];
    const { producer } = await here.start({ options: { consume: false } });
    await producer.schedule(queue, 's', { every: '1h' }, 1);
    await here.world.redis.zadd(ticks, 1, 's');
    await here.world.redis.set(zoned, 'of somebody else');
    const log: string[] = [];
    const repeat = { every: '1h' } as const;
    await here.start({ providers: [handlerClass(queue, () => undefined, { repeat })], log });
    await eventually(async () => expect(Number(await here.world.redis.zscore(ticks, 's'))).toBeGreaterThan(1));
    expect((await producer.listSchedules(queue)).schedules.map(({ id }) => id).sort()).toEqual(['@code', 's']);
    expect(log.filter((line) => line.includes(`RENAME "${zoned}"`))).toHaveLength(1);
    await here.world.redis.del(zoned);
  });

  it('looks at a shard also while another one does not answer', async () => {
    const { ticker, asks, isLookedAt } = await twoShards();
    await ticker.tick();
    const call = Reflect.get(ShardStore.prototype, 'call') as ShardStore['call'];
    const held: (() => void)[] = [];
    const spy = jest.spyOn(ShardStore.prototype, 'call').mockImplementation(async function (this: ShardStore, ...args) {
      if (args[0] === 'ticks' && this.keys.due.includes(':0}'))
        await new Promise<void>((resolve) => held.push(resolve));
      return call.apply(this, args);
    });
    try {
      await asks();
      const looked = ticker.tick();
      await eventually(async () => expect(await isLookedAt()).toBe(true));
      expect(held).toHaveLength(1);
      held[0]!();
      await looked;
    } finally {
      spy.mockRestore();
      for (const letGo of held) letGo();
    }
  });

  it('is told of a schedule whose place in the order was lost when it is declared again', async () => {
    const { producer, queue, damage, keys, ticker, isLookedAt } = await twoShards();
    const ticks = keys[KEYS.indexOf('ticks')]!;
    await damage(ticks);
    await here.world.redis.rename(ticks, `${ticks}.wrong`);
    expect((await producer.listSchedules(queue, { limit: 1 })).schedules).toEqual([]);
    expect(await producer.schedule(queue, BROKEN, { every: '1h' }, 1)).toMatchObject({ outcome: 'replaced' });
    expect(await producer.schedule(queue, BROKEN, { every: '1h' }, 1)).toMatchObject({ outcome: 'kept' });
    expect((await producer.listSchedules(queue, { limit: 1 })).schedules).toMatchObject([{ id: BROKEN }]);
    await ticker.tick();
    expect(await isLookedAt()).toBe(true);
  });
});
