// groupmq: first in, first out within each group. A group of its own for each job, or only one at a time would run.
import { Queue, Worker } from 'groupmq';
import { Redis } from 'ioredis';
import { connectionOptions } from '../measure/redis.mjs';

export const settings =
  'a group of its own for each job; keepCompleted and keepFailed 0; autoBatch on in enqueueMany, off otherwise; defaults otherwise';
export const promises = 'at least once; order within a group; a job of a process that died runs again after 30 s';

const silent = { logger: false, keepCompleted: 0, keepFailed: 0 };
let groups = 0;

async function open({ url, space, queue }, more = {}) {
  const redis = new Redis({ ...connectionOptions(url), maxRetriesPerRequest: null });
  return { redis, queue: new Queue({ redis, namespace: `${space}:${queue}`, ...silent, ...more }) };
}

const jobOf = (body, dueAt) => ({
  groupId: `g${process.pid}-${groups++}`,
  data: body,
  ...(dueAt !== undefined && { runAt: dueAt }),
});

export async function openProducer(place) {
  const one = await open(place);
  const many = await open(place, { autoBatch: { size: 1_000, maxWaitMs: 1 } });
  return {
    enqueue: (body, dueAt) => one.queue.add(jobOf(body, dueAt)),
    enqueueMany: (jobs) => Promise.all(jobs.map(({ body, dueAt }) => many.queue.add(jobOf(body, dueAt)))),
    async close() {
      await Promise.all([one.queue.close(), many.queue.close()]);
      one.redis.disconnect();
      many.redis.disconnect();
    },
  };
}

export async function openWorker({ url, space, queues, concurrency, handle }) {
  const opened = await Promise.all(queues.map((queue) => open({ url, space, queue })));
  const workers = opened.map(({ queue }) => {
    const worker = new Worker({ queue, concurrency, logger: false, handler: async (job) => handle(job) });
    worker.on('error', () => {});
    void worker.run();
    return worker;
  });
  return {
    async close() {
      await Promise.all(workers.map((worker) => worker.close()));
      for (const { redis } of opened) redis.disconnect();
    },
  };
}

export function dueAt(job) {
  return job.runAt;
}

export async function counts(redis, space, name) {
  const queue = new Queue({ redis, namespace: `${space}:${name}`, ...silent });
  const [waiting, delayed, active] = await Promise.all([
    queue.getWaitingCount(),
    queue.getDelayedCount(),
    queue.getActiveCount(),
  ]);
  return { pending: waiting + delayed, other: active };
}
