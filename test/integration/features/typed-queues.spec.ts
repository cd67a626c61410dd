import { Inject, Injectable, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { describe, expect, it } from '@jest/globals';
import {
  currentJob,
  defineQueue,
  DelayQueue,
  DelayQueueModule,
  DelayQueueProducer,
  getQueueToken,
  InjectQueue,
} from '../../../lib/index.js';
import type { ContextProvider, EnqueueOptions, StandardSchema } from '../../../lib/index.js';
import { createApp, handlerClass } from '../../helpers/app.js';
import type { TestAppSettings } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { World } from '../../helpers/world.js';

const mail = defineQueue<{ to: string }>('mail.send', { attempts: 3, delay: '1h' });

@Injectable()
class Mailer {
  constructor(@InjectQueue(mail) readonly queue: DelayQueue<{ to: string }>) {}
}

@Module({ imports: [DelayQueueModule.forFeature([mail])], providers: [Mailer], exports: [Mailer] })
class MailModule {}

describe('forFeature', () => {
  it('gives a handle on what a test puts in place of the producer', async () => {
    const calls: unknown[][] = [];
    const double = { enqueue: (...args: unknown[]) => Promise.resolve(calls.push(args)) };
    const root = DelayQueueModule.forRoot({ connection: 'memory://', shutdownHooksWarning: false });
    const builder = Test.createTestingModule({ imports: [root, MailModule] });
    const app = await builder.overrideProvider(DelayQueueProducer).useValue(double).compile();
    await app.init();
    await app.get(Mailer, { strict: false }).queue.enqueue({ to: 'a@b.example' });
    expect(calls).toEqual([[mail, { to: 'a@b.example' }, undefined]]);
    await app.close();
  });

  it('gives a typed handle whose calls reach the queue, with the defaults of its definition', async () => {
    const world = await World.open();
    const { app, inspector, close } = await createApp(world, { imports: [MailModule] });
    const { queue } = app.get(Mailer, { strict: false });

    const { id, state } = await queue.enqueue({ to: 'a@b.example' });
    expect(state).toBe('delayed');
    expect(await queue.get(id)).toMatchObject({ payload: { to: 'a@b.example' }, state: 'delayed' });
    expect((await queue.enqueueMany([{ payload: { to: 'c@d.example' } }])).map(({ outcome }) => outcome)).toEqual([
      'created',
    ]);
    expect(await inspector.counts(mail)).toMatchObject({ delayed: 2 });
    expect(await queue.runNow(id)).toMatchObject({ outcome: 'rescheduled' });
    expect(await queue.reschedule(id, { delay: '2h' })).toMatchObject({ outcome: 'rescheduled' });
    expect(await queue.cancel(id)).toMatchObject({ outcome: 'cancelled' });
    await close();
    await world.close();
  });

  it.each<[string, TestAppSettings, string | typeof mail, number | undefined]>([
    ['the definition that is named', {}, mail, 3],
    ['the definition of forFeature()', { imports: [MailModule] }, 'mail.send', 3],
    ['queues of forRoot(), which beat it', { options: { queues: { 'mail.send': { attempts: 6 } } } }, mail, 6],
    ['defaults of forRoot()', { options: { defaults: { attempts: 4 } } }, 'mail.send', 4],
    ['nobody here: nothing, where it was the default of the library', {}, 'mail.send', undefined],
  ])('a process without the handler tells maxAttempts by %s', async (_, settings, queue, maxAttempts) => {
    const world = await World.open();
    const { producer, inspector, close } = await createApp(world, settings);
    await producer.enqueue(queue, { to: 'a@b.example' }, { id: 'A', delay: '1h' });
    await producer.enqueue(queue, { to: 'a@b.example' }, { id: 'B', delay: '1h', attempts: 7 });
    const found = [await producer.get(queue, 'A'), await producer.get(queue, 'B')];
    expect(found.map((job) => job!.maxAttempts)).toEqual([maxAttempts, 7]);
    const { jobs } = await inspector.list(queue, 'delayed');
    expect(jobs.map((job) => [job.id, job.maxAttempts]).sort(([a], [b]) => (String(a) < String(b) ? -1 : 1))).toEqual([
      ['A', maxAttempts],
      ['B', 7],
    ]);
    await close();
    await world.close();
  });

  it('lets the definition hold for a handler and a producer that name the queue as text', async () => {
    const world = await World.open();
    const attempts: number[] = [];
    const handler = handlerClass('mail.send', (_, job) => void attempts.push(job.maxAttempts));
    const options = { strictQueues: true };
    const { producer, close } = await createApp(world, { imports: [MailModule], providers: [handler], options });

    await producer.enqueue('mail.send', { to: 'a@b.example' }, { delay: 0 });
    await eventually(() => expect(attempts).toEqual([3]));
    expect(await producer.enqueue('mail.send', { to: 'a@b.example' })).toMatchObject({ state: 'delayed' });
    await expect(producer.enqueue('mail.sned', {})).rejects.toMatchObject({ code: 'ERR_DQ_INVALID_QUEUE' });
    await close();
    await world.close();
  });

  it('fails at boot for an instance that nobody declares, and for two definitions of one queue', async () => {
    const world = await World.open();
    const elsewhere = createApp(world, { imports: [DelayQueueModule.forFeature([mail], 'eu')] });
    await expect(elsewhere).rejects.toMatchObject({ code: 'ERR_DQ_UNKNOWN_INSTANCE' });
    const other = DelayQueueModule.forFeature([defineQueue('mail.send', { attempts: 9 })]);
    await expect(createApp(world, { imports: [MailModule, other] })).rejects.toMatchObject({
      code: 'ERR_DQ_INVALID_OPTION',
    });
    await world.close();
  });

  it('has a token for custom providers', () => {
    expect(getQueueToken(mail)).toBe(getQueueToken('mail.send'));
    expect(getQueueToken(mail, 'eu')).not.toBe(getQueueToken(mail));
  });
});

describe('context', () => {
  it('reaches the handler and what it awaits, and is merged key by key into jobs made there', async () => {
    const world = await World.open();
    const seen: Record<string, unknown>[] = [];

    @Injectable()
    class Deep {
      constructor(@Inject(DelayQueueProducer) readonly producer: DelayQueueProducer) {}
    }
    let producer: DelayQueueProducer | undefined;
    const handler = handlerClass('chain', async (payload: { next?: object }) => {
      await new Promise((resolve) => setImmediate(resolve));
      seen.push({ ...currentJob()?.context });
      if (payload.next) await producer!.enqueue('chain', {}, payload.next);
    });
    const { app, close } = await createApp(world, { providers: [handler, Deep] });
    producer = app.get(Deep).producer;

    expect(currentJob()).toBeUndefined();
    await producer.enqueue('chain', { next: { context: { b: '3' } } }, { context: { a: '1', b: '2' } });
    await eventually(() => expect(seen).toHaveLength(2));
    await producer.enqueue('chain', { next: { context: null } }, { context: { a: '1' } });
    await eventually(() => expect(seen).toHaveLength(4));
    expect(seen).toEqual([{ a: '1', b: '2' }, { a: '1', b: '3' }, { a: '1' }, {}]);
    await close();
    await world.close();
  });

  it('is captured and restored by a contextProvider', async () => {
    const world = await World.open();
    let current: string | undefined = 'request-1';
    const seen: (string | undefined)[] = [];
    const contextProvider: ContextProvider = {
      capture: () => (current ? { requestId: current } : undefined),
      run(context, next) {
        current = `${context['requestId']} again`;
        return next();
      },
    };
    const handler = handlerClass('traced', () => void seen.push(current));
    const { producer, close } = await createApp(world, { providers: [handler], options: { contextProvider } });

    const { id } = await producer.enqueue('traced', {}, { delay: '1h' });
    expect((await producer.get('traced', id))?.context).toEqual({ requestId: 'request-1' });
    current = undefined;
    await producer.runNow('traced', id);
    await eventually(() => expect(seen).toEqual(['request-1 again']));
    await close();
    await world.close();
  });
});

/** A schema as a library would make it: checks `amount`, and gives the handler a BigInt. */
function amountSchema(answer: <T>(value: T) => T | Promise<T>): StandardSchema<{ amount: number }, { amount: bigint }> {
  return {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate(value) {
        const { amount } = value as { amount?: unknown };
        if (!Number.isInteger(amount)) return answer({ issues: [{ message: 'not a whole number', path: ['amount'] }] });
        return answer({ value: { amount: BigInt(amount as number) } });
      },
    },
  };
}

