import { describe, expect, it, jest } from '@jest/globals';
import { decodeEnvelope } from '../../../lib/job/envelope.js';
import { DelayQueueRunner } from '../../../lib/worker/delay-queue.runner.js';
import { GoneNotes, SWEEP_EVERY_MS } from '../../../lib/recurring/gone-notes.js';
import { adoptZoneData } from '../../../lib/recurring/rezoning.js';
import { noteZones } from '../../../lib/recurring/zone-notes.js';
import type { DelayQueueProducer } from '../../../lib/producer/delay-queue.producer.js';
import { EnqueueBatcher } from '../../../lib/producer/enqueue-batcher.js';
import type { Session } from '../../../lib/redis/session.js';
import { scheduleKeys, ShardKeys } from '../../../lib/redis/keys.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const HOUR = 3_600_000;
const BERLIN = { local: '2087-07-01T09:00', timeZone: 'Europe/Berlin' };
/** An hour after it. */
const LONDON = { ...BERLIN, timeZone: 'Europe/London' };

const BERLIN_AT = Date.parse('2087-07-01T07:00:00Z');
const notesOf = (queue: string) => scheduleKeys(new ShardKeys(here.world.prefix, queue).fixed)[2]!;

/** As if a process with other zone data had made the job: an hour later than it is to be. */
async function asOlderZoneData(queue: string, id: string, at: number): Promise<void> {
  const { redis } = here.world;
  const [jobs, due] = [here.world.key(queue, 'jobs'), here.world.key(queue, 'due')];
  const envelope = (await redis.hget(jobs, id))!;
  await redis.hset(jobs, id, envelope.replace(`"${BERLIN.timeZone}",${at}`, `"${BERLIN.timeZone}",${at + HOUR}`));
  await redis.zadd(due, 'XX', at + HOUR, id);
  await redis.zadd(here.world.key(queue, 'zoned'), 'XX', at + HOUR, id);
}

describe('a job at a local time', () => {
  it('is due when the clocks of the zone show it', async () => {
    const { producer } = await here.start();
    const result = await producer.enqueue('local', null, { at: BERLIN });
    const spelled = new Intl.DateTimeFormat('sv-SE', {
      timeZone: BERLIN.timeZone,
      dateStyle: 'short',
      timeStyle: 'short',
    });
    expect(spelled.format(result.dueAt)).toBe('2087-07-01 09:00');
  });

  it('is one of 10,000 that are made at once, and all of them are accepted and noted', async () => {
    const queue = 'at-once';
    const { producer } = await here.start({ options: { commandTimeout: '60s' } });
    const asked = jest.spyOn(EnqueueBatcher.prototype, 'ask');
    try {
      const jobs = Array.from({ length: 10_000 }, (_, n) => producer.enqueue(queue, n, { id: `j${n}`, at: BERLIN }));
      expect(new Set((await Promise.all(jobs)).map(({ outcome }) => outcome))).toEqual(new Set(['created']));
      // Each by itself they waited for each other until their time was over.
      expect(asked.mock.calls).toHaveLength(10_000 / 200);
    } finally {
      asked.mockRestore();
    }
    expect(await here.world.redis.zcard(notesOf(queue))).toBe(10_000);
    expect(await here.world.redis.zcard(here.world.key(queue, 'due'))).toBe(10_000);
  });

  it('gets another moment when a process boots with newer zone data, unless it was put off, and keeps its payload', async () => {
    const queue = 'rezoned';
    const first = await here.start();
    const ids = Array.from({ length: 250 }, (_, n) => `job-${n}`);
    const results = await first.producer.enqueueMany(
      queue,
      ids.map((id) => ({ payload: { id }, id, at: BERLIN })),
    );
    const at = results[0]!.dueAt.getTime();
    for (const id of ids) await asOlderZoneData(queue, id, at);
    await first.producer.reschedule(queue, 'job-7', { at: at + 5 * HOUR });
    await here.world.redis.hset(here.world.key(queue, 'meta'), 'zoneData', '2000a');

    await here.start({ providers: [handlerClass(queue, () => undefined)] });
    await eventually(async () => {
      expect(await here.world.redis.hget(here.world.key(queue, 'meta'), 'zoneData')).toBe(process.versions['tz']);
    });
    const { due } = await here.world.read(queue);
    const wanted = ids.map((id) => [id, id === 'job-7' ? at + 5 * HOUR : at]);
    expect(due).toEqual(Object.fromEntries(wanted));
    expect(await first.producer.get(queue, 'job-3')).toMatchObject({ payload: { id: 'job-3' }, dueAt: new Date(at) });
  });

  it('of a process with older zone data is found by the next one with newer', async () => {
    const queue = 'marked';
    const { producer } = await here.start();
    await here.world.redis.hset(here.world.key(queue, 'meta'), 'zoneData', '9999z');
    await producer.enqueue(queue, null, { at: BERLIN, id: 'a' });
    expect(await here.world.redis.hget(here.world.key(queue, 'meta'), 'zoneData')).toBe(process.versions['tz']);
    expect(await here.world.redis.zrange(notesOf(queue), '0', '-1')).toEqual(['a']);
  });
});

