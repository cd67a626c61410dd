// Jobs enqueued one by one, by many callers at a time.
import { payload } from '../payload.mjs';

const WARM_UP = 1_000;

export default async function enqueue({ adapter, place, jobs, callers }) {
  const producer = await adapter.openProducer(place);
  await enqueueAll(producer, WARM_UP, callers);
  const since = performance.now();
  await enqueueAll(producer, jobs, callers);
  const seconds = (performance.now() - since) / 1000;
  await producer.close();
  return { perSecond: jobs / seconds, stays: WARM_UP + jobs };
}

async function enqueueAll(producer, jobs, callers) {
  let next = 0;
  const caller = async () => {
    while (next < jobs) await producer.enqueue(payload(next++));
  };
  await Promise.all(Array.from({ length: callers }, caller));
}
