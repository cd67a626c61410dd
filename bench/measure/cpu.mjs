import { cpuMicroseconds } from './redis.mjs';

/** What this process, with its helper threads, and the command thread of Redis take from now on; both per job, in us. */
export async function cpuClock(redis) {
  const before = await cpuMicroseconds(redis);
  const since = process.cpuUsage();
  return async (jobs) => {
    const { user, system } = process.cpuUsage(since);
    const redisMicroseconds = (await cpuMicroseconds(redis)) - before;
    return { cpuMicrosecondsPerJob: (user + system) / jobs, redisMicrosecondsPerJob: redisMicroseconds / jobs };
  };
}
