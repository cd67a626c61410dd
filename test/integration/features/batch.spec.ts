import { describe, expect, it } from '@jest/globals';
import { BadRequestException } from '@nestjs/common';
import {
  currentJob,
  defineQueue,
  DelayQueueConsumer,
  DelayQueueHealth,
  DelayQueueModule,
  DelayQueueRegistry,
  DiscardJob,
  fixed,
  JobPayload,
  OnDelayed,
  SnoozeJob,
} from '../../../lib/index.js';
import type { DelayQueueMiddleware, StandardSchema } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { batching } from '../../helpers/batching.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { enqueueQuarantined } from '../quarantine/quarantined.js';

const here = inAWorld();
const failure = (like: object) => expect.objectContaining(like) as never;
const LETTERS = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];

describe('a batch', () => {
  it('is what was due together, in due order, at most `size` jobs', async () => {
    const { seen, calls, together, inspector, queue } = await batching(here, {
      batch: { size: 3 },
      concurrency: 1,
      hold: false,
    });
    await together(...LETTERS);
    await eventually(() => expect(seen()).toEqual([['a', 'b', 'c'], ['d', 'e', 'f'], ['g']]));
    expect(calls[1]!.jobs.map(({ id, payload, attempt, queue: of }) => [id, payload, attempt, of])).toEqual(
      ['d', 'e', 'f'].map((id) => [id, id, 1, queue]),
    );
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 7, failed: 0 }));
    expect(await here.world.violations(queue)).toEqual([]);
  });

  it('takes one of `concurrency` slots, however few it holds, and nothing is fetched ahead', async () => {
    const { call, calls, producer, together, inspector, queue } = await batching(here, {
      batch: { size: 3 },
      concurrency: 2,
    });
    await producer.enqueue(queue, 'single');
    const { end } = await call(1);
    await together(...LETTERS);
    await call(2);
    await eventually(async () => expect(await inspector.counts(queue)).toMatchObject({ running: 4, due: 4 }));
    calls[1]!.jobs.forEach((job) => job.complete());
    // Settled jobs free no slot while their batch runs.
    await eventually(async () => expect(await inspector.counts(queue)).toMatchObject({ running: 1, due: 4 }));
    end();
    expect((await call(3)).payloads).toEqual(['d', 'e', 'f']);
    expect(await inspector.counts(queue)).toMatchObject({ running: 3, due: 1 });
  });

  it('waits for others under a lease until it is full', async () => {
    const { call, calls, producer, inspector, queue } = await batching(here, {
      batch: { size: 3, wait: '1h' },
      lease: 300,
    });
    await producer.enqueue(queue, 'a');
    await producer.enqueue(queue, 'b');
    await eventually(async () => expect(await inspector.counts(queue)).toMatchObject({ running: 2 }));
    const [lease] = Object.values((await here.world.read(queue)).leases);
    // Renewed while it waits.
    await eventually(async () => {
      expect(Object.values((await here.world.read(queue)).leases)[0]).toBeGreaterThan(lease! + 300);
    });
    expect(calls).toHaveLength(0);
    await producer.enqueue(queue, 'c');
    expect((await call(1)).payloads).toEqual(['a', 'b', 'c']);
  });

  it('waits for no others while its queue runs as many jobs as `globalConcurrency` allows', async () => {
    const { call, producer, together, queue } = await batching(here, {
      batch: { size: 10, wait: '1h' },
      concurrency: 2,
      globalConcurrency: 3,
    });
    await together('a', 'b', 'c', 'd');
    const { payloads, end } = await call(1);
    expect(payloads).toEqual(['a', 'b', 'c']);
    end();
    // There is room for two more, and it waits for them.
    await producer.enqueue(queue, 'e');
    await producer.enqueue(queue, 'f');
    expect((await call(2)).payloads).toEqual(['d', 'e', 'f']);
  });

  it('waits no longer than `wait`, and never so long that a job expires', async () => {
    const short = await batching(here, { batch: { size: 3, wait: 150 } });
    const since = performance.now();
    await short.producer.enqueue(short.queue, 'a');
    await short.call(1);
    expect(performance.now() - since).toBeGreaterThanOrEqual(150);

    const long = await batching(here, { batch: { size: 3, wait: '1h' } });
    await long.producer.enqueue(long.queue, 'a', { expiresIn: '1s' });
    expect((await long.call(1)).payloads).toEqual(['a']);
  });

  it('leaves out what may not run: expired, undecodable, out of attempts, cancelled while it waited', async () => {
    const { call, producer, inspector, becomes, queue } = await batching(here, {
      batch: { size: 3, wait: '1h' },
      lease: 300,
    });
    await inspector.pause(queue);
    await producer.enqueue(queue, 'late', { id: 'late', expiresIn: 1, keepExpired: true, at: Date.now() - 60_000 });
    await producer.enqueue(queue, 'broken', { id: 'broken' });
    await here.world.redis.hset(here.world.key(queue, 'jobs'), 'broken', 'nonsense');
    await producer.enqueue(queue, 'spent', { id: 'spent', attempts: 1 });
    await here.world.redis.hset(here.world.key(queue, 'attempts'), 'spent', '1 0 0 0');
    await producer.enqueue(queue, 'a', { id: 'a' });
    await producer.enqueue(queue, 'unwanted', { id: 'unwanted' });
    await inspector.resume(queue);
    await becomes('unwanted', { state: 'running' });
    await producer.cancel(queue, 'unwanted', { running: true });
    await eventually(async () => expect((await here.world.read(queue)).followups).toEqual({ unwanted: '!' }));
    // A heartbeat brings the news; until then the job would be one of the three.
    const renewed = Object.values((await here.world.read(queue)).leases)[0]!;
    await eventually(async () =>
      expect(Object.values((await here.world.read(queue)).leases)[0]).toBeGreaterThan(renewed + 200),
    );
    await producer.enqueue(queue, 'b', { id: 'b' });

    expect((await call(1)).payloads).toEqual(['a', 'b']);
    await becomes('late', { deadReason: 'expired' });
    await becomes('broken', { deadReason: 'undecodable' });
    await becomes('spent', { deadReason: 'exhausted' });
    await becomes('unwanted', undefined);
  });

  it('receives what the schema of its definition makes of each payload, without those that it refuses', async () => {
    const even = defineQueue('even', {
      schema: {
        '~standard': {
          version: 1,
          vendor: 'test',
          async validate(given: unknown) {
            const value = given as number;
            return value % 2 === 0 ? { value: BigInt(value) } : { issues: [{ message: 'is odd' }] };
          },
        },
      } as StandardSchema<number, bigint>,
    });
    const { app, producer, inspector } = await here.start({ imports: [DelayQueueModule.forFeature([even])] });
    const seen: unknown[] = [];
    app.get(DelayQueueRegistry).register(
      even,
      (payloads, jobs) => void seen.push(payloads, jobs.map(({ payload }) => payload)), // prettier-ignore
      { batch: { size: 2, wait: '1h' } },
    );
    await producer.enqueue(even, 2, { id: 'x', delay: '1h' });
    const stored = await here.world.redis.hget(here.world.key('even', 'jobs'), 'x');
    await here.world.redis.hset(here.world.key('even', 'jobs'), 'x', `${stored!.slice(0, -1)}3`);
    await producer.runNow(even, 'x');
    await producer.enqueueMany(even, [{ payload: 4 }, { payload: 6 }]);
    await eventually(() => expect(seen).toEqual([[4n, 6n], [4, 6]])); // prettier-ignore
    await eventually(async () =>
      expect((await inspector.list(even, 'dead')).jobs).toMatchObject([{ id: 'x', deadReason: 'invalid' }]),
    );
  });

  it('that a pipe refuses is halved until the one that it meant is found; the others run', async () => {
    const calls: string[][] = [];
    class Digest {
      @OnDelayed('halved', { batch: { size: 8 } })
      send(
        @JobPayload({
          transform(payloads: string[]) {
            if (payloads.includes('bad')) throw new BadRequestException('one of them is bad');
            return payloads;
          },
        })
        payloads: string[],
      ) {
        calls.push(payloads);
      }
    }
    const { producer, inspector } = await here.start({ providers: [Digest] });
    await inspector.pause('halved');
    const payloads = ['a', 'b', 'c', 'd', 'e', 'bad', 'g', 'h'];
    await producer.enqueueMany(
      'halved',
      payloads.map((payload) => ({ payload })),
    );
    await inspector.resume('halved');
    await eventually(async () =>
      expect(await inspector.totals('halved')).toMatchObject({ completed: 7, dead: 1, retried: 0 }),
    );
    expect(calls).toEqual([['a', 'b', 'c', 'd'], ['e'], ['g', 'h']]);
    const { jobs } = await inspector.list('halved', 'dead');
    expect(jobs).toMatchObject([{ payload: 'bad', deadReason: 'invalid', attempts: 1 }]);
  });

  it('has no current job and no context, and middleware runs around each of its jobs', async () => {
    const around: string[] = [];
    const middleware: DelayQueueMiddleware[] = [
      async (job, next) => {
        around.push(`begin ${job.id} ${currentJob()?.id}`);
        await next().catch((error: Error) => {
          around.push(`${job.id} ${error.message}`);
          throw error;
        });
        around.push(`end ${job.id}`);
      },
    ];
    const app = await here.start();
    const current: unknown[] = [];
    app.app.get(DelayQueueRegistry).register(
      'ambient',
      async (payloads: readonly unknown[], jobs) => {
        current.push(payloads, currentJob(), jobs[0]!.context);
        await app.producer.enqueue('made', {}, { id: 'made', delay: '1h' });
        jobs[1]!.fail(new Error('no luck'));
      },
      { batch: { size: 2, wait: '1h' }, middleware },
    );
    for (const id of ['a', 'b']) await app.producer.enqueue('ambient', id, { id, context: { tenant: id } });
    await eventually(() => expect(around).toHaveLength(4));
    expect(current).toEqual([['a', 'b'], undefined, { tenant: 'a' }]);
    expect(around.slice(0, 2)).toEqual(['begin a a', 'begin b b']);
    expect(around.slice(2).sort()).toEqual(['b no luck', 'end a']);
    expect((await app.producer.get('made', 'made'))?.context).toEqual({});
  });

  it('may be of a registered function, whose number can be changed within bounds', async () => {
    const { app, producer } = await here.start();
    const registry = app.get(DelayQueueRegistry);
    const seen: unknown[] = [];
    registry.register('fn', (payloads: readonly unknown[], jobs) => void seen.push([payloads, jobs[0]!.id]), {
      batch: { size: 200 },
    });
    await producer.enqueue('fn', 1, { id: 'x' });
    await eventually(() => expect(seen).toEqual([[[1], 'x']]));
    registry.setConcurrency('fn', 50);
    const code = 'ERR_DQ_INVALID_OPTION';
    expect(() => registry.setConcurrency('fn', 51)).toThrow(expect.objectContaining({ code }));
  });
});

