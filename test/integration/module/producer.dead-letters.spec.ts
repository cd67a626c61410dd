import { describe, expect, it } from '@jest/globals';
import { defineQueue, DiscardJob, QueueFullError } from '../../../lib/index.js';
import type { DelayedJob, DelayQueueRootOptions, EnqueueOptions } from '../../../lib/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { holding } from '../../helpers/holding.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
let queues = 0;
const errorOf = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  );

/** A queue whose handler discards what says so; the names of all that ran, in their order. */
async function running(options: DelayQueueRootOptions = {}, name = `dead-${queues++}`) {
  const runs: [payload: unknown, attempt: number][] = [];
  const log: string[] = [];
  const handle = (payload: { fails?: boolean }, job: DelayedJob) => {
    runs.push([payload, job.attempt]);
    if (payload.fails) throw new DiscardJob('asked to');
  };
  const app = await here.start({ providers: [handlerClass(name, handle)], options, log });
  const state = async (id: string) => (await app.producer.get(name, id))?.state;
  /** Enqueues what fails, and waits until it is dead. */
  const die = async (id: string, more: EnqueueOptions = {}) => {
    const result = await app.producer.enqueue(name, { fails: true }, { id, ...more });
    await eventually(async () => expect(await state(id)).toBe('dead'));
    return result;
  };
  // But for those of the jobs that were discarded.
  const warnings = () =>
    log.filter((line) => line.startsWith('warn') && line.includes(name) && !line.includes('(discarded)'));
  return { ...app, name, runs, log, state, die, warnings };
}

describe('a dead letter', () => {
  it('held its id for 90 days: a new job under it takes its place, with nothing of its past', async () => {
    const { producer, inspector, name, runs, die, state } = await running();
    await die('a', { attempts: 1 });
    expect(await producer.enqueue(name, { n: 1 }, { id: 'a', delay: '1h' })).toMatchObject({
      id: 'a',
      outcome: 'replaced',
      state: 'dead',
    });
    expect(await producer.get(name, 'a')).toMatchObject({ state: 'delayed', payload: { n: 1 }, attempts: 0 });
    expect((await producer.get(name, 'a'))!.lastError).toBeUndefined();
    expect(await inspector.counts(name)).toMatchObject({ dead: 0, delayed: 1 });
    const { errors, attempts, dead } = await here.world.read(name);
    expect([errors, attempts, dead]).toEqual([{}, {}, {}]);
    await producer.runNow(name, 'a');
    await eventually(async () => expect(await state('a')).toBeUndefined());
    expect(runs).toEqual([
      [{ fails: true }, 1],
      [{ n: 1 }, 1],
    ]);
    expect(await here.world.violations(name)).toEqual([]);
  });

  it('ended a throttled id without a word: the next job is made, and opens a window of its own', async () => {
    const throttled = defineQueue<{ fails?: boolean }>(`dead-${queues++}`, { id: () => 'shop', throttle: '10m' });
    const { producer, name, runs, state } = await running({}, throttled.name);
    await producer.enqueue(throttled, { fails: true });
    await eventually(async () => expect(await state('shop')).toBe('dead'));
    // The window of the one that died is over; its dead letter is there for much longer.
    await here.world.redis.zadd(here.world.key(name, 'unique'), 'XX', String((await here.world.now()) - 1), 'shop');
    expect(await producer.enqueue(throttled, {})).toMatchObject({ outcome: 'replaced', state: 'dead' });
    await eventually(async () => expect(await state('shop')).toBeUndefined());
    expect(await producer.enqueue(throttled, {})).toMatchObject({ outcome: 'kept', state: 'completed' });
    expect(runs).toHaveLength(2);
  });

  it('ended a chain of jobs under one id: the chain goes on', async () => {
    const { producer, name, runs, state } = await running();
    const chain = [false, true, false, true, true, false];
    for (const fails of chain) {
      await producer.enqueue(name, { fails }, { id: 'chain' });
      await eventually(async () => expect(await state('chain')).toBe(fails ? 'dead' : undefined));
    }
    expect(runs.map(([payload]) => (payload as { fails: boolean }).fails)).toEqual(chain);
    expect(runs.every(([, attempt]) => attempt === 1)).toBe(true);
  });

  it('gives way to one job of a batch, and the second under its id finds that one', async () => {
    const { producer, inspector, name, die } = await running();
    await die('a');
    await die('b');
    await inspector.pause(name);
    const results = await producer.enqueueMany(name, [
      { payload: { n: 1 }, id: 'a' },
      { payload: { n: 2 }, id: 'a' },
      { payload: { n: 3 }, id: 'b', onDead: 'keep' },
      { payload: { n: 4 }, id: 'c' },
    ]);
    expect(results.map(({ outcome, state }) => [outcome, state])).toEqual([
      ['replaced', 'dead'],
      ['kept', 'due'],
      ['kept', 'dead'],
      ['created', 'due'],
    ]);
    expect(await producer.get(name, 'a')).toMatchObject({ payload: { n: 1 } });
    expect(await inspector.counts(name)).toMatchObject({ dead: 1, due: 2 });
    await inspector.resume(name);
  });

  it('raised by a plain call is one job more: a queue that is full refuses it and keeps the dead letter', async () => {
    const { queue, producer, inspector, bring } = await holding(here, {}, { defaults: { maxSize: 1 } });
    await bring('dead', 'dead');
    await bring('there', 'delayed');
    const before = await here.world.read(queue);
    expect(await errorOf(producer.enqueue(queue, 'new', { id: 'dead' }))).toBeInstanceOf(QueueFullError);
    const { dead, jobs, errors } = await here.world.read(queue);
    expect({ dead, jobs, errors }).toEqual({ dead: before.dead, jobs: before.jobs, errors: before.errors });
    await producer.cancel(queue, 'there');
    expect(await producer.enqueue(queue, 'new', { id: 'dead', delay: '1h' })).toMatchObject({ outcome: 'replaced' });
    expect(await inspector.counts(queue)).toMatchObject({ dead: 0, delayed: 1 });
  });

  it('of the target still holds its id against a moved job, which stays where it is', async () => {
    const { producer, inspector, name, die, state } = await running();
    await die('a');
    await producer.enqueue(`${name}-from`, {}, { id: 'a', delay: '1h' });
    const { results } = await inspector.move(`${name}-from`, ['a'], name);
    expect(results).toEqual([{ id: 'a', outcome: 'exists' }]);
    expect(await state('a')).toBe('dead');
  });
});