describe.each([
  ['a synchronous schema', <T>(value: T) => value],
  ['an asynchronous schema', <T>(value: T) => Promise.resolve(value)],
])('a queue with %s', (_, answer) => {
  it('refuses at enqueue what the handler would be refused, and hands out the output', async () => {
    const world = await World.open();
    const typed = defineQueue('typed', { schema: amountSchema(answer) });
    const seen: unknown[] = [];
    const handler = handlerClass('typed', (payload, job) => void seen.push([payload, job.payload]));
    const imports = [DelayQueueModule.forFeature([typed])];
    const { producer, inspector, close } = await createApp(world, { imports, providers: [handler] });

    const refused = producer.enqueue(typed, { amount: 1.5 });
    await expect(refused).rejects.toMatchObject({ code: 'ERR_DQ_SCHEMA', issues: [{ path: 'payload.amount' }] });
    await expect(
      producer.enqueueMany(typed, [{ payload: { amount: 1 } }, { payload: { amount: NaN } }]),
    ).rejects.toThrow('payload');
    expect(await inspector.totals(typed)).toMatchObject({ enqueued: 0 });

    await producer.enqueue(typed, { amount: 2 });
    await eventually(() => expect(seen).toEqual([[{ amount: 2n }, { amount: 2 }]]));
    await close();
    await world.close();
  });

  it('makes a dead letter of a stored payload that its schema refuses', async () => {
    const world = await World.open();
    const typed = defineQueue('typed', { schema: amountSchema(answer) });
    const ran: unknown[] = [];
    const imports = [DelayQueueModule.forFeature([typed])];
    const providers = [handlerClass('typed', (payload) => void ran.push(payload))];
    const { producer, inspector, close } = await createApp(world, { imports, providers });

    await producer.enqueue(typed, { amount: 3 }, { id: 'x', delay: '1h' });
    const stored = await world.redis.hget(world.key('typed', 'jobs'), 'x');
    await world.redis.hset(world.key('typed', 'jobs'), 'x', stored!.replace('3}', '"3"}'));
    await producer.runNow(typed, 'x');
    await eventually(async () => {
      const { jobs } = await inspector.list(typed, 'dead');
      expect(jobs).toMatchObject([{ id: 'x', deadReason: 'invalid', payload: { amount: '3' } }]);
    });
    expect(ran).toEqual([]);
    await close();
    await world.close();
  });
});