describe('while a process looks at all jobs with newer zone data', () => {
  const meta = (queue: string) => here.world.redis.hgetall(here.world.key(queue, 'meta'));
  /** Jobs an hour too late, and what happens when the first page of them has been read. */
  const look = async (
    queue: string,
    meanwhile: (session: Session, producer: DelayQueueProducer) => Promise<unknown>,
    { ids = ['a', 'b'], right = [] as string[] } = {},
  ) => {
    const { app, producer } = await here.start({ options: { consume: false } });
    const jobs = [...ids.map((id) => ({ id, at: BERLIN })), ...right.map((id) => ({ id, at: LONDON }))];
    await producer.enqueueMany(
      queue,
      jobs.map((job) => ({ ...job, payload: null })),
    );
    for (const id of ids) await asOlderZoneData(queue, id, BERLIN_AT);
    await here.world.redis.hset(here.world.key(queue, 'meta'), 'zoneData', '2000a');
    const [store] = app.get(DelayQueueRunner, { strict: false }).shards.stores(queue);
    const [session, other] = [store!.session(), store!.session()];
    const read = jest.spyOn(store!, 'call').mockImplementation(async (...args) => {
      read.mockRestore();
      const page = await store!.call(...args);
      await meanwhile(other, producer);
      return page;
    });
    await adoptZoneData(store!, session, () => false);
    const again = () => adoptZoneData(store!, session, () => false);
    return { again, due: async () => (await here.world.read(queue)).due };
  };

  it('a job that one with older ones makes is looked at by the next', async () => {
    const queue = 'made-meanwhile';
    const { again, due } = await look(queue, async (session) => {
      await session.call({ script: 'zone', args: [0, '2000b', 'late', BERLIN_AT], sequenceAt: 0 });
    });
    expect(await due()).toEqual({ a: BERLIN_AT, b: BERLIN_AT });
    expect(await meta(queue)).toMatchObject({ zoneData: '2000a' });
    await again();
    expect(await meta(queue)).toMatchObject({ zoneData: process.versions['tz'] });
    expect(await meta(queue)).not.toHaveProperty('zoneWalk');
  });

  it.each([
    { which: 'one that is right', again: { id: 'a-000', at: LONDON } },
    { which: 'one that is not', again: { id: 'b-00', at: BERLIN } },
  ])('those of one moment are all reached, also when $which is enqueued again', async ({ which, again }) => {
    const queue = which.replaceAll(' ', '-');
    const right = Array.from({ length: 200 }, (_, n) => `a-${String(n).padStart(3, '0')}`);
    const ids = Array.from({ length: 20 }, (_, n) => `b-${String(n).padStart(2, '0')}`);
    const enqueue = (_: Session, producer: DelayQueueProducer) => producer.enqueue(queue, null, again);
    const { due } = await look(queue, enqueue, { ids, right });
    expect(await due()).toEqual({
      ...Object.fromEntries(ids.map((id) => [id, BERLIN_AT])),
      ...Object.fromEntries(right.map((id) => [id, BERLIN_AT + HOUR])),
    });
    expect(await meta(queue)).toMatchObject({ zoneData: process.versions['tz'] });
  });

  it('one with still newer ones is not contradicted', async () => {
    const queue = 'newer-meanwhile';
    const walk = '9999z 1';
    const { due } = await look(queue, () => here.world.redis.hset(here.world.key(queue, 'meta'), 'zoneWalk', walk));
    expect(await due()).toEqual({ a: BERLIN_AT + HOUR, b: BERLIN_AT + HOUR });
    expect(await meta(queue)).toMatchObject({ zoneData: '2000a', zoneWalk: walk });
  });

  it('a job that one with older ones moves is looked at once more', async () => {
    const queue = 'moved-meanwhile';
    const { due } = await look(queue, async () => {
      const [jobs, index] = [here.world.key(queue, 'jobs'), here.world.key(queue, 'due')];
      const envelope = (await here.world.redis.hget(jobs, 'a'))!;
      await here.world.redis.hset(jobs, 'a', envelope.replace(`,${BERLIN_AT + HOUR}`, `,${BERLIN_AT + 2 * HOUR}`));
      await here.world.redis.zadd(index, BERLIN_AT + 2 * HOUR, 'a');
    });
    expect(await due()).toEqual({ a: BERLIN_AT, b: BERLIN_AT });
    expect(await meta(queue)).toMatchObject({ zoneData: process.versions['tz'] });
  });
});

