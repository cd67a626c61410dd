import { beforeEach, describe, expect, it } from '@jest/globals';
import { LimitCalls } from '../../lib/inspection/limit-calls.js';
import { ShardStore } from '../../lib/redis/shard-store.js';
import { ShardCheck } from '../../lib/shards/shard-check.js';
import { askLimits, spreadLimits } from '../../lib/shards/spread-limits.js';
import { shards } from './shards.js';

const here = shards();
const COUNT = 3;
const FIELDS = ['limits', 'limitsBy', 'limitsOfSettings'];

let queue: string;
let stores: readonly ShardStore[];
beforeEach(async () => {
  const shard = here.fresh();
  const { prefix } = here.world;
  queue = shard.queue;
  const opening = new ShardCheck(shard.connection, prefix, queue, COUNT);
  await opening.open();
  stores = Array.from(
    { length: COUNT },
    (_, index) => new ShardStore(shard.connection, prefix, queue, index, COUNT, opening),
  );
});

const metaKey = (index: number) => here.world.key(`${queue}:${index}`, 'meta');

/** What each shard has: the limits, who set them, and what applications said last. */
const stored = () => Promise.all(stores.map((_, index) => here.world.redis.hmget(metaKey(index), ...FIELDS)));
const everywhere = (...what: [limits: string, setBy: string, ofSettings: string]) => stores.map(() => what);

/** The same shards, where calls to some of them wait for `before`, or fail by it. */
function through(before: (index: number, args: readonly (string | number)[]) => Promise<void>): ShardStore[] {
  return stores.map((store, index) => {
    const call: ShardStore['call'] = async (script, args) => {
      await before(index, args);
      return store.call(script, args);
    };
    return Object.assign(Object.create(store) as ShardStore, { call, beginGroups: () => store.beginGroups() });
  });
}

/** A process that dies when only the first shards have what it sets. */
const dying = (reached: number) =>
  through(async (index, [, by]) => {
    if (by === 't' && index >= reached) throw new Error('killed');
  });

function gate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { open, opened };
}

describe('limits of a queue with shards', () => {
  it('are those of one call where two come at a time: of the one that the first shard took last', async () => {
    const [taken, slow] = [gate(), gate()];
    const callsOf = (over: readonly ShardStore[]) => new LimitCalls({ stores: () => over } as never, queue);
    const former = callsOf(
      through(async (index) => {
        if (index === 1) taken.open();
        if (index === 2) await slow.opened;
      }),
    ).set({ globalConcurrency: 3 });
    await taken.opened;
    await callsOf(stores).set({ globalConcurrency: 6 });
    slow.open();
    await former;
    expect(await stored()).toEqual(everywhere('count:6', 'o', ''));
    expect((await callsOf(stores).read()).limits).toEqual({ globalConcurrency: 6 });
  });

  it('are those of an operator where an application boots at the same time, in whatever order they come to the shards', async () => {
    const [taken, slow] = [gate(), gate()];
    const boot = spreadLimits(
      through(async (_, [, by]) => {
        if (by !== 't') return;
        taken.open();
        await slow.opened;
      }),
      'count:3',
      'c',
    );
    await taken.opened;
    await spreadLimits(stores, 'count:6', 'o');
    slow.open();
    await boot;
    expect(await stored()).toEqual(everywhere('count:6', 'o', 'count:3'));
  });

  it('are taken to all shards by the next call, where a process died on the way: also by one that changes nothing', async () => {
    await spreadLimits(stores, 'count:3', 'c');
    await expect(spreadLimits(dying(2), 'count:6', 'o')).rejects.toThrow('killed');
    expect((await stored()).map(([limits]) => limits)).toEqual(['count:6', 'count:6', 'count:3']);
    expect((await spreadLimits(stores, 'count:3', 'c')).outcome).toBe('k');
    expect(await stored()).toEqual(everywhere('count:6', 'o', 'count:3'));
    await expect(spreadLimits(dying(1), '', 'r')).rejects.toThrow('killed');
    expect((await spreadLimits(stores, '', 'r')).outcome).toBe('u');
    expect(await stored()).toEqual(everywhere('count:3', 'c', 'count:3'));
  });

  it('are taken to all shards by a call that finds newer ones in one of them, whose process died since', async () => {
    const [taken, slow] = [gate(), gate()];
    const former = spreadLimits(
      through(async (_, [, by]) => {
        if (by !== 't') return;
        taken.open();
        await slow.opened;
      }),
      'count:3',
      'o',
    );
    await taken.opened;
    await expect(spreadLimits(dying(2), 'count:6', 'o')).rejects.toThrow('killed');
    slow.open();
    await former;
    expect(await stored()).toEqual(everywhere('count:6', 'o', ''));
  });

  it('of a library without revisions are read, and become those of the first shard with the next call', async () => {
    await spreadLimits(stores, 'count:3', 'c');
    await here.world.redis.hdel(metaKey(0), 'limitsRevision');
    await here.world.redis.hdel(metaKey(1), 'limitsRevision');
    await here.world.redis.hset(metaKey(2), { limits: 'count:6', limitsOfSettings: 'count:6' });
    await here.world.redis.hdel(metaKey(2), 'limitsRevision');
    expect(await askLimits(stores[0]!)).toMatchObject({ outcome: 'u', holding: 'count:3', revision: 0 });
    expect((await spreadLimits(stores, 'count:3', 'c')).outcome).toBe('u');
    expect(await stored()).toEqual(everywhere('count:3', 'c', 'count:3'));
  });

  it('are those of the first shard also where it has forgotten its last revision', async () => {
    await spreadLimits(stores, 'count:3', 'o');
    const before = await here.world.redis.hgetall(metaKey(0));
    await spreadLimits(stores, 'count:6', 'o');
    await here.world.redis.hset(metaKey(0), before);
    await spreadLimits(stores, 'count:3', 'o');
    expect(await stored()).toEqual(everywhere('count:3', 'o', ''));
  });

  it('are not changed by the copy of a call that comes when another one was answered', async () => {
    const { revision } = await spreadLimits(stores, 'count:3', 'o');
    await spreadLimits(stores, 'count:6', 'o');
    const [outcome] = (await stores[0]!.call('limit', ['count:9', 'o', revision])) as [string];
    expect(outcome).toBe('c');
    await stores[1]!.call('limit', ['count:9', 't', revision, 'o', '']);
    expect(await stored()).toEqual(everywhere('count:6', 'o', ''));
  });

  it('are none, and the queue none with limits, where there never were any', async () => {
    expect((await spreadLimits(stores, '', 'o')).outcome).toBe('n');
    expect((await spreadLimits(stores, '', 'r')).outcome).toBe('n');
    expect(await Promise.all(stores.map((_, index) => here.world.redis.hget(metaKey(index), 'needs')))).toEqual(
      stores.map((_, index) => `shards:${index}/${COUNT}`),
    );
  });
});
