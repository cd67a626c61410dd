import { describe, expect, it } from '@jest/globals';
import {
  DelayQueueRegistry,
  DiscardJob,
  fixed,
  InvalidOptionError,
  SnoozeJob,
  UnknownInstanceError,
} from '../../../lib/index.js';
import type { DelayedJob, HandlerOptions } from '../../../lib/index.js';
import { DelayQueueLogger } from '../../../lib/delay-queue.logger.js';
import { shardsToken } from '../../../lib/delay-queue.tokens.js';
import { DelayQueueEvents, DelayQueueEventsModule } from '../../../lib/events/index.js';
import type { FleetEvent, FleetOptions } from '../../../lib/events/index.js';
import { FleetReader } from '../../../lib/events/fleet-reader.js';
import type { InstanceContext } from '../../../lib/instance/instance-context.js';
import { encodeNews, fleetKey } from '../../../lib/redis/fleet.protocol.js';
import { FleetEvents } from '../../../lib/worker/fleet-events.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
let queues = 0;
const fresh = () => `told-${queues++}`;
const keyOf = (queue: string) => fleetKey(here.world.prefix, queue);

function handle(payload: unknown, job: DelayedJob): void {
  if (payload === 'snoozes' && job.snoozes === 0) throw new SnoozeJob(1);
  if (payload === 'fails' && job.attempt === 1) throw new Error('asked to fail');
  if (payload === 'dies') throw new DiscardJob('pointless');
}

/** A process that runs the jobs of a queue and tells of it. */
const worker = (queue: string, options: HandlerOptions = {}, keep?: number) =>
  here.start({
    providers: [handlerClass(queue, handle, { backoff: fixed(1), ...options })],
    options: { queues: { [queue]: { events: keep === undefined ? {} : { keep } } } },
  });

/** Another process, which listens. */
async function listener(queue: string, options?: FleetOptions) {
  const { app } = await here.start({ imports: [DelayQueueEventsModule], options: { consume: false } });
  const heard: FleetEvent[] = [];
  const subscription = app.get(DelayQueueEvents).fleet(queue, options).subscribe((event) => void heard.push(event)); // prettier-ignore
  return { app, heard, subscription };
}

const types = (heard: readonly FleetEvent[], id: string) => heard.filter((event) => event.id === id).map(({ type }) => type); // prettier-ignore

describe('fleet events', () => {
  it('tell every process how jobs end in any other one', async () => {
    const queue = fresh();
    const { heard } = await listener(queue, { since: '0-0' });
    const { producer } = await worker(queue);
    await producer.enqueueMany(
      queue,
      ['ok', 'snoozes', 'fails', 'dies'].map((payload) => ({ payload, id: payload })),
    );
    const late = (await here.world.now()) - 5_000;
    await producer.enqueue(queue, 'late', { id: 'late', at: late, expiresIn: 1_000 });
    await eventually(() => {
      expect(types(heard, 'ok')).toEqual(['completed']);
      expect(types(heard, 'snoozes')).toEqual(['snoozed', 'completed']);
      expect(types(heard, 'fails')).toEqual(['failed', 'retried', 'completed']);
      expect(types(heard, 'dies')).toEqual(['failed', 'deadLettered']);
      expect(types(heard, 'late')).toEqual(['expired']);
    });
    const of = (id: string, type: FleetEvent['type']) => heard.find((event) => event.id === id && event.type === type)!;
    const about = {
      queue,
      instance: 'default',
      process: expect.any(String),
      position: expect.stringMatching(/^\d+-\d+$/),
    };
    expect(of('ok', 'completed')).toMatchObject({ ...about, attempt: 1, durationMs: expect.any(Number) });
    expect(of('snoozes', 'snoozed')).toMatchObject({ delayMs: 1 });
    expect(of('fails', 'retried')).toMatchObject({ attempt: 1, delayMs: 1, error: 'Error: asked to fail' });
    expect(of('fails', 'completed')).toMatchObject({ attempt: 2 });
    expect(of('dies', 'deadLettered')).toMatchObject({
      reason: 'discarded',
      error: expect.stringContaining('pointless'),
    });
    expect(of('late', 'expired').latenessMs).toBeGreaterThanOrEqual(5_000);
    expect(Math.abs(of('ok', 'completed').at.getTime() - (await here.world.now()))).toBeLessThan(60_000);
    expect(new Set(heard.map(({ process }) => process)).size).toBe(1);
  });

  it('are one entry for what is learned at once, not one for each job', async () => {
    const queue = fresh();
    const { producer, inspector } = await worker(queue, { concurrency: 100 });
    await inspector.pause(queue);
    await producer.enqueueMany(queue, Array.from({ length: 100 }, () => ({ payload: 'ok' }))); // prettier-ignore
    await inspector.resume(queue);
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 100 }));
    const told = await eventually(async () => {
      const entries = await here.world.redis.xrange(keyOf(queue), '-', '+');
      const rows = entries.flatMap(([, fields]) => JSON.parse(fields[3]!) as unknown[]);
      expect(rows).toHaveLength(100);
      return entries.length;
    });
    expect(told).toBeLessThan(20);
  });

  it('are told before the application is closed, also of jobs that end while it drains', async () => {
    const queue = fresh();
    let release = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    const app = await here.start({ options: { queues: { [queue]: { events: {} } } } });
    const running = new Promise<void>((resolve) =>
      app.app.get(DelayQueueRegistry).register(queue, () => (resolve(), held)),
    );
    await app.producer.enqueue(queue, 1, { id: 'A' });
    await running;
    const closed = app.close();
    release();
    await closed;
    const { heard } = await listener(queue, { since: 0 });
    await eventually(() => expect(types(heard, 'A')).toEqual(['completed']));
  });

  it('keep about as many entries as they are told to', async () => {
    const queue = fresh();
    const { app } = await here.start({ options: { consume: false } });
    const { connection } = app.get<InstanceContext>(shardsToken('default'));
    const events = new FleetEvents(connection, keyOf(queue), 100, new DelayQueueLogger('test'));
    for (let n = 0; n < 350; n++) {
      events.tell({ type: 'expired', id: `j${n}`, attempt: 0, latenessMs: 0 });
      await events.close();
    }
    // Redis cuts off whole blocks of a hundred.
    const length = await here.world.redis.xlen(keyOf(queue));
    expect(length).toBeGreaterThanOrEqual(100);
    expect(length).toBeLessThanOrEqual(200);
  });

  it('of queues that keep none cost nothing: no entry is made', async () => {
    const queue = fresh();
    const { app, producer, inspector } = await here.start({ options: { queues: { other: { events: {} } } } });
    app.get(DelayQueueRegistry).register(queue, () => undefined);
    await producer.enqueue(queue, 'ok');
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 1 }));
    expect(await here.world.keys(queue)).not.toContain('events');
  });

  it('go when their queue is removed', async () => {
    const queue = fresh();
    const { producer, close } = await worker(queue);
    await producer.enqueue(queue, 'ok');
    await eventually(async () => expect(await here.world.redis.xlen(keyOf(queue))).toBe(1));
    await close();
    const other = await here.start({ options: { consume: false } });
    await other.inspector.remove(queue);
    expect(await here.world.keys(queue)).not.toContain('events');
  });
});

