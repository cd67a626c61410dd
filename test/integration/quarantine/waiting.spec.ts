import { describe, expect, it } from '@jest/globals';
import { DelayQueueRegistry } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { WATCHED_MS } from '../../../lib/worker/isolation/isolation-gate.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { enqueueQuarantined } from './quarantined.js';

const here = inAWorld();
let queues = 0;
let heads = 0;
/** Long past the time for which a job waits for an empty process. */
const OVERDUE = { waitedMs: 60_000 };

/** Two queues of one process, whose handlers hold each job until the test lets it go. */
async function twoQueues({ instances = 1, concurrency = 5 } = {}) {
  const [a, b] = [`a${queues}`, `b${queues++}`] as const;
  const started: string[] = [];
  const running = new Map<string, { job: DelayedJob; startedAt: number; end: () => void }>();
  const hold = (_: unknown, job: DelayedJob) => {
    started.push(job.id);
    return new Promise<void>((resolve) => running.set(job.id, { job, startedAt: performance.now(), end: resolve }));
  };
  const handlers = [a, b].map((queue) => handlerClass(queue, hold, { concurrency }));
  const options = { drainTimeout: 0 };
  const first = await here.start({ providers: handlers.slice(0, 3 - instances), options });
  if (instances === 2) await here.start({ providers: handlers.slice(1), options, sameProcess: true });
  return {
    ...first,
    hold,
    a,
    b,
    started,
    /** That it started, and nothing ended meanwhile. */
    starts: (...ids: string[]) => eventually(() => expect(started).toEqual(expect.arrayContaining(ids)), 20_000),
    run: (id: string) => running.get(id)!,
    quarantine: async (queue: string, id: string, how?: { waitedMs?: number; losses?: number }) => {
      await enqueueQuarantined(here.world, first.producer, queue, id, how);
      await first.producer.enqueue(queue, {}, { delay: `${3_000 - heads++}s` }); // A new head wakes its worker.
    },
    /** Whether the loss of its lease would be charged. */
    isCharged: async (queue: string, id: string) => {
      const { running: claims, leases } = await here.world.read(queue);
      return leases[claims[id]!]! % 1 !== 0;
    },
  };
}

describe('a job that lost its lease once and takes 20 s', () => {
  it('kept every other queue of its process waiting', async () => {
    const { a, b, started, producer, starts, quarantine } = await twoQueues();
    await quarantine(a, 'long');
    await starts('long');
    await producer.enqueue(b, {}, { id: 'other' });
    await producer.enqueue(a, {}, { id: 'same' });
    await starts('other', 'same');
    expect(started[0]).toBe('long'); // Nothing has ended.
  });

  it('and then the next one of its kind kept them waiting once more before they had their turn', async () => {
    const { a, b, started, producer, starts, quarantine, run } = await twoQueues();
    await quarantine(a, 'first');
    await starts('first');
    await quarantine(a, 'second');
    await producer.enqueue(b, {}, { id: 'due' });
    await starts('due');
    expect(started).toEqual(['first', 'due']);
    run('first').end();
    run('due').end();
    await starts('second');
  });

  it('was charged for a job that came to it after its time alone', async () => {
    const { a, b, producer, starts, quarantine, isCharged } = await twoQueues();
    await quarantine(a, 'long');
    await starts('long');
    expect(await isCharged(a, 'long')).toBe(true);
    await producer.enqueue(b, {}, { id: 'other' });
    await starts('other');
    await eventually(async () => expect(await isCharged(a, 'long')).toBe(false));
  });
});

