// One process that enqueues and runs at the same time, as an application does: a hundred callers, each job run once, for a
// minute. Whoever enqueues faster than the jobs run would only grow a backlog, so callers pause while it is at its limit.
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuClock } from '../measure/cpu.mjs';
import { median } from '../measure/numbers.mjs';
import { info } from '../measure/redis.mjs';
import { payload } from '../payload.mjs';

const BACKLOG = 5_000;
const SAMPLE_MS = 250;

export default async function steady({ adapter, place, redis, seconds, callers, concurrency, warmUpSeconds = 5 }) {
  let ran = 0;
  let enqueued = 0;
  const worker = await adapter.openWorker({
    ...place,
    queues: [place.queue],
    concurrency,
    delayed: false,
    handle: () => void ran++,
  });
  const producer = await adapter.openProducer(place);
  let stop = false;
  const caller = async () => {
    while (!stop) {
      if (enqueued - ran >= BACKLOG) await sleep(1);
      else await producer.enqueue(payload(enqueued++));
    }
  };
  const callersDone = Promise.all(Array.from({ length: callers }, caller));
  await sleep(warmUpSeconds * 1000);
  const cpu = await cpuClock(redis);
  const since = performance.now();
  const ranBefore = ran;
  const samples = [];
  while (performance.now() - since < seconds * 1000) {
    await sleep(SAMPLE_MS);
    const used = Number((await info(redis, 'memory')).used_memory);
    samples.push({ heap: process.memoryUsage().heapUsed, redis: used });
  }
  const perSecond = ((ran - ranBefore) / (performance.now() - since)) * 1000;
  const spent = await cpu(ran - ranBefore);
  stop = true;
  await callersDone;
  while (ran < enqueued) await sleep(10);
  await worker.close();
  await producer.close();
  if (ran !== enqueued) throw new Error(`${ran} runs of ${enqueued} jobs`);
  return { perSecond, ...spent, ...thirds(samples, 'heap'), ...thirds(samples, 'redis') };
}

/** Medians: a heap is a saw, and its teeth say nothing. */
function thirds(samples, field) {
  const third = Math.ceil(samples.length / 3);
  const first = median(samples.slice(0, third).map((sample) => sample[field]));
  const last = median(samples.slice(-third).map((sample) => sample[field]));
  return { [`${field}First`]: first, [`${field}Last`]: last, [`${field}Growth`]: last / first };
}
