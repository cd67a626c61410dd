// Jobs enqueued a thousand at a time by one caller.
import { cpuClock } from '../measure/cpu.mjs';
import { payload } from '../payload.mjs';

export default async function enqueueMany({ adapter, place, redis, jobs, chunk, warmUp }) {
  const producer = await adapter.openProducer(place);
  const batch = () => Array.from({ length: chunk }, (_, n) => ({ body: payload(n) }));
  const [warmUpChunks, chunks] = [warmUp, jobs].map((count) => Math.ceil(count / chunk));
  for (let n = 0; n < warmUpChunks; n++) await producer.enqueueMany(batch());
  const cpu = await cpuClock(redis);
  const since = performance.now();
  for (let n = 0; n < chunks; n++) await producer.enqueueMany(batch());
  const seconds = (performance.now() - since) / 1000;
  const spent = await cpu(chunks * chunk);
  await producer.close();
  return { perSecond: (chunks * chunk) / seconds, ...spent, stays: (warmUpChunks + chunks) * chunk };
}