describe('a listener', () => {
  const news = (id: string) => [
    'p',
    'somebody',
    'e',
    encodeNews([{ type: 'completed', id, attempt: 1, latenessMs: 0 }]),
  ];
  const tell = (queue: string, ...ids: string[]) =>
    Promise.all(ids.map((id) => here.world.redis.xadd(keyOf(queue), '*', ...news(id))));
  const ids = (heard: readonly FleetEvent[]) => heard.map(({ id }) => id);

  it('hears what comes from now on, unless it asks for more', async () => {
    const queue = fresh();
    await tell(queue, 'before');
    const all = await listener(queue, { since: new Date(0) });
    await eventually(() => expect(ids(all.heard)).toEqual(['before']));
    const fromNow = await listener(queue);
    const behind = await listener(queue, { since: all.heard[0]!.position });
    // All three have looked once they hear of the same.
    let n = 0;
    await eventually(async () => {
      await tell(queue, `later${n++}`);
      expect(fromNow.heard.length * behind.heard.length).toBeGreaterThan(0);
    });
    expect(ids(fromNow.heard)).not.toContain('before');
    expect(ids(behind.heard)[0]).toBe('later0');
  });

  it('hears each event once, in order, however many there are', async () => {
    const queue = fresh();
    const many = Array.from({ length: 350 }, (_, n) => `j${n}`);
    await tell(queue, ...many);
    const { heard } = await listener(queue, { since: 0 });
    await eventually(() => expect(heard.length).toBeGreaterThanOrEqual(350));
    expect(ids(heard)).toEqual(many);
  });

  it('goes on where it was when Redis was away, and stops when it is told to', async () => {
    const entries = [['1-0', news('A')], ['2-0', news('B')]] as [string, string[]][]; // prettier-ignore
    const asked: string[] = [];
    const commands = {
      xrange: async (_: string, from: string) => {
        asked.push(from);
        if (asked.length === 2) throw new Error('Redis is away');
        return entries.slice(asked.length === 1 ? 0 : 1, asked.length === 1 ? 1 : 2);
      },
    };
    const connection = { commands, whenReady: async () => undefined, send: (call: () => Promise<unknown>) => call() };
    const heard: string[] = [];
    const context = { connection, options: { name: 'default', prefix: 'dq' } } as unknown as InstanceContext;
    const reader = new FleetReader(context, 'q', ({ id }) => heard.push(id));
    reader.start('0-0');
    await eventually(() => expect(heard).toEqual(['A', 'B']));
    reader.stop();
    expect(asked.slice(0, 3)).toEqual(['(0-0', '(1-0', '(1-0']);
  });

  it('leaves out what it cannot read', async () => {
    const queue = fresh();
    await here.world.redis.xadd(keyOf(queue), '*', 'p', 'x', 'e', 'no JSON');
    await here.world.redis.xadd(keyOf(queue), '*', 'p', 'x', 'e', '[["?","A",1,0,-1],["c",7,1,0,-1]]');
    await here.world.redis.xadd(keyOf(queue), '*', 'p', 'x', 'e', '[null,7]');
    await tell(queue, 'B');
    const { heard } = await listener(queue, { since: 0 });
    await eventually(() => expect(ids(heard)).toEqual(['B']));
  });

  it('is refused what makes no sense', async () => {
    const { app } = await listener(fresh());
    const events = app.get(DelayQueueEvents);
    expect(() => events.fleet('q', { since: 'yesterday' })).toThrow(InvalidOptionError);
    expect(() => events.fleet('q', { instance: 'eu' })).toThrow(UnknownInstanceError);
    await expect(here.start({ options: { queues: { q: { events: { keep: 0 } } } } })).rejects.toThrow(
      'forRoot({ queues: { "q": { events } } }): { keep }: 0 is not a whole number from 1 to 10000000.',
    );
  });
});
