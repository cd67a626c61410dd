// A process with many queues in which nothing happens: what it asks of Redis, and how many connections it holds.
import { setTimeout as sleep } from 'node:timers/promises';
import { commandCalls, connections } from '../measure/redis.mjs';

const SETTLE_MS = 3_000;

export default async function idle({ adapter, place, redis, queues, seconds }) {
  const before = await connections(redis);
  const names = Array.from({ length: queues }, (_, n) => `${place.queue}${n}`);
  const worker = await adapter.openWorker({ ...place, queues: names, concurrency: 10, delayed: true, handle() {} });
  await sleep(SETTLE_MS);
  const held = (await connections(redis)) - before;
  const from = await commandCalls(redis);
  const since = performance.now();
  await sleep(seconds * 1000);
  const to = await commandCalls(redis);
  const took = (performance.now() - since) / 1000;
  await worker.close();
  return {
    scriptsPerSecond: (to.scripts - from.scripts) / took,
    commandsPerSecond: (to.all - from.all) / took,
    connections: held,
  };
}
