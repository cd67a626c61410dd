import { describe, expect, it } from '@jest/globals';
import type { JobResponse, StateResponse, TimelineResponse } from '../../../lib/dashboard/api.js';
import { folded } from '../../../lib/dashboard/reads/dead-groups.js';
import { devalueCodec } from '../../../lib/devalue/index.js';
import { DelayQueueHistoryModule } from '../../../lib/history/index.js';
import { minuteKey } from '../../../lib/history/history.keys.js';
import { DelayQueueModule } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { dashboardsIn } from '../../helpers/dashboard-in-a-world.js';
import type { AdapterName } from '../../helpers/dashboard.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const { serve } = dashboardsIn(here);
const ADAPTERS: AdapterName[] = ['Express', 'Fastify'];
const HOUR = 3_600_000;
const MINUTE = 60_000;
let queues = 0;
const fresh = () => `looked-at-${queues++}`;
let ahead = 1_000;
/** Where no other test has a job. */
const farAway = async () => (await here.world.now()) + (ahead += 100) * HOUR;

/** Dead letters as a worker leaves them; their errors have these messages. */
async function bury(queue: string, letters: readonly { id: string; at: number; reason?: string; message: string }[]) {
  const { redis, key } = { redis: here.world.redis, key: (name: string) => here.world.key(queue, name) };
  for (const { id, at, reason = 'exhausted', message } of letters) {
    const error = JSON.stringify({ name: 'Error', message, stack: `Error: ${message}\n    at x`, at });
    await redis.zrem(key('due'), id);
    await redis.zadd(key('dead'), at, id);
    await redis.hset(key('errors'), id, `${reason}\n${error}`);
  }
}

describe.each(ADAPTERS)('on %s, the state', (adapter) => {
  it('tells of each queue what it holds and how it is', async () => {
    const { get, producer, inspector } = await serve({ adapter });
    const [waiting, paused, closed, unattended] = [fresh(), fresh(), fresh(), fresh()];
    await producer.enqueue(waiting, 1, { delay: '30m' });
    await producer.enqueue(paused, 1);
    await inspector.pause(paused);
    await producer.enqueue(closed, 1, { delay: '2h' });
    await inspector.pausePublishing(closed);
    await producer.enqueue(unattended, 1);
    const { body } = await get('api/state');
    const byName = Object.fromEntries((body as StateResponse).queues.map((state) => [state.queue, state]));
    expect(byName[waiting]).toMatchObject({ status: 'ok', delayed: 1, due: 0, shards: 1, paused: false });
    expect(byName[waiting]!.nextHour).toHaveLength(60);
    expect(byName[waiting]!.nextHour.reduce((sum, jobs) => sum + jobs)).toBe(1);
    expect(byName[waiting]!.nextDueAt).toBeGreaterThan(await here.world.now());
    expect(byName[paused]).toMatchObject({ status: 'paused', due: 1, paused: true });
    expect(byName[closed]).toMatchObject({ status: 'publishingPaused', delayed: 1, publishingPaused: true });
    expect(byName[unattended]).toMatchObject({ status: 'unattended', due: 1 });
    expect(body).toMatchObject({ redis: { up: true }, more: 0 });
  });

  it('has a tag of what it says, so that an unchanged one is not sent again', async () => {
    const { get, producer } = await serve({ adapter });
    const queue = fresh();
    await producer.enqueue(queue, 1, { delay: '30m' });
    const first = await get('api/state');
    const tag = first.headers['etag']!;
    const second = await get('api/state', { 'if-none-match': tag });
    expect([second.status, second.text]).toEqual([304, '']);
    expect(second.headers['etag']).toBe(tag);
    expect((await get('api/state', { 'if-none-match': '"other", W/"another"' })).status).toBe(200);
    await producer.enqueue(queue, 1, { delay: '40m' });
    const third = await eventually(async () => {
      const answered = await get('api/state', { 'if-none-match': tag });
      expect(answered.status).toBe(200);
      return answered;
    });
    const state = (third.body as StateResponse).queues.find((one) => one.queue === queue);
    expect(state).toMatchObject({ delayed: 2 });
  });
});

