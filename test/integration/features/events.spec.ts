import { channel } from 'node:diagnostics_channel';
import { describe, expect, it, jest } from '@jest/globals';
import { map } from 'rxjs';
import {
  currentJob,
  DelayQueueConsumer,
  DelayQueueInspector,
  DelayQueueProducer,
  DiscardJob,
  fixed,
  SnoozeJob,
} from '../../../lib/index.js';
import type { DelayedJob, HandlerOptions } from '../../../lib/index.js';
import { channels } from '../../../lib/delay-queue.channels.js';
import { DelayQueueEvents, DelayQueueEventsModule } from '../../../lib/events/index.js';
import type { DelayQueueEvent } from '../../../lib/events/index.js';
import { handlerClass } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';

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
  it('are published outside of every job', async () => {
    const { producer, events, types } = await listening('outside', () => 'done', { concurrency: 1 });
    const seen: unknown[] = [];
    events.all.subscribe(({ type }) => type !== 'enqueued' && seen.push(currentJob()?.context));
    await producer.enqueue('outside', {}, { context: { tenant: 'eu' } });
    await producer.enqueue('outside', {}, { context: { tenant: 'us' } });
    await eventually(() => expect(types().filter((type) => type === 'completed')).toHaveLength(2));
    expect(seen).toEqual([undefined, undefined, undefined, undefined]);
  });

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

  it('do not promise another run, or bury, what was cancelled or replaced while it ran', async () => {
    const ends = new Map<string, (error?: Error) => void>();
    const handle = (payload: string) => {
      if (payload === 'ok') return undefined;
      return new Promise<void>((resolve, reject) => ends.set(payload, (error) => (error ? reject(error) : resolve())));
    };
    const { producer, inspector, heard } = await listening('superseded', handle, { attempts: 2, backoff: fixed(1) });
    const of = (id: string) => heard.filter((event) => 'id' in event && event.id === id).map(({ type }) => type);
    for (const id of ['cancelled', 'replaced', 'dying']) await producer.enqueue('superseded', id, { id });
    await eventually(() => expect(ends.size).toBe(3));
    await producer.cancel('superseded', 'cancelled', { running: true });
    await producer.enqueue('superseded', 'ok', { id: 'replaced', onDuplicate: 'replace' });
    for (const id of ['cancelled', 'replaced', 'dying']) ends.get(id)!(new Error('no luck'));
    await eventually(() => expect(of('replaced').at(-1)).toBe('completed'));
    await eventually(() => expect(of('dying').at(-1)).toBe('claimed'));
    expect(of('cancelled')).toEqual(['enqueued', 'claimed', 'failed']);
    expect(of('replaced')).toEqual(['enqueued', 'claimed', 'enqueued', 'failed', 'claimed', 'completed']);
    // A last attempt that fails would be a dead letter.
    await producer.cancel('superseded', 'dying', { running: true });
    ends.get('dying')!(new Error('no luck'));
    await producer.enqueue('superseded', 'ok', { id: 'after' });
    await eventually(() => expect(of('after').at(-1)).toBe('completed'));
    await eventually(() =>
      expect(of('dying')).toEqual(['enqueued', 'claimed', 'failed', 'retried', 'claimed', 'failed']),
    );
    expect(await inspector.totals('superseded')).toMatchObject({ failed: 4, retried: 1, dead: 0, completed: 2 });
  });

  it('tell of a dead letter whose last run took its process along, which nobody saw fail', async () => {
    const ends: (() => void)[] = [];
    const handle = () => new Promise<void>((resolve) => ends.push(resolve));
    const { producer, one, types } = await listening('poison', handle, { attempts: 1 });
    const { id } = await producer.enqueue('poison', {});
    await eventually(() => expect(ends).toHaveLength(1));
    const claim = await here.world.redis.zscore(here.world.key('poison', 'running'), id);
    // Ended long ago, and the mark of a job that was alone in its process.
    await here.world.redis.zadd(here.world.key('poison', 'leases'), 'XX', 1.5, claim!);
    await here.start({ providers: [handlerClass('poison', handle, { attempts: 1 })] });
    await eventually(() => expect(one('deadLettered')).toMatchObject({ id, reason: 'leaseLost', attempt: 1 }));
    expect(one('deadLettered').error).toMatchObject({
      message: 'All 1 attempts were used; the last one lost its lease.',
    });
    expect(types()).not.toContain('failed');
    ends[0]!();
    await eventually(() => expect(types()).toContain('leaseLost'));
    expect(types()).not.toContain('completed');
  });

  it('tell of each job of enqueueMany(), of a batch, and of a queue with shards under the name of the queue', async () => {
    const { app, heard } = await here
      .start({
        imports: [DelayQueueEventsModule],
        providers: [handlerClass('sharded', () => {}), handlerClass('batched', () => {}, { batch: { size: 3 } })],
        options: { queues: { sharded: { shards: 4 } } },
      })
      .then(({ app }) => {
        const heard: DelayQueueEvent[] = [];
        app.get(DelayQueueEvents).all.subscribe((event) => heard.push(event));
        return { app, heard };
      });
    const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
    for (const queue of ['sharded', 'batched']) {
      await app.get(DelayQueueProducer).enqueueMany(
        queue,
        ids.map((id) => ({ payload: {}, id })),
      );
      const idsOfType = (type: string) =>
        heard
          .flatMap((event) => (event.type === type && 'id' in event && event.queue === queue ? [event.id] : []))
          .sort();
      await eventually(() => expect(idsOfType('completed')).toEqual(ids));
      expect([idsOfType('enqueued'), idsOfType('claimed')]).toEqual([ids, ids]);
    }
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

describe('Without a subscriber', () => {
  it('nothing is published or timed: not for jobs that complete, fail, die, expire or snooze', async () => {
    const published = Object.values(channels).map((one) => jest.spyOn(one, 'publish'));
    const handle = (payload: string, job: DelayedJob) => {
      if (payload === 'snooze' && job.snoozes === 0) throw new SnoozeJob(1);
      if (payload === 'fail') throw new Error('no luck');
    };
    const { producer, inspector } = await here.start({
      providers: [handlerClass('unheard', handle, { backoff: fixed(1), attempts: 2 })],
    });
    await producer.enqueueMany(
      'unheard',
      ['ok', 'snooze', 'fail'].map((payload) => ({ payload })),
    );
    await producer.enqueue('unheard', 'late', { at: (await here.world.now()) - 5_000, expiresIn: 1_000 });
    await eventually(async () =>
      expect(await inspector.totals('unheard')).toMatchObject({ completed: 2, failed: 2, dead: 1, expired: 1 }),
    );
    expect(published.map(({ mock }) => mock.calls)).toEqual(published.map(() => []));
    jest.restoreAllMocks();
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
      const logged = () => log.filter((line) => line.includes('A subscriber of DelayQueueEvents threw'));
      await eventually(() => expect(logged().filter((line) => line.includes('bad subscriber'))).toHaveLength(3));
      expect(logged().filter((line) => line.includes('bad promise'))).toHaveLength(1);
      expect(uncaught).not.toHaveBeenCalled();
    } finally {
      process.off('uncaughtException', uncaught);
    }
  });

  it('that throws at each event was logged at each event: it is logged once, and then how often, ever more rarely', async () => {
    const log: string[] = [];
    const { events } = await listening('floods', () => {}, {}, { log });
    const job = {
      instance: 'default',
      queue: 'floods',
      outcome: 'created',
      state: 'due',
      dueAt: 0,
      delayMs: 0,
    } as const;
    let calls = 0;
    const subscription = events.on('enqueued').subscribe(({ id }) => {
      if (++calls % 2 === 0) throw new Error(`bad at ${id}`); // what works in between is no end of the trouble
    });
    for (let n = 1; n <= 5_000; n++) channels.enqueued.publish({ ...job, id: `${n}` });
    const logged = () => log.filter((line) => line.includes('subscriber of DelayQueueEvents'));
    expect(calls).toBe(5_000);
    expect(logged().map((line) => /for (.+) events|threw/.exec(line)![1])).toEqual([undefined, '10', '100', '1000']);
    expect(logged()[0]).toContain('bad at 2');
    expect(logged()[3]).toContain('bad at 2000');
    subscription.unsubscribe();
    const other = events.on('enqueued').subscribe(() => {
      throw new Error('another one');
    });
    channels.enqueued.publish({ ...job, id: 'x' });
    expect(logged().slice(4)).toMatchObject([expect.stringContaining('another one')]);
    other.unsubscribe();
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
    expect(() => events.on('complete' as never)).toThrow(/on\("complete"\): events are enqueued, claimed/);
    expect(() => (events as unknown as { on(): unknown }).on()).toThrow(/on\(""\): events are enqueued, claimed/);
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
  it('leaves nothing behind when its loop is left, by break or by an error; the module alone subscribes to nothing', async () => {
    const { app, producer } = await here.start({ imports: [DelayQueueEventsModule] });
    const events = app.get(DelayQueueEvents);
    const { hasSubscribers: before } = channel('nestjs-delay-queue:enqueued');
    expect(before).toBe(false);
    const loop = async (leave: () => void): Promise<string> => {
      for await (const { id } of events.on('enqueued')) {
        leave();
        return id;
      }
      return 'ended';
    };
    const left = loop(() => {});
    const thrown = loop(() => {
      throw new Error('out of the loop');
    });
    thrown.catch(() => {});
    await producer.enqueue('left', {}, { id: 'a' });
    expect(await left).toBe('a');
    await expect(thrown).rejects.toThrow('out of the loop');
    expect(channel('nestjs-delay-queue:enqueued').hasSubscribers).toBe(false);
  });

  it('ends at once when the application has closed before, and so does a subscription', async () => {
    const { app, events } = await listening('over', () => {});
    await app.close();
    expect(await events.all.iterate().next()).toEqual({ done: true, value: undefined });
    const complete = jest.fn();
    events.on('completed').subscribe({ complete });
    expect(complete).toHaveBeenCalledTimes(1);
    expect(channel('nestjs-delay-queue:completed').hasSubscribers).toBe(false);
  });

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

  it('keeps a thousand events for a loop that never comes, and no more', async () => {
    const { events } = await listening('never', () => {});
    const iterator = events.on('enqueued').iterate();
    const job = {
      instance: 'default',
      queue: 'never',
      outcome: 'created',
      state: 'due',
      dueAt: 0,
      delayMs: 0,
    } as const;
    for (let n = 0; n < 5_000; n++) channels.enqueued.publish({ ...job, id: `${n}` });
    expect(iterator.dropped).toBe(4_000);
    expect((await iterator.next()).value).toMatchObject({ id: '4000' });
    await iterator.return();
  });
});
