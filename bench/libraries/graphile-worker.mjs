// graphile-worker on PostgreSQL, with the local queue that its manual names for throughput.
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import pg from 'pg';
import { firstRow } from '../measure/stores.mjs';

export const store = 'postgres';
export const settings =
  'localQueue of twice the concurrency; completions and failures in batches (completeJobBatchDelay and failJobBatchDelay 0); 20 connections; waits for NOTIFY';
export const promises =
  'at least once; a job of a process that died waits up to four hours; no token: a slow job may run twice';

const logger = new Logger(() => () => {});
const POOL = 20;

function poolOf(url) {
  const pool = new pg.Pool({ connectionString: url, max: POOL });
  pool.on('error', fail);
  pool.on('connect', (client) => client.on('error', fail));
  return pool;
}

function fail(error) {
  console.error(`graphile-worker: ${error.message}`);
}

export async function openProducer({ url, queue }) {
  const pool = poolOf(url);
  const utils = await makeWorkerUtils({ pgPool: pool, logger });
  await utils.migrate();
  const runAt = (dueAt) => (dueAt === undefined ? undefined : new Date(dueAt));
  return {
    enqueue: (body, dueAt) => utils.addJob(queue, body, { runAt: runAt(dueAt) }),
    enqueueMany: (jobs) =>
      utils.addJobs(jobs.map(({ body, dueAt }) => ({ identifier: queue, payload: body, runAt: runAt(dueAt) }))),
    async close() {
      await utils.release();
      await pool.end();
    },
  };
}

export async function openWorker({ url, queues, concurrency, handle }) {
  const pool = poolOf(url);
  const runner = await run({
    pgPool: pool,
    noHandleSignals: true,
    taskList: Object.fromEntries(queues.map((queue) => [queue, async (_, { job }) => handle(job)])),
    preset: {
      worker: {
        concurrentJobs: concurrency,
        localQueue: { size: 2 * concurrency },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
        logger,
      },
    },
  });
  return {
    async close() {
      await runner.stop();
      await pool.end();
    },
  };
}

export function dueAt(job) {
  return job.run_at.getTime();
}

export async function counts(_redis, _space, _queue, url) {
  const { pending, other } = await firstRow(
    url,
    'select count(*) filter (where locked_at is null) as pending, count(*) filter (where locked_at is not null) as other from graphile_worker.jobs',
  );
  return { pending: Number(pending), other: Number(other) };
}