describe('a job of a batch', () => {
  it('may be settled alone and at once, the first time counts', async () => {
    const { call, together, becomes, producer, queue } = await batching(here, {
      batch: { size: 7 },
      backoff: fixed('1h'),
    });
    await together(...LETTERS.slice(0, 6));
    const { jobs, end } = await call(1);
    const [a, b, c, d, e, f] = jobs as [any, any, any, any, any, any];
    const given = [a.complete(), b.fail(new Error('no luck')), c.snooze('2h', { payload: 'later' }), d.discard('no')];
    expect([...given, e.retry({ delay: '3h' })]).toEqual([true, true, true, true, true]);
    // The method still runs.
    await becomes('a', undefined);
    await becomes('b', { state: 'delayed', attempts: 1, lastError: failure({ message: 'no luck' }) });
    await becomes('c', { state: 'delayed', attempts: 0, payload: 'later' });
    await becomes('d', { state: 'dead', deadReason: 'discarded' });
    await becomes('e', { state: 'delayed', attempts: 1 });
    await becomes('f', { state: 'running' });
    const hours = async (id: string) =>
      Math.round(((await producer.get(queue, id))!.dueAt.getTime() - (await here.world.now())) / 3_600_000);
    expect(await Promise.all(['b', 'c', 'e'].map(hours))).toEqual([1, 2, 3]);

    expect([a.fail(new Error('too late')), b.complete(), b.settled, f.settled]).toEqual([false, false, true, false]);
    expect(() => f.snooze('soon')).toThrow('job.snooze(delay): "soon" is not a duration');
    expect(() => f.snooze(1, { payload: undefined })).toThrow('job.snooze(delay, { payload }): undefined');
    expect(() => f.discard('')).toThrow('job.discard(reason): "" is not a reason');
    end();
    await becomes('f', undefined);
    expect(f.fail(new Error('too late'))).toBe(false);
    await becomes('b', { state: 'delayed', attempts: 1 });
  });

  it('fails with the batch, by its own attempts and retryIf, unless it was settled before', async () => {
    const { call, producer, inspector, becomes, queue } = await batching(here, {
      batch: { size: 4 },
      backoff: fixed('1h'),
      retryIf: (_, { id }) => id !== 'hopeless',
    });
    await inspector.pause(queue);
    await producer.enqueue(queue, 0, { id: 'done' });
    await producer.enqueue(queue, 0, { id: 'again', backoff: fixed('5h') });
    await producer.enqueue(queue, 0, { id: 'last', attempts: 1 });
    await producer.enqueue(queue, 0, { id: 'hopeless' });
    await inspector.resume(queue);
    const { jobs, end } = await call(1);
    jobs.find(({ id }) => id === 'done')!.complete();
    end(new Error('no luck'));
    await becomes('done', undefined);
    await becomes('again', { state: 'delayed', attempts: 1 });
    const { dueAt } = (await producer.get(queue, 'again'))!;
    expect(Math.round((dueAt.getTime() - (await here.world.now())) / 3_600_000)).toBe(5);
    await becomes('last', { deadReason: 'exhausted' });
    await becomes('hopeless', { deadReason: 'discarded', lastError: failure({ message: 'no luck' }) });
  });

  it('quotes no payload of another one in its log line and dead letter, whatever the batch throws', async () => {
    const lines: string[] = [];
    const { call, together, becomes } = await batching(
      here,
      { batch: { size: 3, wait: '100ms' }, attempts: 1 },
      { log: lines },
    );
    await together('secret-1', 'secret-2', 'secret-3');
    (await call(1)).end('the bank refused secret-2 and secret-3');
    const lastError = failure({ name: 'string', message: 'the bank refused [payload] and [payload]' });
    for (const id of ['secret-1', 'secret-2', 'secret-3']) await becomes(id, { state: 'dead', lastError });
    await together('secret-4', 'secret-5');
    (await call(2)).end({ refused: ['secret-5'] });
    await becomes('secret-4', {
      lastError: failure({ name: 'object', message: "{ refused: [ '[payload]' ] }" }),
    });
    await eventually(() => expect(lines.filter((line) => line.includes('dead letter'))).toHaveLength(5));
    for (const line of lines) expect(line.replace(/^.*? of queue/, '')).not.toContain('secret');
  });

  it('is snoozed or discarded with the batch, but never gets a payload meant for another', async () => {
    const { call, calls, together, becomes } = await batching(here, { batch: { size: 2 }, backoff: fixed('1h') });
    await together('a', 'b');
    (await call(1)).end(new SnoozeJob('1h'));
    for (const id of ['a', 'b']) await becomes(id, { state: 'delayed', attempts: 0 });
    await together('c', 'd');
    const { jobs, end } = await call(2);
    jobs[0]!.complete();
    end(new DiscardJob('no'));
    await becomes('c', undefined);
    await becomes('d', { deadReason: 'discarded' });
    await together('e', 'f');
    (await call(3)).end(new SnoozeJob('1h', { payload: 'one for all' }));
    for (const id of ['e', 'f']) await becomes(id, { state: 'delayed', attempts: 1, payload: id });
    expect(calls).toHaveLength(3);
  });

  it('runs alone when it lost a lease before', async () => {
    const { call, calls, producer, becomes, together, queue } = await batching(here, {
      batch: { size: 5, wait: '1h' },
      concurrency: 30,
    });
    await producer.enqueue(queue, 'a', { id: 'a' });
    await becomes('a', { state: 'running' });
    for (const id of ['x', 'y']) await enqueueQuarantined(here.world, producer, queue, id);
    await producer.enqueue(queue, 'b', { id: 'b' });
    // Others are awaited no longer than until the process has to be empty for the quarantine.
    (await call(1)).end();
    await eventually(() => expect(calls).toHaveLength(3));
    expect(calls.map(({ jobs }) => jobs.map(({ id }) => id))).toEqual([['a', 'b'], ['x'], ['y']]);
    calls.forEach(({ end }) => end());
    for (const id of ['x', 'y']) await becomes(id, undefined);
    await together('c', 'd', 'e', 'f', 'g');
    expect((await call(4)).payloads).toEqual(['c', 'd', 'e', 'f', 'g']);
  });
});

