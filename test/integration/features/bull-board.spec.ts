import { createRequire } from 'node:module';
import { describe, expect, it } from '@jest/globals';
import { createBullBoard } from '@bull-board/api';
import type { BaseAdapter } from '@bull-board/api/dist/queueAdapters/base.js';
import { delayQueueBoardAdapter } from '../../../lib/bull-board/index.js';
import type { TestApp } from '../../helpers/app.js';
import { inAWorld } from '../../helpers/in-a-world.js';

const here = inAWorld();
const load = createRequire(import.meta.url);
const { BaseAdapter: Base } = load('@bull-board/api/dist/queueAdapters/base.js') as { BaseAdapter: typeof BaseAdapter };
let queues = 0;
const fresh = () => `board-${queues++}`;

interface Route {
  readonly method: string | readonly string[];
  readonly route: string | readonly string[];
  readonly handler: (request: object) => Promise<{ status?: number; body: any }>;
}

/** A board of which the test is the web server: it checks the form of what the board answers. */
function boardOf({ inspector, producer }: TestApp, queue: string, options?: object) {
  let routes: readonly Route[] = [];
  let known: unknown;
  const adapter = delayQueueBoardAdapter(Base, queue, { inspector, producer }, options);
  const server: Record<string, (given: any) => unknown> = new Proxy(
    {
      setApiRoutes: (given: readonly Route[]) => ((routes = given), server),
      setQueues: (given: unknown) => ((known = given), server),
    } as Record<string, (given: any) => unknown>,
    { get: (own, name) => own[name as string] ?? (() => server) },
  );
  const uiBasePath = 'node_modules/@bull-board/ui';
  createBullBoard({
    queues: [adapter],
    serverAdapter: server as never,
    options: { uiBasePath, validateResponses: true, uiConfig: {} },
  });
  const ask = async (
    method: string,
    path: string,
    { query = {}, body = {} }: { query?: object; body?: object } = {},
  ) => {
    for (const { method: methods, route, handler } of routes) {
      for (const pattern of [route].flat()) {
        const match = new RegExp(`^${pattern.replaceAll(/:(\w+)/g, '(?<$1>[^/]+)')}$`).exec(path);
        if (!match || ![methods].flat().includes(method)) continue;
        const request = { queues: known, uiConfig: {}, query, params: { ...match.groups }, body, headers: {} };
        return handler(request);
      }
    }
    throw new Error(`The board has no ${method} ${path}`);
  };
  const read = async (status: string, page = 1, jobsPerPage = 10) => {
    const query = { activeQueue: queue, status, page: String(page), jobsPerPage: String(jobsPerPage) };
    const { body } = await ask('get', '/api/queues', { query });
    expect(body).toEqual({ queues: [expect.anything()] });
    return body.queues[0] as { name: string; counts: Record<string, number>; isPaused: boolean; jobs: any[] };
  };
  return { adapter, ask, read };
}

async function dead({ producer }: TestApp, queue: string, ids: readonly string[]): Promise<void> {
  const at = await here.world.now();
  const { redis } = here.world;
  for (const id of ids) {
    await producer.enqueue(queue, { id }, { id });
    await redis.zrem(here.world.key(queue, 'due'), id);
    await redis.zadd(here.world.key(queue, 'dead'), at, id);
    const error = JSON.stringify({
      name: 'RangeError',
      message: 'too much',
      stack: 'RangeError: too much\n    at x',
      at,
    });
    await redis.hset(here.world.key(queue, 'errors'), id, `exhausted\n${error}`);
  }
}

const start = () => here.start({ options: { consume: false } });

