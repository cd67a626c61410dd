// The same with many processes that mostly wait, and what they cost Redis together.
//
// Counted per job: every command that the server executed (INFO commandstats), sent by clients or called by scripts, from
// before the first enqueue to after the last settlement, the waiting in between included. Each job is enqueued by a call of its
// own, so that none gains by bulk; connecting is over before the count begins.
import { setTimeout as sleep } from 'node:timers/promises';
import { commandCalls, cpuMicroseconds } from '../measure/redis.mjs';
import { payload } from '../payload.mjs';
import { summary } from './lateness.mjs';
import { startWorkers } from '../workers.mjs';

const LEAD_MS = 1_500;
const SETTLE_MS = 1_000;

export default async function fleet({ adapter, place, redis, processes, perSecond, seconds, concurrency = 10 }) {
  const jobs = perSecond * seconds;
  const workers = startWorkers(processes, { ...place, concurrency, keepLateness: true }, jobs);
  await workers.ready;
  const producer = await adapter.openProducer(place);
  await sleep(SETTLE_MS);
  const before = await commandCalls(redis);
  const cpuBefore = await cpuMicroseconds(redis);
  for (let n = 0; n < jobs; n++) {
    await producer.enqueue(payload(n), Date.now() + LEAD_MS + Math.floor(Math.random() * seconds * 1000));
  }
  await workers.finished;
  await sleep(SETTLE_MS / 4); // The last runs are known to have begun: they still have to be settled.
  const after = await commandCalls(redis);
  const cpu = (await cpuMicroseconds(redis)) - cpuBefore;
  await producer.close();
  const results = await workers.end();
  return {
    ...summary(
      results.flatMap(({ late }) => late),
      jobs,
    ),
    commandsPerJob: (after.all - before.all) / jobs,
    scriptsPerJob: (after.scripts - before.scripts) / jobs,
    redisMicrosecondsPerJob: cpu / jobs,
  };
}
