import { describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DelayedJob } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { idIn } from '../../helpers/sharded-groups.js';
import { enqueueQuarantined } from './quarantined.js';

const here = inAWorld({});
let queues = 0;

/** Two queues of one process, whose handlers hold each job until the test lets it go. */
async function twoQueues(lease = '1s') {
  const [a, b] = [`a${queues}`, `b${queues++}`] as const;
  const started: string[] = [];
  const running = new Map<string, () => void>();
  const hold = (_: unknown, { id }: DelayedJob) => {
    started.push(id);
    return new Promise<void>((resolve) => running.set(id, resolve));
  };
  const app = await here.start({
    providers: [handlerClass(a, hold, { lease }), handlerClass(b, hold, { lease })],
    options: { drainTimeout: 0 },
  });
  return {
    ...app,
    a,
    b,
    started,
    starts: (id: string, withinMs = 10_000) => eventually(() => expect(started).toContain(id), withinMs),
    end: (id: string) => running.get(id)!(),
    quarantine: (queue: string, id: string) => enqueueQuarantined(here.world, app.producer, queue, id),
    hasIsolator: (queue: string) =>
      eventually(async () => expect((await here.world.read(queue)).meta['isolator']).toMatch(/ \d+$/)),
  };
}

/** While a second and a half passes. */
async function scriptsPerSecond(): Promise<number> {
  const count = async () => {
    const stats = await here.world.redis.info('commandstats');
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
  };
  const before = await count();
  await sleep(1_500);
  return ((await count()) - before) / 1.5;
}

it('a shard at its limit, with a job in quarantine, was asked without pause by a process that ran nothing', async () => {
  const queue = `shards${queues++}`;
  const [busy, quarantined] = [idIn(0, 2, 'busy'), idIn(0, 2, 'quarantined')];
  const started: string[] = [];
  const ends: (() => void)[] = [];
  const hold = (_: unknown, { id }: DelayedJob) => {
    started.push(id);
    return new Promise<void>((resolve) => ends.push(resolve));
  };
  const handler = handlerClass(queue, hold, { lease: '1s', globalConcurrency: 2 });
  const process = () =>
    here.start({ providers: [handler], options: { drainTimeout: 0, queues: { [queue]: { shards: 2 } } } });
  const { producer } = await process();
  await producer.enqueue(queue, {}, { id: busy });
  await eventually(() => expect(started).toEqual([busy]));
  await process();
  await enqueueQuarantined(here.world, producer, queue, quarantined, { shard: `${queue}:0` });
  // The other process asks for it in vain, and looks for what is due each third of a second.
  await sleep(2_500);
  expect(await scriptsPerSecond()).toBeLessThan(30);
  expect(started).toEqual([busy]);
  ends.shift()!();
  await eventually(() => expect(started).toEqual([busy, quarantined]));
  ends.shift()!();
});

describe('while a job from the quarantine ran alone', () => {
  it('its worker asked Redis without pause', async () => {
    const { a, starts, end, quarantine } = await twoQueues();
    await quarantine(a, 'S');
    await starts('S');
    expect(await scriptsPerSecond()).toBeLessThan(20);
    end('S');
    await eventually(async () => expect(await here.world.read(a)).toMatchObject({ running: {}, quarantine: {} }));
  });

  it('and another queue of the process had one too, their workers asked without pause', async () => {
    const { a, b, started, end, quarantine } = await twoQueues();
    await quarantine(a, 'S');
    await quarantine(b, 'T');
    await eventually(() => expect(started).toHaveLength(1));
    expect(await scriptsPerSecond()).toBeLessThan(20);
    expect(started).toHaveLength(1);
    end(started[0]!);
    await eventually(() => expect(started).toHaveLength(2));
  });

  it('others ran with it, or a wake-up that came meanwhile was forgotten', async () => {
    const { a, b, starts, started, end, producer, quarantine } = await twoQueues('30s');
    await quarantine(a, 'S');
    await producer.enqueue(a, {}, { delay: '1h' }); // a new head wakes the worker
    await starts('S');
    await producer.enqueue(a, {}, { id: 'due' });
    await producer.enqueue(b, {}, { id: 'neighbour' });
    await sleep(700);
    expect(started).toEqual(['S']);
    end('S');
    await starts('due', 2_500); // the next unprompted poll would come after five seconds
    await starts('neighbour', 2_500);
  });
});

it('one job in quarantine stopped the other queues of its process for as long as their longest handler ran', async () => {
  const { a, b, starts, started, end, producer, quarantine, hasIsolator } = await twoQueues();
  await producer.enqueue(b, {}, { id: 'long' });
  await starts('long');
  await quarantine(a, 'S');
  await hasIsolator(a);
  await producer.enqueue(b, {}, { id: 'waits' });
  await starts('waits', 6_000);
  expect(started).not.toContain('S');
  end('long');
  end('waits');
  await starts('S');
});
