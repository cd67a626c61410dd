import { channel } from 'node:diagnostics_channel';
import { describe, expect, it, jest } from '@jest/globals';
import { map } from 'rxjs';
import { DelayQueueConsumer, DelayQueueInspector, DiscardJob, fixed, SnoozeJob } from '../../../lib/index.js';
import type { DelayedJob, HandlerOptions } from '../../../lib/index.js';
import { DelayQueueEvents, DelayQueueEventsModule } from '../../../lib/events/index.js';
import type { DelayQueueEvent } from '../../../lib/events/index.js';
import { handlerClass } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';

jest.setTimeout(60_000);
const here = inAWorld();
const end = endingWithEachTest();

/** An application with one handler and a list of what it tells. */
async function listening(
  queue: string,
  handle: (payload: any, job: DelayedJob) => unknown,
  options?: HandlerOptions,
  more: { log?: string[]; connection?: string } = {},
) {
  const { app, producer, inspector } = await here.start({
    imports: [DelayQueueEventsModule],
    providers: [handlerClass(queue, handle, options)],
    options: more.connection ? { connection: more.connection } : {},
    log: more.log,
  });
  const events = app.get(DelayQueueEvents);
  const heard: DelayQueueEvent[] = [];
  events.all.subscribe((event) => heard.push(event));
  const types = () => heard.map(({ type }) => type);
  const one = <Type extends DelayQueueEvent['type']>(type: Type) =>
    heard.find((event) => event.type === type) as unknown as DelayQueueEvent<Type>;
  return { app, producer, inspector, events, heard, types, one };
}

