import { describe, expect, it } from '@jest/globals';
import { dashboardsIn } from '../../helpers/dashboard-in-a-world.js';
import type { AdapterName, Dashboard } from '../../helpers/dashboard.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const { serve } = dashboardsIn(here);
const ADAPTERS: AdapterName[] = ['Express', 'Fastify'];
const HOUR = 3_600_000;
let queues = 0;
const fresh = () => `mended-${queues++}`;

/** Delayed jobs, one due after the other, an hour apart. */
async function delayed({ producer }: Dashboard, queue: string, ids: readonly string[]): Promise<number[]> {
  const at = (await here.world.now()) + HOUR;
  const dues = ids.map((_, n) => at + n * HOUR);
  await producer.enqueueMany(
    queue,
    ids.map((id, n) => ({ payload: 1, id, at: dues[n]! })),
  );
  return dues;
}

async function dead({ producer }: Dashboard, queue: string, letters: Readonly<Record<string, string>>): Promise<void> {
  const ids = Object.keys(letters);
  await producer.enqueueMany(
    queue,
    ids.map((id) => ({ payload: 1, id })),
  );
  const at = (await here.world.now()) - 60_000;
  const { redis } = here.world;
  for (const [n, id] of ids.entries()) {
    await redis.zrem(here.world.key(queue, 'due'), id);
    await redis.zadd(here.world.key(queue, 'dead'), at + n, id);
    await redis.hset(
      here.world.key(queue, 'errors'),
      id,
      `${letters[id]}\n${JSON.stringify({ name: 'Error', message: 'no', at })}`,
    );
  }
}

const dueOf = async (queue: string) => (await here.world.read(queue)).due;

