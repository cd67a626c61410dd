import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DelayQueueConsumer, DelayQueueModule, DelayQueueProducer, fixed } from '../../../lib/index.js';
import type { DelayedJob, DelayQueueRootOptions, HandlerOptions, QueueLimits } from '../../../lib/index.js';
import { DelayQueueHarness, DelayQueueTestingModule } from '../../../lib/testing/index.js';
import { handlerClass } from '../../helpers/app.js';
import { eventually } from '../../helpers/eventually.js';
import { inAWorld } from '../../helpers/in-a-world.js';
import { problemsOf } from '../../helpers/sharded-groups.js';

// Each limit with each feature that the model does not draw: test/limits-combinations.md has the table of all.

const here = inAWorld();
let queues = 0;
const newQueue = () => `combined-${queues++}`;
const JOBS = 12;
const GROUPS = ['a', 'b'];
const PER_MS = 150;
const RUN_MS = 15;
const DAY = 86_400_000;

interface Run {
  readonly id: string;
  readonly group: string | undefined;
  readonly priority: number;
  readonly nth: number;
  readonly attempt: number;
  /** By the clock of the server. */
  readonly claimedAt: number;
  readonly began: number;
  ended: number;
}

interface Limit {
  readonly limits: QueueLimits;
  /** Of the handler. */
  readonly handler?: HandlerOptions;
  /** Fails the first attempt of the first job of each group. */
  readonly fails?: boolean;
  readonly priorities?: boolean;
  /** @returns what is wrong */
  readonly broken: (runs: readonly Run[]) => unknown[];
}

/** Moments at which more than `most` of these ran. */
function tooMany(runs: readonly Run[], most: number): unknown[] {
  return runs.filter(({ began }) => runs.filter((one) => one.began <= began && one.ended > began).length > most);
}

/** Windows in which more than `max` of these started. */
function tooFast(runs: readonly Run[], max: number): unknown[] {
  const starts = runs.map(({ claimedAt }) => claimedAt);
  return starts.filter((at) => starts.filter((other) => other >= at && other < at + PER_MS).length > max);
}

const perGroup = (runs: readonly Run[], broken: (ofOne: readonly Run[]) => unknown[]) =>
  GROUPS.flatMap((group) => broken(runs.filter((run) => run.group === group)));

/** Those that began before an earlier one of their group had ended. */
const passed = (runs: readonly Run[]) =>
  runs.filter((run) => runs.some((other) => other.nth < run.nth && other.ended > run.began));

const LIMITS: Record<string, Limit> = {
  globalConcurrency: { limits: { globalConcurrency: 2 }, broken: (runs) => tooMany(runs, 2) },
  rateLimit: { limits: { rateLimit: { max: 4, per: PER_MS } }, broken: (runs) => tooFast(runs, 4) },
  'groups.concurrency': {
    limits: { groups: { concurrency: 1 } },
    broken: (runs) => perGroup(runs, (ofOne) => [...tooMany(ofOne, 1), ...passed(ofOne)]),
  },
  'groups.rateLimit': {
    limits: { groups: { rateLimit: { max: 2, per: PER_MS } } },
    broken: (runs) => perGroup(runs, (ofOne) => tooFast(ofOne, 2)),
  },
  'groups.retries': {
    limits: { groups: { concurrency: 1, retries: 'block' } },
    handler: { attempts: 5, backoff: fixed(30) },
    fails: true,
    broken: (runs) => perGroup(runs, passed),
  },
  priority: {
    limits: { priorityStep: '1m' },
    handler: { concurrency: 1 },
    priorities: true,
    // Those of a group that began before a more urgent one. Their lateness does not tell: of a job that waited in its process it is that
    // of its start, and an answer that came meanwhile is from before.
    broken: (runs) =>
      runs.filter((run, n) => runs.slice(n + 1).some((one) => one.group === run.group && one.priority > run.priority)),
  },
};

