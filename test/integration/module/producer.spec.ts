import { describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EnqueueOptions } from '../../../lib/index.js';
import { eventually } from '../../helpers/eventually.js';
import { holding } from '../../helpers/holding.js';
import { inAWorld } from '../../helpers/in-a-world.js';

// A private server, because commands are counted.
const here = inAWorld({});
const HOUR = 3_600_000;
describe('a due time', () => {
  it('in the past is kept, so that order and lateness stay honest', async () => {
    const { queue, producer, inspector, run, held } = await holding(here, { concurrency: 1 });
    await inspector.pause(queue);
    const now = await here.world.now();
    const result = await producer.enqueue(queue, 'second', { at: now - HOUR });
    expect(result).toMatchObject({ dueAt: new Date(now - HOUR), state: 'due', outcome: 'created' });
    await producer.enqueue(queue, 'first', { at: new Date(now - 2 * HOUR) });
    await producer.enqueue(queue, 'third');
    await inspector.resume(queue);
    for (const n of [1, 2, 3]) (await run(n)).end();
    expect(held.map(({ job }) => job.payload)).toEqual(['first', 'second', 'third']);
    expect(held[0]!.job.latenessMs).toBeGreaterThanOrEqual(2 * HOUR);
  });

  it.each<[string, EnqueueOptions, number]>([
    ['text', { delay: '1d 2h' }, 26],
    ['ISO 8601', { delay: 'P1DT2H' }, 26],
    ['milliseconds', { delay: 90 * 60_000 }, 1.5],
    ['a Date', { at: new Date(Date.now() + 5 * HOUR) }, 5],
  ])('may be given as %s', async (_, options, hours) => {
    const { queue, producer } = await holding(here);
    const { id, dueAt } = await producer.enqueue(queue, {}, options);
    expect((dueAt.getTime() - (await here.world.now())) / HOUR).toBeCloseTo(hours, 1);
    expect((await here.world.read(queue)).due).toEqual({ [id]: dueAt.getTime() });
  });

  it('beyond what a timer holds is waited for: no early run, no spinning', async () => {
    const { queue, producer, held, state } = await holding(here);
    const { id } = await producer.enqueue(queue, {}, { delay: 2 ** 31 + 10_000 });
    const { id: ages } = await producer.enqueue(queue, {}, { delay: '36500d' });
    await eventually(async () => expect((await here.world.read(queue)).meta['leader']).toBeTruthy());
    const before = await scriptCalls();
    await sleep(1_000);
    expect((await scriptCalls()) - before).toBeLessThan(10);
    expect(held).toEqual([]);
    expect([await state(id), await state(ages)]).toEqual(['delayed', 'delayed']);
  });
});

describe('ids', () => {
  it('that are generated are URL-safe and sort in the order of their making', async () => {
    const { queue, producer, inspector } = await holding(here);
    await inspector.pause(queue);
    const ids: string[] = [];
    for (let n = 0; n < 20; n++) ids.push((await producer.enqueue(queue, n)).id);
    for (const id of ids) expect(id).toMatch(/^[\w-]{16,26}$/);
    expect([...ids].sort()).toEqual(ids);
  });

  it('may come from the payload', async () => {
    const { queue, producer, inspector } = await holding(here);
    await inspector.pause(queue);
    const send = (payload: object) => producer.enqueue(queue, payload, { idFromPayload: true });
    const first = await send({ order: 1 });
    expect(await send({ order: 1 })).toMatchObject({ id: first.id, outcome: 'kept' });
    expect((await send({ order: 2 })).id).not.toBe(first.id);
  });

  it('may be any text, also one that means something elsewhere', async () => {
    const { queue, producer, run } = await holding(here);
    const ids = ['__proto__', 'constructor', 'a b', 'mail:5', '日本', '*', '0', '1e3', "'", '\\'];
    for (const [index, id] of ids.entries()) {
      await producer.enqueue(queue, index, { id });
      const { job, end } = await run(index + 1);
      expect(job).toMatchObject({ id, payload: index });
      end();
    }
    for (const id of ids) await eventually(async () => expect(await producer.get(queue, id)).toBeUndefined());
  });
});