describe('one hung handler', () => {
  it('next to a job in quarantine stalled unrelated queues, and that job never ran', async () => {
    const { a, b, producer, starts, quarantine, run } = await twoQueues();
    await producer.enqueue(b, {}, { id: 'hung' });
    await starts('hung');
    await quarantine(a, 'quarantined', OVERDUE);
    await starts('quarantined');
    for (const id of ['one', 'two', 'three']) {
      await producer.enqueue(b, {}, { id });
      await starts(id);
      expect(run(id).job.latenessMs).toBeLessThan(5_000);
      run(id).end();
    }
  });

  it('that is itself in quarantine kept the others from running', async () => {
    const { a, b, started, starts, quarantine } = await twoQueues();
    await quarantine(a, 'hung');
    await starts('hung');
    await quarantine(b, 'other queue', OVERDUE);
    await quarantine(a, 'same queue', OVERDUE);
    await starts('other queue', 'same queue');
    expect(started[0]).toBe('hung'); // Nothing has ended.
  });

  it('that timed out counts as running: jobs that run with it are not charged for what it may do', async () => {
    const { a, b, producer, starts, isCharged } = await twoQueues();
    await producer.enqueue(b, {}, { id: 'zombie', timeout: 50 });
    await starts('zombie');
    await eventually(async () => expect((await here.world.read(b)).running).toEqual({}));
    await producer.enqueue(a, {}, { id: 'innocent' });
    await starts('innocent');
    expect(await isCharged(a, 'innocent')).toBe(false);
  });

  it('and whose queue was given up counts as running for as long as it goes on', async () => {
    const { a, b, app, producer, hold, starts, run, isCharged } = await twoQueues();
    const registry = app.get(DelayQueueRegistry);
    registry.register(`${b}-given-up`, hold);
    await producer.enqueue(`${b}-given-up`, {}, { id: 'goes on', timeout: 50 });
    await starts('goes on');
    await registry.unregister(`${b}-given-up`);
    await producer.enqueue(a, {}, { id: 'innocent' });
    await starts('innocent');
    expect(await isCharged(a, 'innocent')).toBe(false);
    run('goes on').end();
    run('innocent').end();
    await eventually(async () => expect((await here.world.read(a)).running).toEqual({}));
    await producer.enqueue(a, {}, { id: 'alone' });
    await starts('alone');
    expect(await isCharged(a, 'alone')).toBe(true);
  });
});

describe('a job that lost its lease three times in a row', () => {
  it('could kill its process for ever, as long as others ran there', async () => {
    const { a, b, producer, starts, quarantine, isCharged } = await twoQueues();
    await quarantine(a, 'slow killer', { losses: 3 });
    await starts('slow killer');
    await producer.enqueue(b, {}, { id: 'neighbour' });
    await starts('neighbour');
    expect(await isCharged(a, 'slow killer')).toBe(true);
    expect(await isCharged(b, 'neighbour')).toBe(false);
  });

  it('would pay for the next one that starts with it', async () => {
    const { a, b, starts, quarantine, isCharged } = await twoQueues();
    await quarantine(a, 'before', { losses: 3 });
    await starts('before');
    await quarantine(b, 'after', { losses: 3, ...OVERDUE });
    await starts('after');
    expect(await isCharged(b, 'after')).toBe(true);
    expect(await isCharged(a, 'before')).toBe(false);
  });

  it('and killed its process at once was not charged, but whatever had waited as long and started next', async () => {
    const { a, b, producer, starts, quarantine, isCharged, run } = await twoQueues();
    await producer.enqueue(b, {}, { id: 'neighbour' });
    await starts('neighbour');
    await quarantine(a, 'killer', { losses: 3, ...OVERDUE });
    await starts('killer');
    expect(await isCharged(a, 'killer')).toBe(true);
    await quarantine(b, 'next', { losses: 3, ...OVERDUE });
    await starts('next');
    expect(run('next').startedAt - run('killer').startedAt).toBeGreaterThan(WATCHED_MS - 100);
  });
});

describe('two forRoot() in one process', () => {
  it('counted "alone" apart, so that the neighbour of a killer was charged', async () => {
    const { a, b, producer, starts, isCharged } = await twoQueues({ instances: 2 });
    await producer.enqueue(a, {}, { id: 'killer' });
    await starts('killer');
    await producer.enqueue(b, {}, { id: 'neighbour' });
    await starts('neighbour');
    await eventually(async () => expect(await isCharged(a, 'killer')).toBe(false));
    expect(await isCharged(b, 'neighbour')).toBe(false);
  });

  it('ran together with others in quarantine', async () => {
    const { a, b, started, producer, starts, quarantine, run } = await twoQueues({ instances: 2 });
    await producer.enqueue(b, {}, { id: 'running' });
    await starts('running');
    await quarantine(a, 'quarantined');
    await eventually(async () => {
      const { meta, quarantine } = await here.world.read(a);
      expect({ ...meta, ...quarantine }).toMatchObject({
        isolator: expect.stringMatching(/ \d+$/),
        quarantined: expect.anything(),
      });
    });
    expect(started).toEqual(['running']);
    run('running').end();
    await starts('quarantined');
  });
});
