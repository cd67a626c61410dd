// How late the few jobs of one tenant start, alone and beside a tenant with a backlog. Both share the queue and its worker.
import { setTimeout as sleep } from 'node:timers/promises';
import { run } from '../processes.mjs';
import { summary } from './lateness.mjs';

export default async function quietTenant({ adapter, place, backlog, concurrency, probes, everyMs }) {
  const late = [];
  let others = 0;
  const worker = await adapter.openWorker({
    ...place,
    queues: [place.queue],
    concurrency,
    delayed: true,
    handle(job) {
      if (job.group === 'quiet') late.push(Date.now() - adapter.dueAt(job));
      else others++;
    },
  });
  const producer = await adapter.openProducer(place);
  const probe = async () => {
    late.length = 0;
    for (let n = 0; n < probes; n++) {
      await producer.enqueueMany([{ body: { n }, dueAt: Date.now(), group: 'quiet' }]);
      await sleep(everyMs);
    }
    while (late.length < probes) await sleep(10);
    return summary(late, probes);
  };
  const alone = await probe();
  await run('./roles/fill.mjs', { ...place, jobs: backlog, groups: 1, dueAt: Date.now() });
  const beside = await probe();
  const left = backlog - others;
  while (others < backlog) await sleep(50);
  await producer.close();
  await worker.close();
  return { p50: beside.p50, p99: beside.p99, aloneP50: alone.p50, aloneP99: alone.p99, left };
}
