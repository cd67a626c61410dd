// What a job costs Redis when very many others wait: memory, and CPU of its main thread for the enqueue and for claim and settle
// together. The sizes are reached one after the other, through the library.
import { deferred } from '../measure/numbers.mjs';
import { cpuMicroseconds, usedMemory } from '../measure/redis.mjs';
import { run } from '../processes.mjs';

const DAY_MS = 86_400_000;
const FIRST = 100;
const CONCURRENCY = 100;

export default async function pending({ adapter, place, redis, sizes, probe }) {
  const spread = { leadMs: DAY_MS, forMs: 30 * DAY_MS };
  const fill = (jobs, first, due) =>
    run('./roles/fill.mjs', { ...place, jobs, first, ...due }, { timeoutMs: 3_600_000 });
  await fill(FIRST, 0, { spread });
  const empty = await usedMemory(redis);
  const bySize = [];
  let stored = FIRST;
  for (const size of sizes) {
    await fill(size - stored, stored, { spread });
    stored = size;
    const bytesPerJob = ((await usedMemory(redis)) - empty) / (size - FIRST);
    const atFirst = await cpuMicroseconds(redis);
    await fill(probe, size, {});
    const filled = await cpuMicroseconds(redis);
    await drain(adapter, place, probe);
    const drained = await cpuMicroseconds(redis);
    bySize.push({ bytesPerJob, enqueueUs: (filled - atFirst) / probe, claimUs: (drained - filled) / probe });
  }
  return { bySize, stays: stored };
}

async function drain(adapter, place, jobs) {
  const finished = deferred();
  let ran = 0;
  const worker = await adapter.openWorker({
    ...place,
    queues: [place.queue],
    concurrency: CONCURRENCY,
    delayed: false,
    handle: () => void (++ran === jobs && finished.resolve()),
  });
  await finished.promise;
  await worker.close();
  if (ran !== jobs) throw new Error(`${ran} runs of ${jobs} jobs`);
}
