import { describe, expect, it } from '@jest/globals';
import { scheduleKeys, ShardKeys } from '../../../lib/redis/keys.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const HOUR = 3_600_000;
const BERLIN = { local: '2087-07-01T09:00', timeZone: 'Europe/Berlin' };
const zonedKey = (queue: string) => scheduleKeys(new ShardKeys(here.world.prefix, queue).fixed)[2]!;
const occurrencesOf = async (queue: string) =>
  Object.keys((await here.world.read(queue)).jobs).filter((id) => id.startsWith('{'));

/** A queue that holds the occurrences of a schedule, which are due within the next minute. */
async function recurring(queue: string) {
  const app = await here.start({ options: { consume: false } });
  await app.producer.schedule(queue, 's', { every: '10s' }, 'again');
  const ids = await occurrencesOf(queue);
  expect(ids.length).toBeGreaterThan(3);
  return { ...app, ids };
}

describe('occurrences of a schedule', () => {
  it('are cancelled by their ids or a range, and their schedule goes on', async () => {
    const { inspector, producer, ids } = await recurring('cancelled');
    const first = await inspector.bulk.cancel('cancelled', { ids: ids.slice(0, 1) });
    expect(first.results).toEqual([{ id: ids[0], outcome: 'cancelled', state: 'delayed' }]);
    const others = await inspector.bulk.cancel('cancelled', { to: (await here.world.now()) + HOUR });
    expect(others.results).toHaveLength(ids.length - 1);
    expect(await occurrencesOf('cancelled')).toEqual([]);
    // What is cancelled is left out; the times after it come as ever.
    await producer.triggerSchedule('cancelled', 's');
    expect((await inspector.listSchedules('cancelled')).schedules).toMatchObject([{ id: 's' }]);
    expect(await inspector.counts('cancelled')).toMatchObject({ schedules: 1 });
  });

  it('are rescheduled and run now by a range, and go with their schedule all the same', async () => {
    const { inspector, producer, ids } = await recurring('put-off');
    const range = { to: (await here.world.now()) + HOUR };
    const later = await inspector.bulk.reschedule('put-off', range, { by: '1d' });
    expect(later.results.map(({ outcome }) => outcome)).toEqual(ids.map(() => 'rescheduled'));
    const now = await inspector.bulk.runNow('put-off', { ids: ids.slice(0, 2) });
    expect(now.results).toMatchObject([{ outcome: 'rescheduled' }, { outcome: 'rescheduled' }]);
    expect(await producer.unschedule('put-off', 's')).toMatchObject({ occurrences: ids.length });
    expect(await occurrencesOf('put-off')).toEqual([]);
  });

  it('stay in their queue when a range is moved that holds them, and the walk goes on behind them', async () => {
    const { inspector, producer, ids } = await recurring('from');
    const dueAt = (await here.world.now()) + HOUR;
    await producer.enqueue('from', null, { id: 'plain', at: dueAt });
    const range = { to: dueAt + 1 };
    const left = ids.map((id) => ({ id, outcome: 'occurrence' }));
    const dry = await inspector.bulk.move('from', range, 'to', { dryRun: true });
    expect(dry.results).toEqual(expect.arrayContaining(left));
    const results = [];
    for (let cursor: string | undefined, calls = 0; calls < 20; calls++) {
      const page = await inspector.bulk.move('from', range, 'to', { limit: 2, cursor });
      results.push(...page.results);
      cursor = page.cursor;
      if (cursor === undefined) break;
    }
    expect(results).toHaveLength(ids.length + 1);
    expect(results).toEqual(expect.arrayContaining([...left, { id: 'plain', outcome: 'moved' }]));
    expect((await occurrencesOf('from')).sort()).toEqual(ids.toSorted());
    expect(Object.keys((await here.world.read('to')).due)).toEqual(['plain']);
    const { results: ofIds } = await inspector.bulk.move('from', { ids: ids.slice(0, 1) }, 'to');
    expect(ofIds).toEqual(left.slice(0, 1));
  });
});

describe('jobs at a local time', () => {
  /** As if a process with other zone data had made the jobs: an hour later than they are to be. */
  async function asOlderZoneData(queue: string, ids: readonly string[], at: number): Promise<void> {
    const { redis } = here.world;
    for (const id of ids) {
      const envelope = (await redis.hget(here.world.key(queue, 'jobs'), id))!;
      const older = envelope.replace(`"${BERLIN.timeZone}",${at}`, `"${BERLIN.timeZone}",${at + HOUR}`);
      await redis.hset(here.world.key(queue, 'jobs'), id, older);
      await redis.zadd(here.world.key(queue, 'due'), 'XX', at + HOUR, id);
      await redis.zadd(zonedKey(queue), 'XX', at + HOUR, id);
    }
    await redis.hset(here.world.key(queue, 'meta'), 'zoneData', '2000a');
  }

  /** Starts a process with newer zone data, and waits until it has looked at the jobs. */
  async function newerZoneData(queue: string): Promise<void> {
    await here.world.redis.hset(here.world.key(queue, 'meta'), 'zoneData', '2000a');
    await here.start({ providers: [handlerClass(queue, () => undefined)] });
    await eventually(async () => {
      expect(await here.world.redis.hget(here.world.key(queue, 'meta'), 'zoneData')).toBe(process.versions['tz']);
    });
  }

  it('that were cancelled or put off in bulk are not brought back by newer zone data', async () => {
    const queue = 'local';
    const { producer, inspector } = await here.start({ options: { consume: false } });
    const jobs = ['gone', 'put-off', 'stays'].map((id) => ({ payload: id, id, at: BERLIN }));
    const at = (await producer.enqueueMany(queue, jobs))[0]!.dueAt.getTime();
    await asOlderZoneData(queue, ['gone', 'put-off', 'stays'], at);
    await inspector.bulk.cancel(queue, { ids: ['gone'] });
    await inspector.bulk.reschedule(queue, { ids: ['put-off'] }, { by: '5h' });
    await newerZoneData(queue);
    expect((await here.world.read(queue)).due).toEqual({ 'put-off': at + 6 * HOUR, stays: at });
  });

  it('that are moved by their range keep their local time, which newer zone data then move', async () => {
    const { producer, inspector } = await here.start({ options: { consume: false } });
    const jobs = ['a', 'b'].map((id) => ({ payload: id, id, at: BERLIN }));
    const at = (await producer.enqueueMany('berlin', jobs))[0]!.dueAt.getTime();
    await asOlderZoneData('berlin', ['a', 'b'], at);
    const { results } = await inspector.bulk.move('berlin', { from: at, to: at + 2 * HOUR }, 'moved');
    expect(results).toEqual(['a', 'b'].map((id) => ({ id, outcome: 'moved' })));
    expect(await here.world.redis.zrange(zonedKey('moved'), '0', '-1')).toEqual(['a', 'b']);
    await newerZoneData('moved');
    expect((await here.world.read('moved')).due).toEqual({ a: at, b: at });
  });
});
