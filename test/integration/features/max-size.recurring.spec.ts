import { describe, expect, it } from '@jest/globals';
import { QueueFullError } from '../../../lib/index.js';
import type { BulkEnqueueError, DelayQueueProducer, EnqueueResult } from '../../../lib/index.js';
import { parseOccurrenceId } from '../../../lib/job/job-id.js';
import { eventually } from '../../helpers/eventually.js';
import { holding } from '../../helpers/holding.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { groupIn, idIn, idsByShard, nameOfShard } from '../../helpers/sharded-groups.js';

const here = inAWorld();
const MAX = 3;
const start = (queue: string, definition: object) =>
  here.start({ options: { consume: false, queues: { [queue]: { maxSize: MAX, ...definition } } } });
const errorOf = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  );

/** Of each shard: how many occurrences count as stored ahead, by what is stored of all and of each schedule, and how many are. */
async function ahead(queue: string, shards = 1) {
  const now = await here.world.now();
  const isAhead = (id: string) => (parseOccurrenceId(id)?.at ?? -Infinity) > now;
  const ids = await idsByShard(here.world, queue, shards);
  return Promise.all(
    ids.map(async (all, shard) => {
      const key = (what: string) => here.world.key(nameOfShard(queue, shard, shards), what);
      const fields = Object.entries(await here.world.redis.hgetall(key('schedules')));
      const each = fields.filter(([field]) => field.startsWith('ahead{')).map(([, count]) => Number(count));
      const counted = Number(await here.world.redis.hget(key('meta'), 'ahead'));
      return { counted, each: each.reduce((sum, count) => sum + count, 0), stored: all.filter(isAhead).length };
    }),
  );
}

const exactly = (...counts: number[]) => counts.map((count) => ({ counted: count, each: count, stored: count }));

/** Jobs of one place: as many as `maxSize` allows, and one more, whose error tells how many there are. */
async function fill(producer: DelayQueueProducer, queue: string, options: object = {}, found = 0): Promise<void> {
  for (let n = found; n < MAX; n++) await producer.enqueue(queue, n, { delay: '1h', ...options });
  const error = await errorOf(producer.enqueue(queue, 'more', options));
  expect(error).toBeInstanceOf(QueueFullError);
  expect(error).toMatchObject({ maxSize: MAX, size: MAX });
  expect((error as Error).message).toContain(`${MAX} wait or run`);
}