describe('rules of a definition', () => {
  it('debounces: one job under the id of the payload, put off by each call up to maxWait, with the newest payload', async () => {
    const world = await World.open();
    const profile = defineQueue<{ user: string; n: number }>('profile.index', {
      id: ({ user }) => `user-${user}`,
      debounce: { wait: '1h', maxWait: '90m' },
    });
    const { producer, inspector, close } = await createApp(world);

    const first = await producer.enqueue(profile, { user: 'a', n: 1 });
    expect(first).toMatchObject({ id: 'user-a', outcome: 'created' });
    expect(await producer.enqueue(profile, { user: 'a', n: 2 })).toMatchObject({ outcome: 'replaced' });
    // As if the burst had begun 80 minutes ago: ten are left of its ninety.
    await producer.reschedule(profile, 'user-a', { delay: '5m' });
    const began = (await world.now()) - 80 * 60_000;
    await world.redis.hset(world.key('profile.index', 'debounce'), 'user-a', String(began));
    const last = await producer.enqueue(profile, { user: 'a', n: 3 });
    expect(last.dueAt.getTime()).toBe(began + 90 * 60_000);
    expect(await producer.get(profile, 'user-a')).toMatchObject({ payload: { user: 'a', n: 3 } });
    expect(await inspector.counts(profile)).toMatchObject({ delayed: 1 });
    await close();
    await world.close();
  });

  it('throttles: no second job under the id within the time, also after the first was completed', async () => {
    const world = await World.open();
    const sync = defineQueue<{ shop: string }>('shop.sync', { id: ({ shop }) => shop, throttle: '10m' });
    let runs = 0;
    const { producer, close } = await createApp(world, { providers: [handlerClass('shop.sync', () => void runs++)] });

    await producer.enqueue(sync, { shop: 's1' });
    await eventually(async () => expect(await producer.get(sync, 's1')).toBeUndefined());
    expect(await producer.enqueue(sync, { shop: 's1' })).toMatchObject({ outcome: 'kept', state: 'completed' });
    const refused = producer.enqueue(sync, { shop: 's1' }, { onDuplicate: 'reject' });
    await expect(refused).rejects.toMatchObject({ code: 'ERR_DQ_DUPLICATE_JOB', state: 'completed' });
    await world.redis.zadd(world.key('shop.sync', 'unique'), 'XX', String((await world.now()) - 1), 's1');
    expect(await producer.enqueue(sync, { shop: 's1' })).toMatchObject({ outcome: 'created' });
    await eventually(() => expect(runs).toBe(2));
    await close();
    await world.close();
  });

  it('are refused when they cannot work', () => {
    const code = 'ERR_DQ_INVALID_OPTION';
    const refused = (options: object) => {
      try {
        defineQueue('refused', options);
        return undefined;
      } catch (error) {
        return (error as { code: string }).code;
      }
    };
    expect(refused({ debounce: { wait: '1s' } })).toBe(code); // no id
    expect(refused({ id: String, debounce: {} })).toBe(code); // no wait
    expect(refused({ id: String, debounce: { wait: '1s' }, throttle: '1s' })).toBe(code);
    expect(refused({ schema: { parse() {} } })).toBe(code);
    expect(refused({ id: 'x' })).toBe(code);
  });
});