/** Those of a group that began before the next attempt of one that had failed. */
function early(runs: readonly Run[], retried: readonly Run[]): unknown[] {
  return retried.flatMap((before) => {
    const again = runs.find(({ id }) => id === before.id)!;
    return runs.filter(({ group, nth, began }) => group === before.group && nth !== before.nth && began < again.began);
  });
}

interface Settings {
  readonly limit: Limit;
  readonly queue?: string;
  readonly shards?: number;
  readonly handler?: HandlerOptions;
  /** How long a handler takes. */
  readonly runMs?: number;
}

/** A handler that notes its runs. */
function recorded(limit: Limit, runMs: number) {
  const runs: Run[] = [];
  const retried: Run[] = [];
  const failed = new Set<string>();
  const runOne = async (job: DelayedJob, nth: number) => {
    const { id, group, priority, attempt, dueAt, latenessMs } = job;
    const claimedAt = dueAt.getTime() + latenessMs;
    const run: Run = { id, group, priority, nth, attempt, claimedAt, began: performance.now(), ended: Infinity };
    runs.push(run);
    // Not all end together: who has a place while others run is what limits are about.
    if (runMs > 0) await sleep(runMs + 8 * (nth % 3));
    if (limit.fails && !failed.has(`${group}`)) {
      failed.add(`${group}`);
      // It has not ended: nobody may pass it until its next attempt.
      runs.splice(runs.indexOf(run), 1);
      retried.push(run);
      throw new Error('not yet');
    }
    run.ended = performance.now();
  };
  const handle = async (payload: unknown, given: unknown) => {
    if (!Array.isArray(given)) {
      const job = given as DelayedJob;
      return runOne(job, job.schedule ? job.schedule.at.getTime() : Number(payload));
    }
    const jobs = given as (DelayedJob & { fail: (error: unknown) => void })[];
    await Promise.all(jobs.map((job, n) => runOne(job, (payload as number[])[n]!).catch((error) => job.fail(error))));
  };
  return { runs, retried, handle };
}

/** A producer of jobs in two groups, all due, and a worker of them that begins when it is told to. */
async function combined({ limit, queue = newQueue(), shards = 1, handler = {}, runMs = RUN_MS }: Settings) {
  const root: DelayQueueRootOptions = shards > 1 ? { queues: { [queue]: { shards } } } : {};
  const { app, producer, inspector } = await here.start({ options: { ...root, consume: false } });
  await inspector.setLimits(queue, limit.limits);
  const at = (await here.world.now()) - 10_000;
  const items = (count = JOBS) =>
    Array.from({ length: count }, (_, n) => ({
      payload: n,
      id: `j${n}`,
      group: GROUPS[n % GROUPS.length]!,
      at: limit.priorities ? at : at + n,
      ...(limit.priorities && n >= count / 2 && { priority: 9 }),
    }));
  const { runs, retried, handle } = recorded(limit, runMs);
  const work = () =>
    here.start({ providers: [handlerClass(queue, handle, { ...limit.handler, ...handler })], options: root });
  /** Waits until so many have run. @returns what was not as the limit says, or is left */
  const ends = async (count: number, { expired = 0, left = 0 } = {}) => {
    await eventually(async () => expect(await inspector.totals(queue)).toMatchObject({ completed: count, expired }));
    expect(runs).toHaveLength(count);
    expect(await inspector.counts(queue)).toMatchObject({ due: 0, delayed: left, running: 0 });
    return [...limit.broken(runs), ...early(runs, retried), ...(await problemsOf(here.world, queue, shards))];
  };
  return { queue, app, producer, inspector, items, at, work, ends };
}

const EACH = Object.entries(LIMITS);

describe('a batch handler', () => {
  it.each(EACH)('keeps %s', async (_, limit) => {
    const { queue, producer, items, work, ends } = await combined({ limit, handler: { batch: { size: 5 } } });
    await producer.enqueueMany(queue, items());
    await work();
    expect(await ends(JOBS)).toEqual([]);
  });
});

