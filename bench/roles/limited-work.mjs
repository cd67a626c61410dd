// One of several worker processes under a limit: notes when each handler began and ended.
import { setTimeout as sleep } from 'node:timers/promises';
import { load } from '../libraries/index.mjs';

const NOTE_EVERY_MS = 100;

export default async function work({ library, url, space, queue, concurrency, limits, handlerMs }, channel) {
  const { openWorker } = await load(library);
  const runs = [];
  const handle = async () => {
    const began = Date.now();
    if (handlerMs > 0) await sleep(handlerMs);
    runs.push([began, Date.now()]);
  };
  const worker = await openWorker({ url, space, queues: [queue], concurrency, handle, delayed: true, limits });
  channel.ready();
  let reported = 0;
  const notes = setInterval(() => {
    if (runs.length > reported) channel.note((reported = runs.length));
  }, NOTE_EVERY_MS);
  await channel.asked;
  clearInterval(notes);
  await worker.close();
  return { runs };
}
