// Jobs that are all due, drained by several processes at once; and before that by one, with which they are compared.
import { cpuMicroseconds } from '../measure/redis.mjs';
import { run } from '../processes.mjs';
import { startWorkers } from '../workers.mjs';

export default async function workers({ place, redis, jobs, processes, concurrency }) {
  const alone = processes > 1 ? await drained({ place, redis, jobs, processes: 1, concurrency }) : undefined;
  const together = await drained({ place, redis, jobs, processes, concurrency });
  const cost = ({ cpuMicrosecondsPerJob, redisMicrosecondsPerJob }) => cpuMicrosecondsPerJob + redisMicrosecondsPerJob;
  return { ...together, ...(alone && { costAgainstOne: cost(together) / cost(alone) }) };
}

/** From the moment at which all jobs are due; the processes are there and wait for it. */
async function drained({ place, redis, jobs, processes, concurrency }) {
  const dueAt = Date.now() + FILL_MS + Math.ceil(jobs * FILL_MS_PER_JOB);
  const workers = startWorkers(processes, { ...place, concurrency, keepLateness: false, cpuFrom: dueAt }, jobs);
  await workers.ready;
  const { finishedAt } = await run('./roles/fill.mjs', { ...place, jobs, dueAt });
  if (finishedAt > dueAt) throw new Error(`The fill ended ${finishedAt - dueAt} ms after the due time.`);
  const before = await cpuMicroseconds(redis);
  await workers.finished;
  const redisSpent = (await cpuMicroseconds(redis)) - before;
  const results = await workers.end();
  const total = results.reduce((sum, each) => sum + each.ran, 0);
  if (total !== jobs) throw new Error(`${total} runs of ${jobs} jobs`);
  return {
    perSecond: (jobs / (Math.max(...results.map(({ lastAt }) => lastAt)) - dueAt)) * 1000,
    cpuMicrosecondsPerJob: results.reduce((sum, each) => sum + each.cpuMicroseconds, 0) / jobs,
    redisMicrosecondsPerJob: redisSpent / jobs,
  };
}

/** Besides the start of many processes. */
const FILL_MS = 6_000;
const FILL_MS_PER_JOB = 0.05;