describe('a debounce', () => {
  const debounce = { id: 'report', onDuplicate: 'replace', delay: HOUR, maxWait: 2 * HOUR } as const;

  it('puts the job off with every call, and runs the newest payload, but not later than maxWait after the first', async () => {
    const { queue, producer } = await holding(here);
    const first = await producer.enqueue(queue, 1, debounce);
    const second = await producer.enqueue(queue, 2, debounce);
    expect(second.outcome).toBe('replaced');
    expect(second.dueAt.getTime()).toBeGreaterThanOrEqual(first.dueAt.getTime());
    // As if the first call had been 90 minutes ago, and the second one 45.
    await here.world.makeDue(queue, 'report', -HOUR / 4);
    const began = (await here.world.now()) - 1.5 * HOUR;
    await here.world.redis.hset(here.world.key(queue, 'debounce'), 'report', began);
    const third = await producer.enqueue(queue, 3, debounce);
    expect(third.dueAt.getTime()).toBe(began + 2 * HOUR);
    expect(await producer.get(queue, 'report')).toMatchObject({ payload: 3, dueAt: third.dueAt });
  });

  it('begins anew when the job has run', async () => {
    const { queue, producer, run } = await holding(here);
    await producer.enqueue(queue, 1, debounce);
    await producer.runNow(queue, 'report');
    (await run(1)).end();
    await eventually(async () => expect(await producer.get(queue, 'report')).toBeUndefined());
    expect((await here.world.read(queue)).debounce).toEqual({});
    const { dueAt } = await producer.enqueue(queue, 2, debounce);
    expect((dueAt.getTime() - (await here.world.now())) / HOUR).toBeCloseTo(1, 1);
  });
});

describe('uniqueFor', () => {
  it('keeps a second job from being made within the window, also when the first is done', async () => {
    const { queue, producer, run } = await holding(here);
    const once = { id: 'welcome', uniqueFor: HOUR };
    await producer.enqueue(queue, 1, once);
    expect(await producer.enqueue(queue, 2, once)).toMatchObject({ outcome: 'kept' });
    (await run(1)).end();
    await eventually(async () => expect(await producer.get(queue, 'welcome')).toBeUndefined());
    for (const onDuplicate of ['keep', 'replace', 'reschedule'] as const) {
      const again = await producer.enqueue(queue, 3, { ...once, onDuplicate });
      expect(again).toMatchObject({ outcome: 'kept', state: 'completed' });
    }
    // As if the window had just ended.
    await here.world.redis.zadd(here.world.key(queue, 'unique'), (await here.world.now()) - 1, 'welcome');
    expect(await producer.enqueue(queue, 4, once)).toMatchObject({ outcome: 'created' });
    expect((await run(2)).job.payload).toBe(4);
  });
});

it('get() tells a job in each of its states', async () => {
  const { queue, producer, bring, state } = await holding(here);
  expect(await producer.get(queue, 'nobody')).toBeUndefined();
  const before = await here.world.now();
  await producer.enqueue(queue, { n: 1 }, { id: 'd', delay: HOUR, attempts: 3, context: { tenant: 'acme' } });
  const delayed = await producer.get(queue, 'd');
  expect(delayed).toEqual({
    id: 'd',
    queue,
    state: 'delayed',
    payload: { n: 1 },
    dueAt: expect.any(Date),
    enqueuedAt: expect.any(Date),
    attempts: 0,
    maxAttempts: 3,
    context: { tenant: 'acme' },
  });
  expect(delayed!.dueAt.getTime() - delayed!.enqueuedAt.getTime()).toBe(HOUR);
  expect(delayed!.enqueuedAt.getTime()).toBeGreaterThanOrEqual(before);

  await bring('r', 'running');
  expect(await producer.get(queue, 'r')).toMatchObject({
    state: 'running',
    payload: 'old',
    attempts: 0,
    maxAttempts: 10,
  });
  expect(await state('d')).toBe('delayed');
  const dead = await holding(here);
  await dead.bring('x', 'dead');
  expect(await producer.get(dead.queue, 'x')).toMatchObject({
    state: 'dead',
    deadReason: 'discarded',
    attempts: 1,
    lastError: { name: 'DiscardJob', message: 'dead', at: expect.any(Date) },
  });
  const due = await holding(here);
  await due.bring('w', 'due');
  expect(await producer.get(due.queue, 'w')).toMatchObject({ state: 'due' });
});

/** How many scripts the server has run. */
async function scriptCalls(): Promise<number> {
  const stats = await here.world.redis.info('commandstats');
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
}
