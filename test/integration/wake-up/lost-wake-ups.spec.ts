import { expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { randomBytes } from 'node:crypto';
import { DelayQueueConsumer } from '../../../lib/index.js';
import type { DelayQueueRootOptions, HandlerOptions } from '../../../lib/index.js';
import { createApp, handlerClass } from '../../helpers/app.js';
import type { TestApp } from '../../helpers/app.js';
import { RedisCluster } from '../../helpers/cluster.js';
import { endingWithEachTest } from '../../helpers/ending.js';
import { eventually } from '../../helpers/eventually.js';
import { FalseSentinel } from '../../helpers/false-sentinel.js';
import { RedisServer } from '../../helpers/redis-server.js';
import { WorkerProcess } from '../../helpers/worker-process.js';
import { World } from '../../helpers/world.js';

/** A lost wake-up may make a job so late, and no more. */
const MADE_GOOD_MS = 5_000;
const HOUR = 3_600_000;
const SHARDS = 3;

/** What gives a queue at rest something to do. */
interface Case {
  readonly options?: HandlerOptions;
  readonly shards?: number;
  /** Nobody handles it: somebody waits in pull(). */
  readonly isPulled?: boolean;
  /** In an application that has ended when the queue comes to rest. */
  before?(app: TestApp, queue: string): Promise<unknown>;
  act(app: TestApp, queue: string): Promise<unknown>;
  /** How many jobs run then; default 1. */
  readonly jobs?: number;
}

const later = ({ producer }: TestApp, queue: string) => producer.enqueue(queue, 1, { id: 'A', delay: HOUR });
const now = ({ producer }: TestApp, queue: string) => producer.enqueue(queue, 1);
const many = ({ producer }: TestApp, queue: string) =>
  producer.enqueueMany(
    queue,
    Array.from({ length: 12 }, (_, n) => ({ payload: n })),
  );

const CASES: Record<string, Case> = {
  'a job': { act: now },
  'a job that is due in a moment': { act: ({ producer }, queue) => producer.enqueue(queue, 1, { delay: 500 }) },
  'a job before another one': { before: later, act: now },
  'a job that runs now': { before: later, act: ({ producer }, queue) => producer.runNow(queue, 'A') },
  'a job that is put forward': {
    before: later,
    act: ({ producer }, queue) => producer.reschedule(queue, 'A', { delay: 100 }),
  },
  'a job that is replaced': {
    before: later,
    act: ({ producer }, queue) => producer.enqueue(queue, 1, { id: 'A', onDuplicate: 'replace' }),
  },
  'a signal': { before: later, act: ({ producer }, queue) => producer.signal(queue, 'A', 1) },
  'a dead letter that is requeued': {
    before: async ({ producer, inspector }, queue) => {
      await producer.enqueue(queue, 'dies', { attempts: 1 });
      await eventually(async () => expect(await inspector.counts(queue)).toMatchObject({ dead: 1 }));
    },
    act: ({ inspector }, queue) => inspector.requeueDead(queue, 'all'),
  },
  'the end of a pause': {
    before: ({ inspector }, queue) => inspector.pause(queue),
    act: async ({ inspector, producer }, queue) => {
      await producer.enqueue(queue, 1);
      await inspector.resume(queue);
    },
  },
  'a move from another queue': {
    before: ({ producer }) => producer.enqueue('elsewhere', 1, { id: 'A', delay: HOUR }),
    act: async ({ inspector, producer }, queue) => {
      await inspector.move('elsewhere', ['A'], queue);
      await producer.runNow(queue, 'A');
    },
  },
  'a schedule': { act: ({ producer }, queue) => producer.schedule(queue, 's', { every: '1s' }, 1) },
  'a schedule that is triggered': {
    act: async ({ producer }, queue) => {
      await producer.schedule(queue, 's', { cron: '0 0 1 1 *' }, 1);
      await producer.triggerSchedule(queue, 's');
    },
  },
  'jobs in shards': { shards: SHARDS, act: many, jobs: 12 },
  'jobs whose shards were changed and changed back': {
    act: async (app, queue) => {
      await app.inspector.reshard(queue, { to: SHARDS });
      await app.inspector.reshard(queue, { to: 1 });
      await many(app, queue);
    },
    jobs: 12,
  },
  'jobs in batches': { options: { batch: { size: 5 } }, act: many, jobs: 12 },
  'jobs one at a time': { options: { globalConcurrency: 1 }, act: many, jobs: 12 },
  'jobs of groups': {
    act: ({ producer }, queue) => producer.enqueue(queue, 1, { group: 'a', priority: 3 }),
  },
  'a limit that ends': {
    options: { rateLimit: { max: 1, per: '1h' } },
    before: async (app, queue) => {
      await now(app, queue);
      await eventually(async () => expect(await app.inspector.totals(queue)).toMatchObject({ completed: 1 }));
      await now(app, queue);
    },
    act: ({ inspector }, queue) => inspector.setLimits(queue, undefined),
  },
  'a pulled job': { isPulled: true, act: now },
  'a pulled job in shards': { isPulled: true, shards: SHARDS, act: now },
};

interface Servers {
  readonly connection: NonNullable<DelayQueueRootOptions['connection']>;
  /** A client of each. */
  readonly nodes: readonly Redis[];
}

const end = endingWithEachTest();

async function single(): Promise<Servers & { url: string }> {
  const { url } = end(await RedisServer.start());
  const redis = new Redis(url);
  end({ close: async () => redis.disconnect() });
  return { url, nodes: [redis], connection: url };
}

const KINDS: Record<string, () => Promise<Servers>> = {
  'a single server': single,
  'a server behind a Sentinel': async () => {
    const { url, nodes } = await single();
    return { nodes, connection: { sentinels: [end(await FalseSentinel.of(url)).address], name: 'jobs' } };
  },
  'a Cluster': async () => {
    const { nodes, connection } = end(await RedisCluster.start());
    return { connection, nodes: nodes.map(({ redis }) => redis) };
  },
};

async function calls(nodes: readonly Redis[], command: string): Promise<number> {
  const stats = await Promise.all(nodes.map((node) => node.info('commandstats')));
  const found = stats.map((text) => new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(text)?.[1]);
  return found.reduce((sum, count) => sum + Number(count ?? 0), 0);
}

/** All workers have come to rest: two looks at their shards, and no script in between. */
async function atRest(nodes: readonly Redis[]): Promise<void> {
  await eventually(async () => {
    const [looks, scripts] = [await calls(nodes, 'mget'), await calls(nodes, 'evalsha')];
    await eventually(async () => expect(await calls(nodes, 'mget')).toBeGreaterThan(looks), 10_000);
    expect(await calls(nodes, 'evalsha')).toBe(scripts);
  }, 60_000);
}

const CASE_OF = new Map(Object.entries(CASES).map(([name, one]) => [name.replaceAll(' ', '-'), one]));

it.each(Object.keys(KINDS))(
  'a wake-up that was lost is made good within 5 s on %s',
  async (kind) => {
    const { connection, nodes } = await KINDS[kind]!();
    const prefix = `t${randomBytes(6).toString('hex')}`;
    const queues = Object.fromEntries(Array.from(CASE_OF, ([queue, { shards = 1 }]) => [queue, { shards }]));
    const ran = new Map<string, number>();
    let isBefore = true;
    const run = (queue: string, payload: unknown) => {
      if (isBefore && payload === 'dies') throw new Error('planned');
      ran.set(queue, (ran.get(queue) ?? 0) + (Array.isArray(payload) ? payload.length : 1));
    };
    const providers = Array.from(CASE_OF, ([queue, { options, isPulled }]) =>
      isPulled ? [] : [handlerClass(queue, (payload: unknown) => run(queue, payload), options)],
    ).flat();
    const start = async () =>
      end(await createApp({ prefix } as World, { providers, options: { connection, prefix, queues } }));

    const first = await start();
    await Promise.all(Array.from(CASE_OF, async ([queue, one]) => one.before?.(first, queue)));
    await first.close();
    isBefore = false;
    ran.clear();
    const app = await start();
    const consumer = app.app.get(DelayQueueConsumer);
    const pull = async (queue: string) => {
      for (const job of await consumer.pull(queue, { wait: '2m' })) {
        run(queue, job.payload);
        await job.complete();
      }
    };
    for (const [queue, { isPulled }] of CASE_OF) if (isPulled) void pull(queue).catch(() => undefined);
    await atRest(nodes);
    for (const node of nodes) await node.acl('SETUSER', 'default', '-publish');
    expect([...ran]).toEqual([]);

    await Promise.all(Array.from(CASE_OF, ([queue, one]) => one.act(app, queue)));
    const since = performance.now();
    await eventually(() => {
      const missing = Array.from(CASE_OF).flatMap(([queue, { jobs = 1 }]) =>
        (ran.get(queue) ?? 0) < jobs ? [queue] : [],
      );
      expect(missing).toEqual([]);
    }, MADE_GOOD_MS);
    expect(performance.now() - since).toBeLessThan(MADE_GOOD_MS);
  },
  120_000,
);

it('a job of a process that was killed comes back when its lease ends, although nobody was told of anything', async () => {
  const LEASE_MS = 3_000;
  const { url, nodes } = await single();
  const world = end(await World.open(url));
  const { producer } = end(await createApp(world, { options: { consume: false } }));
  const start = async () => end(await WorkerProcess.start(world, { queue: 'killed', handler: { lease: LEASE_MS } }));
  const workers = [await start(), await start(), await start()];
  await atRest(nodes);
  for (const node of nodes) await node.acl('SETUSER', 'default', '-publish');

  const { id } = await producer.enqueue('killed', { hang: true });
  const runs = (attempt: number) =>
    eventually(
      () => {
        const found = workers.find((worker) =>
          worker.of('start').some((start) => start.id === id && start.attempt === attempt),
        );
        expect(found).toBeDefined();
        return found!;
      },
      2 * (LEASE_MS + MADE_GOOD_MS),
    );
  // After its first loss the job goes into quarantine, after the second one it runs alone.
  for (const attempt of [1, 2]) {
    const victim = await runs(attempt);
    await victim.kill();
    const killedAt = performance.now();
    await runs(attempt + 1);
    expect(performance.now() - killedAt).toBeLessThan(LEASE_MS + MADE_GOOD_MS);
  }
}, 120_000);
