import { describe, expect, it, jest } from '@jest/globals';
import {
  DelayQueueInspector,
  DelayQueueModule,
  DelayQueueProducer,
  InvalidOptionError,
  PublishingPausedError,
  QueueFullError,
  UnavailableError,
} from '../../../lib/index.js';
import type { DelayedJob } from '../../../lib/index.js';
import type { RedisConnection } from '../../../lib/redis/redis.connection.js';
import { NoAnswerError } from '../../../lib/redis/redis.errors.js';
import { handlerClass } from '../../helpers/app.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { holding } from '../../helpers/holding.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { Proxy } from '../../helpers/proxy.js';
import { callsOf } from '../../helpers/script-calls.js';
import { WorkerProcess } from '../../helpers/worker-process.js';

const here = inAWorld();
const end = endingWithEachTest();
const HOUR = 3_600_000;
let queues = 0;
/** Names of a queue and a target that no other test uses. */
const pair = () => [`from-${queues}`, `to-${queues++}`] as [string, string];
const producing = (options = {}) => here.start({ options: { consume: false, ...options } });
const outcomesOf = ({ results }: { results: readonly { id: string; outcome: string }[] }) =>
  Object.fromEntries(results.map(({ id, outcome }) => [id, outcome]));
const errorOf = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  );
/** All jobs of a queue; counters and roles aside. */
const jobsOf = async (queue: string) => {
  const { meta: _, idle: __, ...rest } = await here.world.read(queue);
  return rest;
};