describe('on a bull-board, a queue', () => {
  it('is shown with its jobs by state, page by page', async () => {
    const app = await start();
    const queue = fresh();
    await app.producer.enqueueMany(
      queue,
      Array.from({ length: 25 }, (_, n) => ({ payload: { n }, id: `J${n}`, delay: `${n + 1}h` })),
    );
    await app.producer.enqueue(queue, 1, { id: 'due' });
    await dead(app, queue, ['D']);
    const { read } = boardOf(app, queue);
    const first = await read('delayed');
    expect(first).toMatchObject({
      name: queue,
      isPaused: false,
      counts: { delayed: 25, waiting: 1, active: 0, failed: 1, completed: 0 },
    });
    expect(first.jobs.map(({ id }) => id)).toEqual(Array.from({ length: 10 }, (_, n) => `J${n}`));
    expect(first.jobs[0]).toMatchObject({
      data: { n: 0 },
      delay: 3_600_000,
      opts: { delay: 3_600_000 },
      isFailed: false,
    });
    expect((await read('delayed', 3)).jobs.map(({ id }) => id)).toEqual(['J20', 'J21', 'J22', 'J23', 'J24']);
    const [failed] = (await read('failed')).jobs;
    expect(failed).toMatchObject({ id: 'D', isFailed: true, failedReason: 'RangeError: too much' });
    expect((await read('latest')).jobs).toHaveLength(12);
  });

  it('gives all its jobs where no range is asked for, or one to the last, as BullMQ does', async () => {
    const app = await start();
    const queue = fresh();
    const payloads = Array.from({ length: 230 }, (_, n) => ({ payload: n, id: `J${n}`, delay: `${n + 1}h` }));
    await app.producer.enqueueMany(queue, payloads);
    const { adapter } = boardOf(app, queue);
    expect(await adapter.getJobs(['delayed'])).toHaveLength(230);
    expect(await adapter.getJobs(['delayed'], 0, -1)).toHaveLength(230);
    const last = await adapter.getJobs(['delayed'], 228, -1);
    expect(last.map((job) => job.toJSON().id)).toEqual(['J228', 'J229']);
  });

  it('takes the acts of the board on single jobs, and says which it does not', async () => {
    const app = await start();
    const queue = fresh();
    await app.producer.enqueue(queue, 1, { id: 'A', delay: '1h' });
    await dead(app, queue, ['D', 'E']);
    const { adapter } = boardOf(app, queue);
    const job = async (id: string) => (await adapter.getJob(id))!;
    await (await job('A')).promote();
    expect(await (await job('A')).getState()).toBe('waiting');
    await (await job('D')).retry();
    expect(await (await job('D')).getState()).toBe('waiting');
    await (await job('E')).remove();
    expect(await adapter.getJob('E')).toBeUndefined();
    await expect((await job('A')).retry()).rejects.toThrow('Job "A" of queue');
    await expect(adapter.promoteAll()).rejects.toThrow('bulk.runNow()');
    await expect(adapter.obliterate()).rejects.toThrow('DelayQueueInspector.remove()');
    await expect(adapter.empty()).rejects.toThrow('purge()');
    await expect(adapter.clean('delayed', 0)).rejects.toThrow('bulk.cancel()');
    await expect(adapter.getJobs(['delayed'], 10_000, 10_009)).rejects.toThrow('cursor');
    expect(await app.inspector.counts(queue)).toMatchObject({ delayed: 0, due: 2, dead: 0 });
  });

  it('is paused, resumed, cleaned, and given jobs', async () => {
    const app = await start();
    const queue = fresh();
    await dead(app, queue, ['D', 'E']);
    const { adapter, read } = boardOf(app, queue);
    await adapter.pause();
    expect((await read('delayed')).isPaused).toBe(true);
    await adapter.resume();
    expect(await adapter.isPaused()).toBe(false);
    await adapter.clean('failed', 0);
    const added = await adapter.addJob(queue, { a: 1 }, { delay: 3_600_000, jobId: 'N' } as never);
    expect(added.toJSON()).toMatchObject({ id: 'N', data: { a: 1 }, delay: 3_600_000 });
    expect(await app.inspector.counts(queue)).toMatchObject({ delayed: 1, dead: 0 });
  });

  it('that may only be read is left alone by the board', async () => {
    const app = await start();
    const queue = fresh();
    const { ask, adapter } = boardOf(app, queue, { readOnlyMode: true });
    expect(adapter.readOnlyMode).toBe(true);
    const { status } = await ask('put', `/api/queues/${queue}/pause`);
    expect(status).toBe(405);
    expect(await adapter.isPaused()).toBe(false);
  });
});
