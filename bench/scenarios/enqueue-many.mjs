// Jobs enqueued a thousand at a time by one caller.
import { cpuClock } from '../measure/cpu.mjs';
import { payload } from '../payload.mjs';

const WARM_UP_CHUNKS = 2;

export default async function enqueueMany({ adapter, place, redis, jobs, chunk }) {
  const producer = await adapter.openProducer(place);
  const batch = () => Array.from({ length: chunk }, (_, n) => ({ body: payload(n) }));
  for (let n = 0; n < WARM_UP_CHUNKS; n++) await producer.enqueueMany(batch());
  const chunks = Math.ceil(jobs / chunk);
  const cpu = await cpuClock(redis);
  const since = performance.now();
  for (let n = 0; n < chunks; n++) await producer.enqueueMany(batch());
  const seconds = (performance.now() - since) / 1000;
  const spent = await cpu(chunks * chunk);
  await producer.close();
  return { perSecond: (chunks * chunk) / seconds, ...spent, stays: (WARM_UP_CHUNKS + chunks) * chunk };
}
