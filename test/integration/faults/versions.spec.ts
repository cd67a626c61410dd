import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DelayQueueHealth, LayoutError } from '../../../lib/index.js';
import type { DelayedJob, DelayQueueRootOptions } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { NewerLibrary } from '../../helpers/newer-library.js';
import { WorkerProcess } from '../../helpers/worker-process.js';
import type { WorkerMessage } from '../../helpers/worker-process.js';

// A server of its own, because script calls are counted.
const here = inAWorld({});
const ends = endingWithEachTest();
const LEASE_MS = 900;
let newer: NewerLibrary;
beforeAll(() => {
  newer = NewerLibrary.make(3);
});
afterAll(() => newer?.stop());

async function worker(queue: string, more: { program?: string; options?: DelayQueueRootOptions } = {}) {
  return ends(
    await WorkerProcess.start(here.world, {
      queue,
      handler: { lease: LEASE_MS, attempts: 1, concurrency: 4 },
      ...more,
    }),
  );
}

const logged = (one: WorkerProcess, what: RegExp) => one.of('log').filter(({ message }) => what.test(message!));
const idsOf = (messages: WorkerMessage[]) => messages.map(({ id }) => id!).sort();
const setLayout = (queue: string, layout: number) => here.world.redis.hset(here.world.key(queue, 'meta'), { layout });
const jobs = (count: number, payload: object = {}, start = 'j') =>
  Array.from({ length: count }, (_, n) => ({ id: `${start}${n}`, payload }));

async function scriptCalls(): Promise<number> {
  const stats = await here.world.redis.info('commandstats');
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
}

describe('A queue whose layout becomes newer than this library knows, while workers run', () => {
  it('is left alone by all of them, which say so once; when the mark goes back, all goes on: nothing lost, nothing charged', async () => {
    const queue = 'marked';
    const crew = [await worker(queue), await worker(queue)];
    const { app, producer, inspector } = await here.start({ options: { consume: false } });
    const health = () => app.get(DelayQueueHealth).check();
    await producer.enqueueMany(queue, jobs(8, { waitMs: 1_500 }, 'long'));
    await eventually(() => expect(crew.flatMap((one) => one.of('start'))).toHaveLength(8));
    await producer.enqueueMany(queue, jobs(20));
    await producer.enqueue(queue, {}, { id: 'later', delay: 100 });
    const before = await here.world.read(queue);

    await setLayout(queue, 3);
    for (const call of [
      producer.enqueue(queue, {}),
      producer.cancel(queue, 'j0'),
      producer.reschedule(queue, 'j1', { delay: '1h' }),
      inspector.pause(queue),
      inspector.purge(queue),
    ]) {
      await expect(call).rejects.toBeInstanceOf(LayoutError);
    }
    // Long enough for what runs to end, for its leases to run out, and for 'later' to be due.
    await eventually(() => expect(crew.flatMap((one) => one.of('end'))).toHaveLength(8));
    for (const one of crew)
      await eventually(() => expect(logged(one, /layout 3 is newer than 2.*Upgrade/)).toHaveLength(1));
    const since = (await here.world.now()) + LEASE_MS + 500;
    await eventually(async () => expect(await here.world.now()).toBeGreaterThan(since));
    expect(await health()).toMatchObject({ status: 'degraded', redis: { status: 'up' }, reasons: [expect.stringMatching(/"marked".*layout 3 is newer than 2.*Upgrade/)] }); // prettier-ignore
    const during = await here.world.read(queue);
    for (const key of ['due', 'running', 'quarantine', 'dead', 'jobs', 'attempts', 'followups'] as const) expect({ key, stored: during[key] }).toEqual({ key, stored: before[key] }); // prettier-ignore
    expect(crew.flatMap((one) => one.of('start'))).toHaveLength(8);

    await setLayout(queue, 2);
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 29 }), 15_000);
    const all = [...jobs(8, {}, 'long'), ...jobs(20), { id: 'later' }].map(({ id }) => id).sort();
    // What a process says may arrive after what Redis says.
    const starts = await eventually(() => {
      const heard = crew.flatMap((one) => one.of('start'));
      expect(idsOf(heard)).toEqual(all);
      return heard;
    });
    expect(new Set(starts.map(({ attempt }) => attempt))).toEqual(new Set([1]));
    expect(await inspector.totals(queue)).toMatchObject({ enqueued: 29, failed: 0, retried: 0, dead: 0 });
    for (const one of crew) {
      expect(logged(one, /layout 3 is newer/)).toHaveLength(1);
      expect(logged(one, /is worked on again/)).toHaveLength(1);
    }
    expect(await here.world.violations(queue)).toEqual([]);
  });

  it('does not keep a process from ending, which does not ask without a pause meanwhile', async () => {
    const queue = 'ending';
    let release = () => {};
    const handle = () => new Promise<void>((resolve) => (release = resolve));
    const providers = [handlerClass(queue, handle, { lease: LEASE_MS, attempts: 1 })];
    const { producer, close } = await here.start({ providers, options: { drainTimeout: 1_500, commandTimeout: 500 } });
    await producer.enqueue(queue, {}, { id: 'a' });
    await eventually(async () => expect(Object.keys((await here.world.read(queue)).running)).toEqual(['a']));
    await setLayout(queue, 3);
    const before = await scriptCalls();
    await close();
    release();
    // A try each 200 ms for 2 s. With none in between it would be hundreds.
    expect((await scriptCalls()) - before).toBeLessThan(30);
    const { jobs: stored, running, attempts } = await here.world.read(queue);
    expect(stored).toHaveProperty('a');
    expect(running).toHaveProperty('a');
    expect(attempts).toEqual({});
  });
});