describe('enqueueMany', () => {
  it('fans a batch out over `spread`, in its order', async () => {
    const world = await World.open();
    const { producer, close } = await createApp(world);
    const items = Array.from({ length: 5 }, (_, n) => ({ payload: n, delay: '1h' }));
    const results = await producer.enqueueMany('fan', items, { spread: '10m' });
    const first = results[0]!.dueAt.getTime();
    expect(results.map(({ dueAt }) => dueAt.getTime() - first)).toEqual([0, 120_000, 240_000, 360_000, 480_000]);
    const refused = producer.enqueueMany('fan', items, { spread: 'wide' });
    await expect(refused).rejects.toMatchObject({ code: 'ERR_DQ_INVALID_DELAY' });
    await close();
    await world.close();
  });

  it.each<[string, EnqueueOptions]>([
    ['now', {}],
    ['after a delay', { delay: '1h' }],
    ['at a moment', { at: Date.now() + 60_000 }],
  ])(
    'refuses a batch from %s on that `spread` puts off beyond an expiry: those jobs would never run',
    async (_, due) => {
      const world = await World.open();
      const { producer, inspector, close } = await createApp(world);
      const items = Array.from({ length: 4 }, (_, n) => ({
        payload: n,
        ...due,
        expiresAt: Date.now() + 2 * 3_600_000,
      }));
      await expect(producer.enqueueMany('fan', items, { spread: '8h' })).rejects.toMatchObject({
        code: 'ERR_DQ_INVALID_OPTION',
        message: expect.stringMatching(/item [12].*expire at .*, before it is due/),
      });
      expect(await inspector.counts('fan')).toMatchObject({ delayed: 0 });
      expect(await producer.enqueueMany('fan', items, { spread: '1h' })).toHaveLength(4);
      await close();
      await world.close();
    },
  );
});