describe('the state', () => {
  it('of a damaged queue says so, and those of the others are as they are', async () => {
    const { get, producer } = await serve();
    const [damaged, sound] = [fresh(), fresh()];
    for (const queue of [damaged, sound]) await producer.enqueue(queue, 1, { delay: '1h' });
    await here.world.redis.del(here.world.key(damaged, 'due'));
    await here.world.redis.set(here.world.key(damaged, 'due'), 'no zset');
    const { queues: states } = (await get('api/state')).body as StateResponse;
    expect(states.find(({ queue }) => queue === damaged)).toMatchObject({
      status: 'damaged',
      problem: expect.any(String),
    });
    expect(states.find(({ queue }) => queue === sound)).toMatchObject({ status: 'ok', delayed: 1 });
  });

  it('of a queue with another number of shards elsewhere is the sum of all of them', async () => {
    const queue = fresh();
    const split = await serve({ root: { queues: { [queue]: { shards: 3 } } } });
    await split.producer.enqueueMany(
      queue,
      Array.from({ length: 20 }, () => ({ payload: 1, delay: '30m' })),
    );
    const { get } = await serve();
    const { queues: states } = (await get('api/state')).body as StateResponse;
    const state = states.find((one) => one.queue === queue)!;
    expect(state).toMatchObject({ status: 'ok', delayed: 20, shards: 3 });
    expect(state.nextHour.reduce((sum, jobs) => sum + jobs)).toBe(20);
    expect((await get(`api/jobs?queue=${queue}&state=delayed`)).problem).toMatchObject({
      status: 409,
      code: 'ERR_DQ_SHARD_COUNT',
    });
  });
});

describe.each(ADAPTERS)('on %s, the timeline', (adapter) => {
  it('is of one queue, or of all together', async () => {
    const { get, producer } = await serve({ adapter });
    const [one, other] = [fresh(), fresh()];
    const from = await farAway();
    await producer.enqueueMany(
      one,
      [1, 1, 2].map((hour) => ({ payload: 1, at: from + hour * HOUR + MINUTE })),
    );
    await producer.enqueue(other, 1, { at: from + HOUR + 2 * MINUTE });
    await producer.enqueue(other, 1, { at: from + 30 * HOUR });
    const range = `from=${from}&to=${from + 4 * HOUR}&buckets=4`;
    const ofOne = (await get(`api/timeline?queue=${one}&${range}`)).body as TimelineResponse;
    expect(ofOne).toMatchObject({
      from,
      to: from + 4 * HOUR,
      widthMs: HOUR,
      counts: [0, 2, 1, 0],
      after: 0,
      queues: 1,
      left: 0,
    });
    const all = (await get(`api/timeline?${range}`)).body as TimelineResponse;
    expect(all.counts).toEqual([0, 3, 1, 0]);
    expect(all).toMatchObject({ after: 1, lastDueAt: from + 30 * HOUR });
    expect(all.queues).toBeGreaterThanOrEqual(2);
  });

  it('of all leaves out a first queue whose name a shard of another one has', async () => {
    const { get, producer } = await serve({ adapter });
    const [taken, sound] = [`!${fresh()}`, fresh()];
    const at = await farAway();
    for (const queue of [taken, sound]) await producer.enqueue(queue, 1, { at });
    const meta = here.world.key(taken, 'meta');
    await here.world.redis.hset(meta, 'needs', 'shards:0/2');
    const { body } = await get(`api/timeline?from=${at - HOUR}&to=${at + HOUR}&buckets=1`);
    await here.world.redis.hdel(meta, 'needs');
    expect(body.counts).toEqual([1]);
    expect(body.left).toBeGreaterThanOrEqual(1);
  });

  it('of all says how many could not be read', async () => {
    const { get, producer } = await serve({ adapter });
    const [damaged, sound] = [fresh(), fresh()];
    const at = await farAway();
    for (const queue of [damaged, sound]) await producer.enqueue(queue, 1, { at });
    const key = here.world.key(damaged, 'due');
    await here.world.redis.del(key);
    await here.world.redis.set(key, 'no zset');
    const { body } = await get(`api/timeline?from=${at - HOUR}&to=${at + HOUR}&buckets=1`);
    expect(body.counts).toEqual([1]);
    expect(body.left).toBeGreaterThanOrEqual(1);
    await here.world.redis.del(key);
  });
});

