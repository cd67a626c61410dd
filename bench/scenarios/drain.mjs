// Jobs that are all due, drained by one process whose handler does nothing: once it is warm, from one start to the last.
import { cpuMicroseconds } from '../measure/redis.mjs';
import { deferred } from '../measure/numbers.mjs';
import { run } from '../processes.mjs';

/** Theirs are jobs without a delay, which they keep apart from delayed ones and run faster. */
const PEERS = new Set(['bullmq', 'beeQueue']);

export default async function drain({ adapter, place, redis, jobs, concurrency, warmUp, groups, bytes, chunk }) {
  await run('./roles/fill.mjs', {
    ...place,
    jobs: warmUp + jobs,
    groups,
    bytes,
    chunk,
    dueAt: PEERS.has(place.library) ? undefined : Date.now(),
  });
  const redisBefore = await cpuMicroseconds(redis);
  const finished = deferred();
  let ran = 0;
  let since;
  let cpuSince;
  const worker = await adapter.openWorker({
    ...place,
    queues: [place.queue],
    concurrency,
    delayed: false,
    handle() {
      if (ran === warmUp) {
        since = performance.now();
        cpuSince = process.cpuUsage();
      }
      if (++ran === warmUp + jobs) finished.resolve([performance.now(), process.cpuUsage(cpuSince)]);
    },
  });
  const [until, { user, system }] = await finished.promise;
  const redisSpent = (await cpuMicroseconds(redis)) - redisBefore;
  await worker.close();
  if (ran !== warmUp + jobs) throw new Error(`${ran} runs of ${warmUp + jobs} jobs`);
  return {
    perSecond: (jobs / (until - since)) * 1000,
    cpuMicrosecondsPerJob: (user + system) / jobs,
    redisMicrosecondsPerJob: redisSpent / (warmUp + jobs),
  };
}
