// How late handlers start at a steady rate with random due times: the handler's first line against the due time, by the wall
// clock that this process shares with a Redis on the same machine. Both are whole milliseconds.
import { ascending, deferred, percentile } from '../measure/numbers.mjs';
import { run } from '../processes.mjs';

/** Between an enqueue and the first due time: longer than the slowest library takes to enqueue them all. */
const LEAD_MS = 1_000;
const LEAD_PER_JOB_MS = 0.2;

export default async function lateness({ adapter, place, perSecond, seconds, concurrency = 100 }) {
  const jobs = perSecond * seconds;
  const late = [];
  const finished = deferred();
  const worker = await adapter.openWorker({
    ...place,
    queues: [place.queue],
    concurrency,
    delayed: true,
    handle(job) {
      if (late.push(Date.now() - adapter.dueAt(job)) === jobs) finished.resolve();
    },
  });
  const spread = { leadMs: LEAD_MS + jobs * LEAD_PER_JOB_MS, forMs: seconds * 1000 };
  await run('./roles/fill.mjs', { ...place, jobs, spread });
  await finished.promise;
  await worker.close();
  return summary(late, jobs);
}

export function summary(late, jobs) {
  if (late.length !== jobs) throw new Error(`${late.length} runs of ${jobs} jobs`);
  const sorted = ascending(late);
  return {
    p50: percentile(sorted, 0.5),
    p99: percentile(sorted, 0.99),
    p999: percentile(sorted, 0.999),
    max: sorted.at(-1),
    earliest: sorted[0],
  };
}