describe('jobs that have expired', () => {
  it.each(EACH)('are settled beside %s, which the others keep', async (_, limit) => {
    const { queue, producer, items, at, work, ends } = await combined({ limit });
    const expired = Array.from({ length: 6 }, (_, n) => ({
      payload: 100 + n,
      id: `x${n}`,
      group: GROUPS[n % GROUPS.length]!,
      at,
      expiresIn: '1s' as const,
    }));
    await producer.enqueueMany(queue, [...expired, ...items()]);
    await work();
    expect(await ends(JOBS, { expired: 6 })).toEqual([]);
  });
});

describe('completed jobs that are kept', () => {
  it.each(EACH)('take no room of %s', async (_, limit) => {
    const { queue, producer, inspector, items, work, ends } = await combined({
      limit,
      handler: { keepCompleted: { count: 100 } },
    });
    await producer.enqueueMany(queue, items());
    await work();
    expect(await ends(JOBS)).toEqual([]);
    expect((await inspector.counts(queue)).completed).toBe(JOBS);
    expect((await inspector.list(queue, 'completed', { limit: 1 })).jobs[0]).toMatchObject({ state: 'completed' });
  });
});

describe('a queue with shards', () => {
  it.each(EACH)('keeps %s', async (_, limit) => {
    const { queue, producer, items, work, ends } = await combined({ limit, shards: 2 });
    await producer.enqueueMany(queue, items());
    await work();
    expect(await ends(JOBS)).toEqual([]);
  });
});

describe('another number of shards', () => {
  it.each(EACH)('leaves %s as it is', async (_, limit) => {
    const queue = newQueue();
    const before = await combined({ limit, queue });
    await before.producer.enqueueMany(queue, before.items());
    await before.inspector.reshard(queue, { to: 2 });
    const { work, ends } = await combined({ limit, queue, shards: 2 });
    await work();
    expect(await ends(JOBS)).toEqual([]);
  });
});

describe('jobs that are moved', () => {
  it.each(EACH)('run under %s of the target', async (_, limit) => {
    const from = newQueue();
    const { queue, producer, inspector, items, work, ends } = await combined({ limit });
    await inspector.setLimits(from, limit.limits);
    await producer.enqueueMany(from, items());
    const { results } = await inspector.move(
      from,
      items().map(({ id }) => id),
      queue,
    );
    expect(new Set(results.map(({ outcome }) => outcome))).toEqual(new Set(['moved']));
    await work();
    expect(await ends(JOBS)).toEqual([]);
    expect(await here.world.problems(from)).toEqual([]);
  });
});

describe('occurrences of schedules', () => {
  it.each(EACH)('keep %s', async (_, limit) => {
    const { queue, producer, inspector, work, ends } = await combined({ limit });
    for (const [n, group] of GROUPS.entries()) {
      const options = { overlap: 'allow', missed: 'all', ...(limit.priorities && { priority: 9 * n }) } as const;
      // Where priorities decide, they decide within a group.
      const named = { group: limit.priorities ? GROUPS[0]! : group, ...options };
      await producer.schedule(queue, `s${n}`, { cron: '0 9 * * *' }, n, named);
      await producer.backfillSchedule(queue, `s${n}`, { from: Date.now() - 6 * DAY, to: Date.now() });
    }
    const { due, delayed } = await inspector.counts(queue);
    expect([due, delayed]).toEqual([12, 2]);
    await work();
    expect(await ends(due, { left: delayed })).toEqual([]);
  });
});

describe('short handlers, of which nothing is fetched ahead', () => {
  it.each(EACH)('keep %s', async (_, limit) => {
    const count = limit.limits.rateLimit || limit.limits.groups?.rateLimit ? 2 * JOBS : 10 * JOBS;
    const { queue, producer, items, work, ends } = await combined({ limit, runMs: 0, handler: { concurrency: 2 } });
    await producer.enqueueMany(queue, items(count));
    await work();
    expect(await ends(count)).toEqual([]);
  });
});