describe('occurrences that are stored ahead do not count for maxSize', () => {
  it.each<[string, object, object]>([
    ['a plain queue', {}, {}],
    ['a queue with groups', { groups: { concurrency: 1 } }, { group: 'g' }],
    ['a queue with groups and shards', { shards: 3, groups: { concurrency: 1 } }, { group: 'g' }],
    ['a queue with shards', { shards: 3 }, {}],
  ])('of %s, which takes as many jobs as it says', async (_, definition, options) => {
    const queue = `bounded-${Math.random()}`;
    const { producer } = await start(queue, definition);
    const shards = 'shards' in definition ? 3 : 1;
    const place = 'group' in options ? options : (id: string) => ({ id });
    await producer.schedule(queue, 's', { every: '1s' }, {}, options);
    await producer.schedule(queue, 'year', { every: '365d' }, {}, options);
    if (typeof place === 'object' || shards === 1) return fill(producer, queue, options);
    // One id after the other of one shard.
    const ids = Array.from({ length: MAX + 1 }, (_, n) => idIn(1, shards, `id${n}-`));
    for (const id of ids.slice(0, MAX)) await producer.enqueue(queue, 1, { id, delay: '1h' });
    expect(await errorOf(producer.enqueue(queue, 1, place(ids[MAX]!)))).toMatchObject({ maxSize: MAX, size: MAX });
  });

  it('nor for a batch, and the error counts what the batch has added', async () => {
    const { producer } = await start('batch', {});
    await producer.schedule('batch', 's', { every: '10s' }, {});
    await producer.enqueue('batch', 1, { delay: '1h' });
    const error = (await errorOf(
      producer.enqueueMany(
        'batch',
        [1, 2, 3, 4].map((payload) => ({ payload, delay: '1h' as const })),
      ),
    )) as BulkEnqueueError<EnqueueResult>;
    const results = error.results as (EnqueueResult & { error?: unknown })[];
    expect(results.map(({ outcome, error: refused }) => outcome ?? (refused as QueueFullError).size)).toEqual([
      'created',
      'created',
      MAX,
      MAX,
    ]);
  });

  it('while those that are due do, and the error tells how many they are', async () => {
    const queue = 'triggered';
    const { producer } = await start(queue, {});
    await producer.enqueue(queue, 1);
    await producer.schedule(queue, 's', { every: '1h' }, {});
    for (let n = 0; n < 4; n++) await producer.triggerSchedule(queue, 's');
    expect(await errorOf(producer.enqueue(queue, 1))).toMatchObject({ maxSize: MAX, size: 5 });
  });

  it('whatever becomes of their schedule', async () => {
    const queue = 'turns';
    const { producer, inspector } = await start(queue, {});
    await producer.schedule(queue, 'a', { every: '10m' }, {});
    await producer.schedule(queue, 'b', { every: '20s' }, {});
    expect(await ahead(queue)).toEqual(exactly(4));
    await producer.schedule(queue, 'b', { every: '15s' }, {});
    expect(await ahead(queue)).toEqual(exactly(5));
    await producer.pauseSchedule(queue, 'b');
    expect(await ahead(queue)).toEqual(exactly(1));
    await producer.triggerSchedule(queue, 'b');
    expect(await ahead(queue)).toEqual(exactly(1));
    await producer.resumeSchedule(queue, 'b');
    await inspector.purge(queue);
    expect((await ahead(queue))[0]!.counted).toBe((await ahead(queue))[0]!.stored);
    await producer.unschedule(queue, 'b');
    expect(await ahead(queue)).toEqual(exactly(1));
    await producer.unschedule(queue, 'a');
    expect(await ahead(queue)).toEqual(exactly(0));
    await fill(producer, queue);
  });

  it('also one that was cancelled, until its schedule makes more: nobody is refused by that', async () => {
    const queue = 'cancelled';
    const { producer } = await start(queue, {});
    await producer.schedule(queue, 's', { every: '10m' }, {});
    const [id] = (await idsByShard(here.world, queue, 1))[0]!;
    await producer.cancel(queue, id!);
    expect(await ahead(queue)).toEqual([{ counted: 1, each: 1, stored: 0 }]);
    await producer.schedule(queue, 's', { every: '11m' }, {});
    expect(await ahead(queue)).toEqual(exactly(1));
  });

  it('in the shard to which a schedule goes with its group', async () => {
    const queue = 'wanders';
    const { producer } = await start(queue, { shards: 3 });
    await producer.schedule(queue, 's', { every: '25s' }, {}, { group: groupIn(0, 3) });
    await producer.schedule(queue, 's', { every: '25s' }, {}, { group: groupIn(2, 3) });
    const [first, , third] = await ahead(queue, 3);
    expect(first).toEqual({ counted: 0, each: 0, stored: 0 });
    expect(third!.stored).toBeGreaterThan(0);
    expect(third).toMatchObject({ counted: third!.stored, each: third!.stored });
    await fill(producer, queue, { group: groupIn(2, 3) });
  });

  it('in the shards among which they are when their number changes', async () => {
    const queue = 'resharded';
    const { producer, app } = await start(queue, {});
    const ids = [0, 1, 2].map((shard) => idIn(shard, 3, 's'));
    for (const id of ids) await producer.schedule(queue, id, { every: '1h' }, {});
    await app.close();
    const mover = await here.start({ options: { consume: false } });
    await mover.inspector.reshard(queue, { to: 3 });
    expect(await ahead(queue, 3)).toEqual(exactly(1, 1, 1));
    await mover.inspector.reshard(queue, { to: 2 });
    expect((await ahead(queue, 2)).reduce((sum, { counted }) => sum + counted, 0)).toBe(3);
    for (const { counted, each, stored } of await ahead(queue, 2)) expect([counted, each]).toEqual([stored, stored]);
    await mover.inspector.reshard(queue, { to: 1 });
    expect(await ahead(queue)).toEqual(exactly(3));
    const { producer: later } = await start(queue, {});
    await fill(later, queue);
  });

  it('when a worker makes more of them', async () => {
    const { queue, producer } = await holding(here, {}, { defaults: { maxSize: MAX } });
    await producer.schedule(queue, 's', { every: '1h' }, {});
    const [schedules, ticks] = [here.world.key(queue, 'schedules'), here.world.key(queue, 'ticks')];
    const text = (await here.world.redis.hget(schedules, '{s}'))!;
    const [definition, state, content] = text.split('\n') as [string, string, string];
    const older = { ...JSON.parse(state), last: Date.now() - 1, anchor: Date.now() - 1, recent: [] };
    await here.world.redis.hset(schedules, '{s}', [definition, JSON.stringify(older), content].join('\n'));
    await here.world.redis.hdel(schedules, 'ahead{s}');
    await here.world.redis.hset(here.world.key(queue, 'meta'), 'ahead', 0);
    await here.world.redis.zadd(ticks, 1, 's');
    await eventually(async () => expect((await ahead(queue))[0]).toMatchObject({ counted: 1, each: 1 }));
  });
});