describe('move()', () => {
  it('moves delayed and due jobs, which keep id, due time and options', async () => {
    const { producer, inspector } = await producing();
    const [from, to] = pair();
    const now = await here.world.now();
    const options = { attempts: 3, timeout: '5s', context: { tenant: 't1' } } as const;
    await producer.enqueue(
      from,
      { n: 1 },
      { id: 'late', at: now + HOUR, expiresIn: '2h', keepExpired: true, ...options },
    );
    await producer.enqueue(from, { n: 12345678901234567n.toString(), list: [] }, { id: 'due', at: now - HOUR });
    const before = await Promise.all(['late', 'due'].map((id) => producer.get(from, id)));
    const envelopes = (await here.world.read(from)).jobs;

    expect(await inspector.move(from, ['late', 'due'], to)).toEqual({
      results: [
        { id: 'late', outcome: 'moved' },
        { id: 'due', outcome: 'moved' },
      ],
    });
    const after = await Promise.all(['late', 'due'].map((id) => producer.get(to, id)));
    expect(after).toEqual(before.map((job) => ({ ...job, queue: to })));
    expect((await here.world.read(to)).jobs).toEqual(envelopes);
    expect(await jobsOf(from)).toMatchObject({
      jobs: {},
      due: {},
      running: {},
      leases: {},
      followups: {},
      attempts: {},
    });
    expect(await inspector.totals(from)).toMatchObject({ completed: 0, enqueued: 2 });
    expect(await inspector.counts(to)).toMatchObject({ delayed: 1, due: 1 });
  });

  it('moves jobs that a handler of the target then runs, with all their attempts', async () => {
    const [from, to] = pair();
    const runs: DelayedJob[] = [];
    const { producer, inspector } = await here.start({
      providers: [
        handlerClass(from, () => Promise.reject(new Error('asked to')), { backoff: () => '1h' }),
        handlerClass(to, (_, job) => void runs.push(job)),
      ],
    });
    const { enqueuedAt } = await producer
      .enqueue(from, { n: 1 }, { id: 'A', context: { tenant: 't1' } })
      .then(async () =>
        eventually(async () => {
          const job = (await producer.get(from, 'A'))!;
          expect(job).toMatchObject({ state: 'delayed', attempts: 1 });
          return job;
        }),
      );
    const { dueAt } = (await producer.get(from, 'A'))!;
    expect(outcomesOf(await inspector.move(from, ['A'], to))).toEqual({ A: 'moved' });
    // As late as its retry was to be.
    expect(await producer.get(to, 'A')).toMatchObject({ state: 'delayed', dueAt, attempts: 0 });
    await producer.runNow(to, 'A');
    await eventually(() => expect(runs).toHaveLength(1));
    expect(runs[0]).toMatchObject({ id: 'A', queue: to, payload: { n: 1 }, attempt: 1, enqueuedAt });
    expect(runs[0]!.context).toEqual({ tenant: 't1' });
  });

  it('leaves alone what is running or dead, and says what is not there', async () => {
    const { queue, producer, inspector, bring, run } = await holding(here);
    await bring('dead', 'dead');
    await bring('runs', 'running');
    await bring('late', 'delayed');
    const ids = ['runs', 'dead', 'none', 'late', 'runs'];
    const { results } = await inspector.move(queue, ids, `${queue}-target`);
    expect(results).toEqual([
      { id: 'runs', outcome: 'running' },
      { id: 'dead', outcome: 'dead' },
      { id: 'none', outcome: 'notFound' },
      { id: 'late', outcome: 'moved' },
    ]);
    (await run(2)).end();
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: 1 }));
    expect(await producer.get(queue, 'dead')).toMatchObject({ state: 'dead' });
  });

  it('leaves a job where it is when the target has one under its id, or had within uniqueFor', async () => {
    const { producer, inspector } = await producing();
    const [from, to] = pair();
    for (const id of ['there', 'done', 'free']) await producer.enqueue(from, 'mine', { id, delay: '1h' });
    await producer.enqueue(to, 'theirs', { id: 'there' });
    await here.world.redis.zadd(here.world.key(to, 'unique'), (await here.world.now()) + HOUR, 'done');
    const before = await producer.get(from, 'there');
    expect(outcomesOf(await inspector.move(from, ['there', 'done', 'free'], to))).toEqual({
      there: 'exists',
      done: 'exists',
      free: 'moved',
    });
    expect(await producer.get(from, 'there')).toEqual(before);
    expect(await producer.get(to, 'there')).toMatchObject({ payload: 'theirs' });
    expect(await here.world.violations(from)).toEqual([]);
  });

  it('moves as many as one likes, in chunks, also large ones', async () => {
    const { producer, inspector } = await producing();
    const [from, to] = pair();
    const items = Array.from({ length: 450 }, (_, n) => ({
      payload: n < 20 ? 'x'.repeat(120_000) : n,
      id: `j${n}`,
      delay: HOUR,
    }));
    await producer.enqueueMany(from, items);
    const ids = items.map(({ id }) => id);
    const { results } = await inspector.move(from, ids, to);
    expect(results).toEqual(ids.map((id) => ({ id, outcome: 'moved' })));
    expect(await inspector.counts(from)).toMatchObject({ delayed: 0, running: 0 });
    expect(await inspector.counts(to)).toMatchObject({ delayed: 450 });
  });

  it('works while both queues are paused', async () => {
    const { producer, inspector } = await producing();
    const [from, to] = pair();
    await producer.enqueue(from, 1, { id: 'A' });
    for (const queue of [from, to]) await inspector.pause(queue);
    expect(outcomesOf(await inspector.move(from, ['A'], to))).toEqual({ A: 'moved' });
    expect(await producer.get(to, 'A')).toMatchObject({ state: 'due' });
  });

  it('refuses what makes no sense before anything is sent', async () => {
    const { producer, inspector } = await producing({ strictQueues: true, queues: { listed: {} } });
    await producer.enqueue('listed', 1, { id: 'A', delay: '1h' });
    const before = await jobsOf('listed');
    await expect(inspector.move('listed', ['A'], 'listed')).rejects.toThrow(InvalidOptionError);
    await expect(inspector.move('listed', 'all' as never, 'other')).rejects.toMatchObject({
      code: 'ERR_DQ_INVALID_QUEUE',
    });
    await expect(inspector.move('other', 'all' as never, 'listed')).rejects.toThrow('give an array of ids');
    await expect(inspector.move('other', ['a{b}'], 'listed')).rejects.toMatchObject({ code: 'ERR_DQ_INVALID_ID' });
    await expect(inspector.move('listed', ['A'], 'unheard')).rejects.toThrow('strictQueues');
    expect(await inspector.move('other', [], 'listed')).toEqual({ results: [] });
    expect(await jobsOf('listed')).toEqual(before);
  });

  it('into a full queue moves those that fit, gives the others back as they were, and says why', async () => {
    const [from, to] = pair();
    const { producer, inspector } = await producing({ queues: { [to]: { maxSize: 2 } } });
    for (const id of ['A', 'B', 'C', 'D']) await producer.enqueue(from, id, { id, delay: '1h' });
    const before = await jobsOf(from);
    const error = await errorOf(inspector.move(from, ['A', 'B', 'C', 'D'], to));
    expect(error).toBeInstanceOf(QueueFullError);
    expect(error).toMatchObject({ queue: to, maxSize: 2, retryable: true });
    expect(Object.keys((await here.world.read(to)).jobs).sort()).toEqual(['A', 'B']);
    const { C, D } = before.due;
    expect(await jobsOf(from)).toMatchObject({ due: { C, D }, running: {}, attempts: {}, quarantine: {} });
    // Called again it goes on with what is left.
    await producer.cancel(to, 'A');
    await errorOf(inspector.move(from, ['A', 'B', 'C', 'D'], to));
    expect(Object.keys((await here.world.read(to)).jobs).sort()).toEqual(['B', 'C']);
  });

  it('into a queue whose publishing is paused moves nothing', async () => {
    const { producer, inspector } = await producing();
    const [from, to] = pair();
    await producer.enqueue(from, 1, { id: 'A', delay: '1h' });
    const before = await jobsOf(from);
    await inspector.pausePublishing(to);
    expect(await errorOf(inspector.move(from, ['A'], to))).toBeInstanceOf(PublishingPausedError);
    expect(await jobsOf(from)).toEqual(before);
    expect((await jobsOf(to)).jobs).toEqual({});
  });
});