describe('two processes whose sessions are lost on the way', () => {
  it.each(EACH)('keep %s', async (name, limit) => {
    const { queue, producer, inspector, items, work, ends } = await combined({ limit });
    await producer.enqueueMany(queue, items(2 * JOBS));
    // The order of two processes with one slot each says nothing of that of their claims.
    await Promise.all(name === 'priority' ? [work()] : [work(), work()]);
    const isDone = async () => (await inspector.totals(queue)).completed >= 2 * JOBS;
    while (!(await isDone())) {
      const keys = await here.world.redis.keys(`${here.world.prefix}:{${queue}}:session:*`);
      if (keys.length > 0) await here.world.redis.unlink(...keys);
      await sleep(20);
    }
    expect(await ends(2 * JOBS)).toEqual([]);
  });
});

describe('take()', () => {
  const sorted = (payloads: readonly number[]) => [...payloads].sort((a, b) => a - b);
  const taken: Record<string, (payloads: readonly number[]) => void> = {
    globalConcurrency: (payloads) => expect(payloads).toHaveLength(2),
    rateLimit: (payloads) => expect(payloads).toHaveLength(4),
    'groups.concurrency': (payloads) => expect(sorted(payloads)).toEqual([0, 1]),
    'groups.rateLimit': (payloads) => expect(sorted(payloads)).toEqual([0, 1, 2, 3]),
    'groups.retries': (payloads) => expect(sorted(payloads)).toEqual([0, 1]),
    // Groups take turns; a turn begins with the urgent ones.
    priority: (payloads) => {
      expect(payloads).toHaveLength(6);
      for (const group of [0, 1]) {
        const ofGroup = payloads.filter((n) => n % 2 === group);
        const urgent = ofGroup.filter((n) => n >= JOBS / 2);
        expect(urgent).toHaveLength(Math.min(3, ofGroup.length));
        expect(ofGroup.slice(0, urgent.length)).toEqual(urgent);
      }
    },
  };

  it.each(EACH)('gives no more at a time than %s says, in its order', async (name, limit) => {
    const { queue, producer, app, items } = await combined({ limit });
    await producer.enqueueMany(queue, items());
    taken[name]!((await app.get(DelayQueueConsumer).take(queue, name === 'priority' ? 6 : JOBS)) as number[]);
    expect(await here.world.problems(queue)).toEqual([]);
  });
});

describe('the test kit', () => {
  it.each(EACH)('keeps %s while it moves time', async (_, limit) => {
    const queue = newQueue();
    const { runs, retried, handle } = recorded(limit, 0);
    const options = { concurrency: 4, ...limit.handler, ...limit.limits };
    @Module({
      imports: [DelayQueueModule.forRoot({ prefix: here.world.prefix, shutdownHooksWarning: false })],
      providers: [handlerClass(queue, handle, options)],
    })
    class AppModule {}
    const builder = Test.createTestingModule({ imports: [AppModule] });
    DelayQueueTestingModule.override(builder).setLogger(false as never);
    const app = await (await builder.compile()).init();
    try {
      const [harness, producer] = [DelayQueueHarness.of(app), app.get(DelayQueueProducer)];
      const at = harness.now.getTime() + 3_600_000;
      for (let n = 0; n < JOBS; n++) {
        const priority = limit.priorities && n >= JOBS / 2 ? { priority: 9 } : {};
        const options = {
          id: `j${n}`,
          group: GROUPS[n % GROUPS.length]!,
          at: limit.priorities ? at : at + n,
          ...priority,
        };
        await producer.enqueue(queue, n, options);
      }
      await harness.advance('59m');
      expect(runs).toEqual([]);
      await harness.advance('1h');
      expect(runs).toHaveLength(JOBS);
      expect([...limit.broken(runs), ...early(runs, retried)]).toEqual([]);
    } finally {
      await app.close();
    }
  });
});