describe('the timeout of a batch', () => {
  it('fails what is not settled, aborts every signal, and frees the slot', async () => {
    const { call, together, becomes, producer, app, queue } = await batching(here, {
      batch: { size: 3 },
      concurrency: 1,
      timeout: 200,
      backoff: fixed('1h'),
    });
    await together('a', 'b', 'c');
    const { jobs, end } = await call(1);
    jobs[0]!.complete();
    await becomes('a', undefined);
    for (const id of ['b', 'c']) {
      await becomes(id, {
        state: 'delayed',
        attempts: 1,
        lastError: failure({ name: 'HandlerTimeoutError' }),
      });
    }
    expect(jobs.map(({ signal }) => signal.reason?.code)).toEqual([undefined, 'ERR_DQ_TIMEOUT', 'ERR_DQ_TIMEOUT']);
    expect(jobs[1]!.complete()).toBe(false);
    await producer.enqueue(queue, 'd');
    (await call(2)).end();
    const { queues } = await app.get(DelayQueueHealth).check();
    expect(queues[queue]).toMatchObject({ zombies: 1 });
    end();
    await eventually(async () =>
      expect((await app.get(DelayQueueHealth).check()).queues[queue]).toMatchObject({ zombies: 0 }),
    );
  });

  it('frees the slot of a method that settled all its jobs and never ends', async () => {
    const { call, together, becomes } = await batching(here, { batch: { size: 1 }, concurrency: 1, timeout: 200 });
    await together('a');
    (await call(1)).jobs[0]!.complete();
    await becomes('a', undefined);
    await together('b');
    expect((await call(2)).payloads).toEqual(['b']);
  });

  it('holds as well for what is called for each job before its batch, and after it', async () => {
    const never = new Promise<void>(() => undefined);
    const middleware: DelayQueueMiddleware = async (job, next) => {
      if (job.payload === 'before') await never;
      await next();
      if (job.payload === 'after') await never;
    };
    const { seen, producer, becomes, queue } = await batching(here, {
      batch: { size: 1 },
      timeout: 200,
      backoff: fixed('1h'),
      middleware: [middleware],
      hold: false,
    });
    for (const id of ['before', 'after']) {
      await producer.enqueue(queue, id, { id });
      await becomes(id, { state: 'delayed', attempts: 1, lastError: failure({ name: 'HandlerTimeoutError' }) });
    }
    expect(seen()).toEqual([['after']]);
  });

  it('does not begin before the batch does, and a job may have one of its own', async () => {
    const { call, calls, producer, becomes, queue } = await batching(here, {
      batch: { size: 3, wait: 400 },
      timeout: '1h',
      backoff: fixed('1h'),
    });
    await producer.enqueue(queue, 'a', { id: 'a', timeout: 150 });
    await producer.enqueue(queue, 'b', { id: 'b' });
    expect((await call(1)).payloads).toEqual(['a', 'b']);
    await becomes('a', { state: 'delayed', attempts: 1 });
    await becomes('b', { state: 'running' });
    calls[0]!.end();
    await becomes('b', undefined);
  });
});