describe('a move that is disturbed', () => {
  /** An application whose calls pass a proxy, and one whose calls do not. */
  async function farAndNear(commandTimeout = '5s') {
    const proxy = end(await Proxy.before(here.world.url));
    const forRoot = DelayQueueModule.forRoot({
      connection: proxy.url,
      prefix: here.world.prefix,
      consume: false,
      commandTimeout: commandTimeout as never,
    });
    const far = (await here.boot({ imports: [forRoot] })).get(DelayQueueInspector);
    const { producer } = await producing();
    await warmUp(producer, (...move) => far.move(...move));
    return { proxy, far, producer };
  }

  /** Lets nothing pass from the first call of this script on, until it is told to. */
  function stopAt(proxy: Proxy, script: 'enqueue') {
    const isCall = callsOf(script);
    let stopped = false;
    let over = false;
    proxy.judge = (direction, chunk) => {
      stopped ||= direction === 'request' && isCall(chunk);
      return stopped && !over ? 'cut' : 'pass';
    };
    return {
      stopped: () => eventually(() => expect(stopped).toBe(true)),
      goOn: () => void (over = true),
    };
  }

  /** From its second call on a script goes by its hash, by which the proxy knows it. */
  async function warmUp(producer: DelayQueueProducer, move: (...args: [string, string[], string]) => unknown) {
    const [from, to] = pair();
    await producer.enqueue(from, 1, { id: 'A', delay: '1h' });
    void move(from, ['A'], to);
    await eventually(async () => {
      expect([await producer.get(from, 'A'), await producer.get(to, 'A')]).toEqual([undefined, expect.anything()]);
    });
  }

  it.each([
    ['the reserving', 'reserve'],
    ['the putting', 'enqueue'],
    ['the end of it', 'unreserve'],
  ] as const)('loses the answer of %s, and moves each job once', async (_, script) => {
    const { proxy, far, producer } = await farAndNear();
    const [from, to] = pair();
    for (const id of ['A', 'B']) await producer.enqueue(from, id, { id, delay: '1h' });
    const isCall = callsOf(script);
    let asked = false;
    proxy.judge = (direction, chunk) => {
      if (proxy.lost > 0) return 'pass';
      if (direction === 'request' && isCall(chunk)) asked = true;
      return asked && direction === 'reply' ? 'cut' : 'pass';
    };
    expect(outcomesOf(await far.move(from, ['A', 'B'], to))).toEqual({ A: 'moved', B: 'moved' });
    expect(proxy.lost).toBeGreaterThan(0);
    expect((await jobsOf(from)).jobs).toEqual({});
    expect(Object.keys((await jobsOf(to)).due).sort()).toEqual(['A', 'B']);
  });

  it('obeys a cancellation that came before the putting, in both queues', async () => {
    const { proxy, far, producer } = await farAndNear();
    const [from, to] = pair();
    await producer.enqueue(from, 1, { id: 'A', delay: '1h' });
    const { stopped, goOn } = stopAt(proxy, 'enqueue');
    const moving = far.move(from, ['A'], to);
    await stopped();
    expect(await producer.cancel(from, 'A', { running: true })).toMatchObject({ outcome: 'running' });
    goOn();
    expect(outcomesOf(await moving)).toEqual({ A: 'cancelled' });
    for (const queue of [from, to]) expect(await producer.get(queue, 'A')).toBeUndefined();
  });

  it('ends a cancelled job in both queues and keeps the one that was enqueued after the cancellation', async () => {
    const { proxy, far, producer } = await farAndNear();
    const [from, to] = pair();
    await producer.enqueue(from, 'old', { id: 'A', delay: '1h' });
    const { stopped, goOn } = stopAt(proxy, 'enqueue');
    const moving = far.move(from, ['A'], to);
    await stopped();
    await producer.cancel(from, 'A', { running: true });
    expect(await producer.enqueue(from, 'new', { id: 'A', delay: '2h' })).toMatchObject({ outcome: 'replaced' });
    goOn();
    expect(outcomesOf(await moving)).toEqual({ A: 'cancelled' });
    expect(await producer.get(from, 'A')).toMatchObject({ state: 'delayed', payload: 'new' });
    expect(await producer.get(to, 'A')).toBeUndefined();
  });

  it('keeps a replacement that came before the putting', async () => {
    const { proxy, far, producer } = await farAndNear();
    const [from, to] = pair();
    await producer.enqueue(from, 'old', { id: 'A', delay: '1h' });
    const { stopped, goOn } = stopAt(proxy, 'enqueue');
    const moving = far.move(from, ['A'], to);
    await stopped();
    await producer.enqueue(from, 'new', { id: 'A', onDuplicate: 'replace', delay: '2h' });
    goOn();
    expect(outcomesOf(await moving)).toEqual({ A: 'moved' });
    expect(await producer.get(from, 'A')).toMatchObject({ state: 'delayed', payload: 'new' });
    expect(await producer.get(to, 'A')).toMatchObject({ state: 'delayed', payload: 'old' });
  });

  it('says so when it does not know whether the target has a job, which stays held until the lease ends', async () => {
    const { proxy, far, producer } = await farAndNear('1500ms');
    const [from, to] = pair();
    await producer.enqueue(from, 1, { id: 'A', delay: '1h' });
    const before = await jobsOf(from);
    const { goOn } = stopAt(proxy, 'enqueue');
    const error = await errorOf(far.move(from, ['A'], to));
    expect(error).toBeInstanceOf(UnavailableError);
    expect(error).toMatchObject({ maybeAccepted: true, ids: ['A'] });
    expect(await producer.get(from, 'A')).toMatchObject({ state: 'running' });
    await comesBack(from, 'A');
    expect(await jobsOf(from)).toEqual(before);
    goOn();
  });

  it.each([
    ['before the target has the job', 'enqueue', false],
    ['after the target has the job', 'unreserve', true],
  ] as const)('by the death of its process %s, loses nothing', async (_, script, arrived) => {
    const [from, to] = pair();
    const { producer, inspector } = await producing();
    await producer.enqueue(from, { waitMs: 0 }, { id: 'late', delay: '1h', attempts: 1 });
    await producer.enqueue(from, { waitMs: 0 }, { id: 'due', attempts: 1 });
    const before = await jobsOf(from);
    const proxy = end(await Proxy.before(here.world.url));
    const victim = end(await WorkerProcess.start(here.world, { queue: `${from}-other`, connection: proxy.url }));
    await warmUp(producer, (...move) => victim.move(...move));
    const isCall = callsOf(script);
    proxy.judge = (direction, chunk) => {
      if (direction === 'reply' || !isCall(chunk)) return 'pass';
      victim.signal('SIGKILL');
      return 'swallow';
    };
    victim.move(from, ['late', 'due'], to);
    expect(await victim.exited).toMatchObject({ signal: 'SIGKILL' });
    expect(Object.keys((await here.world.read(from)).running).sort()).toEqual(['due', 'late']);
    expect(Object.keys((await here.world.read(to)).jobs).sort()).toEqual(arrived ? ['due', 'late'] : []);
    expect(outcomesOf(await inspector.move(from, ['late', 'due'], to))).toEqual({ late: 'running', due: 'running' });

    await inspector.pause(from);
    await comesBack(from, 'late', 'due');
    expect(await jobsOf(from)).toEqual(before);
    const again = outcomesOf(await inspector.move(from, ['late', 'due'], to));
    const outcome = arrived ? 'exists' : 'moved';
    expect(again).toEqual({ late: outcome, due: outcome });

    // Nobody was charged: with a single attempt each runs, and the one that is not due yet still is not.
    const runs: string[] = [];
    await here.start({ providers: [handlerClass(to, (_payload, { id }) => void runs.push(id))] });
    await eventually(() => expect(runs).toEqual(['due']));
    expect(await producer.get(to, 'late')).toMatchObject({ state: 'delayed', attempts: 0 });
    expect([await here.world.violations(from), await here.world.violations(to)]).toEqual([[], []]);
  });

  it('that did not come back can be done again where no worker looks at the queue any more', async () => {
    const { proxy, far, producer } = await farAndNear('1500ms');
    const [from, to] = pair();
    await producer.enqueue(from, 1, { id: 'A', delay: '1h' });
    const { goOn } = stopAt(proxy, 'enqueue');
    expect(await errorOf(far.move(from, ['A'], to))).toMatchObject({ maybeAccepted: true });
    const { inspector } = await producing();
    expect(outcomesOf(await inspector.move(from, ['A'], to))).toEqual({ A: 'running' });
    await endLeases(from);
    expect(outcomesOf(await inspector.move(from, ['A'], to))).toEqual({ A: 'moved' });
    expect((await jobsOf(from)).jobs).toEqual({});
    goOn();
  });
});

