import { afterEach, describe, expect, it } from '@jest/globals';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { subscribe } from 'node:diagnostics_channel';
import { channelName } from '../../../lib/delay-queue.channels.js';
import type { HandlerOptions } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import type { TestApp } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const JOBS = 3_000;
const PAST = 1_700_000_000_000;
let queues = 0;
let queue = '';

/** Jobs that are all due, each a millisecond after the one before. */
async function enqueue(from = 0, to = JOBS): Promise<void> {
  const { producer, close } = await here.start({ options: { consume: false } });
  const items = Array.from({ length: to - from }, (_, n) => ({
    id: `j${from + n}`,
    payload: from + n,
    at: PAST + from + n,
  }));
  await producer.enqueueMany(queue, items);
  await close();
}

const worker = (handle: (n: number) => unknown, options: HandlerOptions) =>
  here.start({ providers: [handlerClass(queue, handle, options)] });

const completed = ({ inspector }: TestApp, jobs: number) =>
  eventually(async () => expect((await inspector.totals(queue)).completed).toBe(jobs));

/** Steps that asked for jobs, until the test is over. */
const claims: unknown[] = [];
const count = (message: unknown) => {
  const { queue: of, kind } = message as { queue: string; kind: string };
  if (of === queue && kind === 'claim') claims.push(message);
};
subscribe(channelName('step'), count);
afterEach(() => {
  claims.length = 0;
});

const fresh = () => (queue = `q${queues++}`);

describe('a worker with one slot and handlers that are shorter than a round trip', () => {
  it('claims many jobs at a time', async () => {
    fresh();
    await enqueue();
    await completed(await worker(() => undefined, { concurrency: 1 }), JOBS);
    expect(claims.length).toBeLessThan(JOBS / 2);
  });

  it('claims one at a time with prefetch: false', async () => {
    fresh();
    await enqueue();
    await completed(await worker(() => undefined, { concurrency: 1, prefetch: false }), JOBS);
    expect(claims.length).toBeGreaterThanOrEqual(JOBS);
  });

  it('runs them in the order of their due times, but for what went back because the process stood still', async () => {
    fresh();
    await enqueue();
    const ran: number[] = [];
    await completed(await worker((n) => ran.push(n) && turn(), { concurrency: 1 }), JOBS);
    const outOfOrder = ran.filter((n, at) => at > 0 && n < ran[at - 1]!);
    expect(outOfOrder.length).toBeLessThan(10);
    expect(new Set(ran).size).toBe(JOBS);
  });
});

it('what is fetched ahead never runs beside more jobs than the concurrency', async () => {
  fresh();
  await enqueue();
  let running = 0;
  let most = 0;
  const handle = async () => {
    most = Math.max(most, ++running);
    await turn();
    running--;
  };
  await completed(await worker(handle, { concurrency: 3 }), JOBS);
  expect(most).toBe(3);
  expect(claims.length).toBeLessThan(JOBS / 3);
});

it('jobs that were fetched ahead do not run in one turn of the event loop, when their handlers block it for longer than they may wait', async () => {
  fresh();
  await enqueue();
  let slow = 0;
  let inOneTurn = 0;
  let most = 0;
  const handle = (n: number) => {
    if (n < 1_000 || slow === 10) return;
    slow++;
    if (++inOneTurn === 1) setImmediate(() => (inOneTurn = 0));
    most = Math.max(most, inOneTurn);
    for (const until = performance.now() + 60; performance.now() < until;);
  };
  await completed(await worker(handle, { concurrency: 1 }), JOBS);
  expect(slow).toBe(10);
  expect(most).toBeLessThan(3);
});

