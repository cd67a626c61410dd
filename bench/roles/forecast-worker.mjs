// One process that works on the queue of bench/forecast.mjs and keeps its history. It tells how late its latest job of the burst
// was, and when it started its last one.
import { setTimeout as sleep } from 'node:timers/promises';
import { DelayQueueHistoryModule } from '../../dist-modules/esm/history/index.js';
import { handlerClass, startApp } from '../libraries/ours.mjs';

export default async function work({ url, space, queue, concurrency, handlerMs }, channel) {
  let latestMs = 0;
  let lastAt = 0;
  const handle = async (body, job) => {
    if (body.burst) {
      latestMs = Math.max(latestMs, job.latenessMs);
      lastAt = Math.max(lastAt, job.dueAt.getTime() + job.latenessMs);
    }
    await sleep(handlerMs);
  };
  const imports = [DelayQueueHistoryModule];
  const app = await startApp({ url, space, imports, providers: [handlerClass([queue], concurrency, handle)] });
  channel.ready();
  await channel.asked;
  await app.close();
  return { latestMs, lastAt };
}