describe('An older and a newer library on one queue', () => {
  it('share the queues that the older one wrote: each job runs once', async () => {
    const queue = 'shared';
    const { producer, inspector } = await here.start({ options: { consume: false } });
    await producer.enqueueMany(queue, jobs(40, { waitMs: 20 }));
    const [older, later] = await Promise.all([worker(queue), worker(queue, { program: newer.program })]);
    await producer.enqueueMany(queue, jobs(40, { waitMs: 20 }, 'more'));
    for (let n = 0; n < 10; n++) await later.enqueue(queue, { waitMs: 20 }, { id: `by-newer${n}` });
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 90 }), 15_000);
    const starts = () => [...older.of('start'), ...later.of('start')];
    await eventually(() => expect(new Set(starts().map(({ id }) => id)).size).toBe(90));
    expect(starts()).toHaveLength(90);
    for (const one of [older, later]) expect(one.of('start').length).toBeGreaterThan(0);
    expect((await here.world.read(queue)).meta).toMatchObject({ layout: '2' });
  });

  it('the newer one alone has the queues that it made: the older refuses to boot with them, and a running one to touch them', async () => {
    const queue = 'made by the newer';
    const older = await worker(queue);
    older.signal('SIGSTOP'); // after it booted, when there was nothing to refuse yet, and before it looks again
    const later = await worker(queue, { program: newer.program });
    await here.world.redis.del(here.world.key(queue, 'meta'));
    await later.enqueue(queue, {}, { id: 'first' });
    expect((await here.world.read(queue)).meta).toMatchObject({ layout: '3' });
    older.signal('SIGCONT');
    for (let n = 0; n < 10; n++) await later.enqueue(queue, {}, { id: `n${n}` });
    await eventually(() => expect(later.of('end')).toHaveLength(11), 15_000);
    await eventually(() => expect(logged(older, /layout 3 is newer than 2/)).toHaveLength(1), 10_000);
    expect(older.of('start')).toEqual([]);
    const boot = here.start({ providers: [handlerClass(queue, () => undefined)] });
    await expect(boot).rejects.toMatchObject({ code: 'ERR_DQ_LAYOUT' });
  });

  it('after a rollback jobs that a killed worker of the newer one ran come back to the older, uncharged', async () => {
    const queue = 'rolled back';
    const { producer, inspector } = await here.start({ options: { consume: false } });
    await producer.enqueueMany(queue, jobs(4, { waitMs: 1_000 }, 'held'));
    const later = await worker(queue, { program: newer.program });
    await eventually(() => expect(later.of('start')).toHaveLength(4));
    await later.kill();
    const older = await worker(queue);
    await eventually(() => expect(new Set(idsOf(older.of('start')))).toEqual(new Set(jobs(4, {}, 'held').map(({ id }) => id))), 15_000); // prettier-ignore
    expect((await inspector.totals(queue)).dead).toBe(0);
    expect(new Set(older.of('start').map(({ attempt }) => attempt))).toEqual(new Set([1]));
  });
});

