import { describe, expect, it } from '@jest/globals';
import { DiscardJob, fixed, HandlerTimeoutError, SnoozeJob } from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { oneHandler } from '../../helpers/one-handler.js';

const here = inAWorld();

describe('a handler that', () => {
  it.each([
    ['returns', () => 'whatever'],
    ['resolves', async () => undefined],
  ])('%s completes its job, of which nothing is left', async (_, handle) => {
    const { queue, producer, inspector, runs } = await oneHandler(here, handle);
    const { id } = await producer.enqueue(queue, { n: 1 });
    await eventually(async () => expect((await inspector.totals(queue)).completed).toBe(1));
    expect(runs.map(({ attempt }) => attempt)).toEqual([1]);
    expect(await producer.get(queue, id)).toBeUndefined();
    expect(await here.world.read(queue)).toMatchObject({ due: {}, running: {}, leases: {}, jobs: {}, attempts: {} });
  });

  it('throws is run again after the backoff, and becomes a dead letter after its last attempt', async () => {
    const fail = (_: unknown, { attempt }: DelayedJob) => {
      throw new TypeError(`no luck ${attempt}`);
    };
    const { queue, producer, inspector, runs, becomes } = await oneHandler(here, fail, {
      attempts: 3,
      backoff: fixed('1h'),
    });
    const { id } = await producer.enqueue(queue, {});
    for (const attempts of [1, 2]) {
      await becomes(id, { state: 'delayed', attempts, maxAttempts: 3 });
      await producer.runNow(queue, id);
    }
    const dead = await becomes(id, { state: 'dead', attempts: 3, deadReason: 'exhausted' });
    expect(dead.lastError).toMatchObject({ name: 'TypeError', message: 'no luck 3', stack: expect.any(String) });
    expect(runs.map(({ attempt, maxAttempts }) => [attempt, maxAttempts])).toEqual([
      [1, 3],
      [2, 3],
      [3, 3],
    ]);
    expect(await inspector.totals(queue)).toMatchObject({ enqueued: 1, failed: 3, retried: 2, dead: 1, completed: 0 });
  });

  it('succeeds at last is forgotten like any other', async () => {
    const { queue, producer, inspector, becomes } = await oneHandler(
      here,
      (_, { attempt }) => {
        if (attempt === 1) throw new Error('not yet');
      },
      { backoff: fixed('1h') },
    );
    const { id } = await producer.enqueue(queue, {});
    await becomes(id, { state: 'delayed', attempts: 1 });
    await producer.runNow(queue, id);
    await eventually(async () => expect((await inspector.totals(queue)).completed).toBe(1));
    expect(await here.world.read(queue)).toMatchObject({ jobs: {}, attempts: {}, errors: {} });
  });
});

it('DiscardJob makes a dead letter at once, with its reason', async () => {
  const { queue, producer, becomes, runs } = await oneHandler(here, () => {
    throw new DiscardJob('the order was deleted');
  });
  const { id } = await producer.enqueue(queue, { order: 5 });
  const dead = await becomes(id, { state: 'dead', deadReason: 'discarded', payload: { order: 5 } });
  expect(dead.lastError).toMatchObject({ name: 'DiscardJob', message: 'the order was deleted' });
  expect(runs).toHaveLength(1);
});

describe('SnoozeJob', () => {
  it('makes the job due later and uses no attempt', async () => {
    const { queue, producer, runs, becomes, hoursUntilDue } = await oneHandler(here, (_, { snoozes }) => {
      if (snoozes < 2) throw new SnoozeJob('3h');
      throw new Error('a failure after all');
    });
    const { id } = await producer.enqueue(queue, {});
    for (const run of [1, 2]) {
      await eventually(() => expect(runs).toHaveLength(run));
      await becomes(id, { state: 'delayed', attempts: 0 });
      expect(await hoursUntilDue(id)).toBeCloseTo(3, 1);
      await producer.runNow(queue, id);
    }
    await becomes(id, { state: 'delayed', attempts: 1 });
    expect(runs.map(({ attempt, snoozes }) => [attempt, snoozes])).toEqual([
      [1, 0],
      [1, 1],
      [1, 2],
    ]);
  });

  it('may change the payload, and keeps the options of the job', async () => {
    const { queue, producer, runs, becomes } = await oneHandler(here, (payload: { page: number }) => {
      throw new SnoozeJob('1h', { payload: { page: payload.page + 1 } });
    });
    const { id, dueAt } = await producer.enqueue(queue, { page: 1 }, { attempts: 4, context: { tenant: 'acme' } });
    const snoozed = await becomes(id, { state: 'delayed', payload: { page: 2 }, maxAttempts: 4 });
    expect(snoozed.context).toEqual({ tenant: 'acme' });
    await producer.runNow(queue, id);
    await becomes(id, { state: 'delayed', payload: { page: 3 } });
    expect(runs[0]!.dueAt).toEqual(dueAt);
  });

  it('more often than `max` makes a dead letter', async () => {
    const { queue, producer, runs, becomes } = await oneHandler(here, () => {
      throw new SnoozeJob('1h', { max: 2 });
    });
    const { id } = await producer.enqueue(queue, {});
    for (const run of [1, 2]) {
      await eventually(() => expect(runs).toHaveLength(run));
      await becomes(id, { state: 'delayed' });
      await producer.runNow(queue, id);
    }
    await becomes(id, { state: 'dead', deadReason: 'exhausted', attempts: 0 });
    expect(runs.map(({ snoozes }) => snoozes)).toEqual([0, 1, 2]);
  });

  it('with a payload that cannot be stored is a failure', async () => {
    const { queue, producer, becomes } = await oneHandler(here, () => {
      throw new SnoozeJob('1h', { payload: { amount: 10n } });
    });
    const { id } = await producer.enqueue(queue, { amount: 1 });
    const failed = await becomes(id, { state: 'delayed', attempts: 1, payload: { amount: 1 } });
    expect(failed.lastError).toMatchObject({ name: 'PayloadError' });
  });
});

