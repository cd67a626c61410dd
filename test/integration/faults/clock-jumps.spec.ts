import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { createApp, handlerClass } from '../../helpers/app.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { ShiftedRedis, whyNoShiftedClock } from '../../helpers/shifted-redis.js';
import { WorkerProcess } from '../../helpers/worker-process.js';
import { World } from '../../helpers/world.js';
import type { DelayedJob } from '../../../lib/index.js';

const HOUR = 3_600_000;
const LEASE_MS = 5_000;
/** Where a living worker is stopped for SILENT_MS: nearly three times as long, because on a busy machine it wakes late. */
const LONG_LEASE_MS = 8_000;
const SILENT_MS = 3_000;
const STEPS = 12;
const missing = whyNoShiftedClock();

let redis: ShiftedRedis | undefined;
beforeAll(async () => {
  if (missing) return void process.stderr.write(`Jumps of Redis' clock are not tested: ${missing}.\n`);
  redis = await ShiftedRedis.start();
});
afterAll(() => redis?.stop());
const end = endingWithEachTest();

/** Runs nothing where no clock can be shifted; why was said above. */
const onShiftedRedis = (test: (redis: ShiftedRedis, world: World) => Promise<void>) => async () => {
  if (!redis) return;
  redis.shift(0);
  await test(redis, end(await World.open(redis.url)));
};

const workerOf = async (world: World, queue: string, { skewMs = 0, lease = LEASE_MS, concurrency = 10 } = {}) =>
  end(await WorkerProcess.start(world, { queue, handler: { lease, concurrency }, skewMs }));

describe.each([
  ['forward', HOUR],
  ['back', -HOUR],
])('When the clock of Redis jumps %s by an hour', (name, jump) => {
  it(
    'no job of a live worker is stolen, and that of a dead one is taken up within a lease and 5 s',
    onShiftedRedis(async (redis, world) => {
      const { producer, inspector } = end(await createApp(world, { options: { consume: false } }));
      const queue = `jump-${name}`;
      const alive = await workerOf(world, queue, { lease: LONG_LEASE_MS, concurrency: 1 });
      // However long the other processes take to start: it takes none of their jobs.
      const kept = await producer.enqueue(queue, { untilLetGo: true });
      await alive.saw('start', { id: kept.id });
      const dies = await workerOf(world, queue, { lease: LONG_LEASE_MS });
      const orphan = await producer.enqueue(queue, { hang: true }); // the other one is full
      await dies.saw('start', { id: orphan.id });
      // It would be the thief: each of its jobs that ends makes it ask Redis, and recover what it may.
      const thief = await workerOf(world, queue, { lease: LONG_LEASE_MS });
      await dies.kill();
      const ends = Array.from({ length: STEPS }, (_, n) => ((n + 1) * SILENT_MS) / STEPS);
      const jobs = await producer.enqueueMany(
        queue,
        ends.map((waitMs) => ({ payload: { waitMs } })),
      );
      for (const { id } of jobs) await thief.saw('start', { id });
      // Silent for less than its lease, so that only the clock speaks against it.
      alive.signal('SIGSTOP');
      redis.shift(jump);
      const jumpedAt = performance.now();
      for (const { id } of jobs) await thief.saw('end', { id });
      alive.signal('SIGCONT');

      const starts = () => [alive, thief].flatMap((worker) => worker.of('start')).map(({ id }) => id);
      await eventually(() => expect(starts()).toContain(orphan.id), 20_000);
      // The grace after the jump is as long as a lease.
      expect(performance.now() - jumpedAt).toBeLessThan(LONG_LEASE_MS + 5_000);
      alive.letGo();
      await alive.saw('end', { id: kept.id, attempt: 1 }, 20_000);
      expect(starts().filter((id) => id === kept.id)).toHaveLength(1);
      expect(alive.of('aborted')).toEqual([]);
      // Its own word comes before Redis has heard of it.
      await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: STEPS + 1 }));
      expect(await inspector.totals(queue)).toMatchObject({ failed: 0, dead: 0 });
    }),
  );

  it(
    'jobs still wait for their time by that clock',
    onShiftedRedis(async (redis, world) => {
      const queue = `due-${name}`;
      const late: number[] = [];
      const handle = async (_: unknown, job: DelayedJob) => {
        late.push((await world.now()) - job.dueAt.getTime());
      };
      const app = end(await createApp(world, { providers: [handlerClass(queue, handle)] }));
      await app.producer.enqueue(queue, {}, { delay: 1_500 });
      await app.producer.enqueue(queue, {}, { delay: HOUR + 2_000 });
      redis.shift(jump);
      const back = jump < 0;
      if (back) await sleep(2_500);
      const early = back ? late.length : 0; // an hour too early, by the only clock that counts
      if (back) redis.shift(0);
      await eventually(() => expect(late).toHaveLength(jump > 0 ? 2 : 1), 10_000);
      expect(early).toBe(0);
      expect(Math.min(...late)).toBeGreaterThanOrEqual(0);
    }),
  );
});

