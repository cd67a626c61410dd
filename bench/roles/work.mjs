// One of several worker processes: drains a queue until it is asked to stop, and tells how many it ran, how late, and when.
import { load } from '../libraries/index.mjs';

const NOTE_EVERY_MS = 100;
const BEFORE_MS = 50;

export default async function work(
  { library, url, space, queue, variant, concurrency, keepLateness, cpuFrom },
  channel,
) {
  const { openWorker, dueAt } = await load(library);
  const late = [];
  let ran = 0;
  let firstAt = 0;
  let lastAt = 0;
  const handle = keepLateness
    ? (job) => {
        late.push(Date.now() - dueAt(job));
        ran++;
      }
    : () => {
        lastAt = Date.now();
        if (ran++ === 0) firstAt = lastAt;
      };
  const worker = await openWorker({ url, space, queues: [queue], concurrency, handle, delayed: true, variant });
  let cpu = process.cpuUsage();
  // What counts is the work, not the start of the process.
  if (cpuFrom) setTimeout(() => (cpu = process.cpuUsage()), cpuFrom - Date.now() - BEFORE_MS).unref();
  channel.ready();
  let reported = 0;
  const notes = setInterval(() => {
    if (ran > reported) channel.note((reported = ran));
  }, NOTE_EVERY_MS);
  await channel.asked;
  clearInterval(notes);
  const { user, system } = process.cpuUsage(cpu);
  await worker.close();
  return { ran, late, firstAt, lastAt, cpuMicroseconds: user + system };
}