describe('notes of jobs at a local time', () => {
  it('that are gone go at the second sweep, 10,000 of them; those of jobs that wait, or were noted anew, stay', async () => {
    const queue = 'swept';
    const { redis } = here.world;
    const { app, producer } = await here.start({ options: { consume: false } });
    const [store] = app.get(DelayQueueRunner, { strict: false }).shards.stores(queue);
    const ids = ['waits', 'cancelled', 'dead', 'again', 'running'];
    await producer.enqueueMany(
      queue,
      ids.map((id) => ({ payload: null, id, at: BERLIN })),
    );
    await producer.cancel(queue, 'cancelled');
    await producer.cancel(queue, 'again');
    await redis.zadd(here.world.key(queue, 'dead'), 1, 'dead');
    await redis.zrem(here.world.key(queue, 'due'), 'dead', 'running');
    const gone = Array.from({ length: 10_000 }, (_, n) => [9e12 + (n % 3), `gone-${n}`]);
    await redis.zadd(notesOf(queue), ...gone.flat());

    const notes = new GoneNotes(store!, 0);
    await notes.sweep(SWEEP_EVERY_MS);
    expect(await redis.zcard(notesOf(queue))).toBe(10_005);
    // A job comes after its note: as if it were on its way.
    await noteZones(new EnqueueBatcher(store!, 5_000, {} as never), [{ id: 'again', zonedAt: BERLIN_AT }]);
    await notes.sweep(2 * SWEEP_EVERY_MS - 1);
    expect(await redis.zcard(notesOf(queue))).toBe(10_005);
    await notes.sweep(2 * SWEEP_EVERY_MS);
    expect((await redis.zrange(notesOf(queue), '0', '-1')).sort()).toEqual(['again', 'running', 'waits']);
  });
});

describe('reschedule() to a local time', () => {
  const later = { local: '2087-07-02T10:30', timeZone: 'Europe/Berlin' };
  const noted = async (queue: string, id: string) => here.world.redis.zscore(notesOf(queue), id);

  it('gives a waiting job its moment, which newer zone data move, and keeps everything else', async () => {
    const queue = 'put-off';
    const { producer } = await here.start();
    await producer.enqueue(
      queue,
      { a: 1 },
      { id: 'a', delay: '1h', attempts: 7, expiresIn: '2h', context: { t: '1' } },
    );
    const answer = await producer.reschedule(queue, 'a', { at: later });
    expect(answer).toMatchObject({ outcome: 'rescheduled', dueAt: new Date('2087-07-02T08:30:00Z') });
    expect(await producer.get(queue, 'a')).toMatchObject({
      payload: { a: 1 },
      dueAt: new Date('2087-07-02T08:30:00Z'),
      maxAttempts: 7,
      context: { t: '1' },
    });
    expect(Number(await noted(queue, 'a'))).toBe(Date.parse('2087-07-02T08:30:00Z'));

    const { redis } = here.world;
    const stored = decodeEnvelope((await redis.hget(here.world.key(queue, 'jobs'), 'a'))!);
    // It expired so long after it was due, and still does.
    expect(stored.expiresAt! - stored.dueAt).toBe(2 * HOUR);

    // As if older zone data had said an hour later.
    const at = Date.parse('2087-07-02T08:30:00Z');
    const envelope = (await redis.hget(here.world.key(queue, 'jobs'), 'a'))!;
    await redis.hset(here.world.key(queue, 'jobs'), 'a', envelope.replace(`,${at}`, `,${at + HOUR}`));
    await redis.zadd(here.world.key(queue, 'due'), 'XX', at + HOUR, 'a');
    await redis.zadd(here.world.key(queue, 'zoned'), 'XX', at + HOUR, 'a');
    await here.start({ providers: [handlerClass(queue, () => undefined)] });
    await eventually(async () => expect((await producer.get(queue, 'a'))?.dueAt).toEqual(new Date(at)));
  });

  it('changes no job that runs, is dead or is not there, and refuses what is no local time', async () => {
    const queue = 'not-put-off';
    const { producer } = await here.start();
    expect(await producer.reschedule(queue, 'a', { at: later })).toMatchObject({ outcome: 'notFound' });
    await producer.enqueue(queue, 1, { id: 'dead' });
    await here.world.redis.zrem(here.world.key(queue, 'due'), 'dead');
    await here.world.redis.zadd(here.world.key(queue, 'dead'), 1, 'dead');
    expect(await producer.reschedule(queue, 'dead', { at: later })).toMatchObject({ outcome: 'dead', state: 'dead' });
    for (const at of [
      { ...later, timeZone: 'Europe/Berln' },
      { ...later, local: '2087-02-30T10:00' },
      { ...later, zone: 'x' },
    ]) {
      await expect(producer.reschedule(queue, 'dead', { at })).rejects.toMatchObject({ retryable: false });
    }
  });
});

it('a job at a local time that is moved to another queue is moved by newer zone data there', async () => {
  const { producer, inspector } = await here.start();
  await producer.enqueue('here', null, { id: 'a', at: BERLIN });
  await producer.enqueue('here', null, { id: 'b', at: BERLIN });
  await producer.enqueue('there', null, { id: 'c', at: BERLIN });
  await producer.reschedule('here', 'b', { delay: '1h' });
  await here.world.redis.hset(here.world.key('there', 'meta'), 'zoneData', process.versions['tz']!);
  await inspector.move('here', ['a', 'b'], 'there');
  expect(await here.world.redis.zrange(notesOf('there'), '0', '-1')).toEqual(['a', 'c']);
  // The zone data of whoever stored it are not known, so the next process looks at it.
  expect(await here.world.redis.hget(here.world.key('there', 'meta'), 'zoneData')).toBe('');
});