describe('DelayQueueEvents', () => {
  it('tell the life of a job, with times and without its payload', async () => {
    const { producer, heard, types } = await listening('life', () => 'done');
    await producer.enqueue('life', { secret: 'of the payload' }, { id: 'a', delay: 200 });
    await eventually(() => expect(types()).toEqual(['enqueued', 'claimed', 'completed']));
    const job = { instance: 'default', queue: 'life', id: 'a' };
    const run = { ...job, attempt: 1, latenessMs: expect.any(Number) };
    expect(heard).toEqual([
      { type: 'enqueued', ...job, outcome: 'created', state: 'delayed', dueAt: expect.any(Number), delayMs: 200 },
      { type: 'claimed', ...run },
      { type: 'completed', ...run, durationMs: expect.any(Number) },
    ]);
    expect(JSON.stringify(heard)).not.toContain('secret');
  });

  it('tell each failure and what follows from it', async () => {
    const error = new Error('no luck');
    const handle = (_: unknown, job: DelayedJob) => {
      if (job.attempt === 1) throw error;
      throw new DiscardJob('pointless');
    };
    const { producer, types, one, heard } = await listening('failures', handle, {
      backoff: fixed(1),
    });
    await producer.enqueue('failures', {}, { id: 'a' });
    await eventually(() =>
      expect(types()).toEqual(['enqueued', 'claimed', 'failed', 'retried', 'claimed', 'failed', 'deadLettered']),
    );
    expect(one('failed')).toMatchObject({ id: 'a', attempt: 1, durationMs: expect.any(Number) });
    expect(one('failed').error).toBe(error);
    expect(one('retried')).toMatchObject({ attempt: 1, delayMs: 1, error });
    expect(one('deadLettered')).toMatchObject({ attempt: 2, reason: 'discarded', error: { message: 'pointless' } });
    expect(heard.at(-2)).toMatchObject({ type: 'failed', attempt: 2 });
  });

  it('tell of snoozes, timeouts and expiry', async () => {
    const handle = (payload: string) => {
      if (payload === 'snooze') throw new SnoozeJob('1h');
      return new Promise(() => {});
    };
    const { producer, one } = await listening('others', handle, { attempts: 1, timeout: 20 });
    await producer.enqueue('others', 'snooze');
    await eventually(() => expect(one('snoozed')).toMatchObject({ delayMs: 3_600_000, attempt: 1 }));
    const { id } = await producer.enqueue('others', 'hang');
    await eventually(() => expect(one('deadLettered')).toMatchObject({ id, reason: 'exhausted' }));
    expect(one('deadLettered').error).toMatchObject({ code: 'ERR_DQ_TIMEOUT' });
    const at = (await here.world.now()) - 5_000;
    await producer.enqueue('others', 'late', { id: 'late', at, expiresIn: 1_000 });
    await eventually(() => expect(one('expired')).toMatchObject({ id: 'late', attempt: 0 }));
    expect(one('expired').latenessMs).toBeGreaterThanOrEqual(5_000);
  });

  it('never quote a job that cannot be decoded', async () => {
    const { producer, heard, one } = await listening('broken', () => {});
    await producer.enqueue('broken', {}, { id: 'x', delay: '1h' });
    const key = here.world.key('broken', 'jobs');
    const envelope = (await here.world.redis.hget(key, 'x'))!;
    await here.world.redis.hset(key, 'x', envelope.replace('{}', '{"secret'));
    await producer.runNow('broken', 'x');
    await eventually(() => expect(one('deadLettered')).toMatchObject({ id: 'x', reason: 'undecodable' }));
    expect((one('deadLettered').error as Error).message).toBe('It cannot be decoded.');
    expect(heard.map((event) => ('error' in event ? String(event.error) : '')).join()).not.toContain('secret');
  });

  it('tell that a lease was lost, and nothing of how that run ended', async () => {
    const ends: (() => void)[] = [];
    const handle = () => new Promise<void>((resolve) => ends.push(resolve));
    const { producer, one, types } = await listening('taken', handle, { concurrency: 1 });
    const { id } = await producer.enqueue('taken', {});
    await eventually(() => expect(ends).toHaveLength(1));
    const claim = await here.world.redis.zscore(here.world.key('taken', 'running'), id);
    await here.world.redis.zadd(here.world.key('taken', 'leases'), 'XX', 1, claim!);
    await here.start({ providers: [handlerClass('taken', handle, { concurrency: 1 })] });
    await eventually(() => expect(ends).toHaveLength(2));
    ends[0]!();
    await eventually(() =>
      expect(one('leaseLost')).toEqual({ type: 'leaseLost', instance: 'default', queue: 'taken', id, attempt: 1 }),
    );
    expect(types()).not.toContain('completed');
    ends[1]!();
    await eventually(() => expect(types().filter((type) => type === 'completed')).toHaveLength(1));
  });

  it('tell of an outage once, however often connecting fails, and of its end', async () => {
    const proxy = end(await Proxy.before(here.world.url));
    const { types, one } = await listening('outage', () => {}, {}, { connection: proxy.url });
    const before = proxy.connections;
    proxy.judge = () => 'cut';
    proxy.cut();
    await eventually(() => expect(proxy.connections).toBeGreaterThanOrEqual(before + 5));
    expect(types()).toEqual(['connectionLost']);
    proxy.judge = () => 'pass';
    await eventually(() => expect(types()).toEqual(['connectionLost', 'connectionRestored']));
    const { instance, address, reason } = one('connectionLost');
    expect(reason).toContain('is not reachable');
    expect(one('connectionRestored')).toMatchObject({ instance, address, outageMs: expect.any(Number) });
  });

  it('come from pulled jobs as well', async () => {
    const { app, producer, types, one } = await listening('handled', () => {});
    await producer.enqueue('pulled', {}, { id: 'p' });
    const [job] = await app.get(DelayQueueConsumer).pull('pulled', { wait: '5s' });
    await job!.fail(new Error('no luck'));
    expect(types()).toEqual(['enqueued', 'claimed', 'failed', 'retried']);
    expect(one('failed')).toMatchObject({ queue: 'pulled', id: 'p', error: { message: 'no luck' } });
  });
});