describe.each(ADAPTERS)('on %s, jobs', (adapter) => {
  it('come by state, page after page, with the beginning of their payloads', async () => {
    const { get, producer } = await serve({ adapter });
    const queue = fresh();
    await producer.enqueueMany(
      queue,
      Array.from({ length: 7 }, (_, n) => ({ payload: { n, text: 'x'.repeat(300) }, id: `J${n}`, delay: `${n + 1}h` })),
    );
    const ids: string[] = [];
    let cursor: string | undefined;
    do {
      const { body } = await get(
        `api/jobs?queue=${queue}&state=delayed&limit=3${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`,
      );
      ids.push(...body.jobs.map(({ id }: { id: string }) => id));
      expect(body.jobs[0].preview).toMatch(/^\{"n":\d,"text":"x{100,}$/);
      expect(body.jobs[0].preview).toHaveLength(200);
      cursor = body.cursor;
    } while (cursor);
    expect(ids).toEqual(['J0', 'J1', 'J2', 'J3', 'J4', 'J5', 'J6']);
    const due = (await here.world.read(queue)).due;
    const { body } = await get(`api/jobs?queue=${queue}&state=delayed&from=${due['J2']}&to=${due['J4']}`);
    expect(body.jobs.map(({ id }: { id: string }) => id)).toEqual(['J2', 'J3', 'J4']);
  });

  it('may have names and ids of any characters', async () => {
    const { get, act, producer } = await serve({ adapter });
    const queue = `a/b?c%2F&d=#e ${queues++} ü`;
    const id = '../%00?&=#/é';
    await producer.enqueue(queue, 1, { id, delay: '1h' });
    const [q, i] = [encodeURIComponent(queue), encodeURIComponent(id)];
    expect((await get(`api/job?queue=${q}&id=${i}`)).body).toMatchObject({ id, queue, state: 'delayed' });
    expect((await get(`api/find?id=${i}`)).body.jobs).toMatchObject([{ id, queue }]);
    const { body } = await act('jobs/cancel', { queue, ids: [id] });
    expect(body.results).toEqual([{ id, outcome: 'cancelled', state: 'delayed' }]);
  });

  it('are shown whole: times, options, context, and the payload with all its digits', async () => {
    const { get, producer } = await serve({ adapter });
    const queue = fresh();
    await producer.enqueue(
      queue,
      { sum: 1 },
      { id: 'A', delay: '1h', expiresIn: '10m', attempts: 3, timeout: '5s', context: { tenant: 't1' } },
    );
    const stored = await here.world.redis.hget(here.world.key(queue, 'jobs'), 'A');
    await here.world.redis.hset(
      here.world.key(queue, 'jobs'),
      'A',
      stored!.replace('{"sum":1}', '{"sum":12345678901234567890.10}'),
    );
    const { body } = await get(`api/job?queue=${queue}&id=A`);
    const dueAt = (await here.world.read(queue)).due['A']!;
    expect(body).toMatchObject({
      state: 'delayed',
      dueAt,
      enqueuedAt: dueAt - HOUR,
      expiresAt: dueAt + 10 * MINUTE,
      attempts: 0,
      maxAttempts: 3,
      snoozes: 0,
      quarantined: false,
      errors: [],
      shard: 0,
      context: { tenant: 't1' },
      options: { attempts: 3, timeoutMs: 5_000 },
      payload: { kind: 'json', text: '{"sum":12345678901234567890.10}' },
    } satisfies Partial<JobResponse>);
  });

  it('that do not exist are not found', async () => {
    const { get } = await serve({ adapter });
    const { status, problem } = await get('api/job?queue=nowhere&id=A');
    expect([status, problem.code]).toEqual([404, 'DASHBOARD_NOT_FOUND']);
    expect((await get('api/find?id=nobody')).body.jobs).toEqual([]);
  });
});

describe('a job', () => {
  it('that runs tells until when its process holds it; one that has ended when, and why', async () => {
    const queue = fresh();
    let end!: () => void;
    const ended = new Promise<void>((resolve) => (end = resolve));
    const handle = async (payload: string) => {
      if (payload === 'waits') return ended;
      throw new RangeError('too much of 4711', { cause: new Error('behind it') });
    };
    const { get, producer } = await serve({
      root: { consume: true },
      providers: [handlerClass(queue, handle, { attempts: 1, keepCompleted: { count: 5 } })],
    });
    await producer.enqueue(queue, 'waits', { id: 'R' });
    await producer.enqueue(queue, 'fails', { id: 'D' });
    const read = async (id: string) => (await get(`api/job?queue=${queue}&id=${id}`)).body as JobResponse;
    const running = await eventually(async () => {
      const job = await read('R');
      expect(job.state).toBe('running');
      return job;
    });
    expect(running.leaseUntil).toBeGreaterThan(running.now);
    const dead = await eventually(async () => {
      const job = await read('D');
      expect(job.state).toBe('dead');
      return job;
    });
    expect(dead).toMatchObject({ deadReason: 'exhausted', attempts: 1, maxAttempts: 1, endedAt: expect.any(Number) });
    expect(dead.lastError).toMatchObject({
      name: 'RangeError',
      message: 'too much of 4711',
      cause: { message: 'behind it' },
    });
    expect(dead.lastError!.stack).toContain('at ');
    expect(dead.errors).toMatchObject([{ name: 'RangeError', message: 'too much of 4711' }]);
    end();
    await eventually(async () =>
      expect(await read('R')).toMatchObject({ state: 'completed', endedAt: expect.any(Number) }),
    );
    expect((await get(`api/jobs?queue=${queue}&state=completed`)).body.jobs).toMatchObject([
      { id: 'R', completedAt: expect.any(Number) },
    ]);
  });

  it('in quarantine is said to be there, in lists as well', async () => {
    const { get, producer } = await serve();
    const queue = fresh();
    await producer.enqueue(queue, 1, { id: 'Q' });
    const { redis } = here.world;
    await redis.zrem(here.world.key(queue, 'due'), 'Q');
    await redis.zadd(here.world.key(queue, 'quarantine'), await here.world.now(), 'Q');
    expect((await get(`api/job?queue=${queue}&id=Q`)).body).toMatchObject({ state: 'due', quarantined: true });
    expect((await get(`api/jobs?queue=${queue}&state=due`)).body.jobs).toMatchObject([{ id: 'Q', quarantined: true }]);
  });

  it('whose payload is compressed has all its digits; one of a codec is shown as text; one that cannot be read says so', async () => {
    const queue = fresh();
    const packed = await serve({ root: { compressAbove: 100 } });
    await packed.producer.enqueue(queue, { text: 'y'.repeat(5_000) }, { id: 'Z', delay: '1h' });
    expect((await packed.get(`api/job?queue=${queue}&id=Z`)).body.payload).toEqual({
      kind: 'json',
      text: `{"text":"${'y'.repeat(5_000)}"}`,
    });
    const coded = await serve({ root: { codec: [devalueCodec(), 'json'] } });
    await coded.producer.enqueue(queue, { at: new Map([['big', 10n]]) }, { id: 'C', delay: '1h' });
    const { payload } = (await coded.get(`api/job?queue=${queue}&id=C`)).body as JobResponse;
    expect(payload).toMatchObject({ kind: 'text', text: expect.stringContaining("'big' => 10n") });
    const { body } = await packed.get(`api/job?queue=${queue}&id=C`);
    expect(body).toMatchObject({
      id: 'C',
      state: 'delayed',
      payload: { kind: 'undecodable', problem: expect.stringContaining('UnknownCodecError') },
    });
    await here.world.redis.hset(here.world.key(queue, 'jobs'), 'C', '1-broken');
    expect((await packed.get(`api/job?queue=${queue}&id=C`)).body).toMatchObject({
      id: 'C',
      payload: { kind: 'undecodable' },
    });
    expect((await packed.get(`api/jobs?queue=${queue}&state=delayed`)).body.jobs).toHaveLength(2);
  });
});

describe('dead letters', () => {
  it('are grouped by what they died of, with numbers and ids folded', async () => {
    const { get, producer } = await serve();
    const queue = fresh();
    const ids = ['A', 'B', 'C', 'D'];
    await producer.enqueueMany(
      queue,
      ids.map((id) => ({ payload: 1, id })),
    );
    const at = await here.world.now();
    await bury(queue, [
      { id: 'A', at: at - 300, message: 'order 4711 refused after 12.5 s' },
      { id: 'B', at: at - 200, message: 'order 9 refused after 3 s' },
      { id: 'C', at: at - 100, message: 'card expired' },
      { id: 'D', at, reason: 'discarded', message: 'order 9 refused after 3 s' },
    ]);
    const { body } = await get(`api/dead-groups?queue=${queue}`);
    expect(body).toMatchObject({ total: 4, looked: 4 });
    expect(body.groups).toEqual([
      {
        reason: 'exhausted',
        error: 'Error',
        message: 'order # refused after # s',
        example: 'order 9 refused after 3 s',
        count: 2,
        firstAt: at - 300,
        lastAt: at - 200,
        ids: ['B', 'A'],
      },
      {
        reason: 'discarded',
        error: 'Error',
        message: 'order # refused after # s',
        example: 'order 9 refused after 3 s',
        count: 1,
        firstAt: at,
        lastAt: at,
        ids: ['D'],
      },
      {
        reason: 'exhausted',
        error: 'Error',
        message: 'card expired',
        example: 'card expired',
        count: 1,
        firstAt: at - 100,
        lastAt: at - 100,
        ids: ['C'],
      },
    ]);
  });

  it('beyond the newest 1,000 are not looked at, and that is said', async () => {
    const { get, producer } = await serve({ root: { queues: {} } });
    const queue = fresh();
    await producer.enqueue(queue, 1, { delay: '1h' });
    const at = await here.world.now();
    const { redis } = here.world;
    const key = (name: string) => here.world.key(queue, name);
    const letters = Array.from({ length: 1_100 }, (_, n) => [at - n, `D${n}`] as const);
    await redis.zadd(key('dead'), ...letters.flat());
    const error = JSON.stringify({ name: 'Error', message: 'no', at });
    await redis.hset(key('errors'), Object.fromEntries(letters.map(([, id]) => [id, `exhausted\n${error}`])));
    const { body } = await get(`api/dead-groups?queue=${queue}`);
    expect(body).toMatchObject({
      total: 1_100,
      looked: 1_000,
      groups: [{ count: 1_000, lastAt: at, firstAt: at - 999 }],
    });
    expect(body.groups[0].ids.slice(0, 2)).toEqual(['D0', 'D1']);
  });

  it.each([
    ['id 8c1f0f2e-4f2b-4a57-9d5b-0f3b8a9d1c2e', 'id #'],
    ['timeout of 5000ms exceeded', 'timeout of # exceeded'],
    ['connect ECONNREFUSED 10.0.0.7:5432', 'connect ECONNREFUSED #'],
    ["reading 'name'", "reading 'name'"],
    ['', ''],
  ])('with the message %j are folded to %j', (message, expected) => {
    expect(folded(message)).toBe(expected);
  });

  it('with a long message are folded in no time', () => {
    expect(folded(`${'1.'.repeat(100_000)}!`).length).toBeLessThanOrEqual(500);
  });
});

describe('lateness and processes', () => {
  it('are what the history has kept', async () => {
    const { get, producer } = await serve({ imports: [DelayQueueHistoryModule] });
    const queue = fresh();
    await producer.enqueue(queue, 1, { delay: '1h' });
    const minute = Math.floor((await here.world.now()) / MINUTE) - 2;
    await here.world.redis.hset(minuteKey(here.world.prefix, queue, minute), {
      claimed: 3,
      completed: 2,
      late0: 2,
      late14: 1,
      latenessMs: 400_000,
      ran: 2,
      ranMs: 50,
    });
    const { body } = await get(`api/lateness?queue=${queue}`);
    expect(body.minutes).toMatchObject([{ at: minute * MINUTE, claimed: 3, completed: 2, meanDurationMs: 25 }]);
    expect(body.total.lateness.buckets).toHaveLength(body.boundsMs.length + 1);
    expect('mostMs' in body.total.lateness).toBe(false);
    expect(body).toMatchObject({ degradedMs: 30_000, lagMs: 0, to: expect.any(Number) });
    const processes = await eventually(async () => {
      const answered = (await get('api/processes')).body.processes;
      expect(answered).toMatchObject([{ pid: process.pid, queues: [] }]);
      return answered;
    });
    expect(processes[0].seenAt).toEqual(expect.any(Number));
    expect((await get('api/me')).body.features).toMatchObject({ history: true });
    expect((await get(`api/forecast?queue=${queue}`)).body).toMatchObject({ due: 0, paused: false, peaks: [] });
  });
});

describe('the server', () => {
  it('is shown with what health finds, and without credentials', async () => {
    const { get } = await serve();
    const { body } = await get('api/server');
    expect(body).toMatchObject({
      address: expect.any(String),
      server: { version: expect.any(String), evictionPolicy: 'noeviction' },
      health: expect.stringMatching(/up|degraded/),
      findings: expect.any(Array),
      prefix: here.world.prefix,
      process: { pid: process.pid },
    });
    expect(body.latencyMs).toBeGreaterThanOrEqual(0);
    expect(body.address).not.toContain('@');
  });
});

describe('several instances', () => {
  it('say each for itself whether lateness is measured', async () => {
    const eu = `${here.world.prefix}:measured`;
    const { connection } = here.world;
    const { get } = await serve({
      root: { prefix: `${here.world.prefix}:not-measured` },
      imports: [
        DelayQueueModule.forRoot({ name: 'eu', connection, prefix: eu, shutdownHooksWarning: false, consume: false }),
      ],
    });
    // The process that measures is another one.
    await serve({ root: { prefix: eu }, imports: [DelayQueueHistoryModule] });
    const historyOf = async (query: string) => (await get(`api/me${query}`)).body.features.history;
    await eventually(async () => expect(await historyOf('?instance=eu')).toBe(true));
    expect(await historyOf('?instance=default')).toBe(false);
    expect(await historyOf('')).toBe(false);
    // The page learns from it which ones there are, also where a link names one that is gone.
    expect((await get('api/me?instance=us')).body).toMatchObject({ instances: ['default', 'eu'] });
  });

  it('are looked at one by one', async () => {
    const queue = fresh();
    const { get, act, producer } = await serve({
      imports: [
        DelayQueueModule.forRoot({
          name: 'eu',
          connection: here.world.connection,
          prefix: `${here.world.prefix}:eu`,
          shutdownHooksWarning: false,
          consume: false,
        }),
      ],
    });
    await producer.enqueue(queue, 1, { id: 'A', delay: '1h' });
    expect((await get('api/me')).body.instances.toSorted()).toEqual(['default', 'eu']);
    expect(
      (await get(`api/find?id=A&instance=default`)).body.jobs.map((job: { queue: string }) => job.queue),
    ).toContain(queue);
    expect((await get(`api/find?id=A&instance=eu`)).body.jobs).toEqual([]);
    const cancelling = { queue, ids: ['A'] };
    expect((await act('jobs/cancel', { ...cancelling, instance: 'eu' })).problem).toMatchObject({
      status: 404,
      code: 'DASHBOARD_NOT_FOUND',
    });
    expect((await act('jobs/cancel', { ...cancelling, instance: 'default' })).body.results).toMatchObject([
      { outcome: 'cancelled' },
    ]);
    expect((await get('api/state?instance=us')).problem).toMatchObject({
      status: 404,
      code: 'ERR_DQ_UNKNOWN_INSTANCE',
    });
  });
});