describe('jobs that were fetched ahead, behind a handler that has become slow,', () => {
  interface Blocked {
    readonly app: TestApp;
    readonly ran: Set<number>;
    /** The handler ends. */
    readonly unblock: () => void;
  }

  /** A worker with one slot, which one job holds while others wait for it in the process. */
  async function blocked(): Promise<Blocked> {
    fresh();
    await enqueue();
    const ran = new Set<number>();
    let unblock = (): void => undefined;
    const gate = new Promise<void>((resolve) => (unblock = resolve));
    let isBlocked = false;
    const app = await worker(
      async (n) => {
        ran.add(n);
        if (isBlocked || n < 500) return;
        const { running } = await app.inspector.counts(queue);
        if (running === 1 || isBlocked) return;
        isBlocked = true;
        await gate;
      },
      { concurrency: 1 },
    );
    await eventually(() => expect(isBlocked).toBe(true));
    return { app, ran, unblock };
  }

  it('go back to Redis, where another process runs them, with all their attempts', async () => {
    const { app, ran, unblock } = await blocked();
    const attempts = new Set<number>();
    const { inspector } = await here.start({
      providers: [
        handlerClass(queue, (n, { attempt }) => {
          ran.add(n);
          attempts.add(attempt);
        }),
      ],
    });
    await eventually(async () => expect((await inspector.totals(queue)).completed).toBe(JOBS - 1));
    expect(attempts).toEqual(new Set([1]));
    expect((await inspector.counts(queue)).running).toBe(1);
    unblock();
    await completed(app, JOBS);
    expect(ran.size).toBe(JOBS);
  });

  it('go back with their due times when the application closes, before that handler has ended', async () => {
    const { app, ran, unblock } = await blocked();
    const closed = app.close();
    const { inspector } = await here.start({ options: { consume: false } });
    await eventually(async () => expect((await inspector.counts(queue)).running).toBe(1));
    const { jobs } = await inspector.list(queue, 'due', { limit: 1 });
    expect(jobs[0]!.dueAt.getTime()).toBe(PAST + ran.size);
    expect(jobs[0]!.attempts).toBe(0);
    unblock();
    await closed;
  });

  it('are gone when they were cancelled meanwhile', async () => {
    const { app, ran, unblock } = await blocked();
    const { jobs } = await app.inspector.list(queue, 'running', { limit: 10 });
    const waiting = jobs.map(({ payload }) => payload as number).filter((n) => !ran.has(n));
    for (const n of waiting) await app.producer.cancel(queue, `j${n}`, { running: true });
    await eventually(async () => expect((await app.inspector.counts(queue)).running).toBe(1));
    unblock();
    await eventually(async () => {
      const { due, running } = await app.inspector.counts(queue);
      expect({ due, running }).toEqual({ due: 0, running: 0 });
    });
    for (const n of waiting) expect(ran.has(n)).toBe(false);
  });
});

it('a job that was fetched ahead does not start after its lease is over, as when the event loop was blocked for long', async () => {
  fresh();
  await enqueue();
  const blockedAt = [1_000, 1_117, 1_251, 1_334, 1_492];
  const claimsAt: number[] = [];
  const app = await worker(
    (n) => {
      claimsAt[n] ??= claims.length;
      if (blockedAt.includes(n)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400);
    },
    { concurrency: 1, lease: 150 },
  );
  await eventually(async () => expect((await app.inspector.counts(queue)).due).toBe(0));
  for (const n of blockedAt) expect(claimsAt[n + 1]).toBeGreaterThan(claimsAt[n]!);
});

it('a queue with a limit, of which nothing is fetched ahead, is asked when a slot is free', async () => {
  fresh();
  await enqueue(0, 320);
  const handle = (n: number) => (n < 300 ? undefined : sleep(10));
  const app = await worker(handle, { concurrency: 1, globalConcurrency: 10 });
  await completed(app, 320);
  expect(claims.length).toBeLessThan(320 + 20);
});

it('a queue with a limit runs no more than that, however short its handlers are', async () => {
  fresh();
  await enqueue();
  const app = await worker(() => undefined, { concurrency: 2, globalConcurrency: 2 });
  let most = 0;
  await eventually(async () => {
    most = Math.max(most, (await app.inspector.counts(queue)).running);
    expect((await app.inspector.totals(queue)).completed).toBe(JOBS);
  });
  expect(most).toBeLessThanOrEqual(2);
});

it('a worker whose claims ahead were refused, because another one waited that was frozen, sent them again without pause', async () => {
  fresh();
  await enqueue();
  const { redis } = here.world;
  const until = Date.now() + 500_000;
  await redis.zadd(here.world.key(queue, 'idle'), until, 'frozen#1', until + 1, 'frozen#2');
  await completed(await worker(() => sleep(2), { concurrency: 8 }), JOBS);
  // Each claim brings at least one job, but for some that find nothing to take.
  expect(claims.length).toBeLessThan(1.1 * JOBS);
});

it('once the limits of a queue were taken away, jobs are fetched ahead again', async () => {
  fresh();
  await enqueue();
  const app = await worker(() => undefined, { concurrency: 1, globalConcurrency: 1 });
  await eventually(async () => expect((await app.inspector.totals(queue)).completed).toBeGreaterThan(100));
  await app.inspector.setLimits(queue, undefined);
  const { completed: before } = await app.inspector.totals(queue);
  const claimsBefore = claims.length;
  await completed(app, JOBS);
  expect(JOBS - before).toBeGreaterThan(1_000);
  expect(claims.length - claimsBefore).toBeLessThan((JOBS - before) / 2);
});