describe('a timeout', () => {
  it('fails the attempt, aborts the signal and frees the slot at once; what the handler does then changes nothing', async () => {
    const log: string[] = [];
    let release!: () => void;
    const hanging = new Promise<void>((resolve) => (release = resolve));
    const { queue, producer, inspector, runs, becomes } = await oneHandler(
      here,
      (payload) => (payload === 'hang' ? hanging : undefined),
      { timeout: 100, concurrency: 1, backoff: fixed('1h') },
      log,
    );
    const { id } = await producer.enqueue(queue, 'hang');
    const timedOut = await becomes(id, { state: 'delayed', attempts: 1 });
    expect(timedOut.lastError).toMatchObject({ name: 'HandlerTimeoutError' });
    expect(runs[0]!.signal.reason).toBeInstanceOf(HandlerTimeoutError);
    expect(runs[0]!.signal.reason).toMatchObject({ code: 'ERR_DQ_TIMEOUT', queue, id, timeoutMs: 100 });

    await producer.enqueue(queue, 'quick');
    await eventually(async () => expect((await inspector.totals(queue)).completed).toBe(1));
    await producer.enqueue(queue, 'hang');
    await eventually(() => expect(runs).toHaveLength(3));
    await eventually(async () => expect((await inspector.totals(queue)).failed).toBe(2));
    release();
    await producer.enqueue(queue, 'quick');
    await eventually(async () => expect((await inspector.totals(queue)).completed).toBe(2));
    expect(await producer.get(queue, id)).toMatchObject({ state: 'delayed', attempts: 1 });
    expect(log.filter((line) => line.includes('ran on after its timeout'))).toHaveLength(1);
  });
});

/** Other classes of the same name, later changes, copies: what the constructor had checked is gone. */
class Redeclared extends SnoozeJob {
  // @ts-expect-error What `delayMs: number` compiles to from ES2022 on.
  delayMs;
}
const ODD_SNOOZES: Record<string, () => unknown> = {
  'of a subclass that declares delayMs again': () => new Redeclared('1h'),
  'without a constructor': () => Object.create(SnoozeJob.prototype) as unknown,
  'whose delay became NaN': () => Object.assign(new SnoozeJob('1h'), { delayMs: NaN }),
  'whose delay became endless': () => Object.assign(new SnoozeJob('1h'), { delayMs: Infinity }),
  'whose limit became a text': () => Object.assign(new SnoozeJob('1h'), { max: 'two' }),
  'whose payload became a text': () => Object.assign(new SnoozeJob('1h'), { payload: 'next' }),
};

describe('a SnoozeJob', () => {
  it.each(Object.entries(ODD_SNOOZES))('%s is a failed attempt, and stopped its queue', async (_, odd) => {
    const { queue, producer, inspector, becomes } = await oneHandler(
      here,
      (n) => {
        if (n === 0) throw odd();
      },
      { attempts: 1 },
    );
    const odds = await producer.enqueue(queue, 0);
    const dead = await becomes(odds.id, { state: 'dead', attempts: 1, deadReason: 'exhausted' });
    expect(dead.lastError).toMatchObject({ name: 'InvalidOptionError', message: expect.stringMatching(/declare/) });
    await producer.enqueueMany(
      queue,
      Array.from({ length: 20 }, (_unused, n) => ({ payload: n + 1 })),
    );
    await eventually(async () => expect((await inspector.totals(queue)).completed).toBe(20));
  });
});

describe('a handler that writes to its job', () => {
  it.each([NaN, 1, 'x', undefined])('(%p) changes nothing of what becomes of it', async (odd) => {
    const { queue, producer, inspector, becomes, runs } = await oneHandler(
      here,
      (_, job) => {
        Object.assign(job, { attempt: odd, maxAttempts: odd, snoozes: odd, id: odd, queue: odd });
        throw new Error('as always');
      },
      { attempts: 2, backoff: fixed(0) },
    );
    const { id } = await producer.enqueue(queue, 0);
    await becomes(id, { state: 'dead', attempts: 2, deadReason: 'exhausted' });
    expect(runs).toHaveLength(2);
    expect(await inspector.totals(queue)).toMatchObject({ failed: 2, retried: 1, dead: 1 });
  });

  it('or freezes it times out like any other', async () => {
    const freezing = (_: unknown, job: DelayedJob) =>
      new Promise((resolve) => {
        Object.freeze(job).signal.addEventListener('abort', resolve);
      });
    const { queue, producer, becomes } = await oneHandler(here, freezing, { attempts: 1, timeout: 50 });
    const { id } = await producer.enqueue(queue, 0);
    const { lastError } = await becomes(id, { state: 'dead', attempts: 1, deadReason: 'exhausted' });
    expect(lastError!.name).toBe('HandlerTimeoutError');
  });
});