describe.each(ADAPTERS)('on %s, acts', (adapter) => {
  it('run now, cancel, reschedule and move the jobs that are named, and answer for each', async () => {
    const dashboard = await serve({ adapter });
    const { act } = dashboard;
    const [queue, target] = [fresh(), fresh()];
    const [a] = await delayed(dashboard, queue, ['A', 'B', 'C', 'D']);
    const ran = await act('jobs/run-now', { queue, ids: ['A', 'none'] });
    expect(ran.body).toEqual({
      results: [
        { id: 'A', outcome: 'rescheduled', state: 'delayed', dueAt: expect.any(Number) },
        { id: 'none', outcome: 'notFound' },
      ],
    });
    expect(ran.body.results[0].dueAt).toBeLessThan(a!);
    const later = await act('jobs/reschedule', { queue, ids: ['B'], to: { by: '1h 30m' } });
    expect(later.body.results).toMatchObject([{ id: 'B', outcome: 'rescheduled', dueAt: a! + 2.5 * HOUR }]);
    const cancelled = await act('jobs/cancel', { queue, ids: ['C'] });
    expect(cancelled.body.results).toMatchObject([{ id: 'C', outcome: 'cancelled' }]);
    const moved = await act('jobs/move', { queue, ids: ['D'], target });
    expect(moved.body.results).toEqual([{ id: 'D', outcome: 'moved' }]);
    expect(Object.keys(await dueOf(queue)).toSorted()).toEqual(['A', 'B']);
    expect(Object.keys(await dueOf(target))).toEqual(['D']);
  });

  it('change what is due in a range, from its beginning and before its end', async () => {
    const dashboard = await serve({ adapter });
    const queue = fresh();
    const dues = await delayed(dashboard, queue, ['A', 'B', 'C', 'D']);
    const range = { from: dues[1], to: dues[3] };
    const asked = await dashboard.act('jobs/cancel', { queue, range, dryRun: true });
    expect(asked.body.results.map(({ id }: { id: string }) => id)).toEqual(['B', 'C']);
    expect(Object.keys(await dueOf(queue))).toHaveLength(4);
    const done = await dashboard.act('jobs/cancel', { queue, range });
    expect(done.body.results).toEqual(asked.body.results);
    expect(Object.keys(await dueOf(queue)).toSorted()).toEqual(['A', 'D']);
  });

  it('go on where they stopped, a thousand jobs at a time', async () => {
    const dashboard = await serve({ adapter });
    const queue = fresh();
    await delayed(
      dashboard,
      queue,
      Array.from({ length: 1_203 }, (_, n) => `J${n}`),
    );
    const range = { from: 0 };
    const first = await dashboard.act('jobs/cancel', { queue, range });
    expect([first.body.results.length, typeof first.body.cursor]).toEqual([1_000, 'string']);
    const second = await dashboard.act('jobs/cancel', { queue, range, cursor: first.body.cursor });
    expect([second.body.results.length, second.body.cursor]).toEqual([203, undefined]);
    expect(await dueOf(queue)).toEqual({});
  });

  it('requeue dead letters by name or all, spread over a time, and leave those of another reason', async () => {
    const dashboard = await serve({ adapter });
    const { act } = dashboard;
    const queue = fresh();
    await dead(dashboard, queue, { A: 'exhausted', B: 'exhausted', C: 'discarded', D: 'exhausted' });
    const asking = { queue, ids: ['A', 'none'], dryRun: true };
    expect((await act('dead/requeue', asking)).body).toEqual({ requeued: 1, remaining: 4 });
    expect((await act('dead/requeue', { ...asking, dryRun: false })).body).toEqual({ requeued: 1, remaining: 3 });
    const all = { queue, all: true, reason: 'exhausted', delay: '1h', spread: '10m' };
    expect((await act('dead/requeue', { ...all, dryRun: true })).body).toEqual({ requeued: 2, remaining: 3 });
    expect((await act('dead/requeue', all)).body).toEqual({ requeued: 2, remaining: 1 });
    const due = await dueOf(queue);
    expect(due['D']! - due['B']!).toBeGreaterThan(60_000);
    expect((await dashboard.inspector.list(queue, 'dead')).jobs.map(({ id }) => id)).toEqual(['C']);
  });

  it('requeue those of a rare reason, which a dry run finds as well', async () => {
    const dashboard = await serve({ adapter });
    const queue = fresh();
    const others = Array.from({ length: 1_000 }, (_, n) => [`J${n}`, 'discarded']);
    await dead(dashboard, queue, { ...Object.fromEntries(others), A: 'exhausted' });
    const rare = { queue, all: true, reason: 'exhausted' };
    expect((await dashboard.act('dead/requeue', { ...rare, dryRun: true })).body).toEqual({
      requeued: 1,
      remaining: 1_001,
    });
    expect((await dashboard.act('dead/requeue', rare)).body).toEqual({ requeued: 1, remaining: 1_000 });
  });

  it('remove dead letters', async () => {
    const dashboard = await serve({ adapter });
    const { act } = dashboard;
    const queue = fresh();
    await dead(dashboard, queue, { A: 'exhausted', B: 'exhausted', C: 'discarded' });
    expect((await act('dead/remove', { queue, ids: ['A'], dryRun: true })).body).toEqual({ removed: 1, remaining: 3 });
    expect((await act('dead/remove', { queue, ids: ['A'] })).body).toEqual({ removed: 1, remaining: 2 });
    expect((await act('dead/remove', { queue, all: true })).body).toEqual({ removed: 2, remaining: 0 });
  });

  it('pause and resume a queue, and its publishing', async () => {
    const { act, inspector, producer } = await serve({ adapter });
    const queue = fresh();
    await producer.enqueue(queue, 1, { delay: '1h' });
    const state = (paused: boolean, publishingPaused: boolean) => ({ queue, paused, publishingPaused });
    expect((await act('queue/pause', { queue, dryRun: true })).body).toEqual(state(false, false));
    expect((await act('queue/pause', { queue })).body).toEqual(state(true, false));
    expect((await act('queue/pause-publishing', { queue })).body).toEqual(state(true, true));
    expect(await inspector.counts(queue)).toMatchObject({ paused: true, publishingPaused: true });
    expect((await act('queue/resume', { queue })).body).toEqual(state(false, true));
    expect((await act('queue/resume-publishing', { queue })).body).toEqual(state(false, false));
  });

  it('purge a queue whose name was typed, a thousand jobs at a time', async () => {
    const dashboard = await serve({ adapter });
    const { act } = dashboard;
    const queue = fresh();
    await delayed(
      dashboard,
      queue,
      Array.from({ length: 1_050 }, (_, n) => `J${n}`),
    );
    await dead(dashboard, queue, { X: 'exhausted' });
    for (const confirm of [undefined, '', `${queue} `]) {
      const refused = await act('queue/purge', { queue, confirm });
      expect([refused.status, refused.problem.code]).toEqual([409, 'DASHBOARD_NOT_CONFIRMED']);
    }
    expect((await act('queue/purge', { queue, dryRun: true })).body).toEqual({ removed: 1_051, remaining: 1_051 });
    expect((await act('queue/purge', { queue, confirm: queue, states: ['dead'] })).body).toEqual({
      removed: 1,
      remaining: 0,
    });
    expect((await act('queue/purge', { queue, confirm: queue })).body).toEqual({ removed: 1_000, remaining: 50 });
    expect((await act('queue/purge', { queue, confirm: queue })).body).toEqual({ removed: 50, remaining: 0 });
  });
});

it('a purge that cannot count removes nothing: what it answers is true', async () => {
  const dashboard = await serve();
  const queue = fresh();
  await dead(dashboard, queue, { X: 'exhausted' });
  await here.world.redis.set(here.world.key(queue, 'quarantine'), 'no sorted set');
  const { problem } = await dashboard.act('queue/purge', { queue, confirm: queue, states: ['dead'] });
  expect(problem).toMatchObject({ status: 500, code: 'ERR_DQ_STORED_DATA' });
  expect(await here.world.redis.zcard(here.world.key(queue, 'dead'))).toBe(1);
});

