import { expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { handlerClass } from '../../helpers/app.js';
import type { TestApp } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';

// A server of its own, because commands are counted.
const here = inAWorld({});
/** A lost wake-up may make a job so late, and no more. */
const MADE_GOOD_MS = 5_000;

async function calls(command: string): Promise<number> {
  const stats = await here.world.redis.info('commandstats');
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
}

/** All workers have come to rest: two looks at their shards, and no step of them in between. */
async function atRest(): Promise<void> {
  await eventually(async () => {
    const [looks, scripts] = [await calls('mget'), await calls('evalsha')];
    await eventually(async () => expect(await calls('mget')).toBeGreaterThan(looks), 6_000);
    expect(await calls('evalsha')).toBe(scripts);
  }, 40_000);
}

/** Nobody is told of what comes next, as when all messages were lost. */
async function forgetSleepers(queue: string): Promise<void> {
  await here.world.redis.del(here.world.key(queue, 'idle'));
  await here.world.redis.hset(here.world.key(queue, 'meta'), 'leader', '');
}

async function worker(queue: string): Promise<TestApp & { ran: string[] }> {
  const ran: string[] = [];
  const app = await here.start({ providers: [handlerClass(queue, (name: string) => void ran.push(name))] });
  return { ...app, ran };
}

it('a wake-up that was lost is made good within 5 s, whatever it would have told of', async () => {
  const queue = 'lost';
  const { producer, inspector, ran } = await worker(queue);
  const madeGood = async (name: string, act: () => Promise<unknown>) => {
    await atRest();
    await forgetSleepers(queue);
    await act();
    const since = performance.now();
    await eventually(() => expect(ran).toContain(name), MADE_GOOD_MS);
    expect(performance.now() - since).toBeLessThan(MADE_GOOD_MS);
  };
  await madeGood('enqueued', () => producer.enqueue(queue, 'enqueued'));
  await producer.enqueue(queue, 'run now', { id: 'later', delay: '1h' });
  await madeGood('run now', () => producer.runNow(queue, 'later'));
  await inspector.pause(queue);
  await producer.enqueue(queue, 'resumed');
  await madeGoodAfterPause();

  async function madeGoodAfterPause(): Promise<void> {
    await forgetSleepers(queue);
    await inspector.resume(queue);
    await eventually(() => expect(ran).toContain('resumed'), MADE_GOOD_MS);
  }
}, 180_000);

it('a queue whose data were deleted is written anew within 5 s', async () => {
  const queue = 'flushed';
  const { inspector } = await worker(queue);
  await atRest();
  await here.world.redis.flushall();
  await eventually(async () => expect((await inspector.queues()).includes(queue)).toBe(true), MADE_GOOD_MS);
}, 60_000);

it('idle queues cost a look of one command for all of them, and no steps', async () => {
  const queues = Array.from({ length: 20 }, (_, n) => `idle${n}`);
  await here.start({ providers: queues.map((queue) => handlerClass(queue, () => undefined)) });
  await atRest();
  const [looks, scripts] = [await calls('mget'), await calls('evalsha')];
  await eventually(async () => expect(await calls('mget')).toBe(looks + 2), 12_000);
  expect(await calls('evalsha')).toBe(scripts);
}, 60_000);

it('each look of a queue with shards cost two steps for each of them', async () => {
  const queue = 'shards';
  const { producer } = await here.start({
    providers: [handlerClass(queue, () => undefined, { lease: '3s' })],
    options: { queues: { [queue]: { shards: 2 } } },
  });
  // With jobs that are due soon in both shards no worker rests: it looks each second, a third of the lease.
  await producer.enqueueMany(
    queue,
    Array.from({ length: 20 }, () => ({ payload: 1, delay: '10s' })),
  );
  await sleep(1_000);
  const [steps, since] = [await calls('evalsha'), performance.now()];
  await sleep(7_000);
  const made = (await calls('evalsha')) - steps;
  const seconds = (performance.now() - since) / 1_000;
  // Some looks are one step more, as when both shards are asked for jobs until one of them gives way; two for each would be 28.
  expect(made).toBeLessThanOrEqual(2 * (seconds + 1.5) + 4);
}, 30_000);
