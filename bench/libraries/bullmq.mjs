// BullMQ without Nest around it, which can only help its figures.
import { Queue, Worker } from 'bullmq';
import { connectionOptions } from '../measure/redis.mjs';

export const settings =
  'removeOnComplete, removeOnFail; event stream cut to about 100 entries (it cannot be switched off); one Worker per queue; stalled checks and locks as they are by default';

const options = (url, space) => ({ connection: connectionOptions(url), prefix: space });
const JOB = { removeOnComplete: true, removeOnFail: true };

function jobOptions(due) {
  if (due === undefined) return JOB;
  const timestamp = Date.now();
  return { ...JOB, timestamp, delay: Math.max(0, due - timestamp) };
}

export async function openProducer({ url, space, queue: name }) {
  const queue = new Queue(name, { ...options(url, space), streams: { events: { maxLen: 100 } } });
  queue.on('error', fail);
  await queue.waitUntilReady();
  return {
    enqueue: (body, due) => queue.add('job', body, jobOptions(due)),
    enqueueMany: (jobs) =>
      queue.addBulk(jobs.map(({ body, dueAt: due }) => ({ name: 'job', data: body, opts: jobOptions(due) }))),
    close: () => queue.close(),
  };
}

/** A queue has the one limit, its workers have the other. */
async function limitsOf({ running, rate } = {}, queues, { url, space }) {
  for (const name of running ? queues : []) {
    const queue = new Queue(name, options(url, space));
    await queue.setGlobalConcurrency(running);
    await queue.close();
  }
  return rate ? { limiter: { max: rate.max, duration: rate.perMs } } : {};
}

export async function openWorker({ url, space, queues, concurrency, handle, limits }) {
  const limiter = await limitsOf(limits, queues, { url, space });
  const workers = queues.map((queue) => {
    const worker = new Worker(queue, async (job) => handle(job), {
      ...options(url, space),
      ...limiter,
      concurrency,
    });
    worker.on('error', fail);
    return worker;
  });
  await Promise.all(workers.map((worker) => worker.waitUntilReady()));
  return { close: () => Promise.all(workers.map((worker) => worker.close())) };
}

export function dueAt(job) {
  return job.timestamp + job.opts.delay;
}

export async function counts(redis, space, queue) {
  const key = (name) => `${space}:${queue}:${name}`;
  const [wait, delayed, ...others] = await Promise.all([
    redis.llen(key('wait')),
    redis.zcard(key('delayed')),
    redis.llen(key('active')),
    ...['prioritized', 'completed', 'failed'].map((name) => redis.zcard(key(name))),
  ]);
  return { pending: wait + delayed, other: others.reduce((sum, n) => sum + n, 0) };
}

let errors = 0;

/** The first few tell what is wrong; a broken run has thousands. */
function fail(error) {
  if (errors++ < 3) console.error(`BullMQ: ${error.message}`);
}