describe('a job that waits for its batch', () => {
  it('began although it had expired: its middleware, or a slot, had taken longer', async () => {
    let open!: () => void;
    const gate = new Promise<void>((resolve) => (open = resolve));
    const middleware: DelayQueueMiddleware = async (job, next) => {
      if (job.payload === 'late') await gate;
      await next();
    };
    const { calls, producer, inspector, queue, seen } = await batching(here, {
      batch: { size: 1 },
      concurrency: 2,
      middleware: [middleware],
      hold: false,
    });
    const { dueAt } = await producer.enqueue(queue, 'late', { expiresIn: '300ms' });
    await producer.enqueue(queue, 'other');
    await eventually(() => expect(calls).toHaveLength(1));
    await eventually(async () => expect(await here.world.now()).toBeGreaterThan(dueAt.getTime() + 320));
    open();
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 1, expired: 1 }));
    expect(seen()).toEqual([['other']]);
  });

  it('was held for a slot that setConcurrency() had taken away: it goes back, and comes again with the slot', async () => {
    const { call, app, producer, inspector, queue } = await batching(here, {
      batch: { size: 2, wait: '1h' },
      concurrency: 2,
    });
    await producer.enqueue(queue, 'a');
    await producer.enqueue(queue, 'b');
    const { end } = await call(1);
    const { id } = await producer.enqueue(queue, 'c');
    await eventually(async () => expect(await inspector.counts(queue)).toMatchObject({ running: 3 }));
    app.get(DelayQueueRegistry).setConcurrency(queue, 1);
    await eventually(async () => expect(await producer.get(queue, id)).toMatchObject({ state: 'due', attempts: 0 }));
    app.get(DelayQueueRegistry).setConcurrency(queue, 2);
    await eventually(async () => expect(await producer.get(queue, id)).toMatchObject({ state: 'running' }));
    await producer.enqueue(queue, 'd');
    expect((await call(2)).payloads).toEqual(['c', 'd']);
    end();
  });

  it('counted as a start of its rate, although its process closed before the batch began', async () => {
    const { producer, inspector, queue, close } = await batching(here, {
      batch: { size: 2, wait: '1h' },
      rateLimit: { max: 1, per: '1h' },
    });
    const other = await here.start();
    await producer.enqueue(queue, 'a');
    await eventually(async () => expect(await inspector.counts(queue)).toMatchObject({ running: 1 }));
    await close();
    const pulled = await other.app.get(DelayQueueConsumer).pull(queue, { wait: '5s' });
    expect(pulled.map(({ payload }) => payload)).toEqual(['a']);
  });
});

