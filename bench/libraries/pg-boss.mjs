// pg-boss on PostgreSQL: batches of the size of the concurrency, no wait while there is more, and of half a second, its least, when
// there is nothing.
import { PgBoss } from 'pg-boss';
import { firstRow } from '../measure/stores.mjs';

export const store = 'postgres';
export const settings =
  'work() with batchSize of the concurrency, burstWhenBatchFull, pollingIntervalSeconds 0.5 (its least); 20 connections; supervision and schedules off';
export const promises =
  'at least once; a job of a process that died fails after 15 minutes; jobs that are done stay for seven days';

const POOL = 20;

async function open(url, queues) {
  const boss = new PgBoss({ connectionString: url, max: POOL, supervise: false, schedule: false });
  boss.on('error', (error) => console.error(`pg-boss: ${error.message}`));
  await boss.start();
  for (const queue of queues) await boss.createQueue(queue);
  return boss;
}

export async function openProducer({ url, queue }) {
  const boss = await open(url, [queue]);
  const startAfter = (dueAt) => (dueAt === undefined ? undefined : new Date(dueAt));
  return {
    enqueue: (body, dueAt) => boss.send(queue, body, { startAfter: startAfter(dueAt) }),
    enqueueMany: (jobs) =>
      boss.insert(
        queue,
        jobs.map(({ body, dueAt }) => ({ data: body, startAfter: startAfter(dueAt) })),
      ),
    close: () => boss.stop({ graceful: false }),
  };
}

export async function openWorker({ url, queues, concurrency, handle }) {
  const boss = await open(url, queues);
  for (const queue of queues) {
    await boss.work(
      queue,
      { batchSize: concurrency, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true },
      async (jobs) => {
        for (const job of jobs) handle(job);
      },
    );
  }
  return { close: () => boss.stop({ graceful: true, timeout: 10_000 }) };
}

export function dueAt(job) {
  return job.startAfter.getTime();
}

export async function counts(_redis, _space, _queue, url) {
  const { pending, other } = await firstRow(
    url,
    "select count(*) filter (where state = 'created') as pending, count(*) filter (where state in ('active', 'retry', 'failed')) as other from pgboss.job",
  );
  return { pending: Number(pending), other: Number(other) };
}