describe('Workers whose own clocks are off by an hour and by a day, either way', () => {
  const here = inAWorld(); // Redis' own clock is right, so any server will do.

  it('neither lose their jobs to others nor keep them when they are dead', async () => {
    const { producer } = await here.start({ options: { consume: false } });
    const pairOf = (queue: string, skewMs: number) =>
      Promise.all([workerOf(here.world, queue, { skewMs }), workerOf(here.world, queue)]);
    const play = async (queue: string, [owner, heir]: readonly [WorkerProcess, WorkerProcess]) => {
      heir.signal('SIGSTOP'); // until the other one has the jobs
      const kept = await producer.enqueue(queue, { waitMs: LEASE_MS * 2 });
      await owner.saw('start', { id: kept.id });
      heir.signal('SIGCONT');
      await owner.saw('end', { id: kept.id, attempt: 1 });
      expect({ queue, stolen: heir.of('start') }).toEqual({ queue, stolen: [] });

      heir.signal('SIGSTOP');
      const orphan = await producer.enqueue(queue, { hang: true });
      await owner.saw('start', { id: orphan.id });
      heir.signal('SIGCONT');
      await owner.kill();
      const diedAt = performance.now();
      await heir.saw('start', { id: orphan.id });
      expect(performance.now() - diedAt).toBeLessThan(LEASE_MS + 5_000);
    };
    const skews = { '1 h ahead': HOUR, '1 h behind': -HOUR, '24 h ahead': 24 * HOUR, '24 h behind': -24 * HOUR };
    // Pair by pair, because processes that start are what takes the machine's time.
    const pairs = new Map<string, readonly [WorkerProcess, WorkerProcess]>();
    for (const [name, skewMs] of Object.entries(skews)) pairs.set(name, await pairOf(name, skewMs));
    await Promise.all([...pairs].map(([name, pair]) => play(name, pair)));
  });
});

it(
  'a job that a jump makes due starts within 5 s, also where all workers rest',
  onShiftedRedis(async (redis, world) => {
    const { producer } = end(await createApp(world, { options: { consume: false } }));
    const queue = 'jump-over';
    const { id } = await producer.enqueue(queue, {}, { delay: HOUR });
    const worker = await workerOf(world, queue);
    // The first one that comes to rest makes it.
    await eventually(async () => expect(await world.redis.exists(world.key(queue, 'changed'))).toBe(1));
    redis.shift(HOUR + 1_000);
    const jumpedAt = performance.now();
    await worker.saw('start', { id }, 10_000);
    expect(performance.now() - jumpedAt).toBeLessThan(5_500);
  }),
);

it.each([
  { queue: 'jump-reshard', extended: false, where: '' },
  { queue: 'jump-reshard-extended', extended: true, where: ', where extend() had given a longer lease to a job' },
])(
  'reshard() took a job from a live worker when the clock jumped by more than half of its lease, and less than 15 s$where',
  ({ queue, extended }) =>
    onShiftedRedis(async (redis, world) => {
      const { producer, inspector } = end(await createApp(world, { options: { consume: false } }));
      const alive = await workerOf(world, queue, { lease: LONG_LEASE_MS });
      const { id } = await producer.enqueue(queue, { waitMs: LONG_LEASE_MS });
      await alive.saw('start', { id });
      if (extended) {
        const until = (await world.now()) + 60_000;
        await world.redis.hset(world.key(queue, 'meta'), { longestLease: 60_000, longestLeaseUntil: until });
      }
      // Silent for less than its lease.
      alive.signal('SIGSTOP');
      const resharding = inspector.reshard(queue, { to: 2, wait: '60s' });
      const [, deadline] = await world.redis.zrange(world.key(queue, 'leases'), '0', '0', 'WITHSCORES');
      redis.shift(5_000);
      const seenAt = () => world.redis.hget(world.key(queue, 'meta'), 'seenAt');
      await eventually(async () => expect(Number(await seenAt())).toBeGreaterThan(Number(deadline)), 15_000);
      const { running } = await world.read(queue);
      alive.signal('SIGCONT');
      expect(Object.keys(running)).toEqual([id]);
      await alive.saw('end', { id, attempt: 1 }, 20_000);
      expect(await resharding).toMatchObject({ from: 1, to: 2 });
    })(),
);