it('a definition as the target brings its maxSize', async () => {
  const { defineQueue } = await import('../../../lib/index.js');
  const [from, to] = pair();
  const { app, inspector } = await producing();
  const producer = app.get(DelayQueueProducer);
  for (const id of ['A', 'B']) await producer.enqueue(from, 1, { id, delay: '1h' });
  const error = await errorOf(inspector.move(from, ['A', 'B'], defineQueue(to, { maxSize: 1 })));
  expect(error).toBeInstanceOf(QueueFullError);
});

async function endLeases(queue: string): Promise<void> {
  const claims = Object.keys((await here.world.read(queue)).leases);
  const past = (await here.world.now()) - 1;
  await here.world.redis.zadd(here.world.key(queue, 'leases'), ...claims.flatMap((claim) => [past, claim]));
}

/** Ends the leases, and waits until a worker, which runs nothing, has taken these jobs back. */
async function comesBack(queue: string, ...ids: string[]): Promise<void> {
  await endLeases(queue);
  await here.world.redis.hset(here.world.key(queue, 'meta'), 'paused', 1);
  await here.start({ providers: [handlerClass(queue, () => undefined)] });
  await eventually(async () => expect(Object.keys((await here.world.read(queue)).due).sort()).toEqual(ids.sort()));
}

