import { afterEach, describe, expect, it } from '@jest/globals';
import { RedisFullError } from '../../../lib/index.js';
import { parseOccurrenceId } from '../../../lib/job/job-id.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { groupIn, idIn, idsByShard } from '../../helpers/sharded-groups.js';

const here = inAWorld({ config: { 'maxmemory-policy': 'noeviction' } });
const fill = () => here.world.redis.config('SET', 'maxmemory', 1);
const empty = () => here.world.redis.config('SET', 'maxmemory', 0);
afterEach(empty);

const timesIn = async (queue: string, shards: number) =>
  (await idsByShard(here.world, queue, shards)).map((ids) =>
    ids.map((id) => parseOccurrenceId(id)!.at).sort((a, b) => a - b),
  );
const errorOf = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('on a Redis that is full, a schedule', () => {
  it('is not made and not changed, and stands as it was', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    await producer.schedule('stands', 's', { every: '1h' }, 1);
    const before = await timesIn('stands', 1);
    await fill();
    expect(await errorOf(producer.schedule('stands', 'new', { every: '1h' }, 1))).toBeInstanceOf(RedisFullError);
    expect(await errorOf(producer.schedule('stands', 's', { every: '2h' }, 1))).toBeInstanceOf(RedisFullError);
    await empty();
    expect(await timesIn('stands', 1)).toEqual(before);
    const { schedules } = await producer.listSchedules('stands');
    expect(schedules).toMatchObject([{ id: 's', everyMs: 3_600_000, paused: false }]);
  });

  it('is not paused, and nothing of it goes; it is removed all the same', async () => {
    const { producer, inspector } = await here.start({ options: { consume: false } });
    await producer.schedule('pauses', 's', { every: '1h' }, 1);
    await producer.triggerSchedule('pauses', 's');
    const before = await timesIn('pauses', 1);
    await fill();
    const error = await errorOf(producer.pauseSchedule('pauses', 's'));
    expect(error).toBeInstanceOf(RedisFullError);
    expect(error).toMatchObject({ message: expect.stringMatching(/pauseSchedule.*maxmemory/s), retryable: true });
    expect(await timesIn('pauses', 1)).toEqual(before);
    expect((await producer.listSchedules('pauses')).schedules).toMatchObject([
      { paused: false, counts: { missed: 0 } },
    ]);
    expect(await producer.unschedule('pauses', 's')).toMatchObject({ outcome: 'removed', occurrences: 2 });
    expect(await inspector.counts('pauses')).toMatchObject({ schedules: 0, due: 0, delayed: 0 });
    await empty();
  });

  it('that its group would bring to another shard is in one of the two, with its occurrences, once there is room and it is declared again', async () => {
    const queue = 'goes';
    const { producer } = await here.start({ options: { consume: false, queues: { [queue]: { shards: 2 } } } });
    const into = (shard: number) => producer.schedule(queue, 's', { every: '1h' }, 1, { group: groupIn(shard, 2) });
    await into(0);
    const [times] = await timesIn(queue, 2);
    await fill();
    expect(await errorOf(into(1))).toBeInstanceOf(RedisFullError);
    await empty();
    await into(1);
    expect(await timesIn(queue, 2)).toEqual([[], times]);
    const listed = [];
    for (const cursor of [undefined, '1::'])
      listed.push(...(await producer.listSchedules(queue, cursor ? { cursor } : {})).schedules);
    expect(listed).toMatchObject([{ id: 's', paused: false, counts: { made: 1, missed: 0 } }]);
  });

  it('stays with its occurrences when the number of shards cannot change, and goes when there is room', async () => {
    const queue = 'splits';
    const first = await here.start({ options: { consume: false } });
    const id = idIn(1, 2, 's');
    await first.producer.schedule(queue, id, { every: '1h' }, 1);
    const [times] = await timesIn(queue, 1);
    await first.close();
    const { inspector } = await here.start({ options: { consume: false } });
    await fill();
    expect(await errorOf(inspector.reshard(queue, { to: 2 }))).toBeInstanceOf(Error);
    await empty();
    await inspector.reshard(queue, { to: 2 });
    expect(await timesIn(queue, 2)).toEqual([[], times]);
    const second = await here.start({ options: { consume: false, queues: { [queue]: { shards: 2 } } } });
    const { schedules } = await second.producer.listSchedules(queue, { cursor: '1::' });
    expect(schedules).toMatchObject([{ id, paused: false, counts: { made: 1 } }]);
  });
});
