// What Redis keeps for a job that waits for an hour.
import { usedMemory } from '../measure/redis.mjs';
import { run } from '../processes.mjs';

/** These bring what a queue needs once: its scripts, its fixed keys. */
const FIRST = 100;

export default async function memory({ place, redis, jobs }) {
  const fill = (n, first) => run('./roles/fill.mjs', { ...place, jobs: n, first, dueAt: Date.now() + 3_600_000 });
  await fill(FIRST, 0);
  const before = await usedMemory(redis);
  await fill(jobs, FIRST);
  const after = await usedMemory(redis);
  return { bytesPerJob: (after - before) / jobs, stays: FIRST + jobs };
}