describe('move() while another server takes over, without what the target was given last', () => {
  /** What Redis does with a call of the move, instead of running it. */
  type Instead = (script: string, run: () => Promise<unknown>) => Promise<unknown>;

  /**
   * @param isKnown ends when the mover may go on
   * @param after the script after which the target is empty, and the connection is gone
   * @returns what the target held whenever the queue had let go of jobs, and what became of the move
   */
  const moving = async (
    isKnown: (connection: RedisConnection) => Promise<void>,
    instead: Instead = (_, run) => run(),
    after = 'enqueue',
  ) => {
    const { producer, inspector } = await producing({ commandTimeout: '2s' });
    const connection = (inspector as any).shards.connection as RedisConnection;
    const [from, to] = pair();
    const at = (await here.world.now()) + HOUR;
    await producer.enqueueMany(from, ['a', 'b'].map((id) => ({ id, payload: { of: id }, at }))); // prettier-ignore
    const inTarget: string[][] = [];
    const send = connection.run.bind(connection);
    let isLost = false;
    const spy = jest.spyOn(connection, 'run').mockImplementation(async (script, ...args) => {
      const run = () => send(script, ...args);
      const answer = await (isLost ? instead(script, run) : run());
      if (script === 'unreserve') inTarget.push(Object.keys((await here.world.read(to)).jobs).sort());
      if (script !== after || isLost) return answer;
      isLost = true;
      await here.world.redis.del(...(await here.world.redis.keys(here.world.key(to, '*'))));
      (connection.commands as unknown as { stream: { destroy(): void } }).stream.destroy();
      await isKnown(connection);
      if (script === 'unreserve') throw new NoAnswerError('its answer is lost');
      return answer;
    });
    const outcome = await inspector.move(from, ['a', 'b'], to).then(outcomesOf, (error: unknown) => error);
    spy.mockRestore();
    const held = async (queue: string) => {
      const jobs = await Promise.all(['a', 'b'].map((id) => producer.get(queue, id)));
      return jobs.map((job) => job && { payload: job.payload, dueAt: job.dueAt.getTime() - at, state: job.state });
    };
    return { inTarget, outcome, from: await held(from), to: await held(to), queue: from };
  };
  const isBack = async (connection: RedisConnection) => {
    await eventually(() => expect(connection.isReady).toBe(false));
    await connection.whenReady(5_000);
  };
  const notYet = () => Promise.resolve();
  const both = ['a', 'b'].map((id) => ({ payload: { of: id }, dueAt: 0, state: 'delayed' }));

  it.each([
    ['it is known before the queue is told to let go of the jobs', isBack],
    ['it is known when the queue is told so', notYet],
  ])('writes it once more before the queue lets go of the jobs, when %s', async (_, isKnown) => {
    const { inTarget, outcome, from, to } = await moving(isKnown);
    expect(outcome).toEqual({ a: 'moved', b: 'moved' });
    expect(inTarget).toEqual([['a', 'b']]);
    expect([from, to]).toEqual([[undefined, undefined], both]);
  });

  it('writes it once more, when nobody hears whether the jobs were let go of', async () => {
    const { outcome, from, to } = await moving(notYet, async (script, run) => {
      const answer = await run();
      if (script === 'unreserve') throw new NoAnswerError('its answer is lost');
      return answer;
    });
    expect(outcome).toMatchObject({ maybeAccepted: true });
    expect([from, to]).toEqual([[undefined, undefined], both]);
  });

  it('lets go of no job that it cannot write once more', async () => {
    const { inTarget, outcome, from, to, queue } = await moving(notYet, async (script, run) => {
      if (script === 'enqueue') throw new Error("OOM command not allowed when used memory > 'maxmemory'.");
      return run();
    });
    expect(outcome).toBeInstanceOf(UnavailableError);
    expect(inTarget).toEqual([]);
    expect(from).toMatchObject([{ state: 'running' }, { state: 'running' }]);
    expect(to).toEqual([undefined, undefined]);
    await comesBack(queue, 'a', 'b');
  });

  it('does not write once more what the queue had let go of, because it may have run', async () => {
    const { outcome, from, to } = await moving(isBack, undefined, 'unreserve');
    expect(outcome).toEqual({ a: 'moved', b: 'moved' });
    expect([from, to]).toEqual([
      [undefined, undefined],
      [undefined, undefined],
    ]);
  });
});
