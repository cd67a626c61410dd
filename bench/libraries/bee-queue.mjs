// bee-queue with all that it lets one switch off switched off, as its own benchmark does.
import BeeQueue from 'bee-queue';
import { connectionOptions } from '../measure/redis.mjs';

export const settings =
  'removeOnSuccess, removeOnFailure; getEvents, sendEvents and storeJobs off; activateDelayedJobs only where jobs are delayed, with delayedDebounce 0 instead of a second';

const LEAN = { getEvents: false, sendEvents: false, storeJobs: false, removeOnSuccess: true, removeOnFailure: true };

async function open(name, { url, space, ...options }) {
  const queue = new BeeQueue(name, { redis: connectionOptions(url), prefix: space, ...LEAN, ...options });
  queue.on('error', (error) => console.error(`bee-queue: ${error.message}`));
  return queue.ready();
}

export async function openProducer({ url, space, queue: name }) {
  const queue = await open(name, { url, space, isWorker: false });
  const job = (body, due) => {
    const made = queue.createJob(body);
    return due === undefined ? made : made.delayUntil(due);
  };
  return {
    enqueue: (body, due) => job(body, due).save(),
    async enqueueMany(jobs) {
      const errors = await queue.saveAll(jobs.map(({ body, dueAt: due }) => job(body, due)));
      for (const error of errors.values()) throw error;
    },
    close: () => queue.close(),
  };
}

export async function openWorker({ url, space, queues, concurrency, handle, delayed }) {
  const open_ = await Promise.all(
    queues.map((name) => open(name, { url, space, activateDelayedJobs: delayed, delayedDebounce: 0 })),
  );
  for (const queue of open_) queue.process(concurrency, async (job) => handle(job));
  return { close: () => Promise.all(open_.map((queue) => queue.close(30_000))) };
}

export function dueAt(job) {
  return job.options.delay;
}

export async function counts(redis, space, queue) {
  const key = (name) => `${space}:${queue}:${name}`;
  const [waiting, delayed, records, ...others] = await Promise.all([
    redis.llen(key('waiting')),
    redis.zcard(key('delayed')),
    redis.hlen(key('jobs')),
    redis.llen(key('active')),
    ...['succeeded', 'failed'].map((name) => redis.scard(key(name))),
  ]);
  const pending = waiting + delayed;
  return { pending, other: others.reduce((sum, n) => sum + n, 0) + Math.abs(records - pending) };
}
