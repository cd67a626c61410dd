// Very many jobs due in the same millisecond, two worker processes that slept until then, and another client whose PINGs tell
// what all this costs the neighbours.
import { setTimeout as sleep } from 'node:timers/promises';
import { deferred } from '../measure/numbers.mjs';
import { worstOfSteadyScriptMs, worstScriptMs } from '../measure/slowlog.mjs';
import { run, start } from '../processes.mjs';

/** From the beginning of the fill to the due time: what the slowest library needs, since all must wait for that moment. */
const FILL_MS_PER_JOB = { ours: 0.04, bullmq: 0.15, beeQueue: 0.08 };
const LEAD_MS = 10_000;

export default async function burst({ place, redis, jobs, processes, concurrency, baselineMs }) {
  const idlePing = start('./roles/ping.mjs', place);
  await idlePing.ready;
  await sleep(baselineMs);
  idlePing.ask();
  const idlePings = await idlePing.result;
  const idleWorstScriptMs = await worstOfSteadyScriptMs(redis, baselineMs);

  const dueAt = Date.now() + LEAD_MS + Math.ceil(jobs * FILL_MS_PER_JOB[place.library]);
  const ran = new Map();
  const finished = deferred();
  const workers = Array.from({ length: processes }, (_, n) => {
    const worker = start('./roles/work.mjs', { ...place, concurrency, keepLateness: false });
    worker.onNote((count) => {
      ran.set(n, count);
      if ([...ran.values()].reduce((sum, each) => sum + each, 0) >= jobs) finished.resolve();
    });
    return worker;
  });
  await Promise.all(workers.map(({ ready }) => ready));
  const { finishedAt } = await run('./roles/fill.mjs', { ...place, jobs, dueAt });
  if (finishedAt > dueAt - 500)
    throw new Error(`The fill ended ${finishedAt - dueAt + 500} ms too late for the due time.`);
  const pinger = start('./roles/ping.mjs', place);
  await pinger.ready;
  const worst = await worstScriptMs(redis, () =>
    Promise.race([finished.promise, Promise.all(workers.map(({ result }) => result))]),
  );
  pinger.ask();
  const pings = await pinger.result;
  for (const worker of workers) worker.ask();
  const results = await Promise.all(workers.map(({ result }) => result));
  const total = results.reduce((sum, each) => sum + each.ran, 0);
  if (total !== jobs) throw new Error(`${total} runs of ${jobs} jobs`);
  return {
    perSecond: (jobs / (Math.max(...results.map(({ lastAt }) => lastAt)) - dueAt)) * 1000,
    worstScriptMs: worst,
    idleWorstScriptMs,
    pingP99: pings.p99,
    pingMax: pings.max,
    idlePingP99: idlePings.p99,
    idlePingMax: idlePings.max,
  };
}