it('acts on all take no more jobs than they are told to, and refuse a number that is none', async () => {
  const dashboard = await serve();
  const { act } = dashboard;
  const queue = fresh();
  await dead(dashboard, queue, { A: 'exhausted', B: 'exhausted', C: 'exhausted', D: 'exhausted' });
  const all = { queue, all: true, most: 1 };
  const asked = { ...all, dryRun: true };
  expect((await act('dead/requeue', asked)).body).toEqual({ requeued: 1, remaining: 4 });
  expect((await act('dead/remove', asked)).body).toEqual({ removed: 1, remaining: 4 });
  expect((await act('dead/requeue', { ...all, delay: '1h' })).body).toMatchObject({ requeued: 1, remaining: 3 });
  expect((await act('dead/remove', all)).body).toEqual({ removed: 1, remaining: 2 });
  const purging = { queue, confirm: queue, states: ['dead', 'waiting'], most: 1 };
  expect((await act('queue/purge', purging)).body).toEqual({ removed: 1, remaining: 2 });
  for (const most of [0, -1, 1.5, 1_001, 'all']) {
    for (const name of ['dead/requeue', 'dead/remove']) {
      expect((await act(name, { ...all, most })).problem).toMatchObject({ code: 'DASHBOARD_BAD_REQUEST' });
    }
    expect((await act('queue/purge', { ...purging, most })).problem).toMatchObject({ code: 'DASHBOARD_BAD_REQUEST' });
  }
  expect((await act('dead/remove', { queue, ids: ['A'], most: 1 })).problem).toMatchObject({ status: 400 });
});

it('a purge counts and leaves what schedules have made ahead', async () => {
  const dashboard = await serve();
  const queue = fresh();
  await delayed(dashboard, queue, ['A', 'B']);
  for (const id of ['s', 't']) await dashboard.producer.schedule(queue, id, { every: '1d' }, 1);
  expect((await dashboard.act('queue/purge', { queue, dryRun: true })).body).toEqual({ removed: 2, remaining: 2 });
  expect((await dashboard.act('queue/purge', { queue, confirm: queue })).body).toEqual({ removed: 2, remaining: 0 });
});

describe('requeueing all', () => {
  it('does not requeue again what dies again meanwhile', async () => {
    const dashboard = await serve();
    const queue = fresh();
    const letters = Array.from({ length: 1_010 }, (_, n) => [`D${n}`, 'exhausted'] as const);
    await dead(dashboard, queue, Object.fromEntries(letters));
    const first = await dashboard.act('dead/requeue', { queue, all: true, delay: '1h' });
    expect(first.body).toMatchObject({ requeued: 1_000, remaining: 10, cursor: expect.any(String) });
    // One of them fails again before the second call.
    const again = (await here.world.now()) + 60_000;
    await here.world.redis.zrem(here.world.key(queue, 'due'), 'D0');
    await here.world.redis.zadd(here.world.key(queue, 'dead'), again, 'D0');
    await here.world.redis.hset(here.world.key(queue, 'errors'), 'D0', 'exhausted\n{}');
    const { cursor } = first.body;
    const second = await dashboard.act('dead/requeue', { queue, all: true, delay: '1h', cursor });
    expect(second.body).toEqual({ requeued: 10, remaining: 1 });
  });
});

describe('an act that the library refuses', () => {
  it('is answered with the code of the library, its sentence and its status', async () => {
    const { act, get, producer } = await serve();
    const queue = fresh();
    await producer.enqueue(queue, 1, { delay: '1h' });
    const refused = async (name: string, body: object) => {
      const { status, problem, headers } = await act(name, body);
      expect(headers['content-type']).toBe('application/problem+json; charset=utf-8');
      expect(problem).toMatchObject({ type: 'about:blank', title: expect.any(String), status });
      return [status, problem.code, problem.detail];
    };
    expect(await refused('jobs/reschedule', { queue, ids: ['A'], to: { delay: 'soon' } })).toEqual([
      400,
      'ERR_DQ_INVALID_DELAY',
      expect.stringContaining('"soon"'),
    ]);
    expect(await refused('jobs/reschedule', { queue, ids: ['A'], to: {} })).toEqual([
      400,
      'ERR_DQ_INVALID_OPTION',
      expect.stringContaining('{ by }'),
    ]);
    expect(await refused('jobs/move', { queue, ids: ['A'], target: queue })).toEqual([
      400,
      'ERR_DQ_INVALID_OPTION',
      expect.stringContaining('the queue itself'),
    ]);
    expect(await refused('jobs/move', { queue, ids: ['A'], target: '{x}' })).toEqual([
      400,
      'ERR_DQ_INVALID_QUEUE',
      expect.any(String),
    ]);
    expect(await refused('dead/requeue', { queue, all: true, reason: 'tired' })).toEqual([
      400,
      'ERR_DQ_INVALID_OPTION',
      expect.stringContaining('reason'),
    ]);
    expect(await refused('queue/purge', { queue, confirm: queue, states: ['running'] })).toEqual([
      400,
      'ERR_DQ_INVALID_OPTION',
      expect.stringContaining('states'),
    ]);
    expect((await get('api/job?queue={x}&id=A')).problem.code).toBe('ERR_DQ_INVALID_QUEUE');
  });
});
