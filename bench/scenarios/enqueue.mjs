// Jobs enqueued one by one, by many callers at a time.
import { cpuClock } from '../measure/cpu.mjs';
import { payload } from '../payload.mjs';

export default async function enqueue({ adapter, place, redis, jobs, callers, warmUp, bytes }) {
  const producer = await (adapter.openCaller ?? adapter.openProducer)(place);
  await enqueueAll(producer, warmUp, callers, bytes);
  const cpu = await cpuClock(redis);
  const since = performance.now();
  await enqueueAll(producer, jobs, callers, bytes);
  const seconds = (performance.now() - since) / 1000;
  const spent = await cpu(jobs);
  await producer.close();
  return { perSecond: jobs / seconds, ...spent, stays: adapter.openCaller ? 0 : warmUp + jobs };
}

async function enqueueAll(producer, jobs, callers, bytes) {
  let next = 0;
  const caller = async () => {
    while (next < jobs) await producer.enqueue(payload(next++, bytes));
  };
  await Promise.all(Array.from({ length: callers }, caller));
}
