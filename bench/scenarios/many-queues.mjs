// One process with very many queues, each of which has a job per minute: how late they are, and what it costs Redis per job, with all that
// the process asks in between.
import { setTimeout as sleep } from 'node:timers/promises';
import { deferred } from '../measure/numbers.mjs';
import { commandCalls } from '../measure/redis.mjs';
import { payload } from '../payload.mjs';
import { summary } from './lateness.mjs';

const SETTLE_MS = 3_000;

export default async function manyQueues({ adapter, place, redis, queues, seconds }) {
  const names = Array.from({ length: queues }, (_, n) => `${place.queue}${n}`);
  const jobs = Math.round((queues * seconds) / 60);
  const late = [];
  const finished = deferred();
  const worker = await adapter.openWorker({
    ...place,
    queues: names,
    concurrency: 10,
    delayed: true,
    handle(job) {
      if (late.push(Date.now() - adapter.dueAt(job)) === jobs) finished.resolve();
    },
  });
  const producer = await adapter.openProducer({ ...place, queue: undefined });
  await sleep(SETTLE_MS);
  const before = await commandCalls(redis);
  const from = Date.now() + SETTLE_MS;
  for (let n = 0; n < jobs; n++) {
    const dueAt = from + Math.floor(Math.random() * seconds * 1000);
    await producer.enqueueTo(names[n % queues], payload(n), dueAt);
  }
  await finished.promise;
  const after = await commandCalls(redis);
  await producer.close();
  await worker.close();
  return { ...summary(late, jobs), commandsPerJob: (after.all - before.all) / jobs };
}