describe('A subscriber of DelayQueueEvents', () => {
  it('that throws, at once, later or in an operator, hurts neither the queue nor others; it is logged', async () => {
    const log: string[] = [];
    const { events, producer, inspector, types } = await listening('throws', () => {}, {}, { log });
    const bad = () => {
      throw new Error('bad subscriber');
    };
    const uncaught = jest.fn();
    process.on('uncaughtException', uncaught);
    try {
      events.on('completed').subscribe(bad);
      const badPromise: () => unknown = () => Promise.reject(new Error('bad promise'));
      events.on('completed').subscribe({ next: badPromise });
      events.on('completed').pipe(map(bad)).subscribe();
      events
        .on('completed')
        .pipe(map((event) => event.id))
        .subscribe(bad);
      for (const id of ['a', 'b']) await producer.enqueue('throws', {}, { id });
      await eventually(async () => expect(await inspector.totals('throws')).toMatchObject({ completed: 2 }));
      await eventually(() => expect(types().filter((type) => type === 'completed')).toHaveLength(2));
      const told = () => log.filter((line) => line.includes('A subscriber of DelayQueueEvents threw'));
      await eventually(() => expect(told().filter((line) => line.includes('bad subscriber'))).toHaveLength(5));
      expect(told().filter((line) => line.includes('bad promise'))).toHaveLength(2);
      expect(uncaught).not.toHaveBeenCalled();
    } finally {
      process.off('uncaughtException', uncaught);
    }
  });

  it('may ask for one kind or several, and is refused what does not exist', async () => {
    const { events, producer, types } = await listening('kinds', () => {});
    const some: string[] = [];
    const subscription = events.on('enqueued', 'completed').subscribe(({ type }) => some.push(type));
    await producer.enqueue('kinds', {});
    await eventually(() => expect(some).toEqual(['enqueued', 'completed']));
    subscription.unsubscribe();
    await producer.enqueue('kinds', {});
    await eventually(() => expect(types().filter((type) => type === 'completed')).toHaveLength(2));
    expect(some).toHaveLength(2);
    expect(() => events.on('complete' as never)).toThrow(/events are enqueued, claimed/);
  });

  it('leaves nothing behind when the application closes', async () => {
    const { app, events, producer } = await listening('closing', () => {});
    expect(channel('nestjs-delay-queue:completed').hasSubscribers).toBe(true);
    const last = (async () => {
      const seen: string[] = [];
      for await (const { type } of events.on('completed')) seen.push(type);
      return seen;
    })();
    await producer.enqueue('closing', {});
    await eventually(async () =>
      expect(await app.get(DelayQueueInspector).totals('closing')).toMatchObject({ completed: 1 }),
    );
    await app.close();
    expect(await last).toEqual(['completed']);
    for (const name of ['enqueued', 'completed', 'connectionLost']) {
      expect(channel(`nestjs-delay-queue:${name}`).hasSubscribers).toBe(false);
    }
  });
});

describe('The iterator of events', () => {
  it('gives them in order, and ends its subscription with the loop', async () => {
    const { events, producer } = await listening('loop', () => {});
    const seen: string[] = [];
    const loop = (async () => {
      for await (const event of events.on('enqueued')) {
        seen.push(event.id);
        if (seen.length === 2) break;
      }
    })();
    for (const id of ['a', 'b', 'c']) await producer.enqueue('loop', {}, { id });
    await loop;
    expect(seen).toEqual(['a', 'b']);
  });

  it('drops the oldest when its loop is slow, and counts them', async () => {
    const { events, producer } = await listening('slow', () => {});
    const iterator = events.on('enqueued').iterate({ buffer: 2 });
    for (const id of ['a', 'b', 'c', 'd', 'e']) await producer.enqueue('slow', {}, { id });
    expect(iterator.dropped).toBe(3);
    expect((await iterator.next()).value).toMatchObject({ id: 'd' });
    expect((await iterator.next()).value).toMatchObject({ id: 'e' });
    const waiting = iterator.next();
    await iterator.return();
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(() => events.all.iterate({ buffer: 0 })).toThrow(/at least 1/);
  });
});
