// Very many jobs due in the same millisecond, two worker processes that slept until then, and another client whose PINGs tell
// what all this costs the neighbours.
import { setTimeout as sleep } from 'node:timers/promises';
import { worstOfSteadyScriptMs, worstScriptMs } from '../measure/slowlog.mjs';
import { run, start } from '../processes.mjs';
import { startWorkers } from '../workers.mjs';

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
  const workers = startWorkers(processes, { ...place, concurrency, keepLateness: false }, jobs);
  await workers.ready;
  const { finishedAt } = await run('./roles/fill.mjs', { ...place, jobs, dueAt });
  if (finishedAt > dueAt - 500)
    throw new Error(`The fill ended ${finishedAt - dueAt + 500} ms too late for the due time.`);
  const pinger = start('./roles/ping.mjs', place);
  await pinger.ready;
  const worst = await worstScriptMs(redis, () => workers.finished);
  pinger.ask();
  const pings = await pinger.result;
  const results = await workers.end();
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