describe('Jobs of several envelope versions in one queue', () => {
  it('1 and 2 run on workers with and without compression; one of version 3 is left to newer ones, logged once and not charged', async () => {
    const queue = 'envelopes';
    const plain = await worker(queue);
    const compressing = await worker(queue, { options: { compressAbove: 100 } });
    const { producer, inspector } = await here.start({ options: { consume: false } });
    await inspector.pause(queue);
    const text = 'x'.repeat(400);
    for (let n = 0; n < 10; n++) {
      await plain.enqueue(queue, { text }, { id: `one${n}` });
      await compressing.enqueue(queue, { text }, { id: `two${n}` });
    }
    await producer.enqueue(queue, { text }, { id: 'three' });
    const { jobs: stored } = await here.world.read(queue);
    const versions = Object.fromEntries(Object.entries(stored).map(([id, envelope]) => [id, envelope[0]]));
    for (let n = 0; n < 10; n++) expect(versions).toMatchObject({ [`one${n}`]: '1', [`two${n}`]: '2' });
    await here.world.redis.hset(here.world.key(queue, 'jobs'), 'three', `3${stored['three']!.slice(1)}`);

    await inspector.resume(queue);
    const crew = [plain, compressing];
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 20 }));
    const ends = await eventually(() => {
      const heard = crew.flatMap((one) => one.of('end'));
      expect(heard.length).toBeGreaterThanOrEqual(20);
      return heard;
    });
    expect(idsOf(ends)).toEqual(idsOf(ends.filter(({ id }) => id !== 'three')));
    expect(ends).toHaveLength(20);
    for (const { payload } of crew.flatMap((one) => one.of('start'))) expect(payload).toEqual({ text });

    // Each of them sees it and hands it back; the second one when the first is gone, which might take it each time.
    const left = /"three".*was left to others: .*layout "3", this library reads up to 2/;
    const hasLeftIt = (one: (typeof crew)[number]) => logged(one, left).length > 0;
    // A worker that is killed with the job in hand would cost it an attempt.
    const isPutOff = () =>
      eventually(async () => {
        const { due } = await here.world.read(queue);
        expect(Object.keys(due)).toEqual(['three']);
        expect(due['three']).toBeGreaterThan(await here.world.now());
      });
    await eventually(async () => {
      await here.world.makeDue(queue, 'three');
      expect(crew.some(hasLeftIt)).toBe(true);
    }, 20_000);
    await isPutOff();
    const first = crew.find(hasLeftIt)!;
    await first.kill();
    await eventually(async () => {
      await here.world.makeDue(queue, 'three');
      expect(crew.every(hasLeftIt)).toBe(true);
    }, 20_000);
    // And once more, of which nobody tells.
    await isPutOff();
    await here.world.makeDue(queue, 'three');
    await isPutOff();
    for (const one of crew) expect(logged(one, left)).toHaveLength(1);
    const { attempts, dead, jobs: kept } = await here.world.read(queue);
    // Put off, so it has a record; and nothing was charged.
    expect({ attempts, dead, kept: kept['three']?.[0] }).toEqual({
      attempts: { three: '0 0 0 0' },
      dead: {},
      kept: '3',
    });

    // As if a newer process had come, which can read it.
    const runs: DelayedJob[] = [];
    await Promise.all(crew.map((one) => one.kill()));
    await here.world.redis.hset(here.world.key(queue, 'jobs'), 'three', stored['three']!);
    await here.world.makeDue(queue, 'three');
    await here.start({ providers: [handlerClass(queue, (_, job) => void runs.push(job))] });
    await eventually(() => expect(runs).toMatchObject([{ id: 'three', attempt: 1 }]));
  });
});