describe('at shutdown', () => {
  it('jobs that wait for others are handed back at once, uncharged', async () => {
    const { producer, inspector, queue, close } = await batching(
      here,
      { batch: { size: 3, wait: '1h' } },
      { options: { drainTimeout: '1h' } },
    );
    const looking = await here.start({ options: { consume: false } });
    const { dueAt } = await producer.enqueue(queue, 'a', { id: 'a' });
    await eventually(async () => expect(await inspector.counts(queue)).toMatchObject({ running: 1 }));
    await close();
    expect(await looking.producer.get(queue, 'a')).toMatchObject({ state: 'due', attempts: 0, dueAt });
    expect(await here.world.violations(queue)).toEqual([]);
  });

  it('a batch is awaited until its method returns, also when all its jobs are settled', async () => {
    const settings = { providers: [handlerClass('bystander', () => {})], options: { drainTimeout: '1h' } };
    const { call, together, queue, close, becomes } = await batching(here, { batch: { size: 2 } }, settings);
    const waiting = async (of: string) => Object.keys((await here.world.read(of)).idle).length;
    await together('a', 'b');
    const { jobs, end } = await call(1);
    jobs.forEach((job) => job.complete());
    for (const id of ['a', 'b']) await becomes(id, undefined);
    await eventually(async () => expect([await waiting(queue), await waiting('bystander')]).toEqual([1, 1]));
    const closing = close();
    let closed = false;
    void closing.then(() => (closed = true));
    await eventually(async () => expect(await waiting('bystander')).toBe(0));
    // The worker of the other queue has left by now. What else closing does takes less than so many reads.
    for (let reads = 0; reads < 200 && !closed; reads++) await waiting(queue);
    const early = closed;
    end();
    await closing;
    expect(early).toBe(false);
    expect(await waiting(queue)).toBe(0);
  });

  it('one that is still running after drainTimeout is aborted and handed back, but for what it had settled', async () => {
    const { call, together, queue, close } = await batching(here, { batch: { size: 3 }, attempts: 1 });
    const looking = await here.start({ options: { consume: false } });
    await together('a', 'b', 'c');
    const { jobs } = await call(1);
    jobs[0]!.complete();
    jobs[1]!.fail(new Error('no luck'));
    await close();
    expect(jobs[2]!.signal.reason).toMatchObject({ code: 'ERR_DQ_SHUTDOWN' });
    expect(await looking.producer.get(queue, 'a')).toBeUndefined();
    expect(await looking.producer.get(queue, 'b')).toMatchObject({ state: 'dead' });
    expect(await looking.producer.get(queue, 'c')).toMatchObject({ state: 'due', attempts: 0 });
  });
});