describe("onDead: 'keep'", () => {
  it('keeps the dead letter, and says once per queue that a job was not made', async () => {
    const { producer, name, runs, die, state, warnings } = await running();
    await die('a');
    await die('b');
    for (const id of ['a', 'b', 'a']) {
      expect(await producer.enqueue(name, {}, { id, onDead: 'keep' })).toMatchObject({
        outcome: 'kept',
        state: 'dead',
      });
    }
    expect(await state('a')).toBe('dead');
    expect(runs).toHaveLength(2);
    expect(warnings()).toEqual([expect.stringMatching(/job "a" was not made.*onDead is 'keep'/)]);
    // Of a job that is there nothing is said.
    const { log, producer: other } = await running({}, `${name}-other`);
    await other.enqueue(`${name}-other`, {}, { id: 'x', delay: '1h', onDead: 'keep' });
    await other.enqueue(`${name}-other`, {}, { id: 'x', delay: '1h', onDead: 'keep' });
    expect(log.filter((line) => line.includes('was not made'))).toEqual([]);
  });

  it('may be said by a definition, by forRoot, and a call decides', async () => {
    const defined = defineQueue<{ fails?: boolean }>(`dead-${queues++}`, { onDead: 'keep' });
    const { producer, die } = await running({}, defined.name);
    await die('a');
    expect(await producer.enqueue(defined, {}, { id: 'a' })).toMatchObject({ outcome: 'kept', state: 'dead' });
    expect(await producer.enqueue(defined, {}, { id: 'a', onDead: 'replace' })).toMatchObject({ outcome: 'replaced' });

    for (const say of ['queues', 'defaults'] as const) {
      const name = `dead-${queues++}`;
      const app = await running(say === 'queues' ? { queues: { [name]: { onDead: 'keep' } } } : { defaults: { onDead: 'keep' } }, name); // prettier-ignore
      await app.die('a');
      expect(await app.producer.enqueue(name, {}, { id: 'a' })).toMatchObject({ outcome: 'kept', state: 'dead' });
    }
  });

  it('is refused where it would say nothing', async () => {
    const { producer, name } = await running();
    const code = 'ERR_DQ_INVALID_OPTION';
    for (const onDuplicate of ['replace', 'reschedule', 'reject'] as const) {
      await expect(producer.enqueue(name, {}, { id: 'a', onDuplicate, onDead: 'keep' })).rejects.toMatchObject({
        code,
      });
    }
    await expect(producer.enqueue(name, {}, { onDead: 'leave' as never })).rejects.toMatchObject({ code });
    const bulk = producer.enqueueMany(name, [{ payload: {}, onDuplicate: 'replace', onDead: 'keep' }]);
    await expect(bulk).rejects.toThrow('item 0: { onDead }');
    expect(() => defineQueue('x', { id: String, debounce: { wait: 1 }, onDead: 'keep' })).toThrow('onDead');
    await expect(running({ defaults: { onDead: 'leave' as never } })).rejects.toThrow('onDead');
  });
});
